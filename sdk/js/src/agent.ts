// Agents that speak the Agent Client Protocol, on the server: docs/agents.md.
import { ConflictError, ConnectionFailedError, SandglassError } from './errors.js'
import { type Http, sleep } from './http.js'
import { WebSocketLine } from './socket.js'
import type * as t from './types.js'

const RECONNECTS_MAX = 10
const KEPT_MAX = 16 << 20
const DROPPED = 1006 // no code: the connection broke

export class Agent {
  /** As the server told it last. */
  info: t.AgentInfo
  readonly #http: Http

  /** @internal */
  constructor(http: Http, info: t.AgentInfo) {
    this.#http = http
    this.info = info
  }

  get id(): string {
    return this.info.agentId
  }

  async refresh(): Promise<this> {
    this.info = await this.#http.json('GET', `/v1/agents/${this.id}`)
    return this
  }

  /** What it wrote to standard error, noise on its output, and what happened. */
  async logs(): Promise<{ time: string; stream: 'stderr' | 'noise' | 'server'; text: string }[]> {
    return (await this.#http.json('GET', `/v1/agents/${this.id}/logs`)).entries
  }

  /** From now on. */
  async setTimeout(seconds: number): Promise<void> {
    this.info = await this.#http.json('POST', `/v1/agents/${this.id}/timeout`, { body: { timeout: seconds } })
  }

  /** Answers when it has ended. */
  async stop(): Promise<void> {
    this.info = await this.#http.json('DELETE', `/v1/agents/${this.id}`)
  }

  /** Its messages, over a connection that is made again when it breaks: none is lost, none comes twice. */
  async connect(options: { role?: 'writer' | 'reader'; takeover?: boolean } = {}): Promise<AgentLine> {
    const line = new AgentLine(this.#http, `/v1/agents/${this.id}/acp`, options)
    await line.open()
    return line
  }
}

export class AgentLine implements AsyncIterable<any> {
  /** Why it is over: the agent's end in words. */
  closeCode?: number
  closeReason = ''
  readonly #http: Http
  readonly #path: string
  readonly #query: Record<string, string | undefined>
  #socket?: WebSocketLine
  #got?: number // messages of the agent that we have
  #given = 0 // messages of ours that the agent was given, as far as we know
  #outbox: string[] = [] // those after that
  #kept = 0 // bytes of them
  #closed = false

  /** @internal */
  constructor(http: Http, path: string, { role = 'writer', takeover }: { role?: string; takeover?: boolean }) {
    this.#http = http
    this.#path = path
    this.#query = { role, takeover: takeover ? 'true' : undefined }
  }

  /** @internal */
  async open(): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        const socket = await WebSocketLine.open(this.#http, this.#path, { ...this.#query, after: this.#got })
        this.#socket = socket
        break
      } catch (err) {
        // The server may not have noticed yet that the last connection is gone.
        const again = this.#got !== undefined && (err instanceof ConflictError || !(err instanceof SandglassError && err.status))
        if (!again || tries >= RECONNECTS_MAX) throw err
        await sleep(0.05 * 2 ** Math.min(tries, 6))
      }
    }
    this.#query.takeover = undefined
    const received = Number(this.#socket.headers['sandglass-acp-received'])
    if (this.#got === undefined) this.#given = received
    this.#got ??= Number(this.#socket.headers['sandglass-acp-next']) - 1
    if (received < this.#given) throw new ConnectionFailedError(`messages to the agent were lost: it was given ${received}, and those after that are not kept`)
    for (const message of this.#outbox.splice(0, received - this.#given)) this.#kept -= message.length
    this.#given = received
    for (const message of this.#outbox) this.#socket.send(message)
  }

  /** A message to the agent: an object, or the text of one. */
  send(message: object | string): void {
    const text = typeof message === 'string' ? message : JSON.stringify(message)
    this.#outbox.push(text)
    this.#kept += text.length
    for (; this.#kept > KEPT_MAX && this.#outbox.length > 1; this.#given++) this.#kept -= this.#outbox.shift()!.length
    this.#socket?.send(text)
  }

  /** The agent's messages. */
  async *[Symbol.asyncIterator](): AsyncGenerator<any> {
    for (;;) {
      for await (const text of this.#socket!.messages()) {
        this.#got!++
        yield JSON.parse(text)
      }
      this.closeCode = this.#socket!.closeCode
      this.closeReason = this.#socket!.closeReason
      if (this.#closed || this.closeCode !== DROPPED) return
      await this.open()
    }
  }

  /** In the form that the protocol's SDK takes. */
  get stream(): { readable: ReadableStream<any>; writable: WritableStream<any> } {
    const messages = this[Symbol.asyncIterator]()
    const readable = new ReadableStream({
      async pull(controller) {
        const { value, done } = await messages.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
    })
    return { readable, writable: new WritableStream({ write: (message) => this.send(message) }) }
  }

  close(): void {
    this.#closed = true
    this.#socket?.close()
  }
}
