// Watching directories.
import { assert, common, e2b, eventually, folder, fresh, rejects, run, sh, sleep, test } from './lib.mjs'

const { AuthenticationError, FileNotFoundError, InvalidArgumentError, TimeoutError } = e2b

async function watch(sandbox, dir, opts) {
  const w = { events: [], exits: [] }
  const onExit = (err) => { w.exits.push(err) }
  w.handle = await sandbox.files.watchDir(dir, (event) => { w.events.push(event) }, { timeoutMs: 0, onExit, ...opts })
  w.has = (type, name) => w.events.find((e) => e.type === type && e.name === name)
  w.gets = (type, name) =>
    eventually(`the event ${type} ${name}`, () => w.has(type, name)).catch((err) =>
      assert.fail(`${err.message}\nevents: ${w.events.map((e) => `${e.type} ${e.name}`).join(', ')}`),
    )
  return w
}

test('create, write, chmod, rename, remove', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const w = await watch(sandbox, dir)
  await sh(sandbox, `cd ${dir} && touch a`)
  await w.gets('create', 'a')
  await sh(sandbox, `echo text > ${dir}/a`)
  await w.gets('write', 'a')
  await sh(sandbox, `chmod 600 ${dir}/a`)
  await w.gets('chmod', 'a')
  await sh(sandbox, `mv ${dir}/a ${dir}/b`)
  await w.gets('rename', 'a')
  await w.gets('create', 'b')
  await sh(sandbox, `rm ${dir}/b`)
  await w.gets('remove', 'b')
  await w.handle.stop()
})

test('what is written through the API is an event under its own name only', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const w = await watch(sandbox, dir)
  await sandbox.files.write(`${dir}/new.txt`, 'one')
  await w.gets('create', 'new.txt')
  await w.gets('write', 'new.txt')
  assert.deepEqual([...new Set(w.events.map((e) => e.type))], ['create', 'chmod', 'write'])
  w.events.length = 0
  await sandbox.files.write(`${dir}/new.txt`, 'two')
  await w.gets('write', 'new.txt')
  await sandbox.files.rename(`${dir}/new.txt`, `${dir}/old.txt`)
  await w.gets('rename', 'new.txt')
  await sandbox.files.makeDir(`${dir}/d`)
  await w.gets('create', 'd')
  await sandbox.files.remove(`${dir}/old.txt`)
  await w.gets('remove', 'old.txt')
  assert.deepEqual([...new Set(w.events.map((e) => e.name))].sort(), ['d', 'new.txt', 'old.txt'])
  await w.handle.stop()
})

test('without recursive, only the directory itself', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.makeDir(`${dir}/sub`)
  const w = await watch(sandbox, dir)
  await sandbox.files.write(`${dir}/sub/inner`, 'x')
  await sandbox.files.write(`${dir}/last`, 'x')
  await w.gets('create', 'last')
  assert.ok(!w.events.some((e) => e.name.includes('inner')), JSON.stringify(w.events))
  await w.handle.stop()
})

test('recursive: what is there, what comes later, and deep', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.makeDir(`${dir}/old/deep`)
  const w = await watch(sandbox, dir, { recursive: true })
  await sh(sandbox, `touch ${dir}/old/deep/file`)
  await w.gets('create', 'old/deep/file')
  await sh(sandbox, `mkdir -p ${dir}/new/sub`)
  await w.gets('create', 'new')
  await eventually('files in a new directory are seen', async () => {
    await sh(sandbox, `touch ${dir}/new/sub/f; rm ${dir}/new/sub/f`)
    return w.has('create', 'new/sub/f')
  })
  await sh(sandbox, `mkdir -p ${dir}/quick/er && echo x > ${dir}/quick/er/f`)
  await w.gets('create', 'quick/er/f')
  await sh(sandbox, `mv ${dir}/new ${dir}/renamed`)
  await w.gets('rename', 'new')
  await eventually('a renamed directory is followed', async () => {
    await sh(sandbox, `touch ${dir}/renamed/sub/g; rm ${dir}/renamed/sub/g`)
    return w.has('create', 'renamed/sub/g')
  })
  await w.handle.stop()
})

test('includeEntry: the entry of what is there, none of what is gone', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const w = await watch(sandbox, dir, { includeEntry: true })
  await sandbox.files.write(`${dir}/f`, '12345')
  await w.gets('write', 'f')
  const entry = await eventually('an entry with the size', () => w.events.find((e) => e.type === 'write' && e.entry?.size === 5)?.entry)
  assert.deepEqual([entry.name, entry.path, entry.type, entry.owner], ['f', `${dir}/f`, 'file', 'user'])
  await sandbox.files.remove(`${dir}/f`)
  const gone = await w.gets('remove', 'f')
  assert.equal(gone.entry, undefined)
  await w.handle.stop()
  const plain = await watch(sandbox, dir)
  await sandbox.files.write(`${dir}/g`, 'x')
  assert.equal((await plain.gets('create', 'g')).entry, undefined)
  await plain.handle.stop()
})

test('stop: no more events, and the end is told once', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const w = await watch(sandbox, dir)
  await sandbox.files.write(`${dir}/before`, 'x')
  await w.gets('create', 'before')
  await w.handle.stop()
  await eventually('the end is told', () => w.exits.length === 1)
  const seen = w.events.length
  await sandbox.files.write(`${dir}/after`, 'x')
  await sleep(300)
  assert.equal(w.events.length, seen)
  assert.equal(w.exits.length, 1)
})

test('the end of its time is a TimeoutError', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const w = await watch(sandbox, dir, { timeoutMs: 700 })
  await eventually('the end is told', () => w.exits.length === 1)
  assert.ok(w.exits[0] instanceof TimeoutError, String(w.exits[0]))
})

test('the end of the sandbox is a TimeoutError', async () => {
  const sandbox = await fresh()
  const w = await watch(sandbox, '/home/user')
  await sandbox.kill()
  await eventually('the end is told', () => w.exits.length === 1)
  assert.ok(w.exits[0] instanceof TimeoutError, String(w.exits[0]))
})

test('several watches of one directory', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const watches = await Promise.all(Array.from({ length: 10 }, () => watch(sandbox, dir)))
  await sandbox.files.write(`${dir}/f`, 'x')
  for (const w of watches) await w.gets('create', 'f')
  for (const w of watches) await w.handle.stop()
})

test('names that are hard to write down', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const w = await watch(sandbox, dir)
  for (const name of ['with space', 'ünï💥', 'a"b']) {
    await sandbox.files.write(`${dir}/${name}`, 'x')
    await w.gets('create', name)
  }
  await w.handle.stop()
})

test('what cannot be watched', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/file`, 'x')
  const none = () => {}
  await rejects(sandbox.files.watchDir(`${dir}/no`, none), FileNotFoundError)
  await rejects(sandbox.files.watchDir(`${dir}/file`, none), InvalidArgumentError)
  await rejects(sandbox.files.watchDir(dir, none, { user: 'nobody-here' }), AuthenticationError)
})

await run()
