// A sandbox: commands, files, ports, forks. What E2B has is asked by E2B's routes: docs/e2b.md.
import { NotFoundError, SandglassError, TimedOutError, UnavailableError } from './errors.js'
import { bytesOf, frameOf, framesOf, type Http, part, type Reply, type Request, sleep } from './http.js'
import { fieldsOf } from './policies.js'
import { Process } from './process.js'
import { Session } from './session.js'
import type * as t from './types.js'

const ENVD = 49983
const INTERPRETER = 49999
const POLL_S = 0.1
const TYPES: Record<string, t.FileInfo['type']> = { FILE_TYPE_FILE: 'file', FILE_TYPE_DIRECTORY: 'directory', FILE_TYPE_SYMLINK: 'symlink' }

type Made = Pick<t.SandboxInfo, 'sandboxID' | 'templateID' | 'envdAccessToken' | 'trafficAccessToken' | 'domain'>

export class Sandbox {
  readonly id: string
  readonly templateId: string
  readonly #http: Http
  readonly #made: Made

  /** @internal */
  constructor(http: Http, made: Made) {
    this.#http = http
    this.#made = made
    this.id = made.sandboxID
    this.templateId = made.templateID
  }

  /** @internal */
  static async find(http: Http, id: string): Promise<Sandbox> {
    return new Sandbox(http, await http.json('GET', `/sandboxes/${part(id)}`))
  }

  /** E2B's own object for it, for what is not here: terminals, watches, git. Needs the package `e2b`. */
  async e2b(): Promise<import('e2b').Sandbox> {
    const { Sandbox: E2bSandbox } = await import('e2b')
    const endAt = Date.parse((await this.info()).endAt)
    const timeoutMs = Math.max(endAt - Date.now(), 1000) // connecting must not make it live longer
    return E2bSandbox.connect(this.id, { apiKey: this.#http.headers['X-API-Key'], apiUrl: this.#http.url, sandboxUrl: this.#http.url, timeoutMs })
  }

  // ---- commands ---------------------------------------------------------------------------------

  /** Runs a command in a shell of its own, to its end. */
  async exec(command: string, options: t.ExecOptions = {}): Promise<t.ExecResult> {
    const began = Date.now()
    const out = { stdout: '', stderr: '' }
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    const take = (name: 'stdout' | 'stderr', on: ((text: string) => void) | undefined, base64?: string) => {
      const text = decoders[name].decode(base64 === undefined ? undefined : Buffer.from(base64, 'base64'), { stream: base64 !== undefined })
      if (!text) return
      out[name] += text
      on?.(text)
    }
    let pid: number | undefined
    let end: any
    try {
      for await (const { event = {} } of this.startShell(command, options)) {
        if (event.start) {
          pid = event.start.pid
          if (options.stdin) await this.sendInput({ pid }, options.stdin)
          if (options.stdin !== undefined) await this.closeInput({ pid })
        } else if (event.data) {
          if (event.data.stdout) take('stdout', options.onStdout, event.data.stdout)
          if (event.data.stderr) take('stderr', options.onStderr, event.data.stderr)
        } else if (event.end) end = event.end
      }
    } finally {
      // Nobody waits for it any more.
      if (pid !== undefined && !end) await this.signal({ pid }, 'SIGKILL').catch(() => {})
    }
    if (!end) throw new SandglassError('the command has no end')
    take('stdout', options.onStdout)
    take('stderr', options.onStderr)
    const exitCode = exitCodeOf(end)
    return { success: exitCode === 0, exitCode, ...out, duration: (Date.now() - began) / 1000 }
  }

  /** Starts a command in the background. What it writes is kept in the sandbox, and read by `logs`. */
  async start(command: string, options: t.StartOptions = {}): Promise<Process> {
    return Process.start(this, command, options)
  }

  /** A command that `start` has started, whoever did; undefined if there is none of that name. */
  async getProcess(id: string): Promise<Process | undefined> {
    return Process.find(this, id)
  }

  async listProcesses(): Promise<Process[]> {
    return Process.list(this)
  }

  /** A shell whose directory, variables and functions stay from one `exec` to the next; with `id`, one that is open. */
  async session(options: t.SessionOptions = {}): Promise<Session> {
    return Session.open(this, options)
  }

  /** Waits until something listens on a port. */
  async waitForPort(port: number, options: t.PortOptions = {}): Promise<void> {
    return this.waitForPortOf(port, options)
  }

  /** @internal While `running` says so. */
  async waitForPortOf(port: number, { mode = 'tcp', path = '/', status = { min: 200, max: 399 }, timeoutSeconds = 30 }: t.PortOptions, running?: () => Promise<void>): Promise<void> {
    const { min, max } = typeof status === 'number' ? { min: status, max: status } : status
    const deadline = Date.now() + timeoutSeconds * 1000
    for (;;) {
      const open = mode === 'tcp' ? await this.#listens(port) : await this.#answers(port, path, min, max)
      if (open) return
      await running?.()
      if (Date.now() > deadline) throw new TimedOutError(`port ${port}: nothing ${mode === 'tcp' ? 'listens' : `answers ${path} as it should`} after ${timeoutSeconds} s`)
      await sleep(POLL_S)
    }
  }

  async #listens(port: number): Promise<boolean> {
    return (await this.exec(`exec 3<>/dev/tcp/localhost/${Number(port)}`)).success
  }

  async #answers(port: number, path: string, min: number, max: number): Promise<boolean> {
    try {
      const reply = await this.fetch(port, path)
      reply.destroy()
      return reply.statusCode >= min && reply.statusCode <= max
    } catch (err) {
      if (!(err instanceof SandglassError)) throw err
      if (err.body.sandboxId && err.body.port === undefined && err instanceof UnavailableError) throw err // it is not there
      return err.status !== undefined && err.status >= min && err.status <= max
    }
  }

  // ---- files ------------------------------------------------------------------------------------

  async readFile(path: string): Promise<string> {
    return (await this.readBytes(path)).toString()
  }

  /** From an offset on, if there is one. */
  async readBytes(path: string, offset = 0): Promise<Buffer> {
    const reply = await this.fetch(ENVD, '/files', { query: { path }, headers: offset ? { Range: `bytes=${offset}-` } : {} })
    const bytes = await bytesOf(reply)
    return reply.statusCode === 416 ? Buffer.alloc(0) : bytes
  }

  async writeFile(path: string, data: string | Uint8Array): Promise<void> {
    await bytesOf(await this.fetch(ENVD, '/files', { method: 'POST', query: { path }, headers: { 'Content-Type': 'application/octet-stream' }, body: data }))
  }

  async listFiles(path: string): Promise<t.FileInfo[]> {
    const { entries = [] } = await this.rpc('filesystem.Filesystem/ListDir', { path, depth: 1 })
    return entries.map((e: any) => ({ name: e.name, path: e.path, type: TYPES[e.type] ?? 'other', size: Number(e.size ?? 0) }))
  }

  async fileExists(path: string): Promise<boolean> {
    try {
      await this.rpc('filesystem.Filesystem/Stat', { path })
      return true
    } catch (err) {
      if (err instanceof NotFoundError) return false
      throw err
    }
  }

  /** With those above it. One that is there is fine. */
  async makeDir(path: string): Promise<void> {
    await this.rpc('filesystem.Filesystem/MakeDir', { path }).catch((err) => {
      if (err.status !== 409) throw err
    })
  }

  async moveFile(from: string, to: string): Promise<void> {
    await this.rpc('filesystem.Filesystem/Move', { source: from, destination: to })
  }

  /** A directory with all that is in it. */
  async removeFile(path: string): Promise<void> {
    await this.rpc('filesystem.Filesystem/Remove', { path })
  }

  // ---- ports ------------------------------------------------------------------------------------

  /** The name of a port, for browsers: PORT-ID.DOMAIN. */
  getHost(port: number): string {
    if (!this.#made.domain) throw new SandglassError('the server has no domain (sandglass serve --domain): use fetch')
    return `${port}-${this.id}.${this.#made.domain}`
  }

  /** A request to a port, through the server. */
  async fetch(port: number, path: string, { method = 'GET', ...request }: Request & { method?: string } = {}): Promise<Reply> {
    const { envdAccessToken, trafficAccessToken } = this.#made
    const own = port === ENVD || port === INTERPRETER
    const [header, token] = own ? ['X-Access-Token', envdAccessToken] : ['E2B-Traffic-Access-Token', trafficAccessToken]
    const place = { 'E2b-Sandbox-Id': this.id, 'E2b-Sandbox-Port': String(port), ...(token && { [header!]: token }) }
    return this.#http.send(method, path, { ...request, keyless: true, headers: { ...place, ...request.headers } })
  }

  // ---- life -------------------------------------------------------------------------------------

  async info(): Promise<t.SandboxInfo> {
    return this.#http.json('GET', `/sandboxes/${this.id}`)
  }

  /** Copies with its variables and files, as they are now. docs/fork.md. */
  async fork(options: { count?: number; timeoutSeconds?: number; inherit?: 'state' | 'files' | 'replay'; waitSeconds?: number } = {}): Promise<{ sandbox: Sandbox; kernels: t.Kernel[] }[]> {
    const { count, timeoutSeconds: timeout, inherit, waitSeconds = 0 } = options
    const forks = await this.#ask('fork', { count, timeout, inherit, waitMs: waitSeconds * 1000 || undefined }, waitSeconds + 60)
    return forks.map((f: any) => ({ sandbox: new Sandbox(this.#http, f.sandbox), kernels: f.kernels ?? [] }))
  }

  /** Its files, and its variables as long as the server lives: `createSandbox` takes the id as a template. */
  async snapshot(name?: string): Promise<{ snapshotID: string; state: 'warm' | 'files' }> {
    return this.#ask('snapshots', { name }, 60)
  }

  async checkpoint(label?: string): Promise<t.Checkpoint> {
    return (await this.#ask('checkpoints', { label })).checkpoint
  }

  async checkpoints(): Promise<t.Checkpoint[]> {
    return (await this.#http.json('GET', `/sandboxes/${this.id}/checkpoints`)).checkpoints
  }

  async rewind(to: ({ label: string } | { checkpointId: string }) & { accept?: 'files' }): Promise<void> {
    await this.#ask('rewind', to)
  }

  async setNetwork(policy: t.Policy): Promise<void> {
    await this.#http.json('PUT', `/sandboxes/${this.id}/network`, { body: fieldsOf(policy) })
  }

  /** From now on. */
  async setTimeout(seconds: number): Promise<void> {
    await this.#ask('timeout', { timeout: seconds })
  }

  async pause(): Promise<void> {
    await this.#ask('pause', {}, 60)
  }

  /** Wakes it, or lets it live longer. */
  async resume(timeoutSeconds = 300): Promise<void> {
    await this.#http.json('POST', `/v2/sandboxes/${this.id}/connect`, { body: { timeout: timeoutSeconds }, extraSeconds: 60 })
  }

  async kill(): Promise<void> {
    await this.#http.json('DELETE', `/sandboxes/${this.id}`).catch((err) => {
      if (!(err instanceof NotFoundError)) throw err
    })
  }

  #ask(what: string, body: object, extraSeconds = 0): Promise<any> {
    return this.#http.json('POST', `/sandboxes/${this.id}/${what}`, { body, extraSeconds })
  }

  // ---- envd's calls -----------------------------------------------------------------------------

  /** @internal */
  async rpc(method: string, message: object): Promise<any> {
    const reply = await this.fetch(ENVD, `/${method}`, { method: 'POST', body: message, headers: { 'Connect-Protocol-Version': '1' } })
    return JSON.parse((await bytesOf(reply)).toString() || '{}')
  }

  /** @internal The events of a shell that runs a command. */
  async *startShell(command: string, options: t.ExecOptions & { tag?: string }): AsyncGenerator<any> {
    const { cwd, envs, user, stdin, timeoutSeconds = 60, signal, tag } = options
    const process = { cmd: '/bin/bash', args: ['-l', '-c', command], envs, cwd }
    const headers: Record<string, string> = { 'Content-Type': 'application/connect+json', 'Connect-Protocol-Version': '1', 'Keepalive-Ping-Interval': '20' }
    if (timeoutSeconds) headers['Connect-Timeout-Ms'] = String(timeoutSeconds * 1000)
    if (user) headers.Authorization = `Basic ${Buffer.from(`${user}:`).toString('base64')}`
    yield* framesOf(await this.fetch(ENVD, '/process.Process/Start', { method: 'POST', body: frameOf({ process, tag, stdin: stdin !== undefined }), headers, signal }))
  }

  /** @internal */
  async sendInput(process: object, text: string): Promise<void> {
    await this.rpc('process.Process/SendInput', { process, input: { stdin: Buffer.from(text).toString('base64') } })
  }

  /** @internal */
  async closeInput(process: object): Promise<void> {
    await this.rpc('process.Process/CloseStdin', { process })
  }

  /** @internal */
  async signal(process: object, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.rpc('process.Process/SendSignal', { process, signal: `SIGNAL_${signal}` })
  }
}

// A signal is told in words, and shells say 128 + its number.
function exitCodeOf(end: { exitCode?: number; exited?: boolean; status?: string }): number {
  if (end.exited) return end.exitCode ?? 0
  return end.status === 'signal: terminated' ? 143 : 137
}
