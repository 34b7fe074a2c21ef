// E2B's lifecycle events and tenants' webhooks: shapes, signatures, retries, the front's end in between, and where
// webhooks may go.
import crypto from 'node:crypto'
import http from 'node:http'
import net from 'node:net'
import { assert, eventually, run, same, Sandbox, test } from './lib.mjs'
import { killFront, start, stop } from './server.mjs'
import { Client, keyOf } from './v1.mjs'

const SECRET = 'hunter2 with "quotes", spaces and ü'
const ALL = ['created', 'updated', 'paused', 'resumed', 'checkpointed', 'killed'].map((t) => `sandbox.lifecycle.${t}`)

// A receiver as E2B's documentation has it: the signature is over the bytes.
class Receiver {
  got = []
  answer = () => ({ status: 200 })

  async open(port = 0) {
    this.server = http.createServer((req, res) => {
      const chunks = []
      req.on('data', (d) => chunks.push(d))
      req.on('end', () => {
        const body = Buffer.concat(chunks)
        const hash = crypto.createHash('sha256').update(SECRET).update(body).digest('base64').replace(/=+$/, '')
        const one = { path: req.url, event: JSON.parse(body), headers: req.headers, genuine: hash === req.headers['e2b-signature'] }
        const { status, headers = {} } = this.answer(one)
        this.got.push({ ...one, status })
        res.writeHead(status, { connection: 'close', ...headers }).end()
      })
    }).listen(port, '127.0.0.1')
    await new Promise((resolve, reject) => this.server.once('listening', resolve).once('error', reject))
    this.port = this.server.address().port
    return this
  }

  async close() {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }

  about(sandboxId) {
    return this.got.filter((g) => g.event.sandbox_id === sandboxId)
  }

  // The types that were taken, in order.
  taken(sandboxId) {
    return this.about(sandboxId).filter((g) => g.status < 300).map((g) => g.event.type)
  }

  wait(sandboxId, type) {
    return eventually(`${type} is posted`, () => this.taken(sandboxId).includes(`sandbox.lifecycle.${type}`))
  }
}

const hook = await new Receiver().open()
const url = `http://127.0.0.1:${hook.port}/hook`
const server = await start(undefined, undefined, ['--webhook-targets', `*, http://127.0.0.1:${hook.port}`, '--pool-min', '0', '--pool-max', '1'])
const api = new Client(server)
const other = new Client(server, keyOf(server, 'other'))
const make = (more = {}) => Sandbox.create('base', { ...server.as, ...more })
const asked = (more = {}) => ({ name: 'mine', url, events: ALL, signatureSecret: SECRET, ...more })
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

// A webhook for the time of a test.
async function withHook(body, more) {
  const made = await api.gives(201, 'POST', '/events/webhooks', asked(more))
  try {
    return await body(made)
  } finally {
    await api.gives(200, 'DELETE', `/events/webhooks/${made.id}`)
  }
}

test('made, listed, changed, deleted; the secret is never shown', async () => {
  const made = await api.gives(201, 'POST', '/events/webhooks', asked({ events: [ALL[0], ALL[5], ALL[0]] }))
  assert.deepEqual(Object.keys(made).sort(), ['createdAt', 'enabled', 'events', 'id', 'name', 'teamId', 'url'])
  assert.match(made.id, UUID)
  assert.deepEqual([made.name, made.url, made.enabled, made.events], ['mine', url, true, [ALL[0], ALL[5]]])
  assert.ok(Math.abs(Date.parse(made.createdAt) - Date.now()) < 60_000)
  assert.deepEqual(await api.gives(200, 'GET', '/events/webhooks'), [made])
  assert.deepEqual(await api.gives(200, 'GET', `/events/webhooks/${made.id}`), made)
  const changed = await api.gives(200, 'PATCH', `/events/webhooks/${made.id}`, { enabled: false, events: [ALL[1]] })
  assert.deepEqual(changed, { ...made, enabled: false, events: [ALL[1]] })
  assert.deepEqual(await api.gives(200, 'PATCH', `/events/webhooks/${made.id}`, { name: 'yours', signatureSecret: 'x' }), { ...changed, name: 'yours' })
  for (const [method, body] of [['GET'], ['PATCH', { name: 'theirs' }], ['DELETE']])
    await other.refuses(404, /doesn't exist or you don't have access/, method, `/events/webhooks/${made.id}`, body)
  assert.deepEqual(await other.gives(200, 'GET', '/events/webhooks'), [])
  await api.gives(200, 'DELETE', `/events/webhooks/${made.id}`)
  await api.refuses(404, /doesn't exist/, 'GET', `/events/webhooks/${made.id}`)
  await api.refuses(404, /doesn't exist/, 'DELETE', '/events/webhooks/nonsense')
})

test('what makes no sense is refused in one line', async () => {
  const wrong = [
    [{ name: undefined }, /'name' is required/], [{ name: '' }, /'name' must not be empty/], [{ name: 'x'.repeat(129) }, /'name'/],
    [{ url: undefined }, /'url' is required/], [{ url: `${url}/${'x'.repeat(1100)}` }, /'url'/], [{ url: 'no address' }, /^Invalid url: an address that cannot be read/],
    [{ events: undefined }, /'events' is required/], [{ events: [] }, /'events' must not be empty/], [{ events: 'x' }, /'events'/],
    [{ events: ['sandbox.created'] }, /sandbox\.lifecycle\.created, and not 'sandbox\.created'/], [{ events: [7] }, /no text/],
    [{ signatureSecret: undefined }, /'signatureSecret' is required/], [{ signatureSecret: '' }, /must not be empty/],
    [{ signatureSecret: 's'.repeat(513) }, /'signatureSecret'/], [{ enabled: 'yes' }, /'enabled'/],
  ]
  for (const [more, message] of wrong) {
    const { message: text } = await api.refuses(400, message, 'POST', '/events/webhooks', asked(more))
    assert.ok(!text.includes('\n') && !text.includes(SECRET), text)
  }
  for (let i = 0; i < 20; i++) await other.gives(201, 'POST', '/events/webhooks', asked({ enabled: false }))
  await other.refuses(429, /maximum number of webhooks: the limit is 20/, 'POST', '/events/webhooks', asked())
  for (const { id } of await other.gives(200, 'GET', '/events/webhooks')) await other.gives(200, 'DELETE', `/events/webhooks/${id}`)
})

test('a life, posted and listed', () => withHook(async (made) => {
  const sandbox = await make({ metadata: { who: 'me' } }), id = sandbox.sandboxId
  await sandbox.setTimeout(200_000)
  await sandbox.pause()
  await Sandbox.connect(id, server.as)
  await sandbox.createSnapshot()
  await sandbox.kill()
  await hook.wait(id, 'killed')
  const posts = hook.about(id)
  assert.deepEqual(posts.map((p) => p.event.type), ALL)
  for (const { event, headers, genuine } of posts) {
    assert.ok(genuine, JSON.stringify(headers))
    assert.deepEqual([headers['e2b-webhook-id'], headers['e2b-signature-version'], headers['content-type']], [made.id, 'v1', 'application/json'])
    assert.match(headers['e2b-delivery-id'], UUID)
    for (const key of ['id', 'sandbox_execution_id', 'sandbox_build_id']) assert.match(event[key], UUID)
    assert.deepEqual([event.version, event.sandbox_id, event.sandbox_team_id, event.event_data.sandbox_metadata], ['v2', id, made.teamId, { who: 'me' }])
    same(event.event_label, { created: 'create', updated: 'update', paused: 'pause', resumed: 'resume', killed: 'kill' }[event.type.split('.')[2]] ?? '')
  }
  const [created, updated, paused, resumed, , killed] = posts.map((p) => p.event)
  assert.ok(Math.abs(Date.parse(updated.event_data.set_timeout) - Date.now() - 200_000) < 60_000)
  for (const { event_data: { execution } } of [paused, killed]) {
    assert.ok(execution.execution_time >= 0 && execution.vcpu_count >= 1 && execution.memory_mb > 0 && Date.parse(execution.started_at) > 0)
  }
  same(killed.event_data.kill_reason, 'request')
  same(created.sandbox_execution_id, paused.sandbox_execution_id)
  assert.notEqual(paused.sandbox_execution_id, resumed.sandbox_execution_id)

  const list = (query = '') => api.gives(200, 'GET', `/events/sandboxes/${id}${query}`)
  const listed = await list('?orderAsc=true')
  assert.deepEqual(listed.map((e) => e.type), ALL)
  assert.deepEqual(listed.map((e) => e.id), posts.map((p) => p.event.id))
  assert.deepEqual(Object.keys(listed[0]), ['id', 'version', 'type', 'timestamp', 'eventCategory', 'eventLabel', 'eventData', 'sandboxId',
    'sandboxExecutionId', 'sandboxTemplateId', 'sandboxBuildId', 'sandboxTeamId'])
  assert.deepEqual(listed[5].eventData, killed.event_data)
  assert.deepEqual(await list(), listed.toReversed())
  assert.deepEqual(await list('?limit=2&offset=1&orderAsc=true'), listed.slice(1, 3))
  assert.deepEqual((await list(`?types=${ALL[5]}&types=${ALL[0]}`)).map((e) => e.type), [ALL[5], ALL[0]])
  assert.deepEqual((await api.gives(200, 'GET', '/events/sandboxes?limit=1')), [listed[5]])
  assert.deepEqual(await other.gives(200, 'GET', `/events/sandboxes/${id}`), [])
  assert.deepEqual(await other.gives(200, 'GET', '/events/sandboxes'), [])
  for (const query of ['limit=0', 'limit=101', 'offset=-1', 'orderAsc=perhaps', 'types=sandbox.created'])
    await api.refuses(400, /^Invalid /, 'GET', `/events/sandboxes?${query}`)
}))

test('only what was asked for, of this tenant, as long as it is enabled', () => withHook(async (made) => {
  const foreign = await Sandbox.create('base', { ...server.as, apiKey: other.key })
  await foreign.kill()
  const first = await make()
  await first.kill()
  await hook.wait(first.sandboxId, 'killed')
  assert.deepEqual(hook.taken(first.sandboxId), [ALL[5]])
  await api.gives(200, 'PATCH', `/events/webhooks/${made.id}`, { enabled: false })
  const second = await make()
  await second.kill()
  await api.gives(200, 'PATCH', `/events/webhooks/${made.id}`, { enabled: true })
  const third = await make()
  await third.kill()
  await hook.wait(third.sandboxId, 'killed')
  assert.deepEqual([hook.taken(second.sandboxId), hook.taken(foreign.sandboxId)], [[], []])
}, { events: [ALL[5]] }))

test('what is not taken comes again, and outlives the front', () => withHook(async () => {
  let failures = 1
  hook.answer = ({ event }) => ({ status: event.type === ALL[0] && failures-- > 0 ? 500 : 204 })
  const sandbox = await make()
  await hook.wait(sandbox.sandboxId, 'created')
  const [one, two] = hook.about(sandbox.sandboxId)
  assert.deepEqual([one.status, two.status, one.event], [500, 204, two.event])
  assert.notEqual(one.headers['e2b-delivery-id'], two.headers['e2b-delivery-id'])
  assert.ok(one.genuine && two.genuine)
  await hook.close()
  const away = await make()
  await away.kill()
  await eventually('it was tried', () => /webhook [0-9a-f-]{36}: event \d+ was not accepted and will be posted again/.test(server.err))
  await eventually('the events are stored', async () => (await api.gives(200, 'GET', `/events/sandboxes/${away.sandboxId}`)).length === 2)
  await killFront(server)
  await sandbox.kill()
  await hook.open(hook.port)
  await hook.wait(away.sandboxId, 'killed')
  await hook.wait(sandbox.sandboxId, 'killed')
  assert.deepEqual([...new Set(hook.taken(away.sandboxId))].sort(), [ALL[0], ALL[5]])
  assert.deepEqual((await api.gives(200, 'GET', `/events/sandboxes/${sandbox.sandboxId}`)).map((e) => e.type), [ALL[5], ALL[0]])
  assert.ok(!server.err.includes(SECRET) && !server.err.includes('/hook'))
  hook.answer = () => ({ status: 200 })
}))

test('a webhook is no way to what is inside', async () => {
  let connections = 0
  const inside = net.createServer((socket) => { connections++; socket.destroy() }).listen(0, '127.0.0.1')
  await new Promise((resolve) => inside.once('listening', resolve))
  const { port } = inside.address()
  const no = (message, target) => api.refuses(400, message, 'POST', '/events/webhooks', asked({ url: target }))
  await no(/not encrypted/, `http://127.0.0.1:${port}/`)
  await no(/not encrypted/, 'http://example.com/')
  await no(/not encrypted/, `http://localhost:${hook.port}/`)
  for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', '127.0.0.1.']) await no(/loopback/, `https://${host}:${port}/`)
  await no(/cloud metadata/, 'https://169.254.169.254/latest/')
  await no(/private network/, 'https://10.0.0.1/')
  await no(/link-local/, 'https://[fe80::1]/')
  await no(/another kind/, 'file:///etc/passwd')
  await no(/user/, 'https://user:password@example.com/')

  // A name says nothing about where it leads: that is judged when it is connected. And no redirect is followed.
  hook.answer = ({ path }) => (path === '/away' ? { status: 302, headers: { location: `http://127.0.0.1:${port}/` } } : { status: 200 })
  await withHook((named) => withHook((moved) => withHook(async (good) => {
    const sandbox = await make()
    await sandbox.kill()
    await hook.wait(sandbox.sandboxId, 'created')
    await eventually('the name is refused', () => server.err.includes(`webhook ${named.id}: event `) &&
      /is dropped: the operator does not allow its target \(webhook_targets\)/.test(server.err))
    await eventually('the redirect is no answer', () => server.err.includes(`webhook ${moved.id}: event `) && /will be posted again: HTTP 302/.test(server.err))
    await hook.wait(sandbox.sandboxId, 'killed')
    assert.ok(hook.about(sandbox.sandboxId).some((p) => p.headers['e2b-webhook-id'] === good.id))
  }), { url: `http://127.0.0.1:${hook.port}/away` }), { url: `https://localhost:${port}/` })
  hook.answer = () => ({ status: 200 })
  same(connections, 0)
  inside.close()
})

test('the server ends in good order', async () => {
  same(await stop(server), 0)
  await hook.close()
})

await run()
