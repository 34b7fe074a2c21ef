// A command in the background, by its name. What it has written, and how it ended, is kept in the sandbox in
// /tmp/.processes/NAME, so that anybody who has the sandbox can ask for it, also when it is over.
import { randomBytes } from 'node:crypto'
import { ConflictError, InvalidError, NotFoundError, ProcessExitedError, TimedOutError } from './errors.js'
import { sleep } from './http.js'
import type { Sandbox } from './sandbox.js'
import type * as t from './types.js'

const HOME = '/tmp/.processes'
const KILLED = 137
const POLL_S = 0.1
const NAME = /^[A-Za-z0-9._-]{1,64}$/

// A signal is for the command's whole group; the shell around it stays to note how it ended.
const SCRIPT = `
mkdir -p -m 1777 ${HOME} && cd "$SANDGLASS_CWD" && mkdir "${HOME}/$SANDGLASS_ID" || exit 1
at=${HOME}/$SANDGLASS_ID command=$SANDGLASS_COMMAND
unset SANDGLASS_ID SANDGLASS_COMMAND SANDGLASS_CWD
printf %s "$command" >"$at/command"
: >"$at/stdout" >"$at/stderr"
trap : TERM INT HUP
echo started
exec >/dev/null 2>&1
/bin/bash -c "$command" >"$at/stdout" 2>"$at/stderr"
echo $? >"$at/.status"
mv "$at/.status" "$at/status"`

export class Process {
  /** @internal */
  constructor(
    readonly sandbox: Sandbox,
    readonly id: string,
    readonly command: string,
  ) {}

  /** @internal */
  static async start(sandbox: Sandbox, command: string, { id = randomBytes(8).toString('hex'), cwd = '', envs, user, stdin }: t.StartOptions): Promise<Process> {
    if (!NAME.test(id) || id.startsWith('.')) throw new InvalidError(`'${id}' is no name of a process: up to 64 letters, digits, '.', '_' and '-'`)
    const variables = { ...envs, SANDGLASS_ID: id, SANDGLASS_COMMAND: command, SANDGLASS_CWD: cwd || '.' }
    let said = ''
    for await (const { event = {} } of sandbox.startShell(SCRIPT, { envs: variables, user, tag: id, stdin: stdin ? '' : undefined, timeoutSeconds: 0 })) {
      said += Buffer.from(event.data?.stdout ?? event.data?.stderr ?? '', 'base64').toString()
      if (said.includes('started\n')) return new Process(sandbox, id, command)
    }
    throw new ConflictError(`the process '${id}' cannot be started: ${said.trim()}`)
  }

  /** @internal */
  static async find(sandbox: Sandbox, id: string): Promise<Process | undefined> {
    if (!NAME.test(id)) return undefined
    try {
      return new Process(sandbox, id, await sandbox.readFile(`${HOME}/${id}/command`))
    } catch (err) {
      if (err instanceof NotFoundError) return undefined
      throw err
    }
  }

  /** @internal */
  static async list(sandbox: Sandbox): Promise<Process[]> {
    const entries = await sandbox.listFiles(HOME).catch((err) => {
      if (err instanceof NotFoundError) return []
      throw err
    })
    return (await Promise.all(entries.map((e) => Process.find(sandbox, e.name)))).filter((p) => p !== undefined)
  }

  /** Its status; undefined while it runs. 137 if it was killed. */
  async exitCode(): Promise<number | undefined> {
    const noted = await this.#noted()
    if (noted !== undefined) return noted
    const { processes = [] } = await this.sandbox.rpc('process.Process/List', {})
    if (processes.some((p: any) => p.tag === this.id)) return undefined
    return (await this.#noted()) ?? KILLED
  }

  async #noted(): Promise<number | undefined> {
    try {
      return Number(await this.sandbox.readFile(`${HOME}/${this.id}/status`))
    } catch (err) {
      if (err instanceof NotFoundError) return undefined
      throw err
    }
  }

  /** All that it has written so far. */
  async logs(): Promise<{ stdout: string; stderr: string }> {
    const [stdout, stderr] = await Promise.all(['stdout', 'stderr'].map((name) => this.sandbox.readFile(`${HOME}/${this.id}/${name}`)))
    return { stdout: stdout!, stderr: stderr! }
  }

  /** What it has written, and then what it writes, until it ends. */
  async *output(): AsyncGenerator<{ stream: 'stdout' | 'stderr'; text: string }> {
    yield* this.#pieces()
  }

  async *#pieces(late?: () => void): AsyncGenerator<{ stream: 'stdout' | 'stderr'; text: string }> {
    const streams = (['stdout', 'stderr'] as const).map((stream) => ({ stream, offset: 0, decoder: new TextDecoder() }))
    for (let over = false; !over; ) {
      over = (await this.exitCode()) !== undefined
      let more = false
      for (const s of streams) {
        const bytes = await this.sandbox.readBytes(`${HOME}/${this.id}/${s.stream}`, s.offset)
        s.offset += bytes.length
        const text = s.decoder.decode(bytes, { stream: !over })
        more ||= text !== ''
        if (text) yield { stream: s.stream, text }
      }
      late?.()
      if (!over && !more) await sleep(POLL_S)
    }
  }

  /** Waits for a line, of either stream, that has a text or matches a pattern. */
  async waitForLog(pattern: string | RegExp, timeoutSeconds = 30): Promise<{ line: string; match?: RegExpMatchArray }> {
    const deadline = Date.now() + timeoutSeconds * 1000
    const rest = { stdout: '', stderr: '' }
    const found = (line: string) => {
      const match = typeof pattern === 'string' ? undefined : (line.match(pattern) ?? undefined)
      return match || (typeof pattern === 'string' && line.includes(pattern)) ? { line, match } : undefined
    }
    const late = () => {
      if (Date.now() > deadline) throw new TimedOutError(`process '${this.id}': no line with ${pattern} after ${timeoutSeconds} s`)
    }
    for await (const { stream, text } of this.#pieces(late)) {
      const lines = (rest[stream] + text).split('\n')
      rest[stream] = lines.pop()!
      for (const line of lines) {
        const hit = found(line)
        if (hit) return hit
      }
    }
    const hit = found(rest.stdout) ?? found(rest.stderr)
    if (hit) return hit
    const exitCode = (await this.exitCode()) ?? KILLED
    throw new ProcessExitedError(`process '${this.id}' ended with ${exitCode} before a line with ${pattern}`, exitCode)
  }

  /** Waits until something listens on a port; an error if the process ends before. */
  async waitForPort(port: number, options: t.PortOptions = {}): Promise<void> {
    return this.sandbox.waitForPortOf(port, options, async () => {
      const exitCode = await this.exitCode()
      if (exitCode !== undefined) throw new ProcessExitedError(`process '${this.id}' ended with ${exitCode} before port ${port} was open`, exitCode)
    })
  }

  /** Waits for its end. */
  async wait(timeoutSeconds = Infinity): Promise<number> {
    const deadline = Date.now() + timeoutSeconds * 1000
    for (;;) {
      const exitCode = await this.exitCode()
      if (exitCode !== undefined) return exitCode
      if (Date.now() > deadline) throw new TimedOutError(`process '${this.id}' runs after ${timeoutSeconds} s`)
      await sleep(POLL_S)
    }
  }

  /** To its standard input, if it was started with `stdin`. */
  async sendInput(text: string): Promise<void> {
    await this.sandbox.sendInput({ tag: this.id }, text)
  }

  /** It finds the end of its input. */
  async closeInput(): Promise<void> {
    await this.sandbox.closeInput({ tag: this.id })
  }

  /** It and its children. One that has ended is fine. */
  async kill(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.sandbox.signal({ tag: this.id }, signal).catch((err) => {
      if (!(err instanceof NotFoundError)) throw err
    })
  }
}
