// kill -9 in the middle of get-or-create. Whatever step it hits: within one turn of the reaper there is at
// most one active context of the path, no sandbox without a context, and the path works.
import { assert, eventually, run, sleep, test, unique } from './lib.mjs'
import { Postgres } from './postgres.mjs'
import { front, killFront, start, stop, worker } from './server.mjs'
import { Client } from './v1.mjs'

const REAP = ['--reap-every', '500ms', '--tenant-contexts', '100', '--tenant-sandboxes', '200']
const base = { template: 'base' }
// A turn of the reaper, and what a busy machine may add.
const SOON_S = 4

const put = (v1, conversationId, pathId = 'p') => v1.ask('PUT', '/v1/contexts', { conversationId, pathId, ...base })

// What the server has is what its rows say.
async function agrees(v1) {
  const rows = await v1.contexts({ limit: 200 })
  const paths = rows.map((c) => `${c.conversationId}/${c.pathId}`)
  const named = new Set(rows.map((c) => c.sandboxId))
  const strays = (await v1.sandboxes()).filter((s) => !named.has(s.sandboxID))
  return new Set(paths).size === paths.length && strays.length === 0 && rows.every((c) => c.sandboxStatus === 'ready')
}

async function works(v1, id) {
  await eventually('rows and sandboxes agree', () => agrees(v1), SOON_S)
  const a = await eventually('the path works', async () => {
    const answer = await put(v1, id)
    return [200, 201].includes(answer.status) && answer.json
  }, SOON_S)
  const rows = await v1.contexts({ conversationId: id, pathId: 'p' })
  assert.deepEqual(rows.map((c) => [c.id, c.sandboxId, c.sandboxStatus]), [[a.context.id, a.sandbox.sandboxID, 'ready']])
  assert.ok((await v1.sandboxes()).some((s) => s.sandboxID === a.sandbox.sandboxID))
}

test('the front, at any moment of a creation', async () => {
  const server = await start(undefined, undefined, REAP)
  const v1 = new Client(server)
  for (let round = 0; round < 40; round++) {
    const id = `talk-${unique()}`
    const call = put(v1, id).catch(() => {})
    await sleep((round % 10) / 2)
    await killFront(server)
    await call
    await works(v1, id)
    await v1.clear(id)
  }
  assert.deepEqual(await v1.contexts(), [])
  await eventually('nothing is left', async () => (await v1.sandboxes()).length === 0, SOON_S)
  assert.equal(await stop(server), 0)
}, { seconds: 90 })

test('the front, at any moment of a replacement, a branch and an end', async () => {
  const server = await start(undefined, undefined, REAP)
  const v1 = new Client(server)
  for (let round = 0; round < 15; round++) {
    const id = `talk-${unique()}`
    const { context, sandbox } = await v1.obtain(id, 'p', base)
    const acts = [
      async () => {
        await v1.ask('DELETE', `/sandboxes/${sandbox.sandboxID}`)
        await put(v1, id)
      },
      () => v1.ask('POST', '/v1/contexts/branch', { conversationId: id, fromPathId: 'p', toPathId: 'q', inherit: 'files' }),
      () => v1.ask('DELETE', `/v1/contexts/${context.id}`),
    ]
    const call = acts[round % 3]().catch(() => {})
    await sleep((round / 3) * 2)
    await killFront(server)
    await call
    await works(v1, id)
    await v1.clear(id)
  }
  await eventually('nothing is left', async () => (await v1.sandboxes()).length === 0, SOON_S)
  assert.equal(await stop(server), 0)
}, { seconds: 60 })

test('the whole server, at any moment, and started again', async () => {
  let server = await start(undefined, undefined, REAP)
  const { apiKey } = server.as
  for (let round = 0; round < 5; round++) {
    const v1 = new Client(server, apiKey)
    const id = `talk-${unique()}`
    const there = await v1.obtain(id, 'there', base)
    const call = put(v1, id).catch(() => {})
    await sleep(round)
    server.child.kill('SIGKILL')
    await server.ended
    await call
    server = await start(server.state, apiKey, REAP)
    const again = new Client(server, apiKey)
    const rows = await again.contexts({ conversationId: id, status: 'all' })
    assert.deepEqual(rows.filter((c) => c.sandboxStatus === 'creating'), [], 'nothing stays in creating')
    const replaced = await again.obtain(id, 'there')
    assert.deepEqual([replaced.wasCreated, replaced.replaced, replaced.context.id], [true, true, there.context.id])
    const made = await again.obtain(id, 'p', base)
    assert.equal(made.wasCreated, true)
    assert.equal((await again.contexts({ conversationId: id })).length, 2)
    assert.equal((await again.sandboxes()).length, 2)
    await again.clear(id)
  }
  assert.equal(await stop(server), 0)
}, { seconds: 60 })

// With PostgreSQL a call can be held at a step of our choice: a trigger waits for a lock that the test has.
const STEPS = {
  'the row is claimed': 'before insert on sandglass.context for each row',
  'the sandbox is made': "before update on sandglass.context for each row when (old.sandbox_status = 'creating' and new.sandbox_status = 'ready')",
  'the row is to be replaced': "before update on sandglass.context for each row when (old.sandbox_status = 'ready' and new.sandbox_status = 'creating')",
}
const LOCK = 'select pg_advisory_xact_lock(7)'
const held = (pg) => pg.sql("select count(*) from pg_locks where locktype = 'advisory' and objid = 7 and not granted") !== '0'

test('the front, and the server, at each step that the database sees', async () => {
  const pg = new Postgres()
  let server = await start(undefined, undefined, [...REAP, '--store', pg.url])
  const { apiKey } = server.as
  let v1 = new Client(server)
  await eventually('it has its database', async () => (await v1.ask('GET', '/v1/contexts')).status === 200)
  pg.sql("create function sandglass.test_wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(7); return new; end $$")
  for (const [name, when] of Object.entries(STEPS))
    for (const whole of [false, true]) {
      const id = `talk-${unique()}`
      if (name.includes('replaced')) {
        const { sandbox } = await v1.obtain(id, 'p', base)
        await v1.gives(204, 'DELETE', `/sandboxes/${sandbox.sandboxID}`)
      }
      pg.sql(`create trigger test_wait ${when} execute function sandglass.test_wait()`)
      const release = await pg.hold(LOCK)
      const call = put(v1, id).catch(() => {})
      await eventually(`${name}: it waits`, () => held(pg))
      if (whole) {
        server.child.kill('SIGKILL')
        await server.ended
      } else {
        process.kill(front(server), 'SIGKILL')
      }
      await release()
      pg.sql('drop trigger test_wait on sandglass.context')
      await call
      if (whole) server = await start(server.state, apiKey, [...REAP, '--store', pg.url])
      v1 = new Client(server, apiKey)
      await eventually('it answers', async () => (await v1.ask('GET', '/v1/contexts')).status === 200)
      await works(v1, id)
      await v1.clear(id)
      await eventually('nothing is left', async () => (await v1.sandboxes()).length === 0, SOON_S)
    }
  assert.equal(await stop(server), 0)
  pg.stop()
}, { seconds: 90 })

// The front's workers: the clerk speaks with the database, the herald with collectors and webhooks.
for (const name of ['clerk', 'herald']) for (const signal of ['SIGKILL', 'SIGSTOP']) test(`the ${name}, by ${signal}: another comes while the front lives on`, async () => {
  const pg = new Postgres()
  const server = await start(undefined, undefined, [...REAP, '--store', pg.url])
  const v1 = new Client(server)
  const id = `talk-${unique()}`
  await eventually('it has its database', async () => (await put(v1, id)).status < 300)
  const before = front(server)
  const old = worker(server, name)
  assert.ok(old, `there is a ${name}`)
  const call = put(v1, `${id}-2`)
  process.kill(old, signal)
  assert.ok([200, 201, 503].includes((await call).status))
  await eventually('there is another', () => ![undefined, old].includes(worker(server, name)), 20)
  await eventually('it answers', async () => (await v1.ask('GET', '/v1/contexts')).status === 200)
  await works(v1, id)
  await works(v1, `${id}-2`)
  assert.equal(front(server), before, 'the front lives on')
  assert.equal(await stop(server), 0)
  pg.stop()
})

await run()
