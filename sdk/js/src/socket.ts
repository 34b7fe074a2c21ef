// The client's side of a WebSocket: text messages, pings, closing. Node 18 has none of its own.
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { ConnectionFailedError } from './errors.js'
import type { Http } from './http.js'

const TEXT = 1
const CLOSE = 8
const PING = 9
const PONG = 10
const MESSAGE_MAX = 64 << 20

export class WebSocketLine {
  /** The code that the server closed it with; undefined while it is open, 1006 if it broke. */
  closeCode?: number
  closeReason = ''
  #socket: Socket
  #head: Buffer

  private constructor(socket: Socket, head: Buffer, readonly headers: Record<string, any>) {
    this.#socket = socket
    this.#head = head
    socket.on('error', () => {}) // messages() tells it
  }

  static async open(http: Http, path: string, query: Record<string, string | number | undefined>): Promise<WebSocketLine> {
    const { socket, head, headers } = await http.upgrade(path, query, { 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': randomBytes(16).toString('base64') })
    return new WebSocketLine(socket, head, headers)
  }

  send(text: string): void {
    this.#write(TEXT, Buffer.from(text))
  }

  close(): void {
    this.#write(CLOSE, Buffer.from([1000 >> 8, 1000 & 255]))
    this.#socket.end()
  }

  /** The messages, until it is closed. */
  async *messages(): AsyncGenerator<string> {
    let message: Buffer[] = []
    for await (const { opcode, last, data } of this.#frames()) {
      if (opcode === PING) this.#write(PONG, data)
      else if (opcode === CLOSE) {
        this.closeCode = data.length >= 2 ? data.readUInt16BE(0) : 1005
        this.closeReason = data.subarray(2).toString()
        this.#write(CLOSE, data)
        break
      } else if (opcode <= TEXT) {
        message.push(data)
        if (!last) continue
        yield Buffer.concat(message).toString()
        message = []
      }
    }
    this.closeCode ??= 1006
    this.#socket.destroy()
  }

  async *#frames(): AsyncGenerator<{ opcode: number; last: boolean; data: Buffer }> {
    let rest = this.#head
    const source = this.#socket[Symbol.asyncIterator]()
    const more = async (n: number) => {
      const pieces = [rest]
      for (let length = rest.length; length < n; ) {
        const { value, done } = await source.next()
        if (done) return false
        pieces.push(value)
        length += value.length
      }
      rest = Buffer.concat(pieces)
      return true
    }
    try {
      for (;;) {
        if (!(await more(2))) return
        const short = rest[1]! & 127
        const head = short === 127 ? 10 : short === 126 ? 4 : 2
        if (!(await more(head))) return
        const length = short === 127 ? Number(rest.readBigUInt64BE(2)) : short === 126 ? rest.readUInt16BE(2) : short
        if (length > MESSAGE_MAX) throw new ConnectionFailedError('the server sent a message that is too long')
        if (!(await more(head + length))) return
        yield { opcode: rest[0]! & 15, last: (rest[0]! & 128) !== 0, data: rest.subarray(head, head + length) }
        rest = rest.subarray(head + length)
      }
    } catch (err) {
      if (err instanceof ConnectionFailedError) throw err // otherwise it broke, as closeCode says
    }
  }

  #write(opcode: number, data: Buffer): void {
    if (this.#socket.writableEnded || this.#socket.destroyed) return
    const n = data.length
    const size = n < 126 ? [n] : n < 65536 ? [126, n >> 8, n & 255] : [127, 0, 0, 0, 0, n >>> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255]
    const mask = randomBytes(4)
    const masked = Buffer.from(data)
    for (let i = 0; i < n; i++) masked[i]! ^= mask[i & 3]!
    this.#socket.write(Buffer.concat([Buffer.from([128 | opcode, size[0]! | 128, ...size.slice(1)]), mask, masked]))
  }
}
