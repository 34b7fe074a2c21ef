// One server.
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { Agent } from './agent.js'
import { Context } from './context.js'
import { fieldsOf } from './policies.js'
import { Http, part, type ServerOptions } from './http.js'
import { Sandbox } from './sandbox.js'
import type * as t from './types.js'

export class Sandglass {
  readonly #http: Http

  constructor(options: ServerOptions = {}) {
    this.#http = new Http(options)
  }

  /** Closes the connections. Nothing on the server ends by that. */
  close(): void {
    this.#http.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  // ---- contexts ---------------------------------------------------------------------------------

  /** The context of a path; its sandbox is made if it has none. */
  async getOrCreateContext(options: t.ContextOptions): Promise<Context> {
    const got = await this.#http.json('PUT', '/v1/contexts', { body: options })
    return new Context(this.#http, got.context, got)
  }

  async getContext(id: string): Promise<Context> {
    return new Context(this.#http, await this.#http.json('GET', `/v1/contexts/${part(id)}`))
  }

  /** Those that are active, or with `status` others, the newest first. */
  async *listContexts(filter: { conversationId?: string; pathId?: string; sandboxId?: string; status?: string } = {}): AsyncGenerator<Context> {
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: any = await this.#http.json('GET', '/v1/contexts', { query: { ...filter, cursor } })
      for (const info of page.contexts) yield new Context(this.#http, info)
      cursor = page.nextCursor
    }
  }

  async listPaths(conversationId: string): Promise<t.PathInfo[]> {
    return (await this.#http.json('GET', '/v1/paths', { query: { conversationId } })).paths
  }

  /** Ends expired contexts, or all of a conversation. How many ended. */
  async cleanUp(conversationId?: string): Promise<number> {
    return (await this.#http.json('POST', '/v1/contexts/cleanup', { body: { conversationId } })).terminated
  }

  // ---- one program ------------------------------------------------------------------------------

  /** Runs a program in a sandbox of its own, which ends with it. */
  async executeCode(code: string, options: t.ExecuteOptions = {}): Promise<t.ExecutionResult> {
    return this.#execute({ code }, options)
  }

  /** The same with a file of this machine; its suffix is the language. */
  async executeFile(path: string, options: t.ExecuteOptions = {}): Promise<t.ExecutionResult> {
    const file = { path: basename(path), content: await readFile(path, 'utf8') }
    return this.#execute({ file: file.path }, { ...options, files: [file, ...(options.files ?? [])] })
  }

  async #execute(what: object, { signal, ...options }: t.ExecuteOptions): Promise<t.ExecutionResult> {
    return this.#http.json('POST', '/v1/execute', { body: { ...what, ...options }, extraSeconds: options.timeoutSeconds ?? 30, signal })
  }

  // ---- sandboxes and volumes --------------------------------------------------------------------

  async createSandbox(options: t.SandboxOptions = {}): Promise<Sandbox> {
    const { template: templateID = 'code-interpreter-v1', timeoutSeconds: timeout, envs: envVars, metadata, network, volumes = {}, autoPause } = options
    const mounts = Object.entries(volumes).map(([path, v]) => ({ path, ...(typeof v === 'string' ? { name: v } : { name: v.name, readOnly: v.readOnly }) }))
    const lifecycle = autoPause ? { autoPause, autoResume: { enabled: true } } : {}
    const body = { templateID, timeout, envVars, metadata, network: network && fieldsOf(network), ...(mounts.length ? { volumeMounts: mounts } : {}), ...lifecycle }
    return new Sandbox(this.#http, await this.#http.json('POST', '/v2/sandboxes', { body }))
  }

  /** One that runs, or sleeps: it wakes with its next use. */
  async getSandbox(id: string): Promise<Sandbox> {
    return Sandbox.find(this.#http, id)
  }

  /** A sandbox for as long as a function runs. It ends in every case. */
  async withSandbox<T>(work: (sandbox: Sandbox) => Promise<T> | T, options: t.SandboxOptions = {}): Promise<T> {
    const sandbox = await this.createSandbox(options)
    try {
      return await work(sandbox)
    } finally {
      await sandbox.kill().catch(() => {}) // it has a deadline
    }
  }

  /** A directory that outlives sandboxes; that of this name, if there is one. */
  async getOrCreateVolume(name: string): Promise<t.Volume> {
    const there = (await this.listVolumes()).find((v) => v.name === name)
    return there ?? this.#http.json('POST', '/volumes', { body: { name } })
  }

  async listVolumes(): Promise<t.Volume[]> {
    return this.#http.json('GET', '/volumes')
  }

  async deleteVolume(volume: t.Volume | string): Promise<void> {
    const id = typeof volume === 'string' ? volume : volume.volumeID
    await this.#http.json('DELETE', `/volumes/${part(id)}`)
  }

  // ---- agents -----------------------------------------------------------------------------------

  /** Starts a program that speaks the Agent Client Protocol. */
  async startAgent(options: t.AgentOptions): Promise<Agent> {
    return new Agent(this.#http, await this.#http.json('POST', '/v1/agents', { body: options, extraSeconds: 60 }))
  }

  async getAgent(id: string): Promise<Agent> {
    return new Agent(this.#http, await this.#http.json('GET', `/v1/agents/${part(id)}`))
  }

  async listAgents(): Promise<Agent[]> {
    const { agents } = await this.#http.json('GET', '/v1/agents')
    return agents.map((info: t.AgentInfo) => new Agent(this.#http, info))
  }
}
