// Volumes: trees that are too deep or too wide, helpers that die in the middle, programs that get in the way.
import fs from 'node:fs'
import os from 'node:os'
import { assert, e2b, eventually, run, Sandbox, sh, test, unique } from './lib.mjs'
import { front, start, stop } from './server.mjs'

const { Volume } = e2b
const MIB = 1024 * 1024
const server = await start(undefined, undefined, ['--sandbox-memory', '512M', '--warm-kernels', 'standard'])
process.env.E2B_VOLUME_API_URL = server.url
const make = () => Volume.create(`v-${unique()}`, server.as)
const destroy = (v) => Volume.destroy(v.volumeId, server.as)
const mount = (v, opts) => Sandbox.create('base', { ...server.as, volumeMounts: { '/mnt/v': v }, timeoutMs: 300_000, ...opts })
const children = () => fs.readdirSync('/proc').filter((n) => {
  try {
    return /^\d+$/.test(n) && fs.readFileSync(`/proc/${n}/comm`, 'utf8') === 'sg-volume\n' &&
      fs.readFileSync(`/proc/${n}/status`, 'utf8').includes(`PPid:\t${server.child.pid}\n`)
  } catch { return false }
}).map(Number)

test('1,500 deep: removed, and as long as it is there the volume counts as full', async () => {
  const v = await make()
  const a = await mount(v)
  await sh(a, `python3 -c "
import os
os.chdir('/mnt/v'); os.mkdir('deep'); os.chdir('deep')
for i in range(1500): os.mkdir('d' * 200); os.chdir('d' * 200)
open('bottom', 'w').close()
"`)
  await assert.rejects(v.writeFile('/f', 'x'), /507: .*1,000 deep/)
  assert.equal((await v.list('/', { depth: 64 })).length, 64)
  await v.remove('/deep')
  await v.writeFile('/f', 'x')
  await a.kill()
  await destroy(v)
})

test('200 MB in and out cost the front next to nothing', async () => {
  const v = await make()
  const status = () => fs.readFileSync(`/proc/${front(server)}/status`, 'utf8')
  const before = Number(status().match(/VmRSS:\s+(\d+)/)[1])
  const piece = Buffer.alloc(MIB)
  let left = 200
  await v.writeFile('/big', new ReadableStream({ pull(c) { if (left-- > 0) c.enqueue(piece); else c.close() } }))
  let size = 0
  for await (const chunk of await v.readFile('/big', { format: 'stream' })) size += chunk.length
  assert.equal(size, 200 * MIB)
  const peak = Number(status().match(/VmHWM:\s+(\d+)/)[1])
  assert.ok(peak - before < 16 * 1024, `${before} KiB before, ${peak} KiB at most`)
  await destroy(v)
})

test('200,000 files: listed with flat memory, counted, removed', async () => {
  const memory = (pid) => Number(fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) * 1024
  const v = await make()
  const a = await mount(v)
  await sh(a, `python3 -c "
import os
os.chdir('/mnt/v'); os.mkdir('many'); os.chdir('many')
for i in range(200000): os.close(os.open(f'file-{i:06}', os.O_CREAT | os.O_WRONLY))
"`, { timeoutMs: 100_000 })
  const res = await fetch(`${server.url}/volumecontent/${v.volumeId}/dir?path=/many`, { headers: { Authorization: `Bearer ${v.token}` } })
  assert.equal(res.status, 200)
  let text = '', peak = 0
  for await (const chunk of res.body) {
    text += Buffer.from(chunk).toString()
    for (const pid of children()) try { peak = Math.max(peak, memory(pid)) } catch {}
  }
  assert.equal(JSON.parse(text).length, 200_000)
  assert.ok(peak > 0 && peak < 8 * MIB, `a helper took ${peak} bytes`)
  await v.remove('/many')
  assert.deepEqual(await v.list('/'), [])
  await a.kill()
  await destroy(v)
}, { seconds: 100 })

test('a helper that is killed costs what it was doing; the next request starts another', async () => {
  const v = await make()
  await v.writeFile('/big', Buffer.alloc(64 * MIB))
  const headers = { Authorization: `Bearer ${v.token}` }
  const url = `${server.url}/volumecontent/${v.volumeId}/file?path=/`
  const reading = await fetch(`${url}big`, { headers })
  const body = new ReadableStream({ async pull(c) { c.enqueue(Buffer.alloc(65536)); await new Promise((r) => setTimeout(r, 10)) } })
  const writing = fetch(`${url}half`, { method: 'PUT', body, duplex: 'half', headers })
  await eventually('a helper runs', () => children().length > 0)
  assert.equal(os.getPriority(children()[0]), 10, 'it leaves the processor to the server')
  for (const pid of children()) process.kill(pid, 'SIGKILL')
  await assert.rejects(reading.arrayBuffer(), 'a part is not the whole')
  const end = await Promise.race([writing.then((r) => r.status, () => 'broken'), new Promise((r) => setTimeout(r, 3000, 'waits'))])
  assert.ok([503, 'broken', 'waits'].includes(end), String(end))
  assert.equal((await v.readFile('/big')).length, 64 * MIB)
  assert.deepEqual((await v.list('/')).map((e) => e.name), ['big'])
  await destroy(v)
})

test('a volume that is removed while somebody reads it', async () => {
  const v = await make()
  await v.writeFile('/big', Buffer.alloc(64 * MIB))
  const reading = await fetch(`${server.url}/volumecontent/${v.volumeId}/file?path=/big`, { headers: { Authorization: `Bearer ${v.token}` } })
  assert.equal(await destroy(v), true)
  await reading.arrayBuffer().catch(() => {})
  assert.equal((await fetch(`${server.url}/volumecontent/${v.volumeId}/path?path=/`, { headers: { Authorization: `Bearer ${v.token}` } })).status, 404)
})

test('helpers that have nothing to do are gone', async () => {
  await eventually('no helper is left', () => children().length === 0, 30)
}, { seconds: 35 })

test('programs move the directories that are on the way', async () => {
  const v = await make()
  const a = await mount(v)
  await v.writeFile('/a/b/f', 'x', { force: true })
  const moving = await a.commands.run('while :; do mv /mnt/v/a /mnt/v/z; ln -sfn / /mnt/v/a; rm -f /mnt/v/a; mv /mnt/v/z /mnt/v/a; done 2>/dev/null', { background: true, timeoutMs: 0 })
  moving.wait().catch(() => {})
  for (let i = 0; i < 100; i++) {
    const text = await v.readFile('/a/b/f').catch((err) => err.constructor.name)
    assert.ok(['x', 'VolumePathNotFoundError'].includes(text), text)
    await v.writeFile(`/a/etc/new-${i}`, 'y', { force: true }).catch(() => {})
  }
  assert.equal(fs.existsSync('/etc/new-0'), false)
  await moving.kill()
  await a.kill()
  await destroy(v)
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

await run()
