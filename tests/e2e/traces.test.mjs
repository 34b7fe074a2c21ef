// Traces: what a collector gets to see of what a server does, whose it is, and what the server does when the
// collector does not do its part.
import crypto from 'node:crypto'
import fs from 'node:fs'
import { Interpreter, PORT } from './code.mjs'
import { Collector } from './collector.mjs'
import { warm } from './fork.mjs'
import { assert, eventually, run, test, toPort, unique } from './lib.mjs'
import { front, start, stop } from './server.mjs'
import { Client } from './v1.mjs'

const collector = await new Collector().open()
const server = await start(undefined, undefined, [
  '--otlp-endpoint', collector.url, '--otlp-headers', 'x-team=a%20team', '--tenant-sandboxes', '30',
  '--langfuse-host', collector.url, '--langfuse-public-key', 'pk-lf-test', '--langfuse-secret-key', 'sk-lf-test'])
const v1 = new Client(server)
const SERVER = 2, INTERNAL = 1

// A caller's own place in a trace.
function caller(flags = '01') {
  const traceId = crypto.randomBytes(16).toString('hex'), spanId = crypto.randomBytes(8).toString('hex')
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } }
}

const as = (headers) => ({ ...server.as, headers })
const make = (who, opts) => Interpreter.create({ ...as(who.headers), ...opts })

// The package sends headers of its user's to the control plane alone: what goes to a sandbox is asked for by hand.
const at = (sandbox, port, path, type, body, headers) =>
  toPort(sandbox, port, { method: 'POST', path, body, at: server.url, headers: { 'Content-Type': type, 'X-Access-Token': sandbox.envdAccessToken ?? '', ...headers } })

// What a command says.
async function command(sandbox, line, headers) {
  const message = Buffer.from(JSON.stringify({ process: { cmd: '/bin/sh', args: ['-c', line] } })), head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  const answer = await at(sandbox, 49983, '/process.Process/Start', 'application/connect+json', Buffer.concat([head, message]), { 'Connect-Protocol-Version': '1', ...headers })
  assert.equal(answer.status, 200, answer.text)
  let said = ''
  for (let i = 0; i < answer.data.length; i += 5 + answer.data.readUInt32BE(i + 1)) {
    const part = JSON.parse(answer.data.subarray(i + 5, i + 5 + answer.data.readUInt32BE(i + 1)))
    said += Buffer.from(part.event?.data?.stdout ?? '', 'base64').toString()
  }
  return said.trim()
}

// What a cell prints.
async function cell(sandbox, code, headers, more = {}) {
  const answer = await at(sandbox, PORT, '/execute', 'application/json', JSON.stringify({ code, ...more }), headers)
  assert.equal(answer.status, 200, answer.text)
  const lines = answer.text.split('\n').filter(Boolean).map((l) => JSON.parse(l))
  return lines.filter((l) => l.type === 'stdout').map((l) => l.text).join('').trim()
}

// A traceparent in parts.
const parts = (text) => text.match(/^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/)?.slice(1)

// ---- what is told -------------------------------------------------------------------------------

test('a sandbox is made, step by step, under the trace of who asked', async () => {
  const who = caller(), began = BigInt(Date.now()) * 1_000_000n
  const sandbox = await make(who)
  const span = await collector.in(who.traceId, 'sandbox.create')
  const steps = collector.spans.filter((s) => s.parentSpanId === span.spanId)
  await sandbox.kill()
  assert.equal(span.parentSpanId, who.spanId)
  assert.deepEqual([span.kind, span.scope, span.failed], [SERVER, 'sandglass', false])
  assert.deepEqual([span.resource['service.name'], span.resource['service.version'].length > 0], ['sandglass', true])
  assert.match(span.resource['service.instance.id'], /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  assert.ok(span.resource['host.name'])
  assert.equal(span.attributes['sandglass.sandbox'], sandbox.sandboxId)
  assert.ok(span.attributes['sandglass.tenant'] && span.attributes['sandglass.template'])
  assert.ok(span.begin >= began - 1_000_000_000n && span.end > span.begin)
  for (const name of ['policy', 'order', 'ready']) assert.ok(steps.some((s) => s.name === `sandbox.create.${name}`), name)
  for (const step of steps) {
    assert.deepEqual([step.traceId, step.kind], [who.traceId, INTERNAL])
    assert.equal(step.attributes['sandglass.sandbox'], sandbox.sandboxId)
    assert.ok(step.begin >= span.begin && step.end <= span.end && step.end >= step.begin, `${step.name} is within`)
  }
})

test('pause, resume, fork, checkpoint, rewind, destroy', async () => {
  const who = caller(), sandbox = await warm(as(who.headers))
  const id = sandbox.sandboxId
  await sandbox.pause()
  await Interpreter.connect(id, as(who.headers))
  const said = (method, route, body) => v1.ask(method, route, body, { headers: who.headers })
  assert.equal((await said('POST', `/sandboxes/${id}/checkpoints`, { label: 'a' })).status, 201)
  assert.equal((await said('POST', `/sandboxes/${id}/rewind`, { label: 'a' })).status, 200)
  const copy = await said('POST', `/sandboxes/${id}/fork`, { timeout: 60 })
  assert.equal(copy.status, 201, copy.text)
  const child = copy.json[0].sandbox.sandboxID
  for (const one of [id, child]) assert.equal((await said('DELETE', `/sandboxes/${one}`)).status, 204)
  for (const name of ['pause', 'resume', 'checkpoint', 'rewind', 'fork', 'destroy']) {
    const span = await collector.in(who.traceId, `sandbox.${name}`)
    assert.equal(span.attributes['sandglass.sandbox'], id, name)
    assert.deepEqual([span.parentSpanId, span.failed], [who.spanId, false], name)
  }
  const made = await collector.one('the copy', (s) => s.name === 'sandbox.create' && s.attributes['sandglass.sandbox'] === child)
  assert.equal(made.traceId, who.traceId)
  await collector.one('its end', (s) => s.name === 'sandbox.destroy' && s.attributes['sandglass.sandbox'] === child)
}, { seconds: 60 })

test('a path of a conversation: get-or-create, a tool call, its cell, the end', async () => {
  const who = caller(), id = `talk-${unique()}`
  const more = { headers: who.headers }
  const { context, sandbox } = await v1.gives(201, 'PUT', '/v1/contexts', { conversationId: id, pathId: 'main', metadata: { userId: 'ada' } }, more)
  await v1.gives(200, 'POST', '/v1/tools/run_code', { conversationId: id, pathId: 'main', code: '1/0' }, more)
  await v1.gives(200, 'DELETE', `/v1/contexts/${context.id}`, undefined, more)
  const names = ['context.get_or_create', 'tool.call', 'context.terminate']
  const [got, tool, ended] = await Promise.all(names.map((name) => collector.in(who.traceId, name)))
  for (const span of [got, tool, ended]) {
    assert.equal(span.parentSpanId, who.spanId, span.name)
    const { 'sandglass.conversation': conversation, 'sandglass.path': path, 'session.id': session } = span.attributes
    assert.deepEqual([conversation, path, session], [id, 'main', id], span.name)
    assert.ok(span.attributes['sandglass.tenant'], span.name)
  }
  assert.equal(got.attributes['sandglass.context'], context.id)
  assert.equal(got.attributes['user.id'], 'ada')
  assert.deepEqual([tool.attributes['sandglass.tool'], tool.attributes['sandglass.forced']], ['run_code', true])
  assert.equal(tool.attributes['sandglass.sandbox'], sandbox.sandboxID)
  const create = await collector.in(who.traceId, 'sandbox.create'), cell = await collector.in(who.traceId, 'cell.execute')
  assert.deepEqual([create.parentSpanId, create.kind], [got.spanId, INTERNAL], 'it was made for the path')
  assert.deepEqual([cell.parentSpanId, cell.kind], [tool.spanId, INTERNAL], 'the cell is the tool\'s')
  assert.deepEqual([cell.failed, cell.attributes['sandglass.language'], cell.attributes['sandglass.layer']], [true, 'python', 'code'])
  assert.ok(cell.attributes['error.type'])
  const destroy = await collector.in(who.traceId, 'sandbox.destroy')
  assert.equal(destroy.attributes['sandglass.sandbox'], sandbox.sandboxID)
})

test('a trace goes on inside: TRACEPARENT of a command, and of a cell', async () => {
  const who = caller(), sandbox = await make(who)
  const told = parts(await command(sandbox, 'echo $TRACEPARENT', who.headers))
  const process = await collector.in(who.traceId, 'process.start')
  assert.deepEqual(told, [who.traceId, process.spanId, '01'])
  assert.deepEqual([process.parentSpanId, process.kind, process.attributes['process.exit.code']], [who.spanId, SERVER, 0])
  const code = 'import os\nprint(os.environ.get("TRACEPARENT", ""))'
  const inside = parts(await cell(sandbox, code, who.headers))
  assert.deepEqual(inside, [who.traceId, (await collector.in(who.traceId, 'cell.execute')).spanId, '01'])
  const other = caller()
  assert.equal(parts(await cell(sandbox, code, other.headers))?.[0], other.traceId, 'the next cell has its own')
  const shell = caller()
  assert.equal(parts(await cell(sandbox, 'echo $TRACEPARENT', shell.headers, { language: 'bash' }))?.[0], shell.traceId)
  const alone = parts((await sandbox.commands.run('echo $TRACEPARENT')).stdout.trim())
  assert.ok(alone, 'and who says nothing has a trace of his own')
  await collector.in(alone[0], 'process.start')
  await sandbox.kill()
})

test('what it may reach and what not is told as an event', async () => {
  const who = caller(), sandbox = await make(who, { network: { denyOut: ['203.0.113.0/24'] } })
  const code = 'import socket\ntry:\n    socket.create_connection(("203.0.113.7", 4711), 2)\nexcept OSError as e:\n    print(e)'
  await cell(sandbox, code, who.headers)
  const isOurs = (e) => e.name === 'egress' && e.attributes['destination.port'] === 4711
  const span = await collector.one('with an event of egress', (s) => s.traceId === who.traceId && s.events.some(isOurs))
  const event = span.events.find(isOurs)
  assert.equal(span.attributes['sandglass.sandbox'], sandbox.sandboxId)
  assert.deepEqual([event.attributes['sandglass.verdict'], event.attributes['destination.address']], ['blocked', '203.0.113.7'])
  await sandbox.kill()
})

test('a program that fails', async () => {
  const who = caller(), sandbox = await make(who)
  await command(sandbox, 'exit 3', who.headers)
  const span = await collector.in(who.traceId, 'process.start')
  assert.deepEqual([span.failed, span.attributes['process.exit.code'], span.attributes['sandglass.layer']], [true, 3, 'code'])
  await sandbox.kill()
})

// ---- traceparents -------------------------------------------------------------------------------

test('nonsense for a traceparent is no traceparent, and no trouble', async () => {
  const id = crypto.randomBytes(16).toString('hex'), span = 'b7ad6b7169203331'
  const bad = ['', 'nonsense', `ff-${id}-${span}-01`, `00-${id}-${span}`, `00-${id.toUpperCase()}-${span}-01X`, `00-${'0'.repeat(32)}-${span}-01`,
    `00-${id}-${'0'.repeat(16)}-01`, `00-${id}-${span}-01-more`, 'x'.repeat(4000)]
  const sandbox = await make({ headers: {} })
  const told = []
  for (const traceparent of bad) {
    const own = parts(await command(sandbox, 'echo $TRACEPARENT', { traceparent }))
    assert.ok(own && own[0] !== id, `a trace of its own for '${traceparent.slice(0, 70)}'`)
    told.push(own[0])
  }
  for (const own of told) {
    const began = await collector.in(own, 'process.start')
    assert.deepEqual([began.parentSpanId ?? '', began.kind], ['', SERVER])
  }
  const later = await command(sandbox, 'echo $TRACEPARENT', { traceparent: `cc-${id}-${span}-01-and-more` })
  assert.equal(parts(later)?.[0], id, 'a later version is taken')
  await sandbox.kill()
})

test('a trace that is not sampled is passed on and makes no span', async () => {
  const who = caller('00'), sandbox = await make(who)
  assert.deepEqual(parts(await command(sandbox, 'echo $TRACEPARENT', who.headers)), [who.traceId, who.spanId, '00'])
  await sandbox.kill()
  const next = caller(), after = await make(next)
  await collector.in(next.traceId, 'sandbox.create')
  await after.kill()
  assert.deepEqual(collector.spans.filter((s) => s.traceId === who.traceId), [])
})

// ---- Langfuse -----------------------------------------------------------------------------------

test('Langfuse gets the same, with its keys, under its names, without what was written', async () => {
  const who = caller(), id = `talk-${unique()}`
  await v1.gives(200, 'POST', '/v1/tools/run_code', { conversationId: id, pathId: 'main', code: 'print("a-secret-word")' }, { headers: who.headers })
  await v1.clear(id)
  const from = { from: 'langfuse' }
  const tool = await collector.in(who.traceId, 'tool.call', from), cell = await collector.in(who.traceId, 'cell.execute', from)
  assert.deepEqual([tool.attributes['session.id'], tool.attributes['langfuse.observation.type']], [id, 'tool'])
  assert.deepEqual([cell.attributes['session.id'], cell.attributes['langfuse.observation.type']], [id, 'tool'])
  assert.ok(tool.attributes['user.id'] ?? tool.attributes['sandglass.tenant'])
  const all = JSON.stringify(collector.langfuse, (_, v) => (typeof v === 'bigint' ? String(v) : v))
  assert.ok(!all.includes('a-secret-word') && !all.includes('langfuse.observation.input') && !all.includes('langfuse.observation.output'))
  const posts = (url) => collector.posts.filter((p) => p.url === url)
  for (const { headers } of posts('/api/public/otel/v1/traces')) {
    assert.equal(headers.authorization, `Basic ${Buffer.from('pk-lf-test:sk-lf-test').toString('base64')}`)
    assert.deepEqual([headers['x-langfuse-ingestion-version'], headers['x-team']], ['4', undefined])
    assert.equal(headers['content-type'], 'application/x-protobuf')
  }
  for (const { headers } of posts('/v1/traces')) assert.deepEqual([headers.authorization, headers['x-team']], [undefined, 'a team'])
})

test('a server that ends sends what it has first', async () => {
  const who = caller(), sandbox = await make(who)
  await sandbox.kill()
  assert.equal(await stop(server), 0)
  const ended = (s) => s.traceId === who.traceId && s.name === 'sandbox.destroy'
  assert.ok(collector.spans.some(ended), 'it is there when the server is gone')
})

// ---- JSON, and content --------------------------------------------------------------------------

// The second server: another form, and what is written is in the traces.
let second
const other = new Collector()
const two = async () => {
  second ??= (async () => {
    await other.open()
    const s = await start(undefined, undefined, ['--otlp-endpoint', other.url, '--otlp-protocol', 'json', '--trace-content', '--tenant-contexts', '100'])
    return { s, v1: new Client(s) }
  })()
  return second
}

test('as JSON, with code and output, sanitised', async () => {
  const { v1: there } = await two(), who = caller(), id = `talk-${unique()}`
  const code = 'x = "ada" + "@example.com"\nprint("mail to", x)  # from bob@example.com'
  await there.gives(200, 'POST', '/v1/tools/run_code', { conversationId: id, pathId: 'main', code }, { headers: who.headers })
  const tool = await other.in(who.traceId, 'tool.call')
  const { 'langfuse.observation.input': input, 'langfuse.observation.output': output } = tool.attributes
  assert.match(input, /^x = "ada" \+ "@example.com"\nprint\("mail to", x\) {2}# from \[EMAIL\]$/)
  assert.match(output, /^mail to \[EMAIL\]\s*$/)
  assert.ok(other.posts.every((p) => p.headers['content-type'] === 'application/json'))
  await there.clear(id)
})

// ---- a collector that does not do its part ------------------------------------------------------

const rss = (pid) => Number(fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+)/m)[1])

// Requests that make a span each, and nothing else.
async function many(client, id, n, at = 8) {
  let left = n
  const one = async () => {
    while (left-- > 0) await client.gives(200, 'PUT', '/v1/contexts', { conversationId: id, pathId: 'main' })
  }
  await Promise.all(Array.from({ length: at }, one))
}

test('whatever a collector does, requests are answered, and spans come when it is well again', async () => {
  const { s, v1: there } = await two(), id = `talk-${unique()}`
  await there.obtain(id, 'main')
  for (const mode of ['silent', 'garbage', 500, 503]) {
    other.mode = mode
    const before = other.posts.length
    await many(there, id, 20)
    await eventually(`it was asked while ${mode}`, () => other.posts.slice(before).some((p) => p.mode === mode))
    await many(there, id, 20)
    other.mode = 'ok'
    other.server.closeAllConnections() // it need not wait for who is silent, here
  }
  const who = caller()
  await there.ask('PUT', '/v1/contexts', { conversationId: id, pathId: 'main' }, { headers: who.headers })
  await other.in(who.traceId, 'context.get_or_create', { seconds: 40 })
  const told = s.err.split('\n').filter((l) => l.includes('traces: otlp_endpoint'))
  assert.ok(told.length >= 2 && told.length <= 12, `the log tells of it, but not each time:\n${told.join('\n')}`)
}, { seconds: 90 })

test('a collector that is gone: nothing grows', async () => {
  const { s, v1: there } = await two(), id = `talk-${unique()}`
  const large = async (n) => {
    for (let i = 0; i < n; i++) await there.code(id, 'main', `${'#'.repeat(30_000)}\n1`)
  }
  await large(1)
  const { port } = other
  await other.close()
  await large(350) // 60 KB each, more than are kept
  const before = rss(front(s))
  await large(200)
  const grown = rss(front(s)) - before
  assert.ok(grown < 4096, `${grown} kB more for 12,000 kB that nobody takes`)
  await other.open(port)
  const who = caller()
  await there.ask('PUT', '/v1/contexts', { conversationId: id, pathId: 'main' }, { headers: who.headers })
  await other.in(who.traceId, 'context.get_or_create', { seconds: 40 })
  assert.equal(await stop(s), 0)
}, { seconds: 90 })

await run()
