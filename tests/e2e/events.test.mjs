// Events and webhooks: what is told of sandboxes and contexts while it happens, to whom, and what is told later to who was
// not there. And what it costs.
import { execFile, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { assert, eventually, run, same, Sandbox, test, unique } from './lib.mjs'
import { oddTarget, Receiver, Stream } from './hooks.mjs'
import { killFront, SG, start, stop } from './server.mjs'
import { surroundings } from './terminal.mjs'
import { Client, keyOf } from './v1.mjs'

const hook = await new Receiver().open()
const options = ['--webhook-url', hook.url, '--webhook-secret', hook.secret, '--webhook-events', 'sandbox.*,context.*',
  '--prices', 'cpu=3600/h,memory=0.006/h,egress=0.09/G,execution=0.25,sandbox=1,currency=EUR']
let server = await start(undefined, undefined, options)
let v1 = new Client(server)
const page = (query = '') => v1.gives(200, 'GET', `/v1/events?limit=1000${query}`)
const make = () => Sandbox.create('base', server.as)

function sandglass(args, { seconds = 20 } = {}) {
  const env = { ...surroundings, E2B_API_KEY: server.as.apiKey, E2B_API_URL: server.url, E2B_SANDBOX_URL: server.url }
  return new Promise((resolve) => {
    execFile(SG, args, { env, timeout: seconds * 1000 }, (err, stdout, stderr) =>
      resolve({ status: err ? (err.code ?? `signal ${err.signal}`) : 0, stdout, stderr })).stdin.end()
  })
}

async function works(args) {
  const { status, stdout, stderr } = await sandglass(args)
  same(status, 0, `sandglass ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}

// ---- streams ------------------------------------------------------------------------------------

test('a life is told while it happens, and later on pages', async () => {
  const stream = new Stream(v1)
  await stream.ready()
  const sandbox = await make()
  await stream.wait({ type: 'sandbox.created', sandboxId: sandbox.sandboxId })
  await sandbox.createSnapshot()
  await sandbox.pause()
  await Sandbox.connect(sandbox.sandboxId, server.as)
  await sandbox.kill()
  const end = await stream.wait({ type: 'sandbox.ended', sandboxId: sandbox.sandboxId })
  same(end.reason, 'killed')
  assert.ok(Math.abs(Date.parse(end.time) - Date.now()) < 60_000, end.time)
  await stream.close()
  const mine = stream.events.filter((e) => e.sandboxId === sandbox.sandboxId)
  assert.deepEqual(mine.map((e) => e.type), ['sandbox.created', 'sandbox.snapshot', 'sandbox.paused', 'sandbox.resumed', 'sandbox.ended'])
  assert.deepEqual((await page(`&sandboxId=${sandbox.sandboxId}`)).events, mine)
  assert.deepEqual((await page(`&sandboxId=${sandbox.sandboxId}&after=${mine[1].id}`)).events, mine.slice(2))
  assert.deepEqual((await page(`&sandboxId=${sandbox.sandboxId}&types=sandbox.e*,context.*`)).events, mine.slice(4))
  const first = await v1.gives(200, 'GET', `/v1/events?limit=1&sandboxId=${sandbox.sandboxId}&after=${mine[0].id - 1}`)
  assert.deepEqual([first.events, first.next, first.more], [mine.slice(0, 1), mine[0].id, true])
})

test('contexts, by conversation', async () => {
  const talk = `talk-"${unique()}"`
  const stream = new Stream(v1, `?conversationId=${encodeURIComponent(talk)}&types=context.*`)
  await stream.ready()
  const { context } = await v1.obtain(talk, 'main', { template: 'base' })
  const made = await stream.wait({ type: 'context.created', contextId: context.id })
  assert.deepEqual([made.conversationId, made.pathId, made.sandboxId], [talk, 'main', context.sandboxId])
  await v1.gives(200, 'DELETE', `/v1/contexts/${context.id}`)
  await stream.wait({ type: 'context.ended', contextId: context.id })
  same(stream.events.length, 2)
  await stream.close()
})

test('a tenant sees its own', async () => {
  const other = new Client(server, keyOf(server, 'other'))
  const stream = new Stream(other)
  await stream.ready()
  const sandbox = await Sandbox.create('base', { ...server.as, apiKey: other.key }), not = await make()
  await stream.wait({ type: 'sandbox.created', sandboxId: sandbox.sandboxId })
  await Promise.all([sandbox.kill(), not.kill()])
  await stream.wait({ type: 'sandbox.ended', sandboxId: sandbox.sandboxId })
  await stream.close()
  assert.deepEqual([...new Set(stream.events.map((e) => e.sandboxId))], [sandbox.sandboxId])
  const all = (await other.gives(200, 'GET', '/v1/events?limit=1000')).events
  assert.ok(all.length >= 2 && all.every((e) => e.sandboxId === sandbox.sandboxId), JSON.stringify(all))
})

test('a client that reads nothing costs nobody anything', async () => {
  const deaf = await fetch(`${v1.url}/v1/events?after=0`, { headers: { 'X-API-Key': v1.key } })
  const sandbox = await make()
  await sandbox.kill()
  await eventually('others are told', async () => (await page(`&sandboxId=${sandbox.sandboxId}`)).events.length === 2)
  await deaf.body.cancel()
})

test('the front is killed: who comes back misses nothing', async () => {
  const stream = new Stream(v1)
  await stream.ready()
  const sandbox = await make()
  const made = await stream.wait({ type: 'sandbox.created', sandboxId: sandbox.sandboxId })
  await killFront(server)
  await eventually('the stream ends', () => stream.ended)
  await Sandbox.kill(sandbox.sandboxId, server.as)
  const again = new Stream(v1, '', { 'Last-Event-ID': String(made.id) })
  const end = await again.wait({ type: 'sandbox.ended', sandboxId: sandbox.sandboxId })
  await again.close()
  assert.ok(again.events.every((e, i) => e.id > (again.events[i - 1]?.id ?? made.id)), JSON.stringify(again.events))
  // The end of an earlier sandbox that the killed front had not stored yet is told again.
  const own = again.events.filter((e) => e.type === 'gap' || e.sandboxId === sandbox.sandboxId)
  assert.deepEqual(own.map((e) => e.type), ['gap', 'sandbox.ended'])
  same(again.events[0].reason, 'restart')
  assert.ok(end.id > made.id)
})

test('the server is started again: numbers go on, and a stream ends with it', async () => {
  const stream = new Stream(v1), last = (await page()).next
  await stream.ready()
  same(await stop(server), 0)
  assert.ok(stream.ended)
  server = await start(server.state, server.as.apiKey, options)
  v1 = new Client(server)
  const sandbox = await make()
  await sandbox.kill()
  const news = await eventually('there is news', async () => {
    const { events, gap } = await page(`&after=${last}`)
    assert.ok(!gap)
    return events.some((e) => e.type === 'sandbox.ended') && events
  })
  same(news[0].id, last + 1)
  assert.ok(!news.some((e) => e.type === 'gap'), JSON.stringify(news))
  // Numbers that this server cannot have given out.
  const lost = new Stream(v1, '?after=999999999')
  same((await lost.wait({ type: 'gap' })).reason, 'unknown')
  await lost.close()
})

// ---- webhooks -----------------------------------------------------------------------------------

test('a webhook gets signed posts, in order', async () => {
  const sandbox = await make()
  await sandbox.kill()
  await hook.wait(sandbox.sandboxId, 'sandbox.ended')
  assert.deepEqual(hook.about(sandbox.sandboxId), ['sandbox.created', 'sandbox.ended'])
  for (const { event, headers, genuine } of hook.got) {
    assert.ok(genuine, JSON.stringify(headers))
    assert.deepEqual([headers['sandglass-event'], headers['sandglass-delivery'], headers['content-type']], [event.type, String(event.id), 'application/json'])
    assert.match(event.type, /^(sandbox|context)\./)
  }
})

test('what is not taken comes again, and keeps its place', async () => {
  let failures = 1
  hook.status = ({ event }) => (event.type === 'sandbox.created' && failures-- > 0 ? 500 : 200)
  const sandbox = await make()
  await sandbox.kill()
  await hook.wait(sandbox.sandboxId, 'sandbox.ended')
  hook.status = () => 204
  assert.deepEqual(hook.about(sandbox.sandboxId), ['sandbox.created', 'sandbox.ended'])
  const tries = hook.tries.filter((t) => t.event.sandboxId === sandbox.sandboxId)
  assert.deepEqual(tries.map((t) => t.status), [500, 200, 200])
  same(tries[0].headers['sandglass-delivery'], tries[1].headers['sandglass-delivery'])
  assert.ok(tries.every((t) => t.genuine))
})

test('a receiver that is away for a while gets everything, also from the next front', async () => {
  await hook.close()
  const sandboxes = [await make(), await make()]
  await sandboxes[0].kill()
  await eventually('the log says so', () => /webhook: event \d+ was not accepted and will be posted again/.test(server.err))
  await sleep(200) // what was not written by then dies with the front
  await killFront(server)
  await Sandbox.kill(sandboxes[1].sandboxId, server.as)
  await hook.open(hook.port)
  for (const sandbox of sandboxes) await hook.wait(sandbox.sandboxId, 'sandbox.ended')
  for (const sandbox of sandboxes) assert.deepEqual(hook.about(sandbox.sandboxId).sort(), ['sandbox.created', 'sandbox.ended'])
  await eventually('the log says so', () => /webhook: the receiver accepts events again/.test(server.err))
  assert.ok(server.err.match(/webhook: /g).length < 10, server.err)
})

test('targets that answer garbage, or never: requests do not notice', async () => {
  for (const answer of ['\x00\x01garbage\r\n\r\n', undefined]) {
    const odd = await oddTarget(answer)
    const one = await start(undefined, undefined, ['--webhook-url', odd.url, '--webhook-secret', 'x', '--pool-min', '0', '--pool-max', '0'])
    const sandbox = await Sandbox.create('base', one.as)
    await eventually('it was tried', () => odd.connections > 0)
    await sandbox.kill()
    const client = new Client(one)
    await eventually('events are there', async () => (await client.gives(200, 'GET', '/v1/events?limit=10')).events.length >= 2)
    same(await stop(one), 0)
    odd.server.close()
  }
})

// ---- the command --------------------------------------------------------------------------------

test('sandglass events', async () => {
  const sandbox = await make()
  await sandbox.kill()
  const query = ['events', '--sandbox', sandbox.sandboxId]
  const lines = await eventually('it is told', async () => {
    const text = (await works(query)).trimEnd().split('\n').filter((l) => !/ gap /.test(l))
    return text.length === 2 && text
  })
  assert.match(lines[0], new RegExp(`^20\\d\\d-\\d\\d-\\d\\d [0-9:.]+ +\\d+  sandbox\\.created     sandbox=${sandbox.sandboxId}`))
  assert.match(lines[1], new RegExp(`  sandbox\\.ended       sandbox=${sandbox.sandboxId}  reason=killed`))
  same(lines[0].indexOf('sandbox='), lines[1].indexOf('sandbox='))
  const one = JSON.parse((await works([...query, '--json', '--types', 'sandbox.ended'])).trimEnd().split('\n').at(-1))
  same(one.type, 'sandbox.ended')
  same(await works([...query, '--after', String(one.id)]), '')
  const bad = await sandglass(['events', '--types', 'nonsense'])
  same(bad.status, 1)
  assert.match(bad.stderr, /^sandglass: types: there is no event 'nonsense'/)
})

test('sandglass events -f goes on over the death of a front', async () => {
  const env = { ...surroundings, E2B_API_KEY: server.as.apiKey, E2B_API_URL: server.url, E2B_SANDBOX_URL: server.url }
  const { next } = await page()
  const child = spawn(SG, ['events', '-f', '--json', '--after', String(next), '--types', 'sandbox.*'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  child.stdout.on('data', (d) => { out += d })
  try {
    const told = (sandbox, type) => eventually(`${type} is shown`, () => out.split('\n').some((l) => l.includes(sandbox.sandboxId) && l.includes(`"${type}"`)))
    const sandbox = await make()
    await told(sandbox, 'sandbox.created')
    await killFront(server)
    await Sandbox.kill(sandbox.sandboxId, server.as)
    await told(sandbox, 'sandbox.ended')
    const ids = out.trimEnd().split('\n').map((l) => JSON.parse(l).id)
    assert.deepEqual(ids, [...new Set(ids)].sort((a, b) => a - b), 'each once, in order')
  } finally {
    child.kill('SIGKILL')
  }
})

// ---- what it costs ------------------------------------------------------------------------------

test('usage with prices, by conversation and by day', async () => {
  const talk = `cost-${unique()}`
  const { context } = await v1.obtain(talk, 'main', { template: 'base' })
  const sandbox = await Sandbox.connect(context.sandboxId, server.as)
  await sandbox.commands.run('i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done')
  await v1.gives(200, 'DELETE', `/v1/contexts/${context.id}`)
  const row = await eventually('it is counted', async () => {
    const { conversations } = await v1.gives(200, 'GET', `/v1/usage?by=conversation&conversationId=${talk}`)
    return conversations.length === 1 && conversations[0].cpuSeconds > 0 && conversations[0]
  })
  assert.deepEqual([row.conversationId, row.executions, row.sandboxes], [talk, 1, 1])
  const { amount, currency, parts } = row.cost
  same(currency, 'EUR')
  assert.deepEqual([parts.execution, parts.sandbox, parts.egress], ['0.25', '1', '0'])
  // One EUR for a second of processor: what it costs is what it used, to the microsecond.
  assert.ok(Math.abs(Number(parts.cpu) - row.cpuSeconds) < 0.001, JSON.stringify(row))
  const sum = Object.values(parts).reduce((n, p) => n + BigInt(p.split('.')[0]) * 10n ** 12n + BigInt((p.split('.')[1] ?? '').padEnd(12, '0')), 0n)
  same(amount, `${sum / 10n ** 12n}.${String(sum % 10n ** 12n).padStart(12, '0')}`.replace(/\.?0+$/, ''))
  const [head, ...rest] = (await works(['usage', '--cost', '--by', 'conversation'])).split('\n\n')[0].split('\n')
  assert.match(head, /^CONVERSATION +CPU s +MEMORY GiB s +EGRESS +EXECUTIONS +SANDBOXES +COST EUR$/)
  assert.ok(rest.some((l) => l.startsWith(talk) && l.endsWith(Number(amount).toFixed(2))), rest.join('\n'))
  assert.match(rest.at(-1), /^total +\d/)
  assert.ok(rest.every((l) => l.length === head.length), rest.join('\n'))
  const { prices, total } = JSON.parse(await works(['usage', '--cost', '--json']))
  assert.deepEqual(prices.memory, { price: '0.006', per: 'GiB hour' })
  assert.ok(Number(total.cost.amount) >= Number(amount))
})

test('a price that is none stops the server, and says which', async () => {
  const bad = await sandglass(['serve', '--listen', '127.0.0.1:1', '--state', `${server.state}-none`, '--prices', 'cpu=0.05/h,gpu=1/h'])
  assert.notEqual(bad.status, 0)
  assert.match(bad.stderr, /prices: 'gpu=1\/h' is not understood/)
})

test('without prices: how to set them', async () => {
  const { E2B_API_KEY, E2B_API_URL } = process.env
  const env = { ...surroundings, E2B_API_KEY, E2B_API_URL, E2B_SANDBOX_URL: E2B_API_URL }
  const { status, stderr } = await new Promise((resolve) => execFile(SG, ['usage', '--cost'], { env }, (err, stdout, stderr) => resolve({ status: err?.code ?? 0, stderr })))
  same(status, 1)
  assert.match(stderr, /^sandglass: this server has no prices: set them in its sandglass.conf, like prices = cpu=/)
})

test('the servers end', async () => {
  same(await stop(server), 0)
  await hook.close()
})

await run()
