// A receiver of webhooks, as an application would write one, and a reader of server-sent events.
import crypto from 'node:crypto'
import http from 'node:http'
import net from 'node:net'
import { assert, eventually } from './lib.mjs'

// Whether a post is the server's, and not an old one that somebody sends again.
export function isGenuine(secret, header, body) {
  const { t, v1 } = Object.fromEntries((header ?? '').split(',').map((part) => part.split('=', 2)))
  const mac = crypto.createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')
  return Math.abs(Date.now() / 1000 - t) < 300 && v1?.length === mac.length && crypto.timingSafeEqual(Buffer.from(v1), Buffer.from(mac))
}

export class Receiver {
  secret = 'a shared secret'
  got = [] // what was taken
  tries = [] // and all that came
  status = () => 204

  async open(port = 0) {
    this.server = http.createServer((req, res) => this.#take(req, res)).listen(port, '127.0.0.1')
    await new Promise((resolve, reject) => this.server.once('listening', resolve).once('error', reject))
    this.port = this.server.address().port
    return this
  }

  get url() {
    return `http://127.0.0.1:${this.port}/hook`
  }

  #take(req, res) {
    let body = ''
    req.on('data', (d) => { body += d })
    req.on('end', () => {
      const one = { event: JSON.parse(body), headers: req.headers, genuine: isGenuine(this.secret, req.headers['sandglass-signature'], body) }
      const status = this.status(one)
      this.tries.push({ ...one, status })
      if (status >= 200 && status < 300) this.got.push(one)
      res.writeHead(status, { connection: 'close' }).end('ok')
    })
  }

  // The port stays ours: nobody answers there until it is opened again.
  async close() {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }

  // What it has taken about a sandbox, in order.
  about(sandboxId) {
    return this.got.filter((g) => g.event.sandboxId === sandboxId).map((g) => g.event.type)
  }

  wait(sandboxId, type) {
    return eventually(`the webhook tells of ${type}`, () => this.about(sandboxId).includes(type))
  }
}

// A target that is no HTTP server: says `answer` to whatever comes, or nothing at all.
export async function oddTarget(answer) {
  const odd = { connections: 0 }
  odd.server = net.createServer((socket) => {
    odd.connections++
    socket.on('error', () => {})
    socket.on('data', () => answer !== undefined && socket.write(answer))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => odd.server.once('listening', resolve))
  odd.url = `http://127.0.0.1:${odd.server.address().port}/`
  return odd
}

export class Stream {
  events = []
  comments = 0
  lastId = undefined
  ended = false

  constructor(client, query = '', headers = {}) {
    this.abort = new AbortController()
    this.done = this.#read(`${client.url}/v1/events${query}`, { 'X-API-Key': client.key, ...headers })
  }

  async #read(url, headers) {
    try {
      const res = await fetch(url, { headers, signal: this.abort.signal })
      this.status = res.status
      assert.equal(res.headers.get('content-type'), 'text/event-stream')
      let text = ''
      for await (const piece of res.body.pipeThrough(new TextDecoderStream())) {
        const blocks = (text + piece).split('\n\n')
        text = blocks.pop()
        blocks.forEach((b) => this.#block(b))
      }
    } catch (err) {
      this.error = err
    }
    this.ended = true
  }

  #block(block) {
    const field = {}
    for (const line of block.split('\n')) {
      if (line.startsWith(':')) this.comments++
      else field[line.slice(0, line.indexOf(':'))] = line.slice(line.indexOf(':') + 2)
    }
    if (field.id !== undefined) this.lastId = Number(field.id)
    if (field.data === undefined) return
    const event = JSON.parse(field.data)
    assert.equal(event.id, Number(field.id))
    assert.equal(event.type, field.event)
    this.events.push(event)
  }

  ready() {
    return eventually('the stream begins', () => this.lastId !== undefined)
  }

  wait(what) {
    return eventually(`an event ${JSON.stringify(what)}`, () => this.events.find((e) => Object.entries(what).every(([k, v]) => e[k] === v)))
  }

  close() {
    this.abort.abort()
    return this.done
  }
}
