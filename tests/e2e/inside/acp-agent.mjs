// An ACP agent, written with the SDK, that does on a prompt what the prompt says: the first word is the verb, the rest is
// about it. Runs inside a sandbox; `modules` of acp.mjs puts it there together with the SDK.
import crypto from 'node:crypto'
import fs from 'node:fs'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import * as acp from '@agentclientprotocol/sdk'

const { client: theirs, agent: ours } = acp.methods
let abilities = {}
let sessions = 0
let stop = () => {}

// What clients send to `_test/item`: how many, in order, and one hash of all.
const items = { count: 0, wrong: 0, hash: crypto.createHash('sha256') }

const turn = () => new Promise((resolve) => setImmediate(resolve))

// Past the SDK: bytes on standard output, with regard to who reads them.
async function raw(bytes) {
  if (!process.stdout.write(bytes)) await once(process.stdout, 'drain')
}

const verbs = {
  echo: ({ say }, text) => say(text),

  env: ({ say }, name) => say(process.env[name] ?? 'not set'),

  where: ({ say }) => say(process.cwd()),

  // Numbered updates, so that a missing or a second one is seen.
  async updates({ say }, words) {
    const [n, size = 0] = words.split(' ').map(Number)
    const padding = 'x'.repeat(size)
    for (let i = 0; i < n; i++) await say(`${i} ${padding}`)
  },

  // One update with so many bytes of text that does not repeat itself.
  big: ({ say }, size) => say(crypto.createHash('shake256', { outputLength: Number(size) / 2 }).update('big').digest('hex')),

  // What came as `_test/item` until now. The SDK begins with handlers in the order in which messages come, and does not wait.
  tally: ({ say }) => turn().then(() => say(JSON.stringify({ count: items.count, wrong: items.wrong, hash: items.hash.copy().digest('hex') }))),

  async permission({ say, ask, sessionId }, what) {
    const answer = await ask(theirs.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId: 'call-1', title: what, kind: 'edit', status: 'pending' },
      options: [
        { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
        { optionId: 'no', name: 'Reject', kind: 'reject_once' },
      ],
    })
    await say(answer.outcome.optionId ?? answer.outcome.outcome)
  },

  async read({ say, ask, sessionId }, path) {
    const { content } = await ask(theirs.fs.readTextFile, { sessionId, path })
    await say(content)
  },

  async write({ say, ask, sessionId }, words) {
    const [path, ...rest] = words.split(' ')
    await ask(theirs.fs.writeTextFile, { sessionId, path, content: rest.join(' ') })
    await say('written')
  },

  async terminal({ say, client, sessionId }, command) {
    const terminal = await client.createTerminal({ sessionId, command: 'sh', args: ['-c', command], outputByteLimit: 100_000 })
    const { exitCode, signal } = await terminal.waitForExit()
    const { output, truncated } = await terminal.currentOutput()
    await terminal.release()
    await say(JSON.stringify({ exitCode, signal, output, truncated }))
  },

  abilities: ({ say }) => say(JSON.stringify(abilities)),

  // Its own files, not the client's.
  async own({ say }, words) {
    const [path, ...rest] = words.split(' ')
    if (rest.length) fs.writeFileSync(path, rest.join(' '))
    await say(fs.readFileSync(path, 'utf8'))
  },

  stall: () => new Promise(() => {}),

  // Waits until it is told to stop.
  cancel: ({ signal }) => new Promise((resolve) => {
    stop = () => resolve({ stopReason: 'cancelled' })
    signal.addEventListener('abort', stop)
  }),

  // Never stops writing; a good message each time.
  async flood(_, size) {
    const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'f'.repeat(Number(size) || 1000) } }
    const line = `${JSON.stringify({ jsonrpc: '2.0', method: theirs.session.update, params: { sessionId: 'session-1', update } })}\n`
    for (;;) await raw(line)
  },

  // What a library prints that does not know that standard output is taken.
  async noise({ say }, when) {
    await raw('Loading model... 100 %\n\n{"jsonrpc": "2.0", "method"\n[1, 2]\n"text"\n\u001b[31mred\u001b[0m\n')
    if (when === 'binary') await raw(Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a]))
    await say('still here')
  },

  async stderr({ say }, text) {
    process.stderr.write(`${text}\n`)
    await say('said')
  },

  exit: (_, status) => process.exit(Number(status)),

  async signal(_, name) {
    process.kill(process.pid, name)
    await new Promise(() => {})
  },

  // A last line without its end, then nothing more.
  async cut() {
    await raw('{"jsonrpc":"2.0","method":"_test/cut"')
    process.exit(0)
  },
}

function prompt({ params: { sessionId, prompt: blocks }, client, signal }) {
  const text = blocks.map((b) => b.text ?? '').join('')
  const [, verb, about] = text.match(/^(\S+) ?(.*)$/s)
  const say = (words) =>
    client.notify(theirs.session.update, { sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: words } } })
  const act = { say, client, sessionId, signal, ask: (method, params) => client.request(method, params) }
  if (!verbs[verb]) throw acp.RequestError.invalidParams({ verb })
  return Promise.resolve(verbs[verb](act, about)).then((answer) => answer ?? { stopReason: 'end_turn' })
}

acp
  .agent({ name: 'test-agent' })
  .onRequest(ours.initialize, ({ params }) => {
    abilities = params.clientCapabilities ?? {}
    return { protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: { loadSession: false }, agentInfo: { name: 'test-agent', version: '1' } }
  })
  .onRequest(ours.session.new, () => ({ sessionId: `session-${++sessions}` }))
  .onRequest(ours.session.prompt, prompt)
  .onNotification(ours.session.cancel, () => stop())
  .onNotification('_test/item', (params) => params, ({ params }) => {
    if (params.n !== items.count) items.wrong++
    items.count++
    items.hash.update(params.text)
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin), { maxMessageBytes: 64 << 20 }))
