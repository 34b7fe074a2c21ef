// Pausing and waking: by hand, by the clock, by a request.
import { start, stop } from './server.mjs'
import { api, assert, e2b, eventually, fresh, inside, near, rejects, run, same, Sandbox, serve, sh, sleep, test, toPort } from './lib.mjs'

const { InvalidArgumentError, SandboxNotFoundError, TimeoutError } = e2b
const bootId = (sandbox) => sh(sandbox, 'cat /proc/sys/kernel/random/boot_id')
const state = async (sandbox) => (await sandbox.getInfo()).state
const until = (sandbox, wanted) => eventually(`it is ${wanted}`, async () => (await state(sandbox)) === wanted)

test('pause keeps memory: a server that ran goes on answering', async () => {
  const sandbox = await fresh()
  const server = await serve(sandbox, inside('http_server.py'), 8000)
  await toPort(sandbox, 8000, { method: 'PUT', path: '/value', body: 'remembered' })
  const before = await bootId(sandbox)
  assert.equal(await sandbox.pause(), true)
  assert.equal(await state(sandbox), 'paused')
  assert.equal(await sandbox.isRunning(), false)
  const again = await Sandbox.connect(sandbox.sandboxId)
  assert.equal(await state(sandbox), 'running')
  const ask = 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:8000/value").read().decode())'
  assert.equal(await sh(again, `python3 -c '${ask}'`), 'remembered')
  assert.equal((await toPort(sandbox, 8000, { path: '/value' })).text, 'remembered')
  assert.equal(await bootId(again), before)
  assert.ok((await again.commands.list()).some((p) => p.pid === server.pid), 'the same process')
})

test('nothing runs while it is paused', async () => {
  const sandbox = await fresh()
  const clock = 'import time\nwhile True:\n print(time.time(), flush=True)\n time.sleep(0.02)\n'
  await sandbox.files.write('/tmp/clock.py', clock)
  const ticking = await sandbox.commands.run('exec python3 /tmp/clock.py > /tmp/ticks', { background: true, timeoutMs: 0 })
  ticking.wait().catch(() => {})
  await eventually('it ticks', async () => (await sh(sandbox, 'wc -l < /tmp/ticks')) > 5)
  await sandbox.pause()
  await sleep(1200)
  await sandbox.connect()
  await eventually('it ticks again', async () => {
    const times = (await sandbox.files.read('/tmp/ticks')).trim().split('\n').map(Number)
    return times.slice(1).some((t, i) => t - times[i] > 1)
  })
})

test('a second pause is false; an unknown sandbox cannot be paused', async () => {
  const sandbox = await fresh()
  assert.equal(await sandbox.pause(), true)
  assert.equal(await sandbox.pause(), false)
  assert.equal(await Sandbox.pause(sandbox.sandboxId), false)
  await rejects(Sandbox.pause('i' + '0'.repeat(19)), SandboxNotFoundError)
})

test('betaPause, both forms', async () => {
  const sandbox = await fresh()
  assert.equal(await sandbox.betaPause(), true)
  await sandbox.connect()
  assert.equal(await Sandbox.betaPause(sandbox.sandboxId), true)
  assert.equal(await state(sandbox), 'paused')
})

test('while paused, nothing can be done with it', async () => {
  const sandbox = await fresh()
  await sandbox.pause()
  await rejects(sandbox.commands.run('true'), SandboxNotFoundError)
  await rejects(sandbox.commands.list(), TimeoutError)
  await rejects(sandbox.files.read('/etc/hostname'), TimeoutError)
  const { status, json } = await toPort(sandbox, 8000)
  assert.equal(status, 502)
  assert.deepEqual(json, { sandboxId: sandbox.sandboxId, message: 'The sandbox was not found', code: 502 })
})

test('the old handle goes on after connect, with its token', async () => {
  const sandbox = await fresh()
  await sandbox.files.write('/tmp/note', 'kept')
  await sandbox.pause()
  const again = await Sandbox.connect(sandbox.sandboxId)
  await again.files.write('/tmp/other', 'new')
  assert.equal(await sandbox.files.read('/tmp/note'), 'kept')
  assert.equal(await sh(sandbox, 'cat /tmp/other'), 'new')
})

test('a command goes on after the pause, and can be connected to', async () => {
  const sandbox = await fresh()
  const first = await sandbox.commands.run('read line; echo "got $line"; exit 5', { background: true, stdin: true, timeoutMs: 0 })
  first.wait().catch(() => {})
  await sandbox.pause()
  await sandbox.connect()
  const handle = await sandbox.commands.connect(first.pid)
  await handle.sendStdin('it\n')
  const err = await rejects(handle.wait(), e2b.CommandExitError)
  assert.deepEqual([err.exitCode, err.stdout], [5, 'got it\n'])
})

test('connect sets the time from now; a new start is told', async () => {
  const sandbox = await fresh({ timeoutMs: 600_000 })
  const before = await sandbox.getInfo()
  await sandbox.pause()
  await sleep(1100)
  await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 40_000 })
  const after = await sandbox.getInfo()
  near(after.endAt, Date.now() + 40_000, 3000, 'endAt')
  assert.ok(after.startedAt > before.startedAt, 'startedAt moved on')
  await sandbox.pause()
  await sandbox.connect()
  near((await sandbox.getInfo()).endAt, Date.now() + 300_000, 3000, 'endAt without a named time')
})

test('a paused sandbox does not expire', async () => {
  const sandbox = await fresh({ timeoutMs: 1500 })
  await sandbox.pause()
  await sleep(2000)
  assert.equal(await state(sandbox), 'paused')
  await sandbox.connect()
  assert.equal(await sh(sandbox, 'echo back'), 'back')
})

test('kill ends a paused sandbox', async () => {
  const sandbox = await fresh()
  await sandbox.pause()
  assert.equal(await sandbox.kill(), true)
  assert.equal(await sandbox.kill(), false)
  await rejects(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError)
  await rejects(sandbox.getInfo(), SandboxNotFoundError)
})

test('keepMemory: false keeps files only', async () => {
  const sandbox = await fresh()
  const before = await bootId(sandbox)
  await sandbox.files.write('/home/user/kept', 'still here')
  await sandbox.files.write('/tmp/also', 'this too')
  await sandbox.files.remove('/home/user/.bashrc')
  const handle = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  assert.equal(await sandbox.pause({ keepMemory: false }), true)
  assert.equal(await state(sandbox), 'paused')
  assert.equal(await sandbox.pause(), false)
  await sandbox.connect()
  assert.equal(await sandbox.files.read('/home/user/kept'), 'still here')
  assert.equal(await sandbox.files.read('/tmp/also'), 'this too')
  assert.equal(await sandbox.files.exists('/home/user/.bashrc'), false)
  const info = await sandbox.files.getInfo('/home/user/kept')
  assert.deepEqual([info.owner, info.group], ['user', 'user'])
  assert.notEqual(await bootId(sandbox), before)
  assert.equal((await sandbox.commands.list()).length, 0)
  same(await sh(sandbox, 'pgrep -x sleep || echo none'), 'none', 'processes')
})

test("onResume: 'reboot' starts afresh from the files though memory was kept", async () => {
  const sandbox = await fresh()
  const before = await bootId(sandbox)
  await sandbox.files.write('/home/user/kept', 'still here')
  const handle = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  await sandbox.pause()
  const again = await Sandbox.connect(sandbox.sandboxId, { onResume: 'reboot' })
  assert.equal(await again.files.read('/home/user/kept'), 'still here')
  assert.notEqual(await bootId(again), before)
  assert.equal((await again.commands.list()).length, 0)
  await rejects(Sandbox.connect(sandbox.sandboxId, { onResume: 'perhaps' }), InvalidArgumentError)
})

test("onResume: 'restore' is what connect does anyway", async () => {
  const sandbox = await fresh()
  const before = await bootId(sandbox)
  await sandbox.pause()
  await Sandbox.connect(sandbox.sandboxId, { onResume: 'restore' })
  assert.equal(await bootId(sandbox), before)
})

test('environment and metadata survive both kinds of pause', async () => {
  const sandbox = await fresh({ envs: { COLOUR: 'blue' }, metadata: { a: 'b' } })
  for (const keepMemory of [true, false]) {
    await sandbox.pause({ keepMemory })
    await sandbox.connect()
    assert.equal(await sh(sandbox, 'echo $COLOUR $E2B_SANDBOX_ID'), `blue ${sandbox.sandboxId}`)
    assert.deepEqual((await sandbox.getInfo()).metadata, { a: 'b' })
  }
})

test('auto-pause: at the end of its time it is paused, with its memory', async () => {
  const sandbox = await fresh({ timeoutMs: 2000, lifecycle: { onTimeout: 'pause' } })
  assert.deepEqual((await sandbox.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: false })
  const before = await bootId(sandbox)
  const handle = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  await until(sandbox, 'paused')
  await rejects(sandbox.commands.run('true'), SandboxNotFoundError)
  await sandbox.connect()
  assert.equal(await bootId(sandbox), before)
  assert.deepEqual((await sandbox.commands.list()).map((p) => p.pid), [handle.pid])
})

test('auto-pause without memory', async () => {
  const sandbox = await fresh({ timeoutMs: 2000, lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } })
  const before = await bootId(sandbox)
  await sandbox.files.write('/home/user/kept', 'still here')
  await until(sandbox, 'paused')
  await sandbox.connect()
  assert.notEqual(await bootId(sandbox), before)
  assert.equal(await sandbox.files.read('/home/user/kept'), 'still here')
})

test('auto-pause: again after it was woken', async () => {
  const sandbox = await fresh({ timeoutMs: 1000, lifecycle: { onTimeout: 'pause' } })
  await until(sandbox, 'paused')
  await sandbox.connect({ timeoutMs: 1000 })
  assert.equal(await state(sandbox), 'running')
  await until(sandbox, 'paused')
})

test('auto-resume: a command wakes it', async () => {
  const sandbox = await fresh({ timeoutMs: 1500, lifecycle: { onTimeout: 'pause', autoResume: true } })
  assert.deepEqual((await sandbox.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: true })
  await sandbox.files.write('/tmp/note', 'awake')
  await until(sandbox, 'paused')
  assert.equal(await sh(sandbox, 'cat /tmp/note'), 'awake')
  assert.equal(await state(sandbox), 'running')
  const { endAt } = await sandbox.getInfo()
  assert.ok(endAt > Date.now() + 290_000, 'it has time again, five minutes at least')
})

test('auto-resume: a file, a listing and a port wake it too', async () => {
  const sandbox = await fresh({ lifecycle: { onTimeout: 'pause', autoResume: true } })
  await serve(sandbox, inside('http_server.py'), 8000)
  await sandbox.files.write('/tmp/note', 'awake')
  const ways = [
    async () => assert.equal(await sandbox.files.read('/tmp/note'), 'awake'),
    async () => assert.ok((await sandbox.files.list('/tmp')).length > 0),
    async () => assert.equal((await toPort(sandbox, 8000, { path: '/' })).status, 200),
  ]
  for (const way of ways) {
    assert.equal(await sandbox.pause(), true)
    await way()
    assert.equal(await state(sandbox), 'running')
  }
})

test('auto-resume: files only is not woken by traffic', async () => {
  const sandbox = await fresh({ lifecycle: { onTimeout: 'pause', autoResume: true } })
  await sandbox.pause({ keepMemory: false })
  await rejects(sandbox.commands.run('true'), SandboxNotFoundError)
  assert.equal(await state(sandbox), 'paused')
})

test('the routes of old clients: resume, and refreshes', async () => {
  const sandbox = await fresh({ timeoutMs: 60_000 })
  assert.equal((await api('POST', `/sandboxes/${sandbox.sandboxId}/resume`, { body: { timeout: 100 } })).status, 409)
  await sandbox.pause()
  const resumed = await api('POST', `/sandboxes/${sandbox.sandboxId}/resume`, { body: { timeout: 100 } })
  assert.equal(resumed.status, 201)
  assert.equal(resumed.json.sandboxID, sandbox.sandboxId)
  near((await sandbox.getInfo()).endAt, Date.now() + 100_000, 3000, 'endAt after resume')
  assert.equal((await api('POST', `/sandboxes/${sandbox.sandboxId}/refreshes`, { body: { duration: 10 } })).status, 204)
  near((await sandbox.getInfo()).endAt, Date.now() + 100_000, 4000, 'refreshes never shortens')
  assert.equal((await api('POST', `/sandboxes/${sandbox.sandboxId}/refreshes`, { body: { duration: 500 } })).status, 204)
  near((await sandbox.getInfo()).endAt, Date.now() + 500_000, 4000, 'refreshes extends')
})

// ---- limits -------------------------------------------------------------------------------------

async function request(server, sandbox) {
  const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983', 'X-Access-Token': sandbox.envdAccessToken }
  const answer = await fetch(`${server.url}/files?path=/etc/hostname`, { headers })
  return { status: answer.status, text: await answer.text() }
}

test('paused ones have limits of their own', async () => {
  const server = await start(undefined, undefined, ['--tenant-sandboxes', '2', '--tenant-paused', '3', '--tenant-paused-memory', '16M'])
  try {
    const make = (options) => Sandbox.create({ ...server.as, ...options })
    const full = (what) => rejects(what, e2b.RateLimitError, /limit is/)
    const held = await make({ lifecycle: { onTimeout: 'pause', autoResume: true } })
    assert.equal(await held.pause(), true)
    const second = await make()
    // What is paused holds all the memory that it may: only files can be kept of the next.
    await full(second.pause())
    assert.equal(await second.isRunning(), true)
    assert.equal(await second.pause({ keepMemory: false }), true)
    // One whose time is over is kept by its files alone.
    const third = await make({ timeoutMs: 1000, lifecycle: { onTimeout: 'pause' } })
    await third.files.write('/home/user/kept', 'kept')
    await until(third, 'paused')
    await full(make({ lifecycle: { onTimeout: 'pause' } }))
    const a = await make()
    await make()
    await full(a.pause({ keepMemory: false }))
    await full(held.connect())
    // A request that would wake it is told the same, not that it is gone.
    const { status, text } = await request(server, held)
    assert.deepEqual([status, /limit is/.test(text)], [429, true], text)
    await a.kill()
    await held.connect()
    await held.kill()
    const again = await third.connect()
    assert.equal(await again.files.read('/home/user/kept'), 'kept')
  } finally {
    await stop(server)
  }
})

await run()
