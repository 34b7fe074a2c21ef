// Snapshots and forks: files that go on elsewhere.
import { assert, e2b, fresh, mine, near, OTHER_KEY, refused, rejects, run, Sandbox, sh, test, unique } from './lib.mjs'

const { SandboxNotFoundError } = e2b
const NO_SUCH = 'i' + '0'.repeat(19)

async function all(pages) {
  const items = []
  while (pages.hasNext) items.push(...(await pages.nextItems()))
  return items
}

const ids = async (opts) => (await all(Sandbox.listSnapshots(opts))).map((s) => s.snapshotId)

// Every file that a test changes: new, changed, removed, with rights, links and attributes.
async function change(sandbox) {
  await sandbox.files.write('/home/user/new', 'new')
  await sandbox.files.write('/home/user/meta', 'x', { metadata: { colour: 'blue' } })
  await sh(sandbox, 'mkdir -p d/e && echo deep > d/e/f && chmod 750 d && ln -s new link && ln new hard')
  await sh(sandbox, 'echo changed > /etc/motd && rm -rf /etc/skel && mkdir -p /opt/tool && echo root > /opt/tool/file', { user: 'root' })
}

async function unchanged(sandbox) {
  assert.equal(await sandbox.files.read('/home/user/new'), 'new')
  assert.deepEqual((await sandbox.files.getInfo('/home/user/meta')).metadata, { colour: 'blue' })
  assert.equal(await sh(sandbox, 'cat d/e/f; stat -c %a d; readlink link; stat -c %h hard; cat /etc/motd; cat /opt/tool/file; stat -c %U /opt/tool/file d/e/f'), 'deep\n750\nnew\n2\nchanged\nroot\nroot\nuser')
  assert.equal(await sandbox.files.exists('/etc/skel'), false)
}

test('a snapshot is a template: everything that was changed is there', async () => {
  const sandbox = await fresh()
  await change(sandbox)
  const snapshot = await sandbox.createSnapshot()
  assert.ok(snapshot.snapshotId)
  assert.ok(Array.isArray(snapshot.names))
  await unchanged(sandbox)
  await sandbox.files.write('/home/user/new', 'changed after it')
  const copy = await fresh(snapshot.snapshotId)
  await unchanged(copy)
  await sandbox.kill()
  const later = await fresh(snapshot.snapshotId)
  await unchanged(later)
  assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
  await unchanged(later)
})

test('copies go their own ways', async () => {
  const sandbox = await fresh()
  await sandbox.files.write('/home/user/f', 'start')
  const { snapshotId } = await sandbox.createSnapshot()
  const [a, b] = await Promise.all([fresh(snapshotId), fresh(snapshotId)])
  await a.files.write('/home/user/f', 'a')
  await b.files.remove('/home/user/f')
  assert.equal(await a.files.read('/home/user/f'), 'a')
  assert.equal(await sandbox.files.read('/home/user/f'), 'start')
  assert.equal(await b.files.exists('/home/user/f'), false)
  await Sandbox.deleteSnapshot(snapshotId)
})

test('a snapshot of a copy has both their changes', async () => {
  const sandbox = await fresh()
  await sandbox.files.write('/home/user/one', '1')
  await sandbox.files.write('/home/user/gone', 'x')
  const first = await sandbox.createSnapshot()
  const middle = await fresh(first.snapshotId)
  await middle.files.write('/home/user/two', '2')
  await middle.files.remove('/home/user/gone')
  const second = await middle.createSnapshot()
  assert.equal(await Sandbox.deleteSnapshot(first.snapshotId), true)
  const last = await fresh(second.snapshotId)
  assert.deepEqual([await last.files.read('/home/user/one'), await last.files.read('/home/user/two')], ['1', '2'])
  assert.equal(await last.files.exists('/home/user/gone'), false)
  await Sandbox.deleteSnapshot(second.snapshotId)
})

test('the sandbox goes on after its snapshot, with its processes', async () => {
  const sandbox = await fresh()
  const handle = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  const { snapshotId } = await Sandbox.createSnapshot(sandbox.sandboxId)
  assert.equal((await sandbox.getInfo()).state, 'running')
  assert.deepEqual((await sandbox.commands.list()).map((p) => p.pid), [handle.pid])
  await Sandbox.deleteSnapshot(snapshotId)
})

test('a snapshot with a name: created from by it, listed by it', async () => {
  const name = `snap-${unique()}`
  const sandbox = await fresh()
  await sandbox.files.write('/home/user/f', name)
  const snapshot = await sandbox.createSnapshot({ name })
  assert.match(snapshot.snapshotId, new RegExp(`(^|/)${name}:`))
  assert.ok(snapshot.names.some((n) => n.includes(name)), JSON.stringify(snapshot.names))
  const full = snapshot.snapshotId
  for (const template of [full, full.replace(/:.*/, ''), name]) {
    const copy = await fresh(template)
    assert.equal(await copy.files.read('/home/user/f'), name, template)
  }
  for (const filter of [name, full, full.replace(/:.*/, '')])
    assert.deepEqual(await ids({ name: filter }), [full], filter)
  assert.deepEqual(await ids({ name: `not-${name}` }), [])
  assert.equal(await Sandbox.deleteSnapshot(full), true)
  assert.deepEqual(await ids({ name }), [])
})

test('names that cannot be are refused', async () => {
  const sandbox = await fresh()
  for (const name of ['With Capitals', 'a/b/c', '../x', 'a:b:c', 'x'.repeat(300)])
    await refused(sandbox.createSnapshot({ name }), 400)
})

test('list: those of a sandbox, all of them, in pages', async () => {
  const sandbox = await fresh()
  const made = []
  for (let i = 0; i < 3; i++) made.push((await sandbox.createSnapshot()).snapshotId)
  assert.deepEqual((await ids({ sandboxId: sandbox.sandboxId })).sort(), [...made].sort())
  assert.deepEqual((await all(sandbox.listSnapshots())).map((s) => s.snapshotId).sort(), [...made].sort())
  const everything = await ids()
  assert.ok(made.every((id) => everything.includes(id)))
  const pages = sandbox.listSnapshots({ limit: 2 })
  assert.equal((await pages.nextItems()).length, 2)
  assert.equal(pages.hasNext, true)
  assert.equal((await pages.nextItems()).length, 1)
  assert.equal(pages.hasNext, false)
  const other = await fresh()
  assert.deepEqual(await ids({ sandboxId: other.sandboxId }), [])
  for (const id of made) assert.equal(await Sandbox.deleteSnapshot(id), true)
})

test('delete: true, then false, and it is no template any more', async () => {
  const sandbox = await fresh()
  const { snapshotId } = await sandbox.createSnapshot()
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), true)
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), false)
  assert.equal(await Sandbox.deleteSnapshot('no-such:default'), false)
  await refused(fresh(snapshotId), 404)
  assert.deepEqual(await ids({ sandboxId: sandbox.sandboxId }), [])
})

test('a template that comes with the server cannot be deleted', async () => {
  await refused(Sandbox.deleteSnapshot('base'), 403)
  await fresh('base')
})

test('another tenant can neither see, use nor delete it', async () => {
  const name = `snap-${unique()}`
  const sandbox = await fresh()
  const { snapshotId } = await sandbox.createSnapshot({ name })
  const as = { apiKey: OTHER_KEY }
  assert.deepEqual((await ids({ name, ...as })), [])
  assert.ok(!(await ids(as)).includes(snapshotId))
  await refused(fresh(snapshotId, as), 404)
  await refused(fresh(name, as), 404)
  assert.equal(await Sandbox.deleteSnapshot(snapshotId, as), false)
  await rejects(Sandbox.createSnapshot(sandbox.sandboxId, as), SandboxNotFoundError)
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), true)
})

test('a snapshot of nothing', async () => {
  await rejects(Sandbox.createSnapshot(NO_SUCH), SandboxNotFoundError)
})

test('a paused sandbox has to be woken first', async () => {
  const sandbox = await fresh()
  await sandbox.pause()
  await refused(sandbox.createSnapshot(), 409, /paused/)
  assert.equal((await sandbox.getInfo()).state, 'paused')
})

// ---- forks --------------------------------------------------------------------------------------

async function fork(promise) {
  const forks = await promise
  for (const f of forks) if (f instanceof Error) throw f
  return forks.map(mine)
}

test('fork: the files come along, then each goes its own way', async () => {
  const sandbox = await fresh({ metadata: { of: 'the source' }, envs: { COLOUR: 'blue' } })
  await change(sandbox)
  const before = await sandbox.getInfo()
  const [copy, ...more] = await fork(sandbox.fork())
  assert.equal(more.length, 0)
  assert.notEqual(copy.sandboxId, sandbox.sandboxId)
  assert.notEqual(copy.envdAccessToken, sandbox.envdAccessToken)
  await unchanged(copy)
  assert.equal(await sh(copy, 'echo $E2B_SANDBOX_ID $COLOUR'), `${copy.sandboxId} blue`)
  await copy.files.write('/home/user/new', 'of the copy')
  await sandbox.files.write('/home/user/d/e/f', 'of the source')
  assert.equal(await sandbox.files.read('/home/user/new'), 'new')
  assert.equal(await copy.files.read('/home/user/d/e/f'), 'deep\n')
  const after = await sandbox.getInfo()
  assert.deepEqual([after.sandboxId, +after.endAt, after.state], [before.sandboxId, +before.endAt, 'running'])
  await sandbox.kill()
  assert.equal(await copy.files.read('/home/user/new'), 'of the copy')
})

test('fork: several at once, each with its time', async () => {
  const sandbox = await fresh()
  await sandbox.files.write('/home/user/f', 'shared')
  const forks = await fork(Sandbox.fork(sandbox.sandboxId, { count: 3, timeoutMs: 45_000 }))
  assert.equal(new Set(forks.map((f) => f.sandboxId)).size, 3)
  for (const f of forks) {
    assert.equal(await f.files.read('/home/user/f'), 'shared')
    near((await f.getInfo()).endAt, Date.now() + 45_000, 5000, 'endAt')
    await f.files.write('/home/user/f', f.sandboxId)
  }
  for (const f of forks) assert.equal(await f.files.read('/home/user/f'), f.sandboxId)
})

test('fork: a fork of a fork', async () => {
  const sandbox = await fresh()
  await sandbox.files.write('/home/user/a', '1')
  const [child] = await fork(sandbox.fork())
  await child.files.write('/home/user/b', '2')
  const [grandchild] = await fork(child.fork())
  assert.equal(await sh(grandchild, 'cat a b'), '12')
})

test('fork: counts that cannot be, and nothing to fork', async () => {
  const sandbox = await fresh()
  await refused(sandbox.fork({ count: 0 }), 400)
  await refused(sandbox.fork({ count: -1 }), 400)
  await refused(sandbox.fork({ count: 101 }), 400)
  await rejects(Sandbox.fork(NO_SUCH), SandboxNotFoundError)
})

await run()
