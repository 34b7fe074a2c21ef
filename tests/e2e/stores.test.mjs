// Contexts in PostgreSQL: two servers on one database, and a database that is away, slow, read-only or
// newer than the server.
import { Interpreter, value } from './code.mjs'
import { assert, eventually, run, Sandbox, sh, sleep, test, unique } from './lib.mjs'
import { Postgres } from './postgres.mjs'
import { start, stop } from './server.mjs'
import { Client, keyOf } from './v1.mjs'

const pg = new Postgres()
const OPTIONS = ['--store', pg.url, '--reap-every', '500ms', '--tenant-contexts', '50', '--tenant-sandboxes', '60']
const base = { template: 'base' }

// A server on the database, and a client of the tenant that all of them have.
async function join(state, key) {
  const server = await start(state, key, OPTIONS)
  const v1 = new Client(server, keyOf(server, 'team'))
  await eventually('it has its database', async () => (await v1.ask('GET', '/v1/contexts')).status === 200)
  return { server, v1, as: { ...server.as, apiKey: v1.key } }
}

const [one, two] = await Promise.all([join(), join()])

// As a client of both would do it: where it is sent to, it goes with its key of that server.
async function obtain(from, conversationId, pathId, more = base) {
  const body = { conversationId, pathId, ...more }
  const first = await from.v1.ask('PUT', '/v1/contexts', body, { redirect: 'manual' })
  if (first.status !== 307) return { ...first, at: from }
  const to = [one, two].find((s) => first.headers.get('location') === `${s.server.url}/v1/contexts`)
  assert.ok(to && to !== from, `sent to ${first.headers.get('location')}`)
  return { ...(await to.v1.ask('PUT', '/v1/contexts', body, { redirect: 'manual' })), at: to }
}

const ready = async (client) => (await client.ask('GET', '/v1/contexts?limit=1')).status === 200

// ---- two servers --------------------------------------------------------------------------------

test('a path is where its sandbox is, and every server says where', async () => {
  const id = `talk-${unique()}`
  const made = await one.v1.obtain(id, 'main')
  const sandbox = await Interpreter.connect(made.sandbox.sandboxID, one.as)
  await value(sandbox, 'x = 5')
  const sent = await two.v1.ask('PUT', '/v1/contexts', { conversationId: id, pathId: 'main' }, { redirect: 'manual' })
  assert.deepEqual([sent.status, sent.headers.get('location')], [307, `${one.server.url}/v1/contexts`], sent.text)
  const again = await obtain(two, id, 'main')
  assert.deepEqual([again.status, again.json.wasCreated, again.json.sandbox.sandboxID], [200, false, made.sandbox.sandboxID])
  // What is only read, each can say; what is done, is done where the sandbox is.
  assert.equal((await two.v1.context(made.context.id)).sandboxId, made.sandbox.sandboxID)
  assert.deepEqual((await two.v1.contexts({ conversationId: id })).map((c) => c.id), [made.context.id])
  for (const [method, route, body] of [
    ['POST', `/v1/contexts/${made.context.id}/touch`, {}],
    ['DELETE', `/v1/contexts/${made.context.id}`],
    ['POST', '/v1/tools/run_code', { conversationId: id, pathId: 'main', code: 'x' }],
    ['POST', `/v1/tools/run_code?conversationId=${id}&pathId=main`, { code: 'x' }],
    ['POST', '/v1/contexts/branch', { conversationId: id, fromPathId: 'main', toPathId: 'side', inherit: 'files' }],
    ['POST', '/v1/contexts/merge', { conversationId: id, sourcePathId: 'main', targetPathId: 'other' }],
    ['POST', '/sandboxes', { templateID: 'base', metadata: { 'sandglass.conversation': id, 'sandglass.path': 'main' } }],
  ]) {
    const a = await two.v1.ask(method, route, body, { redirect: 'manual' })
    assert.deepEqual([a.status, a.headers.get('location')], [307, one.server.url + route], `${method} ${route}: ${a.text}`)
  }
  assert.equal((await one.v1.code(id, 'main', 'x')).results[0].text, '5')
  assert.equal((await one.v1.context(made.context.id)).sandboxStatus, 'ready')
  await one.v1.clear(id)
})

test('64 callers of a cold path on two servers: one sandbox', async () => {
  for (let round = 0; round < 20; round++) {
    const id = `race-${round}-${unique()}`
    const all = await Promise.all(Array.from({ length: 64 }, (_, i) => obtain(i % 2 ? one : two, id, 'p')))
    assert.deepEqual(all.filter((a) => ![200, 201].includes(a.status)).map((a) => a.text), [], `errors in round ${round}`)
    assert.equal(all.filter((a) => a.status === 201).length, 1, 'created once')
    assert.equal(new Set(all.map((a) => a.json.sandbox.sandboxID)).size, 1, 'one sandbox')
    const rows = await one.v1.contexts({ conversationId: id, status: 'all' })
    assert.equal(rows.length, 1, 'one context')
    await all[0].at.v1.clear(id)
  }
  assert.deepEqual([await one.v1.sandboxes(), await two.v1.sandboxes()], [[], []], 'no orphans')
}, { seconds: 60 })

test('what one server counts, the other knows: limits hold for both', async () => {
  const id = `talk-${unique()}`
  const all = await Promise.all(Array.from({ length: 12 }, (_, i) => obtain(i % 2 ? one : two, id, `p${i}`)))
  assert.deepEqual(all.map((a) => a.status).sort(), [...Array(5).fill(201), ...Array(7).fill(429)])
  assert.match(all.find((a) => a.status === 429).json.message, /\b5\b.*conversation/)
  await one.v1.clear(id)
  await eventually('what was ended elsewhere is ended', async () => [...(await one.v1.sandboxes()), ...(await two.v1.sandboxes())].length === 0)
})

test('a server is lost: the other replaces its sandboxes', async () => {
  const id = `talk-${unique()}`
  const third = await join()
  const made = await third.v1.obtain(id, 'main', base)
  await stop(third.server, 'SIGKILL')
  // Not long ago it lived: its clients are sent there, and it may come back.
  assert.equal((await one.v1.ask('PUT', '/v1/contexts', { conversationId: id, pathId: 'main' }, { redirect: 'manual' })).status, 307)
  pg.sql(`update sandglass.node set seen_at = seen_at - interval '1 minute' where url = '${third.server.url}'`)
  const again = await one.v1.obtain(id, 'main')
  assert.deepEqual([again.wasCreated, again.replaced, again.context.id], [true, true, made.context.id])
  assert.equal(again.context.templateId, 'base')
  assert.equal(await sh(await Sandbox.connect(again.sandbox.sandboxID, one.as), 'echo works'), 'works')
  await one.v1.clear(id)
})

// ---- a database in trouble ----------------------------------------------------------------------

test('a server that drains sends on what others have, and signs off when it ends', async () => {
  const third = await join()
  const id = `talk-${unique()}`
  await one.v1.obtain(id, 'other')
  const made = await third.v1.obtain(id, 'main', base)
  const sandbox = await Sandbox.connect(made.sandbox.sandboxID, third.as)
  const waits = await sandbox.commands.run('read -r line; echo "got $line"', { background: true, stdin: true })
  third.server.child.kill('SIGTERM')
  await eventually('it is not ready', async () => (await fetch(`${third.server.url}/health?ready`)).status === 503)
  const put = (at, pathId) => at.v1.ask('PUT', '/v1/contexts', { conversationId: id, pathId, ...base }, { redirect: 'manual' })
  const elsewhere = await put(third, 'other')
  assert.deepEqual([elsewhere.status, elsewhere.headers.get('location')], [307, `${one.server.url}/v1/contexts`], elsewhere.text)
  const bearer = { Authorization: `Bearer ${third.v1.key}`, 'Content-Type': 'application/json' }
  const byKey = await fetch(`${third.server.url}/v1/contexts`, { method: 'PUT', redirect: 'manual', headers: bearer, body: JSON.stringify({ conversationId: id, pathId: 'other' }) })
  assert.equal(byKey.status, 307)
  for (const pathId of ['main', 'new']) {
    const no = await put(third, pathId)
    assert.equal(no.status, 503, no.text)
    assert.match(no.headers.get('retry-after'), /^\d+$/)
  }
  assert.equal((await put(one, 'main')).status, 307, 'it is still there')
  await sandbox.commands.sendStdin(waits.pid, 'all\n')
  assert.equal((await waits.wait()).stdout, 'got all\n')
  assert.equal(await third.server.ended, 0)
  const next = await put(one, 'main')
  assert.equal(next.status, 201, 'nobody is sent to a server that has ended')
  assert.notEqual(next.json.sandbox.sandboxID, made.sandbox.sandboxID)
  await one.v1.clear(id)
})

test('the database is away: sandboxes serve, contexts say 503, and afterwards all is well', async () => {
  const id = `talk-${unique()}`
  const made = await one.v1.obtain(id, 'main')
  const lost = await one.v1.obtain(id, 'lost', base)
  const sandbox = await Interpreter.connect(made.sandbox.sandboxID, one.as)
  await value(sandbox, 'x = 1')
  pg.down()
  const put = { conversationId: id, pathId: 'main' }
  for (const [method, route, body] of [
    ['PUT', '/v1/contexts', put],
    ['PUT', '/v1/contexts', { ...put, pathId: 'new' }],
    ['GET', '/v1/contexts'],
    ['GET', `/v1/contexts/${made.context.id}`],
    ['DELETE', `/v1/contexts/${made.context.id}`],
    ['POST', `/v1/contexts/${made.context.id}/touch`, {}],
    ['POST', '/v1/contexts/branch', { conversationId: id, fromPathId: 'main', toPathId: 'b', inherit: 'files' }],
    ['POST', '/v1/contexts/merge', { conversationId: id, sourcePathId: 'main', targetPathId: 'b' }],
    ['POST', '/v1/contexts/cleanup', {}],
    ['GET', `/v1/paths?conversationId=${id}`],
    ['GET', '/v1/usage'],
  ])
    await one.v1.refuses(503, /database|store/i, method, route, body)
  const tool = await one.v1.refuses(503, /database|store/i, 'POST', '/v1/tools/run_code', { ...put, code: '1' })
  assert.equal(tool.unavailable, true)
  assert.doesNotMatch(JSON.stringify(tool), /sand-glass|127\.0\.0\.1/, 'nothing of the address is told')
  // What needs no store works on.
  assert.equal(await value(sandbox, 'x + 1'), '2')
  assert.equal(await sh(sandbox, 'echo fine'), 'fine')
  const plain = await Sandbox.create('base', one.as)
  assert.equal(await sh(plain, 'echo new'), 'new')
  await plain.kill()
  await Sandbox.kill(lost.sandbox.sandboxID, one.as)
  assert.ok((await one.v1.sandboxes()).some((s) => s.sandboxID === made.sandbox.sandboxID))
  pg.up()
  await eventually('contexts again', () => ready(one.v1))
  const again = await one.v1.obtain(id, 'main')
  assert.deepEqual([again.wasCreated, again.sandbox.sandboxID], [false, made.sandbox.sandboxID])
  assert.equal(await value(sandbox, 'x'), '1')
  const replaced = await one.v1.obtain(id, 'lost')
  assert.deepEqual([replaced.replaced, replaced.context.id], [true, lost.context.id])
  assert.equal((await one.v1.contexts({ conversationId: id })).length, 2)
  await eventually('the other server too', () => ready(two.v1))
  await one.v1.clear(id)
  assert.equal(one.server.child.exitCode, null)
}, { seconds: 60 })

test('connections that break under calls: either done or not, and never a wrong answer', async () => {
  const id = `talk-${unique()}`
  const until = Date.now() + 2000
  const strange = []
  const worker = async (n) => {
    while (Date.now() < until) {
      const a = await one.v1.ask('PUT', '/v1/contexts', { conversationId: `${id}-${n}`, pathId: 'p', ...base })
      if (![200, 201, 503].includes(a.status)) strange.push(a.text)
      if (a.status === 201) {
        const b = await one.v1.ask('DELETE', `/v1/contexts/${a.json.context.id}`)
        if (![200, 503].includes(b.status)) strange.push(b.text)
      }
    }
  }
  const workers = [0, 1, 2, 3].map(worker)
  while (Date.now() < until) {
    await sleep(150)
    pg.disconnect()
  }
  await Promise.all(workers)
  assert.deepEqual(strange, [])
  await eventually('it has connections again', () => ready(one.v1))
  for (const n of [0, 1, 2, 3]) {
    const rows = await one.v1.contexts({ conversationId: `${id}-${n}` })
    assert.ok(rows.length <= 1, 'never two')
    assert.equal((await one.v1.obtain(`${id}-${n}`, 'p')).context.sandboxStatus, 'ready')
    await one.v1.clear(`${id}-${n}`)
  }
  await eventually('no sandbox without a context', async () => (await one.v1.sandboxes()).length === 0)
})

test('a database that is only to be read is said to be', async () => {
  const id = `talk-${unique()}`
  pg.sql('alter role sandglass set default_transaction_read_only = on')
  try {
    pg.disconnect()
    await eventually('it is noticed', async () => {
      const a = await one.v1.ask('PUT', '/v1/contexts', { conversationId: id, pathId: 'main' })
      return a.status === 503 && /read-only/i.test(a.json.message) && a.headers.get('retry-after')
    })
    assert.deepEqual(await one.v1.sandboxes(), [], 'nothing half-made')
  } finally {
    pg.sql('alter role sandglass set default_transaction_read_only = off')
  }
  pg.disconnect()
  await eventually('it can be written again', async () => (await one.v1.ask('PUT', '/v1/contexts', { conversationId: id, pathId: 'main', ...base })).status === 201)
  await one.v1.clear(id)
})

test('a database that is slow: whoever needs it waits, but not for long, and nobody else does', async () => {
  const id = `talk-${unique()}`
  const made = await one.v1.obtain(id, 'main', base)
  const sandbox = await Sandbox.connect(made.sandbox.sandboxID, one.as)
  const release = await pg.hold('lock table sandglass.context in access exclusive mode')
  const waiting = Promise.all(Array.from({ length: 30 }, (_, i) => one.v1.refuses(503, /slow/, 'PUT', '/v1/contexts', { conversationId: id, pathId: i % 2 ? 'main' : 'new', ...base })))
  waiting.catch(() => {})
  for (let i = 0; i < 5; i++) assert.equal(await sh(sandbox, 'echo quick'), 'quick')
  assert.equal((await fetch(`${one.server.url}/health`)).status, 204)
  await waiting.finally(release)
  assert.equal((await one.v1.obtain(id, 'main')).sandbox.sandboxID, made.sandbox.sandboxID)
  assert.equal((await one.v1.obtain(id, 'new', base)).wasCreated, true)
  await one.v1.clear(id)
  assert.deepEqual(await one.v1.sandboxes(), [])
})

test('a database that hangs when the sandbox is made: no sandbox without a row, and no row without one', async () => {
  const id = `talk-${unique()}`
  const put = { conversationId: id, pathId: 'main', ...base }
  pg.sql('create function sandglass.test_wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(7); return new; end $$')
  pg.sql("create trigger test_wait before update on sandglass.context for each row when (new.sandbox_status = 'ready') execute function sandglass.test_wait()")
  const release = await pg.hold('select pg_advisory_xact_lock(7)')
  await one.v1.refuses(503, /slow/, 'PUT', '/v1/contexts', put).finally(release)
  pg.sql('drop trigger test_wait on sandglass.context')
  assert.deepEqual(await one.v1.sandboxes(), [], 'what could not be written down is not there')
  const made = await one.v1.obtain(id, 'main', base)
  assert.equal(made.wasCreated, true)
  assert.deepEqual((await one.v1.contexts({ conversationId: id })).map((c) => c.id), [made.context.id])
  await one.v1.clear(id)
})

test('a server that starts without its database finds it later', async () => {
  pg.down()
  let server
  try {
    server = await start(undefined, undefined, OPTIONS)
    await new Client(server).refuses(503, /database/i, 'PUT', '/v1/contexts', { conversationId: 'a', pathId: 'b' })
    const sandbox = await Sandbox.create('base', server.as)
    assert.equal(await sh(sandbox, 'echo works'), 'works')
  } finally {
    pg.up()
  }
  const v1 = new Client(server)
  await eventually('it has found it', async () => (await v1.ask('PUT', '/v1/contexts', { conversationId: 'a', pathId: 'b', ...base })).status === 201)
  await v1.clear('a')
  assert.equal(await stop(server), 0)
})

test('a database that is newer than the server is left alone, and said to be', async () => {
  pg.sql('insert into sandglass.schema_version values (1000000, now())')
  let server
  try {
    server = await start(undefined, undefined, OPTIONS)
    const v1 = new Client(server)
    await eventually('it is noticed', async () => /\b1000000\b/.test((await v1.refuses(503, /database/i, 'PUT', '/v1/contexts', { conversationId: 'a', pathId: 'b' })).message))
    assert.equal(await sh(await Sandbox.create('base', server.as), 'echo works'), 'works')
  } finally {
    pg.sql('delete from sandglass.schema_version where version = 1000000')
  }
  const v1 = new Client(server)
  await eventually('it goes on when that has changed', async () => (await v1.ask('PUT', '/v1/contexts', { conversationId: 'a', pathId: 'b', ...base })).status === 201)
  await v1.clear('a')
  assert.equal(await stop(server), 0)
})

test('a server that is started again finds its contexts, and replaces their sandboxes', async () => {
  const id = `talk-${unique()}`
  const made = await two.v1.obtain(id, 'main', base)
  assert.equal(await stop(two.server), 0)
  const back = await join(two.server.state, two.server.as.apiKey)
  const again = await back.v1.obtain(id, 'main')
  assert.deepEqual([again.wasCreated, again.replaced, again.context.id], [true, true, made.context.id])
  await back.v1.clear(id)
  assert.equal(await stop(back.server), 0)
})

test('nothing that is secret is in the database, nor is the address of it in what servers say', async () => {
  const id = `talk-${unique()}`
  const { context, sandbox } = await one.v1.obtain(id, 'main', { envs: { TOKEN: 'hunter2-secret' } })
  await one.v1.code(id, 'main', 'print("output-secret")\nvariable = "variable-secret"', { envs: { OTHER: 'hunter3-secret' } })
  await one.v1.end(context.id)
  const all = ['context', 'path', 'node', 'usage_day'].map((t) => pg.sql(`select coalesce(json_agg(t)::text, '') from sandglass.${t} t`)).join('\n')
  assert.match(all, new RegExp(context.id))
  for (const secret of ['-secret', sandbox.envdAccessToken, one.v1.key]) assert.ok(!all.includes(secret), secret)
  await one.v1.clear(id)
})

test('the servers end in good order', async () => {
  assert.equal(await stop(one.server), 0)
  pg.stop()
})

await run()
