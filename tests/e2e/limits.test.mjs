// Limits are visible: programs see the sandbox's memory and processors, also after a pause, a fork and a rewind.
import { availableParallelism } from 'node:os'
import { checkpoint, fork, make, py, rewind, says, warm } from './fork.mjs'
import { assert, run, sh, test } from './lib.mjs'
import { start, stop } from './server.mjs'

const CPUS = Math.min(2, availableParallelism()) // of a sandbox, by default
const server = await start(undefined, undefined, ['--sandbox-memory', '512M', '--sandbox-disk', '256M', '--worlds-disk', '0', '--warm-kernels', 'standard'])
const as = server.as
const LOOK = `free -m | awk '/^Mem:/ {print $2}'; cat /sys/fs/cgroup/memory.max; grep -c ^processor /proc/cpuinfo; python3 -c 'import os; print(os.cpu_count())'`
const TOTAL = 512 + 256 // MiB: files are in memory too, so Linux enforces the sum
const SEEN = `${TOTAL}\n${TOTAL << 20}\n${CPUS}\n${CPUS}`
const USED = `int(open("/sys/fs/cgroup/memory.current").read()) >> 20`
const AVAILABLE = `int(next(line for line in open("/proc/meminfo") if line.startswith("MemAvailable")).split()[1]) >> 10`

test('commands, files and cells see the limits; figures are those of the moment', async () => {
  const sandbox = await make(as)
  assert.equal(await sh(sandbox, LOOK), SEEN)
  assert.equal(await sh(sandbox, LOOK, { user: 'root' }), SEEN)
  for (let i = 0; i < 3; i++) assert.match(await sandbox.files.read('/proc/meminfo'), /^MemTotal: +786432 kB\n/)
  assert.equal(await sandbox.files.read('/sys/fs/cgroup/memory.max', { user: 'root' }), `${TOTAL << 20}\n`)
  assert.match(await sandbox.files.read('/proc/cpuinfo'), /^processor/)
  await assert.rejects(sandbox.files.write('/proc/meminfo', 'x', { user: 'root' }))
  await assert.rejects(sandbox.files.write('/sys/limits/meminfo', 'x', { user: 'root' }))
  const before = await py(sandbox, AVAILABLE)
  await says(sandbox, 'held = b"x" * (200 << 20)')
  const after = await py(sandbox, AVAILABLE)
  assert.ok(before - after >= 190 && before - after < 260, `${before} MiB before, ${after} MiB after`)
})

test('many readers at once, and one that keeps the file open, all get an answer', async () => {
  const sandbox = await make(as)
  const out = await sh(sandbox, `exec 5</proc/stat; for i in $(seq 20); do (for j in $(seq 20); do head -1 /proc/meminfo; head -1 /proc/stat; done) & done | awk '{print $1}' | sort | uniq -c | awk '{print $1, $2}'`)
  assert.equal(out, '400 MemTotal:\n400 cpu')
})

test('pausing while programs read, and reading after it', async () => {
  const sandbox = await make(as)
  const reading = await sandbox.commands.run('while true; do cat /proc/meminfo /proc/stat /proc/loadavg >/dev/null; done', { background: true, timeoutMs: 0 })
  reading.wait().catch(() => {})
  for (let i = 0; i < 5; i++) {
    assert.equal(await sandbox.pause(), true)
    await sandbox.connect({ timeoutMs: 60_000 })
    assert.equal(await sh(sandbox, LOOK), SEEN)
  }
}, { seconds: 60 })

test('a copy and a rewound sandbox see their own, also with a file of /proc open', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'open_file = open("/proc/meminfo"); first = open_file.read(); group = open("/sys/fs/cgroup/memory.current")')
  await checkpoint(sandbox, { label: 'start' }, as)
  await says(sandbox, 'held = b"x" * (100 << 20)')
  assert.ok((await py(sandbox, USED)) >= 100)
  const { sandbox: copy } = await fork(sandbox, {}, as)
  for (const one of [copy, sandbox]) {
    assert.equal(await sh(one, LOOK), SEEN)
    assert.match(await one.files.read('/proc/meminfo'), /^MemTotal: +786432 kB\n/)
    assert.ok((await py(one, AVAILABLE)) < TOTAL)
  }
  await rewind(sandbox, { label: 'start' }, as)
  assert.equal(await sh(sandbox, LOOK), SEEN)
  assert.ok((await py(sandbox, AVAILABLE)) > 500)
}, { seconds: 90 })

test('files of a paused sandbox that was stored: the next one has them too', async () => {
  const sandbox = await make(as)
  await sandbox.pause({ keepMemory: false })
  await sandbox.connect({ timeoutMs: 60_000 })
  assert.equal(await sh(sandbox, LOOK), SEEN)
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

await run()
