// Watching directories.
import { assert, common, e2b, eventually, folder, fresh, rejects, run, sh, sleep, test } from './lib.mjs'

const { AuthenticationError, FileNotFoundError, InvalidArgumentError, TimeoutError } = e2b

async function watch(box, dir, opts) {
  const w = { events: [], exits: [] }
  const onExit = (err) => { w.exits.push(err) }
  w.handle = await box.files.watchDir(dir, (event) => { w.events.push(event) }, { timeoutMs: 0, onExit, ...opts })
  w.has = (type, name) => w.events.find((e) => e.type === type && e.name === name)
  w.gets = (type, name) =>
    eventually(`the event ${type} ${name}`, () => w.has(type, name)).catch((err) =>
      assert.fail(`${err.message}\nevents: ${w.events.map((e) => `${e.type} ${e.name}`).join(', ')}`),
    )
  return w
}

test('create, write, chmod, rename, remove', async () => {
  const box = await common()
  const dir = await folder(box)
  const w = await watch(box, dir)
  await sh(box, `cd ${dir} && touch a`)
  await w.gets('create', 'a')
  await sh(box, `echo text > ${dir}/a`)
  await w.gets('write', 'a')
  await sh(box, `chmod 600 ${dir}/a`)
  await w.gets('chmod', 'a')
  await sh(box, `mv ${dir}/a ${dir}/b`)
  await w.gets('rename', 'a')
  await w.gets('create', 'b')
  await sh(box, `rm ${dir}/b`)
  await w.gets('remove', 'b')
  await w.handle.stop()
})

test('what is written through the API is an event under its own name only', async () => {
  const box = await common()
  const dir = await folder(box)
  const w = await watch(box, dir)
  await box.files.write(`${dir}/new.txt`, 'one')
  await w.gets('create', 'new.txt')
  await w.gets('write', 'new.txt')
  w.events.length = 0
  await box.files.write(`${dir}/new.txt`, 'two')
  await w.gets('write', 'new.txt')
  await box.files.rename(`${dir}/new.txt`, `${dir}/old.txt`)
  await w.gets('rename', 'new.txt')
  await box.files.makeDir(`${dir}/d`)
  await w.gets('create', 'd')
  await box.files.remove(`${dir}/old.txt`)
  await w.gets('remove', 'old.txt')
  assert.deepEqual([...new Set(w.events.map((e) => e.name))].sort(), ['d', 'new.txt', 'old.txt'])
  await w.handle.stop()
})

test('without recursive, only the directory itself', async () => {
  const box = await common()
  const dir = await folder(box)
  await box.files.makeDir(`${dir}/sub`)
  const w = await watch(box, dir)
  await box.files.write(`${dir}/sub/inner`, 'x')
  await box.files.write(`${dir}/last`, 'x')
  await w.gets('create', 'last')
  assert.ok(!w.events.some((e) => e.name.includes('inner')), JSON.stringify(w.events))
  await w.handle.stop()
})

test('recursive: what is there, what comes later, and deep', async () => {
  const box = await common()
  const dir = await folder(box)
  await box.files.makeDir(`${dir}/old/deep`)
  const w = await watch(box, dir, { recursive: true })
  await sh(box, `touch ${dir}/old/deep/file`)
  await w.gets('create', 'old/deep/file')
  await sh(box, `mkdir -p ${dir}/new/sub`)
  await w.gets('create', 'new')
  await eventually('files in a new directory are seen', async () => {
    await sh(box, `touch ${dir}/new/sub/f; rm ${dir}/new/sub/f`)
    return w.has('create', 'new/sub/f')
  })
  await sh(box, `mkdir -p ${dir}/quick/er && echo x > ${dir}/quick/er/f`)
  await w.gets('create', 'quick/er/f')
  await sh(box, `mv ${dir}/new ${dir}/renamed`)
  await w.gets('rename', 'new')
  await eventually('a renamed directory is followed', async () => {
    await sh(box, `touch ${dir}/renamed/sub/g; rm ${dir}/renamed/sub/g`)
    return w.has('create', 'renamed/sub/g')
  })
  await w.handle.stop()
})

test('includeEntry: the entry of what is there, none of what is gone', async () => {
  const box = await common()
  const dir = await folder(box)
  const w = await watch(box, dir, { includeEntry: true })
  await box.files.write(`${dir}/f`, '12345')
  await w.gets('write', 'f')
  const entry = await eventually('an entry with the size', () => w.events.find((e) => e.type === 'write' && e.entry?.size === 5)?.entry)
  assert.deepEqual([entry.name, entry.path, entry.type, entry.owner], ['f', `${dir}/f`, 'file', 'user'])
  await box.files.remove(`${dir}/f`)
  const gone = await w.gets('remove', 'f')
  assert.equal(gone.entry, undefined)
  await w.handle.stop()
  const plain = await watch(box, dir)
  await box.files.write(`${dir}/g`, 'x')
  assert.equal((await plain.gets('create', 'g')).entry, undefined)
  await plain.handle.stop()
})

test('stop: no more events, and the end is told once', async () => {
  const box = await common()
  const dir = await folder(box)
  const w = await watch(box, dir)
  await box.files.write(`${dir}/before`, 'x')
  await w.gets('create', 'before')
  await w.handle.stop()
  await eventually('the end is told', () => w.exits.length === 1)
  const seen = w.events.length
  await box.files.write(`${dir}/after`, 'x')
  await sleep(300)
  assert.equal(w.events.length, seen)
  assert.equal(w.exits.length, 1)
})

test('the end of its time is a TimeoutError', async () => {
  const box = await common()
  const dir = await folder(box)
  const w = await watch(box, dir, { timeoutMs: 700 })
  await eventually('the end is told', () => w.exits.length === 1)
  assert.ok(w.exits[0] instanceof TimeoutError, String(w.exits[0]))
})

test('the end of the sandbox is a TimeoutError', async () => {
  const box = await fresh()
  const w = await watch(box, '/home/user')
  await box.kill()
  await eventually('the end is told', () => w.exits.length === 1)
  assert.ok(w.exits[0] instanceof TimeoutError, String(w.exits[0]))
})

test('several watches of one directory', async () => {
  const box = await common()
  const dir = await folder(box)
  const watches = await Promise.all(Array.from({ length: 10 }, () => watch(box, dir)))
  await box.files.write(`${dir}/f`, 'x')
  for (const w of watches) await w.gets('create', 'f')
  for (const w of watches) await w.handle.stop()
})

test('names that are hard to write down', async () => {
  const box = await common()
  const dir = await folder(box)
  const w = await watch(box, dir)
  for (const name of ['with space', 'ünï💥', 'a"b']) {
    await box.files.write(`${dir}/${name}`, 'x')
    await w.gets('create', name)
  }
  await w.handle.stop()
})

test('what cannot be watched', async () => {
  const box = await common()
  const dir = await folder(box)
  await box.files.write(`${dir}/file`, 'x')
  const none = () => {}
  await rejects(box.files.watchDir(`${dir}/no`, none), FileNotFoundError)
  await rejects(box.files.watchDir(`${dir}/file`, none), InvalidArgumentError)
  await rejects(box.files.watchDir(dir, none, { user: 'nobody-here' }), AuthenticationError)
})

await run()
