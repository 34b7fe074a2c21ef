// Volumes at their limits, and when the server ends.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { assert, e2b, eventually, rejects, run, Sandbox, sh, test, unique } from './lib.mjs'
import { killFront, SG, start, stop } from './server.mjs'

const { Volume, VolumeError } = e2b
const MIB = 1024 * 1024
let server

const begin = async (state, key) => {
  server = await start(state, key, ['--volume-size', '64M', '--tenant-volumes', '5', '--sandbox-memory', '512M', '--warm-kernels', 'none'])
  process.env.E2B_VOLUME_API_URL = server.url
}
const make = () => Volume.create(`v-${unique()}`, server.as)
const destroy = (v) => Volume.destroy(v.volumeId, server.as)
const mount = (v, opts) => Sandbox.create('base', { ...server.as, volumeMounts: { '/mnt/v': v }, timeoutMs: 300_000, ...opts })
test('what is in a volume survives the server', async () => {
  await begin()
  const v = await make()
  await v.writeFile('/kept', 'still here')
  const a = await mount(v)
  await sh(a, 'echo inside > /mnt/v/inside')
  await killFront(server)
  assert.equal(await v.readFile('/kept'), 'still here')
  await rejects(destroy(v), VolumeError, new RegExp(`^409: .*${a.sandboxId}`))
  const { state, as } = server
  assert.equal(await stop(server), 0)
  await begin(state, as.apiKey)
  const again = await Volume.connect(v.volumeId, server.as)
  assert.equal(again.token, v.token)
  assert.equal(await again.readFile('/kept'), 'still here')
  assert.equal(await again.readFile('/inside'), 'inside\n')
  assert.equal(await destroy(again), true)
  await eventually('its files are gone', () => fs.readdirSync(path.join(server.state, 'volumes')).every((n) => !n.startsWith('removed-')))
}, { seconds: 60 })

test('a tenant has so many', async () => {
  const all = []
  for (let i = 0; i < 5; i++) all.push(await make())
  await assert.rejects(make(), /maximum number of volumes/)
  for (const v of all) await destroy(v)
})

test('a full volume: HTTP is refused, and further writers', async () => {
  const v = await make()
  await v.writeFile('/d/a', Buffer.alloc(40 * MIB), { force: true })
  await rejects(v.writeFile('/b', Buffer.alloc(40 * MIB)), VolumeError, /^507: .*full/)
  assert.deepEqual((await v.list('/')).map((e) => e.name), ['d'])
  await v.writeFile('/b', Buffer.alloc(20 * MIB))
  const a = await mount(v)
  await sh(a, 'head -c 30M /dev/zero > /mnt/v/inside')
  await eventually('the look has seen it', async () => {
    const { usedBytes, maxBytes } = await (await fetch(`${server.url}/volumes/${v.volumeId}`, { headers: { 'X-API-Key': server.as.apiKey } })).json()
    return maxBytes === 64 * MIB && usedBytes > 85 * MIB
  }, 40)
  await rejects(v.writeFile('/c', 'x'), VolumeError, /^507: /)
  await assert.rejects(mount(v), /is full/)
  await a.kill()
  await v.remove('/d')
  await eventually('there is room for a sandbox again', () => mount(v).then((b) => b.kill(), () => false))
  await v.writeFile('/c', 'room again').catch(() => v.remove('/inside'))
  await v.writeFile('/c', 'room again')
  await destroy(v)
}, { seconds: 80 })

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

test('one tenant cannot have all helpers', async () => {
  server = await start(undefined, undefined, ['--tenant-volumes', '300', '--sandbox-memory', '512M', '--warm-kernels', 'none'])
  process.env.E2B_VOLUME_API_URL = server.url
  const look = (v) => fetch(`${server.url}/volumecontent/${v.volumeId}/path?path=/`, { headers: { Authorization: `Bearer ${v.token}` } }).then((r) => r.status)
  const apiKey = execFileSync(SG, ['key', 'create', '--tenant', 'other', '--state', server.state], { encoding: 'utf8' }).trim()
  const other = await Volume.create('other', { ...server.as, apiKey })
  const all = await Promise.all(Array.from({ length: 270 }, make))
  const seen = new Set(await Promise.all(all.map(look)))
  assert.deepEqual([...seen].sort(), [200, 503])
  assert.equal(await look(other), 200)
  assert.equal(await stop(server), 0)
}, { seconds: 60 })

await run()
