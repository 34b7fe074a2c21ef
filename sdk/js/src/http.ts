// Requests to one server, over connections that are kept until `close`.
import http from 'node:http'
import https from 'node:https'
import { type Answer, ConnectionFailedError, errorOf, errorOfStream, InvalidError, SandglassError, TimedOutError } from './errors.js'

const REDIRECTS_MAX = 3
const RETRY_AFTER_MAX_S = 30
const FRAME_MAX = 64 << 20

export interface ServerOptions {
  /** Where the server is; `E2B_API_URL`, or `https://api.` and `E2B_DOMAIN`, if it is left out. */
  url?: string
  /** `E2B_API_KEY`, if it is left out. */
  apiKey?: string
  /** The longest silence of the server: 60. */
  requestTimeoutSeconds?: number
  /** How often a request is sent again that the server put off, with 429 or 503 and `Retry-After`: 3. */
  retries?: number
}

export interface Request {
  query?: Record<string, string | number | undefined>
  headers?: Record<string, string>
  /** Text and bytes as they are; anything else as JSON. */
  body?: unknown
  /** Longer than silence may be otherwise. */
  extraSeconds?: number
  signal?: AbortSignal
  /** Without the key: what it is for is run by code that must not have it. */
  keyless?: boolean
}

export type Reply = http.IncomingMessage & { statusCode: number }

export const sleep = (seconds: number) => new Promise<void>((resolve) => setTimeout(resolve, seconds * 1000))

export class Http {
  readonly url: string
  readonly #key: string
  readonly #timeoutSeconds: number
  readonly #retries: number
  readonly #agents = { 'http:': new http.Agent({ keepAlive: true }), 'https:': new https.Agent({ keepAlive: true }) }

  constructor(options: ServerOptions = {}) {
    const { E2B_API_URL, E2B_DOMAIN, E2B_API_KEY } = process.env
    const url = options.url ?? E2B_API_URL ?? (E2B_DOMAIN && `https://api.${E2B_DOMAIN}`)
    const key = options.apiKey ?? E2B_API_KEY
    if (!url || !key) throw new TypeError('set E2B_API_URL and E2B_API_KEY, or give url and apiKey: `sandglass serve` prints both')
    this.url = url.replace(/\/+$/, '')
    this.#key = key
    this.#timeoutSeconds = options.requestTimeoutSeconds ?? 60
    this.#retries = options.retries ?? 3
  }

  get headers(): Record<string, string> {
    return { 'X-API-Key': this.#key }
  }

  /** The answer, whose status is one of success. Other statuses are errors. */
  async send(method: string, path: string, { query, headers, body, extraSeconds = 0, signal, keyless }: Request = {}): Promise<Reply> {
    const raw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
    const data = raw ? (body as string | Uint8Array | undefined) : JSON.stringify(body)
    const all = { ...(keyless ? {} : this.headers), ...(raw ? {} : { 'Content-Type': 'application/json' }), ...headers }
    let url = this.#at(path)
    for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) url.searchParams.set(name, String(value))
    for (let redirects = 0, tries = 0; ; ) {
      const reply = await this.#once(method, url, all, data, (this.#timeoutSeconds + extraSeconds) * 1000, signal)
      if (reply.statusCode < 300 || reply.statusCode === 416) return reply
      const answer = await answerOf(reply)
      if (reply.statusCode === 307 && reply.headers.location && redirects++ < REDIRECTS_MAX) {
        url = new URL(reply.headers.location, url)
        continue
      }
      // The server has not begun with it, and says when to come again.
      if (answer.retryAfterSeconds === undefined || tries++ >= this.#retries) throw errorOf(answer)
      await sleep(Math.min(answer.retryAfterSeconds, RETRY_AFTER_MAX_S))
    }
  }

  // What does not begin with a slash could name another host.
  #at(path: string): URL {
    if (!path.startsWith('/')) throw new InvalidError(`the path '${path}' does not begin with '/'`)
    return new URL(this.url + path)
  }

  async json<T = any>(method: string, path: string, request?: Request): Promise<T> {
    const text = (await bytesOf(await this.send(method, path, request))).toString()
    return (text ? JSON.parse(text) : undefined) as T
  }

  async #once(method: string, url: URL, headers: Record<string, string>, data: string | Uint8Array | undefined, ms: number, signal?: AbortSignal): Promise<Reply> {
    const length = data === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(data)) }
    for (;;) {
      signal?.throwIfAborted()
      const req = request(url, { method, headers: { ...headers, ...length }, agent: this.#agents[url.protocol as 'http:'] })
      let why: unknown // that we ended it
      const stop = (reason: unknown) => {
        why = reason
        req.destroy()
      }
      const abort = () => stop(signal?.reason)
      signal?.addEventListener('abort', abort)
      req.setTimeout(ms, () => stop(new TimedOutError(`${method} ${url.pathname}: nothing came for ${ms / 1000} s`)))
      req.on('close', () => signal?.removeEventListener('abort', abort))
      try {
        const reply = await new Promise<Reply>((resolve, reject) => {
          req.on('error', reject)
          req.on('response', (got) => resolve(got as Reply))
          req.end(data)
        })
        whyStopped.set(reply, () => why)
        return reply
      } catch (err) {
        if (why !== undefined) throw why
        // A kept connection that the server closed meanwhile. What is no POST can be sent again.
        if (!req.reusedSocket || method === 'POST' || (err as NodeJS.ErrnoException).code !== 'ECONNRESET') throw failed(err)
      }
    }
  }

  /** A WebSocket's socket, after its handshake. */
  async upgrade(path: string, query: Record<string, string | number | undefined>, headers: Record<string, string>) {
    const url = this.#at(path)
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value))
    return new Promise<{ socket: import('node:net').Socket; head: Buffer; headers: http.IncomingHttpHeaders }>((resolve, reject) => {
      const req = request(url, { headers: { ...this.headers, Connection: 'Upgrade', Upgrade: 'websocket', ...headers } })
      req.setTimeout(this.#timeoutSeconds * 1000, () => req.destroy(new TimedOutError(`${path}: no answer`)))
      req.on('error', (err) => reject(failed(err)))
      req.on('response', (reply) => answerOf(reply as Reply).then((answer) => reject(errorOf(answer)), reject))
      req.on('upgrade', (reply, socket, head) => {
        socket.setTimeout(0)
        resolve({ socket, head, headers: reply.headers })
      })
      req.end()
    })
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy()
  }
}

function request(url: URL, options: http.RequestOptions): http.ClientRequest {
  return (url.protocol === 'https:' ? https : http).request(url, options)
}

function failed(err: unknown): SandglassError {
  if (err instanceof SandglassError) return err
  return new ConnectionFailedError(`the server cannot be reached: ${(err as Error).message}`, undefined, { cause: err })
}

// Of answers that we ended ourselves, when their time was over or the caller had enough.
const whyStopped = new WeakMap<Reply, () => unknown>()

/** An id as a part of a path. */
export const part = encodeURIComponent

/** The body, piece by piece. */
export async function* piecesOf(reply: Reply): AsyncGenerator<Buffer> {
  try {
    yield* reply
  } catch (err) {
    throw whyStopped.get(reply)?.() ?? new ConnectionFailedError(`the answer broke off: ${(err as Error).message}`)
  }
}

export async function bytesOf(reply: Reply): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of piecesOf(reply)) pieces.push(piece)
  return Buffer.concat(pieces)
}

async function answerOf(reply: Reply): Promise<Answer> {
  const text = (await bytesOf(reply)).toString()
  let body: any
  try {
    body = JSON.parse(text)
  } catch {}
  if (typeof body !== 'object' || !body) body = { message: text.slice(0, 2000) }
  const after = Number(reply.headers['retry-after'])
  const wait = (reply.statusCode === 429 || reply.statusCode === 503) && Number.isInteger(after)
  return { status: reply.statusCode, requestId: requestIdOf(reply) ?? body.requestId, retryAfterSeconds: wait ? after : undefined, body }
}

const requestIdOf = (reply: Reply) => reply.headers['x-request-id'] as string | undefined

/** The lines of a body, each as it comes. */
export async function* linesOf(reply: Reply): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of piecesOf(reply)) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop()!
    yield* lines
  }
}

/** The objects of server-sent events. */
export async function* eventsOf(reply: Reply): AsyncGenerator<{ event: string; data: any }> {
  let event = ''
  for await (const line of linesOf(reply)) {
    if (line.startsWith('event: ')) event = line.slice(7)
    else if (line.startsWith('data: ')) yield { event, data: JSON.parse(line.slice(6)) }
  }
}

/** A message as Connect's streams have it: a flag, a length, JSON. */
export function frameOf(message: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(json.length, 1)
  return Buffer.concat([head, json])
}

/** The messages of one of Connect's streams. */
export async function* framesOf(reply: Reply): AsyncGenerator<any> {
  let rest: Buffer = Buffer.alloc(0)
  let over = false
  for await (const piece of piecesOf(reply)) {
    rest = rest.length ? Buffer.concat([rest, piece]) : piece
    for (let length; rest.length >= 5 && rest.length >= 5 + (length = rest.readUInt32BE(1)); rest = rest.subarray(5 + length)) {
      const message = JSON.parse(rest.subarray(5, 5 + length).toString())
      if (!(rest[0]! & 2)) yield message
      else if (message.error) throw errorOfStream(message.error, requestIdOf(reply))
      else over = true
    }
    if (rest.length >= 5 && rest.readUInt32BE(1) > FRAME_MAX) throw new ConnectionFailedError('the server sent a frame that is too long')
  }
  if (!over) throw new ConnectionFailedError('the stream broke off')
}
