// A context: the sandbox of a path of a conversation. docs/contexts.md, docs/fork.md.
import { ConflictError, errorOf, SandglassError } from './errors.js'
import { eventsOf, type Http } from './http.js'
import { Sandbox } from './sandbox.js'
import type * as t from './types.js'

export class Context {
  /** As the server told it last. */
  info: t.ContextInfo
  /** Whether the call that gave this object made the sandbox; and whether that replaces one that was lost. */
  readonly wasCreated: boolean
  readonly replaced: boolean
  readonly #http: Http

  /** @internal */
  constructor(http: Http, info: t.ContextInfo, made: { wasCreated?: boolean; replaced?: boolean } = {}) {
    this.#http = http
    this.info = info
    this.wasCreated = made.wasCreated ?? false
    this.replaced = made.replaced ?? false
  }

  get id(): string {
    return this.info.id
  }

  get #place() {
    return { conversationId: this.info.conversationId, pathId: this.info.pathId }
  }

  #ask<T = any>(what: string, body: object = {}, extraSeconds = 0): Promise<T> {
    return this.#http.json<T>('POST', `/v1/contexts/${this.id}/${what}`, { body, extraSeconds })
  }

  // ---- tools ------------------------------------------------------------------------------------

  /** Runs code, with the variables of the runs before. */
  async run(code: string, options: t.RunOptions = {}): Promise<t.RunResult> {
    const { onStdout, onStderr, onResult, signal, ...body } = options
    return this.#tool('run_code', { ...this.#place, code, ...body }, {}, options)
  }

  /** Runs a named analysis, or `custom` with code of your own; `parameters` reach it as data. */
  async runAnalysis(analysisType: string, options: t.AnalysisOptions = {}): Promise<t.AnalysisResult> {
    const { onStdout, onStderr, onResult, signal, ...body } = options
    return this.#tool('run_analysis', { ...this.#place, analysisType, ...body }, {}, options)
  }

  /** The tools in the form that a model takes, bound to this path: they do not ask for one. */
  async tools(format: 'mcp' | 'openai' | 'anthropic' = 'mcp'): Promise<any[]> {
    return this.#http.json('GET', '/v1/tools', { query: { format, ...this.#place } })
  }

  /** A call of a tool as a model asks for it. */
  async callTool(name: string, input: object, options: t.Listeners & { messageId?: string; signal?: AbortSignal } = {}): Promise<t.RunResult> {
    return this.#tool(name, input, { ...this.#place, messageId: options.messageId }, options)
  }

  async #tool<T>(name: string, body: object, query: Record<string, string | undefined>, on: t.Listeners & { signal?: AbortSignal }): Promise<T> {
    const headers = { Accept: 'text/event-stream' }
    const reply = await this.#http.send('POST', `/v1/tools/${encodeURIComponent(name)}`, { body, query, headers, signal: on.signal })
    let done: any
    for await (const { event, data } of eventsOf(reply)) {
      if (event === 'stdout') on.onStdout?.(data.text)
      else if (event === 'stderr') on.onStderr?.(data.text)
      else if (event === 'result') on.onResult?.(data)
      else if (event === 'done') done = data
    }
    if (!done) throw new SandglassError('the answer has no end')
    if (done.success === undefined) throw errorOf({ status: done.code, requestId: done.requestId, body: done })
    return done
  }

  // ---- life -------------------------------------------------------------------------------------

  async refresh(): Promise<this> {
    this.info = await this.#http.json('GET', `/v1/contexts/${this.id}`)
    return this
  }

  /** Counts as a use. */
  async touch(ttlSeconds?: number): Promise<this> {
    this.info = await this.#ask('touch', { ttlSeconds })
    return this
  }

  /** Ends it, with its sandbox. */
  async end(): Promise<void> {
    this.info = await this.#http.json('DELETE', `/v1/contexts/${this.id}`)
  }

  /** Its sandbox, for files, commands and ports. */
  async sandbox(): Promise<Sandbox> {
    if (!this.info.sandboxId) throw new ConflictError('the context has no sandbox now: get it again with getOrCreateContext')
    return Sandbox.find(this.#http, this.info.sandboxId)
  }

  /** Another network, in force and stored when this is over. */
  async setNetwork(policy: t.Policy): Promise<void> {
    await (await this.sandbox()).setNetwork(policy)
  }

  // ---- branches, checkpoints, best of N ---------------------------------------------------------

  /** A new path. Without `inherit` it has nothing, and no context before it is used. */
  async branch(toPathId: string, options: t.BranchOptions = {}): Promise<{ context?: Context; inherited: string; kernels: t.Kernel[] }> {
    const { waitSeconds, ...rest } = options
    const { conversationId, pathId: fromPathId } = this.#place
    const body = { conversationId, fromPathId, toPathId, ...rest, waitMs: inMs(waitSeconds) }
    const made = await this.#http.json('POST', '/v1/contexts/branch', { body, extraSeconds: (waitSeconds ?? 0) + 60 })
    return { context: made.context ? new Context(this.#http, made.context, made) : undefined, inherited: made.inherited, kernels: made.kernels ?? [] }
  }

  /** Ends this path; it counts as merged into the other, which is left alone. */
  async mergeInto(targetPathId: string): Promise<void> {
    const { conversationId, pathId: sourcePathId } = this.#place
    const { terminated } = await this.#http.json('POST', '/v1/contexts/merge', { body: { conversationId, sourcePathId, targetPathId } })
    if (terminated) this.info = terminated
  }

  async checkpoints(): Promise<t.Checkpoint[]> {
    return (await this.#http.json('GET', `/v1/contexts/${this.id}/checkpoints`)).checkpoints
  }

  /** Variables and files as they were before a message, or at a checkpoint. */
  async rewind(to: t.RewindTo): Promise<{ checkpoint: t.Checkpoint; kernels: t.Kernel[] }> {
    const { context, checkpoint, kernels = [] } = await this.#ask('rewind', to)
    this.info = context
    return { checkpoint, kernels }
  }

  /** Runs each code in a copy of the sandbox, all at once. The path itself is not changed. */
  async explore(codes: string[], options: t.ExploreOptions = {}): Promise<t.Exploration> {
    const { timeoutSeconds, waitSeconds, ...rest } = options
    const patience = (timeoutSeconds ?? 600) + (waitSeconds ?? 0)
    return this.#ask('explore', { codes, ...rest, timeoutMs: inMs(timeoutSeconds), waitMs: inMs(waitSeconds) }, patience)
  }

  /** Makes a copy the sandbox of this path; the one before it and the other copies end. */
  async adopt(candidate: string | { candidateId?: string } | undefined): Promise<this> {
    const candidateId = typeof candidate === 'string' ? candidate : candidate?.candidateId
    this.info = (await this.#ask('adopt', { candidateId })).context
    return this
  }
}

export const inMs = (seconds?: number) => (seconds === undefined ? undefined : Math.round(seconds * 1000))
