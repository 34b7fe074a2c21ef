// Execution contexts: one sandbox for each path of a conversation. Over HTTP, and with E2B's SDKs.
import fs from 'node:fs'
import { Interpreter, value } from './code.mjs'
import { assert, e2b, eventually, near, rejects, run, Sandbox, sh, sleep, test, unique } from './lib.mjs'
import { killFront, start, stop } from './server.mjs'
import { Client, keyOf } from './v1.mjs'

const server = await start(undefined, undefined, ['--reap-every', '200ms', '--tenant-contexts', '12', '--tenant-sandboxes', '40'])
const v1 = new Client(server)
const others = new Client(server, keyOf(server, 'others'))

// A test with a conversation of its own, which is ended after it.
function talk(name, body, opts) {
  test(name, async () => {
    const id = `talk-${unique()}`
    try {
      await body(id)
    } finally {
      await v1.clear(id)
    }
  }, opts)
}

const connect = (context, opts) => Interpreter.connect(context.sandboxId, { ...server.as, ...opts })
const sandboxIds = async () => (await v1.sandboxes()).map((s) => s.sandboxID)
const FIELDS = ['conversationId', 'createdAt', 'errorMessage', 'expiresAt', 'id', 'lastUsedAt', 'parentPathId', 'pathId', 'resourceUsage', 'sandboxId', 'sandboxStatus', 'templateId', 'tenantId', 'terminatedAt', 'ttlSeconds']
const YEAR = 365 * 24 * 3600

// ---- get-or-create ------------------------------------------------------------------------------

talk('a path has no sandbox until it is asked for, and then one', async (id) => {
  assert.deepEqual(await v1.contexts({ conversationId: id }), [])
  const first = await v1.obtain(id, 'main')
  assert.deepEqual([first.wasCreated, first.replaced], [true, false])
  const { context, sandbox } = first
  assert.deepEqual(Object.keys(context).sort(), FIELDS)
  assert.deepEqual([context.conversationId, context.pathId, context.parentPathId], [id, 'main', null])
  assert.deepEqual([context.sandboxStatus, context.terminatedAt, context.errorMessage], ['ready', null, null])
  assert.deepEqual([context.ttlSeconds, context.templateId], [1800, 'code-interpreter-v1'])
  assert.match(context.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  near(new Date(context.createdAt), Date.now(), 30_000, 'createdAt')
  assert.equal(new Date(context.expiresAt) - new Date(context.lastUsedAt), 1_800_000)
  assert.deepEqual(Object.keys(context.resourceUsage).sort(), ['bytesIn', 'bytesOut', 'cpuSeconds', 'egressBytes', 'egressBytesIn', 'egressBytesOut', 'executions', 'memoryGibSeconds', 'sandboxes'])
  assert.ok(sandbox.envdAccessToken && sandbox.envdVersion && sandbox.templateID, 'what create of E2B answers')

  const second = await v1.obtain(id, 'main')
  assert.deepEqual([second.wasCreated, second.replaced], [false, false])
  assert.deepEqual([second.context.id, second.sandbox.sandboxID], [context.id, sandbox.sandboxID])
  assert.equal(second.context.createdAt, context.createdAt)
  assert.ok(second.context.lastUsedAt >= context.lastUsedAt)
  assert.deepEqual(await v1.context(context.id), (await v1.contexts({ conversationId: id }))[0])
})

talk('what was left on a path is still there', async (id) => {
  const { context } = await v1.obtain(id, 'main')
  const sandbox = await connect(context)
  await value(sandbox, 'x = 41\nopen("/home/user/f", "w").write("kept");')
  const handle = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  const again = await connect((await v1.obtain(id, 'main')).context)
  assert.equal(await value(again, '(x + 1, open("/home/user/f").read())'), "(42, 'kept')")
  assert.equal(await sh(again, `kill -0 ${handle.pid} && echo runs`), 'runs')
})

talk('each path, and the same path of another conversation, has its own', async (id) => {
  const other = `${id}-other`
  const all = [await v1.obtain(id, 'a'), await v1.obtain(id, 'b'), await v1.obtain(other, 'a')]
  assert.equal(new Set(all.map((a) => a.context.id)).size, 3)
  assert.equal(new Set(all.map((a) => a.sandbox.sandboxID)).size, 3)
  await v1.clear(other)
})

talk('the first call says how the sandbox is to be', async (id) => {
  const { context, sandbox: made } = await v1.obtain(id, 'main', {
    template: 'base', ttlSeconds: 77, metadata: { colour: 'red' }, envs: { COLOUR: 'blue' }, network: { denyOut: ['0.0.0.0/0'] },
  })
  assert.deepEqual([context.templateId, context.ttlSeconds], ['base', 77])
  const sandbox = await Sandbox.connect(made.sandboxID, server.as)
  assert.equal(await sh(sandbox, 'echo $COLOUR'), 'blue')
  assert.equal((await sandbox.getInfo()).metadata.colour, 'red')
  const again = await v1.obtain(id, 'main')
  assert.equal(again.context.templateId, 'base')
  assert.equal((await v1.obtain(id, 'main', { ttlSeconds: 99 })).context.ttlSeconds, 99)
})

talk('odd ids are as good as others', async (id) => {
  const odd = ['../..', 'a b', 'ä💡', '%00', "'; drop table contexts; --", '"', '\\', 'a/b?c=d&e#f', 'x'.repeat(256)]
  for (const pathId of odd.slice(0, 5)) {
    const { context } = await v1.obtain(id, pathId)
    assert.equal(context.pathId, pathId)
    assert.deepEqual((await v1.contexts({ conversationId: id, pathId })).map((c) => c.id), [context.id])
  }
  await v1.clear(id)
  for (const pathId of odd.slice(5)) assert.equal((await v1.obtain(id, pathId)).context.pathId, pathId)
})

// ---- how they end -------------------------------------------------------------------------------

talk('unused it ends; used by an SDK, or while a program runs in it, it does not', async (id) => {
  const [idle, used, busy, kept] = await Promise.all(['idle', 'used', 'busy', 'kept'].map((p) => v1.obtain(id, p, { ttlSeconds: 1, template: 'base' })))
  const [b, u] = await Promise.all([busy, used].map(({ sandbox }) => Sandbox.connect(sandbox.sandboxID, server.as)))
  const program = b.commands.run('sleep 4; echo done', { timeoutMs: 0 })
  await v1.gives(200, 'POST', `/v1/contexts/${kept.context.id}/touch`, { ttlSeconds: 60 })
  const until = Date.now() + 3500
  while (Date.now() < until) {
    await sh(u, 'true')
    await sleep(200)
  }
  const state = async (a) => (await v1.context(a.context.id)).sandboxStatus
  assert.deepEqual(await Promise.all([idle, used, busy, kept].map(state)), ['terminated', 'ready', 'ready', 'ready'])
  const over = await v1.context(idle.context.id)
  assert.ok(over.terminatedAt >= over.expiresAt, `${over.terminatedAt} ${over.expiresAt}`)
  assert.equal((await v1.context(kept.context.id)).ttlSeconds, 60)
  assert.equal((await program).stdout, 'done\n')
  await eventually('they end too', async () => (await state(used)) === 'terminated' && (await state(busy)) === 'terminated')
  await eventually('their sandboxes are gone', async () => {
    const there = await sandboxIds()
    return ![idle, used, busy].some((a) => there.includes(a.sandbox.sandboxID)) && there.includes(kept.sandbox.sandboxID)
  })
  const next = await v1.obtain(id, 'idle')
  assert.deepEqual([next.wasCreated, next.replaced], [true, false], 'a new one, not a replaced one')
  assert.notEqual(next.context.id, idle.context.id)
  assert.equal((await v1.contexts({ conversationId: id, pathId: 'idle', status: 'all' })).length, 2)
})

talk('touch moves the end', async (id) => {
  const { context } = await v1.obtain(id, 'main', { ttlSeconds: 100 })
  await sleep(20)
  const touched = await v1.gives(200, 'POST', `/v1/contexts/${context.id}/touch`, {})
  assert.ok(touched.expiresAt > context.expiresAt && touched.lastUsedAt > context.lastUsedAt)
  assert.equal(touched.ttlSeconds, 100)
  const longer = await v1.gives(200, 'POST', `/v1/contexts/${context.id}/touch`, { ttlSeconds: 500 })
  assert.equal(longer.ttlSeconds, 500)
  assert.equal(new Date(longer.expiresAt) - new Date(longer.lastUsedAt), 500_000)
  await v1.end(context.id)
  await v1.refuses(404, /./, 'POST', `/v1/contexts/${context.id}/touch`, {})
})

talk('DELETE ends it, once and for all; the row stays', async (id) => {
  const { context } = await v1.obtain(id, 'main')
  const sandbox = await connect(context)
  const ended = await v1.end(context.id)
  assert.deepEqual([ended.id, ended.sandboxStatus], [context.id, 'terminated'])
  assert.ok(ended.terminatedAt)
  assert.ok(!(await sandboxIds()).includes(context.sandboxId), 'its sandbox is gone')
  assert.equal(await sandbox.isRunning(), false)
  const again = await v1.end(context.id)
  assert.equal(again.terminatedAt, ended.terminatedAt)
  assert.deepEqual(await v1.contexts({ conversationId: id }), [])
  assert.deepEqual((await v1.contexts({ conversationId: id, status: 'terminated' })).map((c) => c.id), [context.id])
  await v1.refuses(404, /./, 'DELETE', '/v1/contexts/doesnotexist00000000')
  await v1.refuses(404, /./, 'GET', '/v1/contexts/doesnotexist00000000')
  await v1.refuses(404, /./, 'GET', `/v1/contexts/${'x'.repeat(5000)}`)
})

// The host's pid of the first process of the sandbox in which `sleep N` runs.
function firstProcess(n) {
  const pids = fs.readdirSync('/proc').filter((p) => /^\d+$/.test(p))
  const look = (pid, what) => {
    try {
      return what(pid)
    } catch {
      return undefined
    }
  }
  const namespace = (pid) => look(pid, (p) => fs.readlinkSync(`/proc/${p}/ns/pid`))
  const inside = pids.find((pid) => look(pid, (p) => fs.readFileSync(`/proc/${p}/cmdline`, 'utf8')) === `sleep\0${n}\0`)
  const first = (pid) => look(pid, (p) => fs.readFileSync(`/proc/${p}/status`, 'utf8').match(/^NSpid:.*\t1$/m))
  const its = inside && namespace(inside)
  return its && Number(pids.find((pid) => first(pid) && namespace(pid) === its))
}

talk('a sandbox that is gone is replaced, and the answer says so', async (id) => {
  const first = await v1.obtain(id, 'main', { template: 'base', ttlSeconds: 300 })
  await (await Sandbox.connect(first.sandbox.sandboxID, server.as)).kill()
  const second = await v1.obtain(id, 'main')
  assert.deepEqual([second.wasCreated, second.replaced, second.context.id], [true, true, first.context.id])
  assert.notEqual(second.sandbox.sandboxID, first.sandbox.sandboxID)
  assert.deepEqual([second.context.templateId, second.context.ttlSeconds], ['base', 300], 'of the same kind')
  assert.deepEqual([(await v1.obtain(id, 'main')).wasCreated, (await v1.obtain(id, 'main')).replaced], [false, false], 'told once')

  const n = 10_000_000 + Math.floor(Math.random() * 9_000_000)
  const sandbox = await Sandbox.connect(second.sandbox.sandboxID, server.as)
  const handle = await sandbox.commands.run(`exec sleep ${n}`, { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  process.kill(await eventually('its first process', () => firstProcess(n)), 'SIGKILL')
  await eventually('it is gone', async () => !(await sandboxIds()).includes(second.sandbox.sandboxID))
  const third = await v1.obtain(id, 'main')
  assert.deepEqual([third.replaced, third.context.id], [true, first.context.id])
  assert.equal(await sh(await Sandbox.connect(third.sandbox.sandboxID, server.as), 'echo works'), 'works')
})

talk('a sandbox that was paused is woken, with what it knew', async (id) => {
  const { context } = await v1.obtain(id, 'main')
  const sandbox = await connect(context)
  await value(sandbox, 'x = 5')
  await sandbox.pause()
  const again = await v1.obtain(id, 'main')
  assert.deepEqual([again.wasCreated, again.replaced, again.sandbox.sandboxID], [false, false, context.sandboxId])
  assert.equal(await value(await connect(again.context), 'x'), '5')
})

// ---- branches and merges ------------------------------------------------------------------------

const branch = (id, fromPathId, toPathId, more) => ({ conversationId: id, fromPathId, toPathId, ...more })

talk('a branch has nothing of its parent', async (id) => {
  const { context } = await v1.obtain(id, 'main')
  await value(await connect(context), 'x = 1\nopen("/home/user/f", "w").write("main");')
  const made = await v1.gives(201, 'POST', '/v1/contexts/branch', branch(id, 'main', 'side'))
  assert.deepEqual(made, { conversationId: id, pathId: 'side', parentPathId: 'main', inherited: 'none', context: null, sandbox: null, wasCreated: false })
  assert.equal((await v1.contexts({ conversationId: id })).length, 1, 'lazy')
  const side = await v1.obtain(id, 'side')
  assert.deepEqual([side.wasCreated, side.context.parentPathId], [true, 'main'])
  assert.equal(await value(await connect(side.context), 'import os\n("x" in globals(), os.path.exists("/home/user/f"))'), '(False, False)')
})

talk('a branch with files has those of its parent, as they were', async (id) => {
  const { context } = await v1.obtain(id, 'main', { ttlSeconds: 200 })
  const parent = await connect(context)
  await value(parent, 'x = 1\nopen("/home/user/f", "w").write("before")\nopen("/home/user/big", "wb").write(bytes(20_000_000))\nimport os; os.makedirs("/home/user/d/e")')
  await sh(parent, 'sudo sh -c "echo system > /etc/mine"; ln -s f /home/user/link; chmod 600 /home/user/f')
  const made = await v1.gives(201, 'POST', '/v1/contexts/branch', branch(id, 'main', 'side', { inherit: 'files', envs: { A: 'b' } }))
  assert.deepEqual([made.inherited, made.wasCreated, made.pathId, made.parentPathId], ['files', true, 'side', 'main'])
  assert.deepEqual([made.context.parentPathId, made.context.sandboxId, made.context.sandboxStatus], ['main', made.sandbox.sandboxID, 'ready'])
  const child = await connect(made.context)
  assert.equal(await value(child, 'import os\n(open("/home/user/f").read(), os.path.getsize("/home/user/big"), os.listdir("/home/user/d"), os.readlink("/home/user/link"), oct(os.stat("/home/user/f").st_mode), os.environ["A"])'), "('before', 20000000, ['e'], 'f', '0o100600', 'b')")
  assert.equal(await sh(child, 'cat /etc/mine'), 'system')
  assert.equal(await value(child, '"x" in globals()'), 'False', 'variables are not')
  // From now on each goes its own way.
  await value(parent, 'open("/home/user/f", "w").write("parent");')
  await sh(child, 'echo child > /home/user/f; rm /home/user/big; echo new > /home/user/new')
  assert.equal(await sh(parent, 'cat /home/user/f; echo; ls /home/user; stat -c %s /home/user/big'), 'parent\nbig\nd\nf\nlink\n20000000')
  assert.equal(await sh(child, 'cat /home/user/f; ls /home/user'), 'child\nd\nf\nlink\nnew')
  assert.equal(await value(parent, 'x'), '1', 'the parent has noticed nothing')
  // And a branch of the branch, after the parent has ended.
  await v1.end(context.id)
  const third = await v1.gives(201, 'POST', '/v1/contexts/branch', branch(id, 'side', 'third', { inherit: 'files' }))
  assert.equal(await sh(await connect(third.context), 'cat /home/user/f'), 'child')
  assert.equal((await v1.obtain(id, 'third')).context.id, third.context.id)
})

talk('branches that cannot be, and those from nothing', async (id) => {
  await v1.obtain(id, 'main')
  await v1.obtain(id, 'taken')
  for (const inherit of ['none', 'files', 'state', 'replay']) {
    await v1.refuses(409, /taken/, 'POST', '/v1/contexts/branch', branch(id, 'main', 'taken', { inherit }))
    await v1.refuses(400, /same/, 'POST', '/v1/contexts/branch', branch(id, 'main', 'main', { inherit }))
    const lazy = await v1.gives(201, 'POST', '/v1/contexts/branch', branch(id, 'nothing', `from-nothing-${inherit}`, { inherit }))
    assert.deepEqual([lazy.context, lazy.sandbox, lazy.inherited], [null, null, 'none'])
  }
  for (const inherit of ['all', '', 1, ['files'], true]) await v1.refuses(400, /inherit/, 'POST', '/v1/contexts/branch', branch(id, 'main', 'other', { inherit }))
  assert.deepEqual((await v1.contexts({ conversationId: id })).map((c) => c.pathId).sort(), ['main', 'taken'], 'nothing half-made')
  assert.deepEqual((await v1.paths(id)).map((p) => p.pathId).sort(), ['from-nothing-files', 'from-nothing-none', 'from-nothing-replay', 'from-nothing-state', 'main', 'nothing', 'taken'])
})

talk('a merge ends the source, and leaves the target as it is', async (id) => {
  const target = await v1.obtain(id, 'main')
  const sandbox = await connect(target.context)
  await value(sandbox, 'x = "untouched"')
  await v1.gives(201, 'POST', '/v1/contexts/branch', branch(id, 'main', 'side', { inherit: 'files' }))
  const before = await v1.context(target.context.id)
  const [side] = await v1.contexts({ conversationId: id, pathId: 'side' })
  const merged = await v1.gives(200, 'POST', '/v1/contexts/merge', { conversationId: id, sourcePathId: 'side', targetPathId: 'main' })
  assert.deepEqual([merged.conversationId, merged.sourcePathId, merged.targetPathId], [id, 'side', 'main'])
  assert.deepEqual([merged.terminated.id, merged.terminated.sandboxStatus], [side.id, 'terminated'])
  assert.ok(!(await sandboxIds()).includes(side.sandboxId))
  const after = await v1.context(target.context.id)
  assert.deepEqual({ ...after, resourceUsage: 0 }, { ...before, resourceUsage: 0 })
  assert.equal(await value(sandbox, 'x'), 'untouched')
  const nothing = await v1.gives(200, 'POST', '/v1/contexts/merge', { conversationId: id, sourcePathId: 'side', targetPathId: 'main' })
  assert.equal(nothing.terminated, null)
  await v1.refuses(400, /same/, 'POST', '/v1/contexts/merge', { conversationId: id, sourcePathId: 'main', targetPathId: 'main' })
  assert.equal((await v1.obtain(id, 'main')).context.id, target.context.id)
})

talk('the tree of a conversation', async (id) => {
  const main = await v1.obtain(id, 'main')
  for (const [from, to] of [['main', 'a'], ['main', 'b'], ['a', 'a1']]) await v1.gives(201, 'POST', '/v1/contexts/branch', branch(id, from, to))
  const a1 = await v1.obtain(id, 'a1')
  const b = await v1.obtain(id, 'b')
  await v1.gives(200, 'POST', '/v1/contexts/merge', { conversationId: id, sourcePathId: 'b', targetPathId: 'main' })
  const tree = (await v1.paths(id)).map((p) => [p.pathId, p.parentPathId, p.mergedInto, p.contextId, p.sandboxStatus])
  assert.deepEqual(tree, [
    ['main', null, null, main.context.id, 'ready'],
    ['a', 'main', null, null, null],
    ['b', 'main', 'main', null, null],
    ['a1', 'a', null, a1.context.id, 'ready'],
  ])
  assert.equal((await v1.context(b.context.id)).sandboxStatus, 'terminated')
  assert.deepEqual(await v1.paths(`${id}-none`), [])
  await v1.refuses(400, /conversationId/, 'GET', '/v1/paths')
})

talk('cleanup ends all of a conversation, or what has expired', async (id) => {
  const other = `${id}-other`
  const kept = await v1.obtain(other, 'main')
  for (const p of ['a', 'b', 'c']) await v1.obtain(id, p, { template: 'base' })
  assert.deepEqual(await v1.clear(id), { terminated: 3 })
  assert.deepEqual(await v1.contexts({ conversationId: id }), [])
  assert.deepEqual(await v1.clear(id), { terminated: 0 })
  assert.equal((await v1.context(kept.context.id)).sandboxStatus, 'ready')
  assert.equal((await others.gives(200, 'POST', '/v1/contexts/cleanup', { conversationId: other })).terminated, 0)
  assert.equal((await v1.clear(other)).terminated, 1)
  assert.deepEqual(await v1.gives(200, 'POST', '/v1/contexts/cleanup', {}), { terminated: 0 })
})

test('cleanup does what the reaper would do a minute later', async () => {
  const slow = await start(undefined, undefined, ['--reap-every', '10m'])
  const client = new Client(slow)
  for (const p of ['a', 'b']) await client.obtain('talk', p, { ttlSeconds: 1, template: 'base' })
  const stays = await client.obtain('talk', 'c', { template: 'base' })
  let ended = 0
  await eventually('both have expired', async () => (ended += (await client.gives(200, 'POST', '/v1/contexts/cleanup', {})).terminated) === 2)
  assert.deepEqual((await client.contexts()).map((c) => c.id), [stays.context.id])
  assert.deepEqual((await client.sandboxes()).map((s) => s.sandboxID), [stays.sandbox.sandboxID])
  assert.equal(await stop(slow), 0)
})

// ---- lists --------------------------------------------------------------------------------------

talk('lists are filtered, newest first, page by page', async (id) => {
  const made = []
  for (const p of ['a', 'b', 'c', 'd']) made.push((await v1.obtain(id, p, { template: 'base' })).context)
  await v1.end(made[1].id)
  const ids = async (filters) => (await v1.contexts({ conversationId: id, ...filters })).map((c) => c.pathId)
  assert.deepEqual(await ids({}), ['d', 'c', 'a'])
  assert.deepEqual(await ids({ status: 'all' }), ['d', 'c', 'b', 'a'])
  assert.deepEqual(await ids({ status: 'terminated' }), ['b'])
  assert.deepEqual(await ids({ status: 'ready,terminated' }), ['d', 'c', 'b', 'a'])
  assert.deepEqual(await ids({ status: 'error' }), [])
  assert.deepEqual(await ids({ pathId: 'c' }), ['c'])
  assert.deepEqual(await ids({ sandboxId: made[0].sandboxId }), ['a'])
  assert.deepEqual(await ids({ status: 'all', limit: 1 }), ['d', 'c', 'b', 'a'])
  assert.deepEqual(await ids({ status: 'all', limit: 3 }), ['d', 'c', 'b', 'a'])
  const page = await v1.gives(200, 'GET', `/v1/contexts?conversationId=${id}&limit=2`)
  assert.equal(page.contexts.length, 2)
  assert.equal(typeof page.nextCursor, 'string')
  const rest = await v1.gives(200, 'GET', `/v1/contexts?conversationId=${id}&limit=2&cursor=${page.nextCursor}`)
  assert.deepEqual([rest.contexts.map((c) => c.pathId), rest.nextCursor], [['a'], null])
  for (const query of ['limit=0', 'limit=201', 'limit=x', 'limit=-1', 'status=gone', 'status=', 'cursor=nonsense', 'sandboxId=x', 'conversationId=', 'pathId=%00', `pathId=${'x'.repeat(257)}`])
    await v1.refuses(400, new RegExp(query.split('=')[0]), 'GET', `/v1/contexts?${query}`)
})

// ---- limits -------------------------------------------------------------------------------------

test('five sandboxes for a conversation, ten for a tenant, and the answer names the limit', async () => {
  const small = await start(undefined, undefined, ['--tenant-contexts', '4', '--conversation-contexts', '2'])
  const client = new Client(small)
  const put = (conversationId, pathId) => ({ conversationId, pathId, template: 'base' })
  await client.obtain('one', 'a', { template: 'base' })
  const b = await client.obtain('one', 'b', { template: 'base' })
  await client.refuses(429, /\b2\b.*conversation/, 'PUT', '/v1/contexts', put('one', 'c'))
  await client.obtain('two', 'a', { template: 'base' })
  await client.obtain('two', 'b', { template: 'base' })
  await client.refuses(429, /\b4\b.*tenant/, 'PUT', '/v1/contexts', put('three', 'a'))
  await client.refuses(429, /\b[24]\b/, 'POST', '/v1/contexts/branch', { conversationId: 'one', fromPathId: 'a', toPathId: 'files', inherit: 'files' })
  assert.equal((await client.obtain('one', 'a')).wasCreated, false, 'what is there can be used')
  assert.equal((await client.contexts()).length, 4)
  assert.equal((await client.sandboxes()).length, 4, 'nothing half-made')
  await client.end(b.context.id)
  assert.equal((await client.obtain('one', 'c', { template: 'base' })).wasCreated, true, 'there is a place again')
  const other = new Client(small, keyOf(small, 'others'))
  assert.equal((await other.obtain('one', 'a', { template: 'base' })).wasCreated, true, 'the limit is each tenant\'s own')
  // Many at once for the last places: as many as there are, and not one more.
  await client.clear('one')
  const at = await Promise.all(Array.from({ length: 12 }, (_, i) => client.ask('PUT', '/v1/contexts', put(`c${i}`, 'p'))))
  assert.deepEqual(at.map((a) => a.status).sort(), [201, 201, ...Array(10).fill(429)])
  assert.equal(await stop(small), 0)
})

test('a sandbox that is lost gives its place back, and needs one again', async () => {
  const small = await start(undefined, undefined, ['--tenant-contexts', '1'])
  const client = new Client(small)
  const a = await client.obtain('one', 'a', { template: 'base' })
  await Sandbox.kill(a.sandbox.sandboxID, small.as)
  const b = await client.obtain('one', 'b', { template: 'base' })
  await client.refuses(429, /tenant/, 'PUT', '/v1/contexts', { conversationId: 'one', pathId: 'a' })
  await client.end(b.context.id)
  assert.equal((await client.obtain('one', 'a')).replaced, true)
  assert.equal(await stop(small), 0)
})

// ---- tenants ------------------------------------------------------------------------------------

talk('two tenants never see each other', async (id) => {
  const mine = await v1.obtain(id, 'main', { template: 'base' })
  const theirs = await others.obtain(id, 'main', { template: 'base' })
  assert.deepEqual([theirs.wasCreated, theirs.context.id === mine.context.id, theirs.sandbox.sandboxID === mine.sandbox.sandboxID], [true, false, false])
  assert.notEqual(theirs.context.tenantId, mine.context.tenantId)
  const url = `/v1/contexts/${mine.context.id}`
  await others.refuses(404, /./, 'GET', url)
  await others.refuses(404, /./, 'DELETE', url)
  await others.refuses(404, /./, 'POST', `${url}/touch`, {})
  assert.deepEqual((await others.contexts({ status: 'all' })).map((c) => c.id), [theirs.context.id])
  assert.deepEqual(await others.contexts({ sandboxId: mine.sandbox.sandboxID }), [])
  assert.deepEqual((await others.paths(id)).map((p) => p.contextId), [theirs.context.id])
  const merged = await others.gives(200, 'POST', '/v1/contexts/merge', { conversationId: id, sourcePathId: 'main', targetPathId: 'x' })
  assert.equal(merged.terminated.id, theirs.context.id)
  assert.deepEqual(await others.clear(id), { terminated: 0 })
  assert.equal((await v1.context(mine.context.id)).sandboxStatus, 'ready')
  const { tenantId } = mine.context
  assert.equal((await v1.obtain(id, 'main', { tenantId })).context.id, mine.context.id, 'one may say who one is')
  for (const client of [others, new Client(server, keyOf(server, 'third'))])
    await client.refuses(403, /tenant/i, 'PUT', '/v1/contexts', { conversationId: id, pathId: 'main', tenantId })
  await others.refuses(403, /tenant/i, 'GET', `/v1/contexts?tenantId=${tenantId}`)
  await others.refuses(403, /tenant/i, 'POST', '/v1/contexts/cleanup', { tenantId })
  assert.deepEqual(await others.contexts(), [])
})

test('without a key, or with a wrong one, there is nothing', async () => {
  for (const key of ['', 'e2b_' + '0'.repeat(40)])
    for (const [method, route] of [['PUT', '/v1/contexts'], ['GET', '/v1/contexts'], ['GET', '/v1/paths?conversationId=x'], ['POST', '/v1/contexts/merge'], ['GET', '/v1/nothing']])
      await new Client(server, key).refuses(401, /./, method, route, method === 'GET' ? undefined : {})
  const bearer = await v1.ask('GET', '/v1/contexts', undefined, { headers: { 'X-API-Key': '', Authorization: `Bearer ${v1.key}` } })
  const plain = await fetch(`${server.url}/v1/contexts`, { headers: { Authorization: `Bearer ${v1.key}` } })
  assert.equal(plain.status, 200, `${await plain.text()} ${bearer.status}`)
})

// ---- bad input ----------------------------------------------------------------------------------

talk('bad ids, times and fields are told by name, and nothing is made', async (id) => {
  const bad = (message, body, status = 400) => v1.refuses(status, message, 'PUT', '/v1/contexts', body)
  const before = (await sandboxIds()).length
  for (const field of ['conversationId', 'pathId']) {
    const good = { conversationId: id, pathId: 'main' }
    const { [field]: _, ...without } = good
    await bad(new RegExp(field), without)
    for (const value of ['\u0000', 'a\u0000b']) await bad(/0000/, { ...good, [field]: value })
    for (const value of ['', 'x'.repeat(257), 'x'.repeat(10_240), 'ä'.repeat(129), 'a\nb', '\u007f', '\u0085', 5, null, [], {}, true]) await bad(new RegExp(field), { ...good, [field]: value })
  }
  for (const ttlSeconds of [0, -1, 1.5, YEAR, 1e300, '60', true, {}]) await bad(/ttlSeconds/, { conversationId: id, pathId: 'main', ttlSeconds })
  await bad(/colour/, { conversationId: id, pathId: 'main', colour: 'red' })
  await bad(/envs/, { conversationId: id, pathId: 'main', envs: ['a'] })
  await bad(/envs|A/, { conversationId: id, pathId: 'main', envs: { A: 5 } })
  await bad(/metadata/, { conversationId: id, pathId: 'main', metadata: 'x' })
  await bad(/network/, { conversationId: id, pathId: 'main', network: 7 })
  await bad(/template/i, { conversationId: id, pathId: 'main', template: 'nosuchtemplate' }, 404)
  await bad(/template/i, { conversationId: id, pathId: 'main', template: 'x'.repeat(5000) })
  await bad(/tenant/i, { conversationId: id, pathId: 'main', tenantId: 'somebody-else' }, 403)
  for (const text of ['', '{', '[]', '"x"', 'null', '{"conversationId": "a", "conversationId": "b"}', '\u0000', '{"conversationId": "\\ud800", "pathId": "x"}', `{"a":${'['.repeat(10_000)}`]) await bad(/./, text)
  const bytes = Buffer.concat([Buffer.from('{"pathId":"p","conversationId":"'), Buffer.from([0xff, 0xc0, 0x80]), Buffer.from('"}')])
  assert.equal((await fetch(`${server.url}/v1/contexts`, { method: 'PUT', headers: { 'X-API-Key': v1.key }, body: bytes })).status, 400)
  assert.equal((await v1.ask('PUT', '/v1/contexts', `{"pathId": "${'x'.repeat(3_000_000)}"}`)).status, 413)
  for (const [method, route, message, body] of [
    ['POST', '/v1/contexts/branch', /fromPathId/, { conversationId: id, toPathId: 'x' }],
    ['POST', '/v1/contexts/branch', /toPathId/, { conversationId: id, fromPathId: 'x' }],
    ['POST', '/v1/contexts/branch', /conversationId/, { fromPathId: 'x', toPathId: 'y' }],
    ['POST', '/v1/contexts/branch', /toPathId/, { conversationId: id, fromPathId: 'x', toPathId: 'x'.repeat(10_240) }],
    ['POST', '/v1/contexts/merge', /sourcePathId/, { conversationId: id, targetPathId: 'x' }],
    ['POST', '/v1/contexts/merge', /targetPathId/, { conversationId: id, sourcePathId: 'x' }],
    ['POST', '/v1/contexts/merge', /nonsense/, { conversationId: id, sourcePathId: 'x', targetPathId: 'y', nonsense: 1 }],
    ['POST', '/v1/contexts/cleanup', /conversationId/, { conversationId: '' }],
    ['POST', '/v1/contexts/cleanup', /all/, { all: true }],
  ])
    await v1.refuses(400, message, method, route, body)
  const { context } = await v1.obtain(id, 'touched', { template: 'base' })
  for (const ttlSeconds of [0, -5, YEAR]) await v1.refuses(400, /ttlSeconds/, 'POST', `/v1/contexts/${context.id}/touch`, { ttlSeconds })
  await v1.refuses(405, /PATCH/, 'PATCH', '/v1/contexts')
  await v1.refuses(404, /nothing/, 'GET', '/v1/nothing')
  assert.deepEqual((await v1.contexts({ conversationId: id, status: 'all' })).map((c) => c.id), [context.id], 'nothing was made')
  assert.equal((await sandboxIds()).length, before + 1)
})

// ---- E2B's SDKs ---------------------------------------------------------------------------------

talk('the SDK connects to a context\'s sandbox', async (id) => {
  const { context, sandbox: made } = await v1.obtain(id, 'main')
  const sandbox = await Interpreter.connect(made.sandboxID, server.as)
  const execution = await sandbox.runCode('import os\nprint("hello")\n6 * 7')
  assert.deepEqual([execution.text, execution.logs.stdout.join('')], ['42', 'hello\n'])
  await sandbox.files.write('/home/user/a.txt', 'written')
  assert.equal((await v1.code(id, 'main', 'open("/home/user/a.txt").read()')).results[0].text, 'written')
  assert.equal(await value(sandbox, '(1, 2)'), '(1, 2)')
  await sandbox.setTimeout(60_000)
  const after = await v1.context(context.id)
  assert.equal(after.ttlSeconds, 60)
  near(new Date(after.expiresAt), Date.now() + 60_000, 10_000, 'expiresAt')
  assert.equal((await sandbox.getInfo()).sandboxId, context.sandboxId)
})

talk('programs that know only the SDK get the sandbox of a path', async (id) => {
  const metadata = { 'sandglass.conversation': id, 'sandglass.path': 'main' }
  const first = await Interpreter.create({ ...server.as, metadata })
  await value(first, 'x = 7')
  const second = await Interpreter.create({ ...server.as, metadata })
  assert.equal(second.sandboxId, first.sandboxId)
  assert.equal(await value(second, 'x'), '7')
  const over = await v1.obtain(id, 'main')
  assert.deepEqual([over.wasCreated, over.sandbox.sandboxID], [false, first.sandboxId])
  const elsewhere = await Interpreter.create({ ...server.as, metadata: { ...metadata, 'sandglass.path': 'side' } })
  assert.notEqual(elsewhere.sandboxId, first.sandboxId)
  const many = await Promise.all(Array.from({ length: 10 }, () => Sandbox.create('base', { ...server.as, metadata: { ...metadata, 'sandglass.path': 'many' } })))
  assert.equal(new Set(many.map((b) => b.sandboxId)).size, 1)
  await first.kill()
  const third = await Interpreter.create({ ...server.as, metadata })
  assert.notEqual(third.sandboxId, first.sandboxId)
  assert.equal((await v1.obtain(id, 'main')).context.id, over.context.id, 'of the same context')
  for (const wrong of [{ 'sandglass.conversation': id }, { 'sandglass.path': 'main' }, { 'sandglass.conversation': '', 'sandglass.path': 'x' }])
    await rejects(Sandbox.create('base', { ...server.as, metadata: wrong }), e2b.InvalidArgumentError, /sandglass\.(path|conversation)/).catch((err) =>
      assert.match(err.message, /got SandboxError: 400: .*sandglass\./))
})

talk('a fork, or a sandbox of a snapshot, of a context\'s sandbox is nobody\'s but its maker\'s', async (id) => {
  const { context } = await v1.obtain(id, 'main', { template: 'base' })
  const sandbox = await Sandbox.connect(context.sandboxId, server.as)
  await sandbox.files.write('/home/user/f', 'here')
  const [fork] = await sandbox.fork()
  if (fork instanceof Error) throw fork
  const { snapshotId } = await sandbox.createSnapshot()
  const copy = await Sandbox.create(snapshotId, server.as)
  await v1.end(context.id)
  await sleep(600) // three turns of the reaper
  for (const one of [fork, copy]) {
    assert.equal(await one.files.read('/home/user/f'), 'here')
    await one.kill()
  }
  await Sandbox.deleteSnapshot(snapshotId, server.as)
})

talk('the front is killed: contexts and their sandboxes are still there', async (id) => {
  const first = await v1.obtain(id, 'main')
  await value(await connect(first.context), 'x = 1')
  await killFront(server)
  const again = await v1.obtain(id, 'main')
  assert.deepEqual([again.wasCreated, again.replaced, again.sandbox.sandboxID], [false, false, first.sandbox.sandboxID])
  assert.equal(await value(await connect(again.context), 'x'), '1')
})

// ---- races --------------------------------------------------------------------------------------

test('64 callers of a cold path: one sandbox, and one of them is told that it was made', async () => {
  for (let round = 0; round < 50; round++) {
    const id = `race-${round}-${unique()}`
    const all = await Promise.all(Array.from({ length: 64 }, () => v1.ask('PUT', '/v1/contexts', { conversationId: id, pathId: 'p', template: 'base' })))
    assert.deepEqual(all.filter((a) => ![200, 201].includes(a.status)).map((a) => a.text), [], 'errors')
    assert.equal(all.filter((a) => a.status === 201 && a.json.wasCreated).length, 1, 'created once')
    assert.equal(new Set(all.map((a) => a.json.sandbox.sandboxID)).size, 1, 'one sandbox')
    assert.equal((await v1.contexts({ conversationId: id, status: 'all' })).length, 1, 'one context')
    await v1.clear(id)
  }
  assert.deepEqual(await v1.sandboxes(), [], 'no orphans')
}, { seconds: 60 })

test('callers and enders of one path: never two contexts, never an error but "not found"', async () => {
  const id = `race-${unique()}`
  const until = Date.now() + 2000
  const strange = []
  const user = async () => {
    while (Date.now() < until) {
      const a = await v1.ask('PUT', '/v1/contexts', { conversationId: id, pathId: 'p', template: 'base' })
      if (![200, 201].includes(a.status)) strange.push(a.text)
    }
  }
  const ender = async () => {
    while (Date.now() < until) {
      const there = await v1.contexts({ conversationId: id })
      if (there.length > 1) strange.push('two contexts')
      for (const c of there) {
        const a = await v1.ask('DELETE', `/v1/contexts/${c.id}`)
        if (a.status !== 200) strange.push(a.text)
      }
    }
  }
  const killer = async () => {
    while (Date.now() < until) for (const sandbox of await sandboxIds()) await v1.ask('DELETE', `/sandboxes/${sandbox}`)
  }
  await Promise.all([...Array.from({ length: 6 }, user), ender(), ender(), killer()])
  assert.deepEqual(strange, [])
  await v1.clear(id)
  await eventually('no orphans', async () => (await v1.sandboxes()).length === 0)
  assert.deepEqual((await v1.contexts({ conversationId: id, status: 'creating' })), [])
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

await run()
