// A shell whose state stays: a context of the code interpreter, of bash. Its directory, variables, functions and jobs are
// there for the next command. A fork does not carry it: docs/fork.md.
import { errorOf, TimedOutError } from './errors.js'
import { bytesOf, linesOf, part } from './http.js'
import type { Sandbox } from './sandbox.js'
import type * as t from './types.js'

const INTERPRETER = 49999
// Errors of the interpreter's, not of the command's.
const ENDED = ['ContextRemoved', 'ContextRestarting', 'ExecutionFailed', 'KernelError', 'KernelProtocolError']

export class Session {
  /** @internal */
  constructor(
    readonly sandbox: Sandbox,
    readonly id: string,
  ) {}

  /** @internal */
  static async open(sandbox: Sandbox, { id, cwd, envs = {} }: t.SessionOptions): Promise<Session> {
    if (id) return new Session(sandbox, id)
    const reply = await sandbox.fetch(INTERPRETER, '/contexts', { method: 'POST', body: { language: 'bash', cwd } })
    const session = new Session(sandbox, JSON.parse((await bytesOf(reply)).toString()).id)
    const names = Object.keys(envs)
    if (names.length) await session.exec(names.map((name) => `export ${name}=${quote(envs[name]!)}`).join('\n'))
    return session
  }

  /** Runs a command in the shell. Commands wait for each other, in order. `exit` ends the shell; the next one gets a new one. */
  async exec(command: string, options: Pick<t.ExecOptions, 'envs' | 'timeoutSeconds' | 'onStdout' | 'onStderr' | 'signal'> = {}): Promise<t.ExecResult> {
    const began = Date.now()
    const { timeoutSeconds = 60, envs, onStdout, onStderr, signal } = options
    const body = { code: command, context_id: this.id, env_vars: envs, timeout: timeoutSeconds || undefined }
    const reply = await this.sandbox.fetch(INTERPRETER, '/execute', { method: 'POST', body, signal })
    const result = { stdout: '', stderr: '', exitCode: 0 }
    let error: t.CellError | undefined
    for await (const text of linesOf(reply)) {
      const line = JSON.parse(text)
      if (line.type === 'stdout') {
        result.stdout += line.text
        onStdout?.(line.text)
      } else if (line.type === 'stderr') {
        result.stderr += line.text
        onStderr?.(line.text)
      } else if (line.type === 'error') error = line
      else if (line.type === 'end_of_execution') result.exitCode = line.exit_code ?? (error ? 1 : 0)
    }
    if (error?.name === 'TimeoutError') throw new TimedOutError(error.value)
    if (error && ENDED.includes(error.name)) throw errorOf({ status: 409, body: { message: error.value } })
    return { success: result.exitCode === 0, ...result, duration: (Date.now() - began) / 1000 }
  }

  /** Ends the shell, and what it started and did not put into a session of its own. */
  async close(): Promise<void> {
    await bytesOf(await this.sandbox.fetch(INTERPRETER, `/contexts/${part(this.id)}`, { method: 'DELETE' }))
  }
}

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
