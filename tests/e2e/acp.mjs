// What the tests of hosted agents share: the SDK, the files that are put into a sandbox, and a client.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { assert, inside, modules, require, same, sleep } from './lib.mjs'
import { scratch } from './server.mjs'

const SDK = path.join(modules, 'node_modules/@agentclientprotocol/sdk')
export const acp = await import(pathToFileURL(path.join(SDK, 'dist/v1/stable/acp.js')))
export const { methods } = acp

// ---- what is put in -----------------------------------------------------------------------------

// The code of a package, without maps, types and what nobody imports here.
function copyCode(from, to, wanted = () => true) {
  fs.cpSync(from, to, {
    recursive: true,
    filter: (file) => fs.statSync(file).isDirectory() ? wanted(path.relative(from, file)) : /\.js$|(^|\/)package\.json$/.test(file),
  })
}

let made
// A directory with the agent and all that it imports, as a user has it.
export function source() {
  if (made) return made
  made = path.join(scratch, 'agent')
  const packages = path.join(made, 'node_modules')
  copyCode(SDK, path.join(packages, '@agentclientprotocol/sdk'), (name) => !/^schema|dist\/(v2|nes|mcp|transports|v1\/unstable)/.test(name))
  copyCode(path.join(modules, 'node_modules/zod'), path.join(packages, 'zod'), (name) => !/^(src|v3|mini)/.test(name))
  fs.writeFileSync(path.join(made, 'agent.mjs'), inside('acp-agent.mjs'))
  return made
}

// The same as a tar; more: names of files and what is in them.
export function tarball(more = {}) {
  const dir = fs.mkdtempSync(path.join(scratch, 'tar.'))
  fs.cpSync(source(), dir, { recursive: true })
  for (const [name, text] of Object.entries(more)) fs.writeFileSync(path.join(dir, name), text)
  return execFileSync('tar', ['-C', dir, '-cf', '-', '.'], { maxBuffer: 64 << 20 })
}

// ---- a client -----------------------------------------------------------------------------------

export const textOf = ({ update }) => (update.sessionUpdate === 'agent_message_chunk' ? update.content.text : '')

// Somebody who sits before an agent: `say` is what it has said, and what it asks for is answered by `answers`.
export class Person {
  constructor(answers = {}) {
    Object.assign(this, { said: [], notes: [], asked: [], onUpdate: () => {} })
    this.app = acp.client({ name: 'test-client' })
    this.app.onNotification(methods.client.session.update, ({ params }) => {
      this.said.push(textOf(params))
      this.onUpdate(params)
    })
    this.app.onNotification('*', ({ method, params }) => this.notes.push([method, params]))
    this.app.onRequest('*', ({ method }) => { throw acp.RequestError.methodNotFound(method) })
    for (const [method, answer] of Object.entries(answers))
      this.app.onRequest(method, ({ params }) => {
        this.asked.push([method, params])
        return answer(params)
      })
  }

  async meet(stream, clientCapabilities = {}) {
    this.connection = this.app.connect(stream)
    this.agent = this.connection.agent
    this.hello = await this.agent.request(methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities })
    same(this.hello.agentInfo.name, 'test-agent')
    const { sessionId } = await this.agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })
    this.sessionId = sessionId
    return this
  }

  // Prompts, and gives what was said until the turn is over.
  async prompt(text, stopReason = 'end_turn') {
    const from = this.said.length
    const answer = await this.agent.request(methods.agent.session.prompt, { sessionId: this.sessionId, prompt: [{ type: 'text', text }] })
    same(answer.stopReason, stopReason)
    return this.said.slice(from)
  }

  async ask(text) {
    return (await this.prompt(text)).join('')
  }
}

// Numbered notifications to the agent, which tallies them.
export async function send(person, n, text = (i) => `item ${i}`) {
  for (let i = 0; i < n; i++) await person.agent.notify('_test/item', { n: i, text: text(i) })
}

// `updates N` has said each of them once and in order.
export function inOrder(said, n, size = 0) {
  same(said.length, n, 'updates')
  const padding = 'x'.repeat(size)
  said.forEach((text, i) => { if (text !== `${i} ${padding}`) assert.fail(`update ${i} is ${text.slice(0, 60)}`) })
}

// ---- over HTTP ----------------------------------------------------------------------------------

export const WebSocket = require('ws')
const wsUrl = (server, id, query) => `${server.url.replace(/^http/, 'ws')}/v1/agents/${id}/acp${query ? `?${new URLSearchParams(query)}` : ''}`

// One WebSocket to an agent: `messages` are what came, as text. If the server says no, `opened` gives its status and what it
// said; else 101.
export function dial(server, id, { key = server.as.apiKey, query, protocols, onMessage } = {}) {
  const ws = new WebSocket(wsUrl(server, id, query), protocols, { headers: { 'X-API-Key': key }, maxPayload: 128 << 20 })
  const line = { ws, messages: [], headers: {} }
  ws.on('error', () => {})
  ws.on('upgrade', (res) => { line.headers = res.headers })
  ws.on('message', (data) => {
    line.messages.push(data.toString())
    onMessage?.(data.toString())
  })
  line.closed = new Promise((resolve) => ws.on('close', (code, reason) => resolve({ code, reason: reason.toString() })))
  line.opened = new Promise((resolve) => {
    ws.on('open', () => resolve({ status: 101 }))
    ws.on('unexpected-response', async (req, res) => {
      const parts = []
      for await (const part of res) parts.push(part)
      const text = Buffer.concat(parts).toString()
      let json
      try {
        json = JSON.parse(text)
      } catch {}
      resolve({ status: res.statusCode, text, json })
    })
  })
  return line
}

// A stream for the SDK that outlives its connections: it counts what came, keeps what the agent was not given yet, and goes on
// where it was when it is connected again. `cut` is what a bad network does.
export class Resumable {
  constructor(server, id, options = {}) {
    Object.assign(this, { server, id, options, got: 0, given: 0, outbox: [], broken: [], connections: 0, over: false })
    this.readable = new ReadableStream({ start: (controller) => { this.controller = controller } })
    this.writable = new WritableStream({ write: (message) => this.send(JSON.stringify(message)) })
    this.connect()
  }

  async connect() {
    while (!this.over) {
      const line = dial(this.server, this.id, { ...this.options, query: { after: this.got, role: 'writer' }, onMessage: (text) => this.take(text) })
      this.line = line
      const { status, text } = await line.opened
      // The server may not have noticed that the last connection is gone.
      if (status === 409) {
        await sleep(20)
        continue
      }
      if (status !== 101) {
        this.controller.error(new Error(`${status}: ${text}`))
        return
      }
      this.connections++
      const received = Number(line.headers['sandglass-acp-received'])
      this.outbox.splice(0, received - this.given)
      this.given = received
      for (const message of this.outbox) line.ws.send(message)
      this.open = line
      await line.closed
      this.open = undefined
    }
  }

  take(text) {
    this.got++
    let message
    try {
      message = JSON.parse(text)
    } catch {
      this.broken.push(text)
      return
    }
    this.controller.enqueue(message)
  }

  send(text) {
    this.outbox.push(text)
    this.open?.ws.send(text)
  }

  cut() {
    this.open?.ws.terminate()
  }

  close() {
    this.over = true
    this.line.ws.terminate()
  }
}

/** What the agent has counted. The SDK may answer before its last handlers have run: asked again until it is as many. */
export async function tallied(person, count) {
  for (const end = Date.now() + 5000; ; ) {
    const tally = JSON.parse(await person.ask('tally'))
    if (tally.count >= count || Date.now() > end) return tally
  }
}
