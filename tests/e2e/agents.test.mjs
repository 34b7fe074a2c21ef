// Agents over HTTP: POST /v1/agents, their WebSockets, what is told of them. Both ends are ACP's SDK.
import { execFile, execFileSync } from 'node:child_process'
import crypto from 'node:crypto'
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { assert, eventually, modules, run, same, sha256, sleep, test, TOP, unique } from './lib.mjs'
import { dial, inOrder, methods, Person, Resumable, send, tarball, tallied } from './acp.mjs'
import { front, killFront, scratch, start, stop } from './server.mjs'
import { Client, keyOf } from './v1.mjs'

const server = await start(undefined, undefined, ['--agent-replay', '2M', '--tenant-agents', '12', '--tenant-sandboxes', '40', '--reap-every', '500ms'])
const v1 = new Client(server)
const SOURCE = { type: 'tar', data: tarball().toString('base64') }
const AGENT = { command: ['node', 'agent.mjs'], source: SOURCE, timeout: 60 }
const post = (body) => v1.gives(201, 'POST', '/v1/agents', body)
const told = (id) => v1.gives(200, 'GET', `/v1/agents/${id}`)
const end = (id) => v1.ask('DELETE', `/v1/agents/${id}`)
const ended = (id, state) => eventually(`it is ${state}`, async () => (await told(id)).state === state && told(id))
const memory = (field = 'VmRSS') => Number(fs.readFileSync(`/proc/${front(server)}/status`, 'utf8').match(new RegExp(`${field}:\\s+(\\d+)`))[1]) / 1024
const well = async () => same((await fetch(`${server.url}/health`)).status, 204, 'the server is well')

let lines = []
const open = (id, options) => {
  const line = options?.resumable ? new Resumable(options.server ?? server, id) : dial(server, id, options)
  lines.push(line)
  return line
}

// Somebody who speaks to a new agent.
async function talk(more = {}, answers, abilities) {
  const { agentId } = await post({ ...AGENT, ...more })
  const line = open(agentId, { resumable: true })
  const person = await new Person(answers).meet(line, abilities)
  return { id: agentId, line, person }
}

// A test, and an end to everything that it has started.
function each(name, body, opts) {
  test(name, async () => {
    try {
      await body()
    } finally {
      for (const line of lines.splice(0)) line instanceof Resumable ? line.close() : line.ws.terminate()
      for (const { agentId, state } of (await v1.gives(200, 'GET', '/v1/agents')).agents) if (['starting', 'running'].includes(state)) await end(agentId)
    }
  }, opts)
}

// ---- the protocol -------------------------------------------------------------------------------

each('a conversation, what is listed of it, and its end', async () => {
  const files = new Map([['/work/a.txt', 'of the client']])
  const { id, person } = await talk({ env: { COLOUR: 'blue' } }, {
    [methods.client.session.requestPermission]: ({ options }) => ({ outcome: { outcome: 'selected', optionId: options[0].optionId } }),
    [methods.client.fs.readTextFile]: ({ path: p }) => ({ content: files.get(p) }),
  })
  same(await person.ask('echo héllo ☃'), 'héllo ☃')
  same(await person.ask('env COLOUR'), 'blue')
  same(await person.ask('where'), '/home/user/project')
  same(await person.ask('permission x'), 'yes')
  same(await person.ask('read /work/a.txt'), 'of the client')
  inOrder(await person.prompt('updates 200'), 200)
  same(await person.ask('stderr for the log'), 'said')
  const one = await told(id)
  assert.deepEqual([one.agentId, one.state, one.fault ?? null], [id, 'running', null])
  const { agents } = await v1.gives(200, 'GET', '/v1/agents')
  assert.ok(agents.some((a) => a.agentId === id && a.sandboxId === one.sandboxId), JSON.stringify(agents))
  assert.match(JSON.stringify(await v1.gives(200, 'GET', `/v1/agents/${id}/logs`)), /for the log/)
  assert.ok((await v1.sandboxes()).some((s) => s.sandboxID === one.sandboxId))
  assert.ok([200, 204].includes((await end(id)).status))
  await eventually('its sandbox has ended with it', async () => !(await v1.sandboxes()).some((s) => s.sandboxID === one.sandboxId))
})

each('5,000 messages each way at once', async () => {
  const { person } = await talk()
  const said = person.prompt('updates 5000 100')
  const all = crypto.createHash('sha256')
  await send(person, 5000, (i) => {
    const text = `${i} ${unique()}`
    all.update(text)
    return text
  })
  inOrder(await said, 5000, 100)
  assert.deepEqual(await tallied(person, 5000), { count: 5000, wrong: 0, hash: all.digest('hex') })
})

each('10 MB in one message, both ways at once', async () => {
  const { person } = await talk()
  const text = crypto.randomBytes(5 << 20).toString('hex')
  const [said] = await Promise.all([person.ask(`big ${10 << 20}`), send(person, 2, () => text)])
  same(sha256(said), sha256(crypto.createHash('shake256', { outputLength: 5 << 20 }).update('big').digest('hex')))
  const tally = JSON.parse(await person.ask('tally'))
  assert.deepEqual([tally.count, tally.hash], [2, sha256(text.repeat(2))])
})

each('more both ways at once than all buffers hold', async () => {
  const { agentId } = await post({ command: ['cat'], timeout: 60 })
  const [here, there] = [crypto.createHash('sha256'), crypto.createHash('sha256')]
  let back = 0
  const line = open(agentId, { query: { after: 0 }, onMessage: (text) => { back++; there.update(text) } })
  await line.opened
  const padding = 'x'.repeat(1000)
  for (let i = 0; i < 40_000; i++) {
    const text = `{"n":${i},"text":"${padding}"}`
    here.update(text)
    line.ws.send(text)
  }
  await eventually('all are back', () => back === 40_000)
  same(there.digest('hex'), here.digest('hex'))
})

each('byte for byte: spaces, escapes and numbers stay as they were', async () => {
  const { agentId } = await post({ command: ['cat'], timeout: 60 })
  const line = open(agentId, { query: { after: 0 } })
  await line.opened
  const sent = ['{ "jsonrpc" :"2.0",\t"method":"_x","params":{"a":"\\u00e9\\ud83d\\ude00\\/","n":1.0e+2, "big":12345678901234567890 } }  ', ' {"é":"☃"}', '[1,  2]']
  for (const text of sent) line.ws.send(text)
  await eventually('all are back', () => line.messages.length === sent.length)
  assert.deepEqual(line.messages, sent)
})

each('noise is no message: it is counted and in the log; what begins like one is passed on', async () => {
  const { id, person, line } = await talk()
  same(await person.ask('noise binary'), 'still here')
  same(await person.ask('echo and now'), 'and now')
  assert.deepEqual(line.broken, ['{"jsonrpc": "2.0", "method"'])
  same((await told(id)).noise, 4, 'lines')
  assert.match(JSON.stringify(await v1.gives(200, 'GET', `/v1/agents/${id}/logs`)), /Loading model/)
})

// ---- connections --------------------------------------------------------------------------------

each('a connection that drops, again and again: nothing is lost, nothing comes twice', async () => {
  const { person, line } = await talk()
  const cuts = setInterval(() => line.cut(), 60)
  const said = person.prompt('updates 2000 300')
  const all = crypto.createHash('sha256')
  for (let i = 0; i < 2000; i++) {
    const text = `${i} ${unique()}`
    all.update(text)
    await person.agent.notify('_test/item', { n: i, text })
    if (i % 100 === 0) await sleep(10)
  }
  inOrder(await said, 2000, 300)
  clearInterval(cuts)
  assert.deepEqual(await tallied(person, 2000), { count: 2000, wrong: 0, hash: all.digest('hex') })
  assert.ok(line.connections > 3, `${line.connections} connections`)
})

each('what an agent says while nobody listens is kept, and told to who comes', async () => {
  const { id, person, line } = await talk()
  const turn = person.prompt('updates 50')
  line.cut()
  inOrder(await turn, 50)
  line.close()
  // From the begin, by somebody else, who only reads.
  const reader = open(id, { query: { after: 0, role: 'reader' } })
  same((await reader.opened).status, 101)
  await eventually('all of it', () => reader.messages.length === line.got)
  inOrder(reader.messages.map((m) => JSON.parse(m)).filter((m) => m.method === 'session/update').map((m) => m.params.update.content.text), 50)
})

each('several readers, one writer, and another that takes over', async () => {
  const { id, person, line } = await talk()
  const readers = [1, 2, 3].map(() => open(id, { query: { after: 0, role: 'reader' } }))
  for (const reader of readers) same((await reader.opened).status, 101)
  inOrder(await person.prompt('updates 300'), 300)
  for (const reader of readers) await eventually('a reader has all', () => reader.messages.length === line.got)
  for (const reader of readers) assert.deepEqual(reader.messages, readers[0].messages)
  const second = open(id, { query: { role: 'writer' } })
  const no = await second.opened
  same(no.status, 409, no.text)
  same(no.json?.code, 409)
  // A reader has nothing to say.
  readers[0].ws.send('{"jsonrpc":"2.0","method":"_test/item","params":{"n":0,"text":"x"}}')
  same((await readers[0].closed).code, 1008)
  same(JSON.parse(await person.ask('tally')).count, 0)
  line.over = true
  const heir = open(id, { query: { role: 'writer', takeover: 'true' } })
  same((await heir.opened).status, 101)
  const lost = await line.line.closed
  assert.deepEqual(lost, { code: 4409, reason: 'another writer has taken over' })
  heir.ws.send(JSON.stringify({ jsonrpc: '2.0', id: 99, method: 'session/prompt', params: { sessionId: 'session-1', prompt: [{ type: 'text', text: 'echo for the heir' }] } }))
  await eventually('it is answered', () => heir.messages.some((m) => m.includes('for the heir')))
})

each('too old to be told: 410; not a number: 400; the first message with a subprotocol', async () => {
  const { id, person, line } = await talk()
  for (let i = 0; i < 4; i++) await person.prompt('updates 200 5000')
  await eventually('the oldest is dropped', async () => {
    const reader = dial(server, id, { query: { after: 0, role: 'reader' } })
    const { status, json } = await reader.opened
    reader.ws.terminate()
    return status === 410 && /after/.test(json.message)
  })
  for (const after of ['x', '-1', '999999999']) same((await open(id, { query: { after, role: 'reader' } }).opened).status, 400, after)
  const reader = open(id, { query: { after: line.got, role: 'reader' }, protocols: ['sandglass.acp.v1'] })
  same((await reader.opened).status, 101)
  await eventually('it is greeted', () => reader.messages.length)
  const hello = JSON.parse(reader.messages[0])
  assert.deepEqual([hello.next, hello.role], [line.got + 1, 'reader'])
  assert.ok(hello.received > 0)
  same(reader.ws.protocol, 'sandglass.acp.v1')
})

// ---- agents that behave badly -------------------------------------------------------------------

each('an agent that ends: its status, its signal, and whose fault it was', async () => {
  const ends = async ([verb, expected]) => {
    const { id, person, line } = await talk()
    line.over = true
    person.prompt(verb).catch(() => {})
    const { code, reason } = await line.line.closed
    const one = await told(id)
    assert.deepEqual([code, one.state, one.exitCode ?? null, one.signal ?? null, one.fault ?? null], expected, JSON.stringify(one))
    same(reason, one.reason)
    // What it said is there for who comes late.
    const late = open(id, { query: { after: 0, role: 'reader' } })
    same((await late.opened).status, 101)
    await late.closed
    same(late.messages.length, line.got)
  }
  await Promise.all([
    ['exit 0', [1000, 'exited', 0, null, null]],
    ['exit 7', [1000, 'exited', 7, null, 'agent']],
    ['signal SIGTERM', [1001, 'killed', null, 'SIGTERM', 'agent']],
  ].map(ends))
})

each('an agent that stalls is ended when its time is over', async () => {
  const { agentId } = await post({ command: ['sleep', '100'], timeout: 1 })
  const line = open(agentId)
  const { code, reason } = await line.closed
  const one = await told(agentId)
  assert.deepEqual([code, one.state, one.fault, one.reason], [1001, 'timed_out', 'agent', reason])
  await eventually('its sandbox is gone', async () => !(await v1.sandboxes()).some((s) => s.sandboxID === one.sandboxId))
})

each('its time is moved while it runs', async () => {
  const { agentId } = await post({ command: ['cat'], timeout: 2 })
  const until = async () => Date.parse((await told(agentId)).endAt) - Date.now()
  assert.ok((await until()) <= 2_000)
  await v1.gives(200, 'POST', `/v1/agents/${agentId}/timeout`, { timeout: 100 })
  assert.ok((await until()) > 90_000)
  await v1.gives(200, 'POST', `/v1/agents/${agentId}/timeout`, { timeout: 1 })
  await ended(agentId, 'timed_out')
  await v1.refuses(409, /has ended/, 'POST', `/v1/agents/${agentId}/timeout`, { timeout: 100 })
})

each('an agent that is not there: told at once, and nothing is left', async () => {
  const before = (await v1.sandboxes()).length
  await v1.refuses(400, /no-such-agent/, 'POST', '/v1/agents', { command: ['no-such-agent'] })
  await v1.refuses(400, /command/, 'POST', '/v1/agents', { command: [] })
  await v1.refuses(400, /command/, 'POST', '/v1/agents', {})
  await v1.refuses(400, /nonsense/, 'POST', '/v1/agents', { command: ['cat'], nonsense: 1 })
  await eventually('no sandbox is left of it', async () => (await v1.sandboxes()).length === before)
})

each('an agent that floods and a client that reads nothing: nothing grows, others are served', async () => {
  const { id, person, line } = await talk()
  const other = await talk()
  line.over = true
  person.prompt('flood 10000').catch(() => {})
  await eventually('it floods', () => line.got > 100)
  line.open.ws._socket.pause()
  const reader = open(id, { query: { role: 'reader' } })
  await reader.opened
  reader.ws._socket.pause()
  await sleep(300)
  const before = memory()
  await sleep(600)
  assert.ok(memory() - before < 8, `the front has grown from ${before} to ${memory()} MiB`)
  inOrder(await other.person.prompt('updates 500'), 500)
  await well()
  // The client reads again: it goes on where it was.
  const at = line.got
  line.open.ws._socket.resume()
  await eventually('it goes on', () => line.got > at + 1000)
  // And the other way: an agent that does not read.
  const deaf = await post({ command: ['sleep', '60'], timeout: 60 })
  const mute = open(deaf.agentId)
  await mute.opened
  const base = memory()
  const big = `{"a":"${'x'.repeat(100_000)}"}`
  for (let i = 0; i < 1500; i++) mute.ws.send(big)
  await sleep(400)
  assert.ok(memory() - base < 96, `the front has grown from ${base} to ${memory()} MiB`)
  assert.ok(mute.ws.bufferedAmount > 1 << 20, 'the client was stopped')
  await well()
})

// ---- clients that behave badly ------------------------------------------------------------------

// A WebSocket of bare bytes.
async function bare(id) {
  const socket = net.connect(Number(new URL(server.url).port), '127.0.0.1')
  let came = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('data', (d) => { came = Buffer.concat([came, d]) })
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.write(`GET /v1/agents/${id}/acp HTTP/1.1\r\nHost: x\r\nX-API-Key: ${v1.key}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`)
  await eventually('it is upgraded', () => came.includes('\r\n\r\n'))
  assert.match(came.toString('latin1'), /^HTTP\/1\.1 101 /)
  const rest = () => came.subarray(came.indexOf('\r\n\r\n') + 4)
  // The code of the close frame that came last.
  const code = () => { const at = rest().lastIndexOf(0x88); return at < 0 ? undefined : rest().readUInt16BE(at + 2) }
  return { socket, closed, code, rest }
}

const frame = (first, payload, { masked = true, length } = {}) => {
  const head = Buffer.alloc(10)
  head[0] = first
  head[1] = (masked ? 0x80 : 0) | 127
  head.writeBigUInt64BE(BigInt(length ?? payload.length), 2)
  return Buffer.concat([head, ...(masked ? [Buffer.alloc(4)] : []), payload])
}

each('frames that nobody should send: a reason at once, and the agent lives', async () => {
  const { agentId } = await post({ command: ['cat'], timeout: 60 })
  const none = Buffer.alloc(0)
  for (const [what, bytes, code] of [
    ['1 GB', frame(0x81, none, { length: 1 << 30 }), 1009],
    ['2^63', frame(0x81, none, { length: 2n ** 63n - 1n }), 1009],
    ['not masked', Buffer.from([0x81, 0x02, 0x7b, 0x7d]), 1002],
    ['a reserved bit', Buffer.from([0xc1, 0x80, 0, 0, 0, 0]), 1002],
    ['an unknown kind', Buffer.from([0x83, 0x80, 0, 0, 0, 0]), 1002],
    ['not UTF-8', Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe]), 1007],
    ['a long ping', Buffer.concat([Buffer.from([0x89, 0xfe, 0, 126, 0, 0, 0, 0]), Buffer.alloc(126)]), 1002],
  ]) {
    const before = memory()
    const line = await bare(agentId)
    line.socket.write(bytes)
    await eventually(`${what}: it is closed`, () => line.code() === code, 5)
    line.socket.destroy()
    assert.ok(memory() - before < 8, what)
  }
  await well()
  same((await told(agentId)).state, 'running')
  const line = open(agentId, { query: { role: 'writer', takeover: 'true' } })
  await line.opened
  line.ws.send('{"still":"here"}')
  await eventually('it answers', () => line.messages.includes('{"still":"here"}'))
})

each('a client that vanishes without a word: the next one takes over, with all that it missed', async () => {
  const { agentId } = await post({ command: ['sh', '-c', 'i=0; while [ $i -lt 400 ]; do echo "{\\"n\\":$i}"; i=$((i + 1)); done; exec cat'], timeout: 60 })
  const gone = await bare(agentId)
  gone.socket.pause()
  const line = open(agentId, { query: { after: 0, role: 'writer', takeover: 'true' } })
  same((await line.opened).status, 101)
  await eventually('all of it', () => line.messages.length === 400)
  assert.deepEqual(line.messages.map((m) => JSON.parse(m).n), Array.from({ length: 400 }, (_, i) => i))
  gone.socket.destroy()
})

// ---- paths, tenants, sources --------------------------------------------------------------------

each('on a path of a conversation: the same files, the same end', async () => {
  const talkId = `talk-${unique()}`
  const { context } = await v1.obtain(talkId, 'main')
  const { id, person, line } = await talk({ conversationId: talkId, pathId: 'main' })
  const one = await told(id)
  assert.deepEqual([one.sandboxId, one.conversationId, one.pathId], [context.sandboxId, talkId, 'main'])
  same(await person.ask('own /home/user/note.txt from the agent'), 'from the agent')
  same((await v1.code(talkId, 'main', 'print(open("/home/user/note.txt").read())')).stdout, 'from the agent\n')
  await v1.code(talkId, 'main', 'open("/home/user/back.txt", "w").write("from the cell")')
  same(await person.ask('own /home/user/back.txt'), 'from the cell')
  line.over = true
  await v1.end(context.id)
  const over = await eventually('it has ended with its path', async () => {
    const now = await told(id)
    return now.state !== 'running' && now
  })
  same(over.fault, 'sandbox', JSON.stringify(over))
  // Stopping an agent leaves its path alone.
  const again = await talk({ conversationId: talkId, pathId: 'other' })
  await end(again.id)
  same((await v1.code(talkId, 'other', '6 * 7')).results[0].text, '42')
  await v1.clear(talkId)
})

each('another tenant sees nothing of it', async () => {
  const { agentId } = await post({ command: ['cat'], timeout: 60 })
  const other = new Client(server, keyOf(server, `other-${unique()}`))
  await other.refuses(404, /Agent/, 'GET', `/v1/agents/${agentId}`)
  await other.refuses(404, /Agent/, 'GET', `/v1/agents/${agentId}/logs`)
  await other.refuses(404, /Agent/, 'DELETE', `/v1/agents/${agentId}`)
  assert.deepEqual((await other.gives(200, 'GET', '/v1/agents')).agents, [])
  same((await open(agentId, { key: other.key }).opened).status, 404)
  same((await open(agentId, { key: 'e2b_' + '0'.repeat(40) }).opened).status, 401)
  same((await told(agentId)).state, 'running')
})

each('source code: a tar and a bundle; one that climbs, one that is none', async () => {
  const repo = path.join(scratch, `repo-${unique()}`)
  fs.mkdirSync(repo)
  fs.writeFileSync(path.join(repo, 'hello.txt'), '{"hello":1}\n')
  const git = (...args) => execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.com', '-C', repo, ...args], { stdio: 'pipe' })
  git('init', '-q', '-b', 'main')
  git('add', '.')
  git('commit', '-qm', 'first')
  git('bundle', 'create', `${repo}.bundle`, 'main')
  const { agentId } = await post({ command: ['sh', '-c', 'cat hello.txt; exec cat'], source: { type: 'bundle', data: fs.readFileSync(`${repo}.bundle`, 'base64') }, timeout: 60 })
  const line = open(agentId, { query: { after: 0 } })
  await eventually('it is there', () => line.messages[0] === '{"hello":1}')
  const climber = execFileSync('tar', ['-P', '-cf', '-', '--transform', 's,.*,../../out,', path.join(repo, 'hello.txt')])
  const before = (await v1.sandboxes()).length
  await v1.refuses(400, /\.\./, 'POST', '/v1/agents', { command: ['cat'], source: { type: 'tar', data: climber.toString('base64') } })
  await v1.refuses(400, /source/, 'POST', '/v1/agents', { command: ['cat'], source: { type: 'tar', data: crypto.randomBytes(3000).toString('base64') } })
  await v1.refuses(400, /source/, 'POST', '/v1/agents', { command: ['cat'], source: { type: 'tar', data: '*' } })
  await v1.refuses(400, /source/, 'POST', '/v1/agents', { command: ['cat'], source: { type: 'zip', data: '' } })
  await eventually('no sandbox is left of them', async () => (await v1.sandboxes()).length === before)
})

each('serveFs: a client without files and terminals has an agent with both', async () => {
  const { person } = await talk({ serveFs: true })
  const able = JSON.parse(await person.ask('abilities'))
  assert.deepEqual([able.fs, able.terminal], [{ readTextFile: true, writeTextFile: true }, true])
  same(await person.ask('write /home/user/project/made.txt by the agent, ☃'), 'written')
  same(await person.ask('own /home/user/project/made.txt'), 'by the agent, ☃', 'in the sandbox')
  same(await person.ask('read /home/user/project/made.txt'), 'by the agent, ☃')
  const done = JSON.parse(await person.ask('terminal echo out; exit 5'))
  assert.deepEqual([done.exitCode, done.output.trim()], [5, 'out'])
  assert.deepEqual(person.asked, [])
})

each('no more agents than a tenant may have', async () => {
  const made = []
  for (let i = 0; i < 12; i++) made.push(await post({ command: ['cat'], timeout: 60 }))
  const no = await v1.ask('POST', '/v1/agents', { command: ['cat'] })
  same(no.status, 429, no.text)
  await end(made[0].agentId)
  await post({ command: ['cat'], timeout: 60 })
})

// ---- the example --------------------------------------------------------------------------------

test('examples/orchestrator.mjs starts an agent, prints what it says and stops it', async () => {
  const dir = fs.mkdtempSync(path.join(scratch, 'orchestrator.'))
  fs.copyFileSync(path.join(TOP, 'examples/orchestrator.mjs'), path.join(dir, 'orchestrator.mjs'))
  fs.symlinkSync(path.join(modules, 'node_modules'), path.join(dir, 'node_modules'))
  fs.writeFileSync(path.join(dir, 'agent.tar'), tarball())
  const env = { PATH: process.env.PATH, E2B_API_URL: server.url, E2B_API_KEY: v1.key }
  const orchestrate = (task) =>
    new Promise((resolve) => execFile('node', ['orchestrator.mjs', 'agent.tar', task, 'node', 'agent.mjs'], { cwd: dir, env, timeout: 30_000 }, (err, out, told) => resolve({ status: err?.code ?? 0, out, told })))
  const [terminal, permission, bad] = await Promise.all(['terminal uname -s', 'permission to go on', 'exit 3'].map(orchestrate))
  assert.deepEqual(terminal, { status: 0, out: JSON.stringify({ exitCode: 0, signal: null, output: 'Linux\n', truncated: false }), told: '' })
  assert.deepEqual(permission, { status: 0, out: 'yes', told: '' })
  same(bad.status, 1)
  assert.ok((await v1.gives(200, 'GET', '/v1/agents')).agents.every((a) => a.state !== 'running'))
})

// ---- the server ---------------------------------------------------------------------------------

test('the front is killed: its agents are listed as lost, and whose fault that is', async () => {
  const { id, line } = await talk()
  line.over = true
  const { sandboxId } = await told(id)
  await killFront(server)
  const one = await ended(id, 'lost')
  same(one.fault, 'infrastructure', JSON.stringify(one))
  const { code, reason } = await dial(server, id).closed
  same(code, 1011)
  same(reason, one.reason)
  await eventually('its sandbox is not left', async () => !(await v1.sandboxes()).some((s) => s.sandboxID === sandboxId))
  const { person } = await talk()
  same(await person.ask('echo the next is well'), 'the next is well')
})

test('the server ends in good order, agents or not', async () => {
  await post({ command: ['cat'], timeout: 60 })
  same(await stop(server), 0)
})

await run()
