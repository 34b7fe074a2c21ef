// What a sandbox uses.
import { assert, common, e2b, eventually, fresh, rejects, run, Sandbox, sh, test } from './lib.mjs'

const { SandboxNotFoundError } = e2b
const some = (sandbox) => eventually('there are metrics', async () => {
  const metrics = await sandbox.getMetrics()
  return metrics.length && metrics
}, 20)

test('metrics come, and say something that can be', async () => {
  const sandbox = await common()
  const info = await sandbox.getInfo()
  for (const m of await some(sandbox)) {
    assert.ok(m.timestamp >= info.startedAt - 1000 && m.timestamp <= Date.now() + 1000, `timestamp ${m.timestamp}`)
    assert.equal(m.cpuCount, info.cpuCount)
    assert.ok(m.cpuUsedPct >= 0 && m.cpuUsedPct <= 100 * info.cpuCount + 10, `cpuUsedPct ${m.cpuUsedPct}`)
    assert.equal(Math.round(m.memTotal / 1048576), info.memoryMB)
    assert.ok(m.memUsed >= 0 && m.memUsed <= m.memTotal, `memUsed ${m.memUsed}`)
    assert.ok(m.memCache >= 0, `memCache ${m.memCache}`)
    assert.ok(m.diskTotal > 0 && m.diskUsed >= 0 && m.diskUsed <= m.diskTotal, `disk ${m.diskUsed} of ${m.diskTotal}`)
  }
})

test('they grow with what is used', async () => {
  const sandbox = await fresh()
  const first = (await some(sandbox)).at(-1)
  await sh(sandbox, 'head -c 20M /dev/zero > disk')
  const hog = 'import time\nx = bytearray(50_000_000)\nwhile True: pass\n'
  await sandbox.files.write('/tmp/hog.py', hog)
  const handle = await sandbox.commands.run('exec python3 /tmp/hog.py', { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  await eventually('all three are seen', async () => {
    const last = (await sandbox.getMetrics()).at(-1)
    return last.diskUsed - first.diskUsed > 19e6 && last.memUsed - first.memUsed > 40e6 && last.cpuUsedPct > 20
  }, 25)
})

test('a range is honoured', async () => {
  const sandbox = await common()
  await some(sandbox)
  const at = (s) => new Date(Date.now() + s * 1000)
  assert.deepEqual(await sandbox.getMetrics({ start: at(-7200), end: at(-3600) }), [])
  assert.deepEqual(await sandbox.getMetrics({ start: at(3600) }), [])
  const recent = await Sandbox.getMetrics(sandbox.sandboxId, { start: at(-60), end: at(1) })
  assert.ok(recent.length > 0)
  const [one] = recent
  const around = await sandbox.getMetrics({ start: new Date(+one.timestamp - 1000), end: new Date(+one.timestamp + 1000) })
  assert.ok(around.some((m) => +m.timestamp === +one.timestamp))
  for (const m of around) assert.ok(Math.abs(m.timestamp - one.timestamp) <= 2000, `${m.timestamp}`)
})

test('of nothing', async () => {
  await rejects(Sandbox.getMetrics('i' + '0'.repeat(19)), SandboxNotFoundError)
})

await run()
