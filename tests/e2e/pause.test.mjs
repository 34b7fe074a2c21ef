// Pausing and waking: by hand, by the clock, by a request.
import { start, stop } from './server.mjs'
import { api, assert, e2b, eventually, fresh, inside, near, rejects, run, same, Sandbox, serve, sh, sleep, test, toPort } from './lib.mjs'

const { InvalidArgumentError, SandboxNotFoundError, TimeoutError } = e2b
const bootId = (box) => sh(box, 'cat /proc/sys/kernel/random/boot_id')
const state = async (box) => (await box.getInfo()).state
const until = (box, wanted) => eventually(`it is ${wanted}`, async () => (await state(box)) === wanted)

test('pause keeps memory: a server that ran goes on answering', async () => {
  const box = await fresh()
  const server = await serve(box, inside('http_server.py'), 8000)
  await toPort(box, 8000, { method: 'PUT', path: '/value', body: 'remembered' })
  const before = await bootId(box)
  assert.equal(await box.pause(), true)
  assert.equal(await state(box), 'paused')
  assert.equal(await box.isRunning(), false)
  const again = await Sandbox.connect(box.sandboxId)
  assert.equal(await state(box), 'running')
  const ask = 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:8000/value").read().decode())'
  assert.equal(await sh(again, `python3 -c '${ask}'`), 'remembered')
  assert.equal((await toPort(box, 8000, { path: '/value' })).text, 'remembered')
  assert.equal(await bootId(again), before)
  assert.ok((await again.commands.list()).some((p) => p.pid === server.pid), 'the same process')
})

test('nothing runs while it is paused', async () => {
  const box = await fresh()
  const clock = 'import time\nwhile True:\n print(time.time(), flush=True)\n time.sleep(0.02)\n'
  await box.files.write('/tmp/clock.py', clock)
  const ticking = await box.commands.run('exec python3 /tmp/clock.py > /tmp/ticks', { background: true, timeoutMs: 0 })
  ticking.wait().catch(() => {})
  await eventually('it ticks', async () => (await sh(box, 'wc -l < /tmp/ticks')) > 5)
  await box.pause()
  await sleep(1200)
  await box.connect()
  await eventually('it ticks again', async () => {
    const times = (await box.files.read('/tmp/ticks')).trim().split('\n').map(Number)
    return times.slice(1).some((t, i) => t - times[i] > 1)
  })
})

test('a second pause is false; an unknown sandbox cannot be paused', async () => {
  const box = await fresh()
  assert.equal(await box.pause(), true)
  assert.equal(await box.pause(), false)
  assert.equal(await Sandbox.pause(box.sandboxId), false)
  await rejects(Sandbox.pause('i' + '0'.repeat(19)), SandboxNotFoundError)
})

test('betaPause, both forms', async () => {
  const box = await fresh()
  assert.equal(await box.betaPause(), true)
  await box.connect()
  assert.equal(await Sandbox.betaPause(box.sandboxId), true)
  assert.equal(await state(box), 'paused')
})

test('while paused, nothing can be done with it', async () => {
  const box = await fresh()
  await box.pause()
  await rejects(box.commands.run('true'), SandboxNotFoundError)
  await rejects(box.commands.list(), TimeoutError)
  await rejects(box.files.read('/etc/hostname'), TimeoutError)
  const { status, json: { requestId, ...json } } = await toPort(box, 8000)
  assert.equal(status, 502)
  assert.match(requestId, /^[a-z0-9]{20}$/)
  assert.deepEqual(json, { sandboxId: box.sandboxId, message: 'The sandbox was not found', code: 502 })
})

test('the old handle goes on after connect, with its token', async () => {
  const box = await fresh()
  await box.files.write('/tmp/note', 'kept')
  await box.pause()
  const again = await Sandbox.connect(box.sandboxId)
  await again.files.write('/tmp/other', 'new')
  assert.equal(await box.files.read('/tmp/note'), 'kept')
  assert.equal(await sh(box, 'cat /tmp/other'), 'new')
})

test('a command goes on after the pause, and can be connected to', async () => {
  const box = await fresh()
  const first = await box.commands.run('read line; echo "got $line"; exit 5', { background: true, stdin: true, timeoutMs: 0 })
  first.wait().catch(() => {})
  await box.pause()
  await box.connect()
  const handle = await box.commands.connect(first.pid)
  await handle.sendStdin('it\n')
  const err = await rejects(handle.wait(), e2b.CommandExitError)
  assert.deepEqual([err.exitCode, err.stdout], [5, 'got it\n'])
})

test('connect sets the time from now; a new start is told', async () => {
  const box = await fresh({ timeoutMs: 600_000 })
  const before = await box.getInfo()
  await box.pause()
  await sleep(1100)
  await Sandbox.connect(box.sandboxId, { timeoutMs: 40_000 })
  const after = await box.getInfo()
  near(after.endAt, Date.now() + 40_000, 3000, 'endAt')
  assert.ok(after.startedAt > before.startedAt, 'startedAt moved on')
  await box.pause()
  await box.connect()
  near((await box.getInfo()).endAt, Date.now() + 300_000, 3000, 'endAt without a named time')
})

test('a paused sandbox does not expire', async () => {
  const box = await fresh({ timeoutMs: 1500 })
  await box.pause()
  await sleep(2000)
  assert.equal(await state(box), 'paused')
  await box.connect()
  assert.equal(await sh(box, 'echo back'), 'back')
})

test('kill ends a paused sandbox', async () => {
  const box = await fresh()
  await box.pause()
  assert.equal(await box.kill(), true)
  assert.equal(await box.kill(), false)
  await rejects(Sandbox.connect(box.sandboxId), SandboxNotFoundError)
  await rejects(box.getInfo(), SandboxNotFoundError)
})

test('keepMemory: false keeps files only', async () => {
  const box = await fresh()
  const before = await bootId(box)
  await box.files.write('/home/user/kept', 'still here')
  await box.files.write('/tmp/also', 'this too')
  await box.files.remove('/home/user/.bashrc')
  const handle = await box.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  assert.equal(await box.pause({ keepMemory: false }), true)
  assert.equal(await state(box), 'paused')
  assert.equal(await box.pause(), false)
  await box.connect()
  assert.equal(await box.files.read('/home/user/kept'), 'still here')
  assert.equal(await box.files.read('/tmp/also'), 'this too')
  assert.equal(await box.files.exists('/home/user/.bashrc'), false)
  const info = await box.files.getInfo('/home/user/kept')
  assert.deepEqual([info.owner, info.group], ['user', 'user'])
  assert.notEqual(await bootId(box), before)
  assert.equal((await box.commands.list()).length, 0)
  same(await sh(box, 'pgrep -x sleep || echo none'), 'none', 'processes')
})

test("onResume: 'reboot' starts afresh from the files though memory was kept", async () => {
  const box = await fresh()
  const before = await bootId(box)
  await box.files.write('/home/user/kept', 'still here')
  const handle = await box.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  await box.pause()
  const again = await Sandbox.connect(box.sandboxId, { onResume: 'reboot' })
  assert.equal(await again.files.read('/home/user/kept'), 'still here')
  assert.notEqual(await bootId(again), before)
  assert.equal((await again.commands.list()).length, 0)
  await rejects(Sandbox.connect(box.sandboxId, { onResume: 'perhaps' }), InvalidArgumentError)
})

test("onResume: 'restore' is what connect does anyway", async () => {
  const box = await fresh()
  const before = await bootId(box)
  await box.pause()
  await Sandbox.connect(box.sandboxId, { onResume: 'restore' })
  assert.equal(await bootId(box), before)
})

test('environment and metadata survive both kinds of pause', async () => {
  const box = await fresh({ envs: { COLOUR: 'blue' }, metadata: { a: 'b' } })
  for (const keepMemory of [true, false]) {
    await box.pause({ keepMemory })
    await box.connect()
    assert.equal(await sh(box, 'echo $COLOUR $E2B_SANDBOX_ID'), `blue ${box.sandboxId}`)
    assert.deepEqual((await box.getInfo()).metadata, { a: 'b' })
  }
})

test('auto-pause: at the end of its time it is paused, with its memory', async () => {
  const box = await fresh({ timeoutMs: 2000, lifecycle: { onTimeout: 'pause' } })
  assert.deepEqual((await box.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: false })
  const before = await bootId(box)
  const handle = await box.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  handle.wait().catch(() => {})
  await until(box, 'paused')
  await rejects(box.commands.run('true'), SandboxNotFoundError)
  await box.connect()
  assert.equal(await bootId(box), before)
  assert.deepEqual((await box.commands.list()).map((p) => p.pid), [handle.pid])
})

test('auto-pause without memory', async () => {
  const box = await fresh({ timeoutMs: 2000, lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } })
  const before = await bootId(box)
  await box.files.write('/home/user/kept', 'still here')
  await until(box, 'paused')
  await box.connect()
  assert.notEqual(await bootId(box), before)
  assert.equal(await box.files.read('/home/user/kept'), 'still here')
})

test('auto-pause: again after it was woken', async () => {
  const box = await fresh({ timeoutMs: 1000, lifecycle: { onTimeout: 'pause' } })
  await until(box, 'paused')
  await box.connect({ timeoutMs: 1000 })
  assert.equal(await state(box), 'running')
  await until(box, 'paused')
})

test('auto-resume: a command wakes it', async () => {
  const box = await fresh({ timeoutMs: 1500, lifecycle: { onTimeout: 'pause', autoResume: true } })
  assert.deepEqual((await box.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: true })
  await box.files.write('/tmp/note', 'awake')
  await until(box, 'paused')
  assert.equal(await sh(box, 'cat /tmp/note'), 'awake')
  assert.equal(await state(box), 'running')
  const { endAt } = await box.getInfo()
  assert.ok(endAt > Date.now(), 'it has time again')
})

test('auto-resume: a file, a listing and a port wake it too', async () => {
  const box = await fresh({ lifecycle: { onTimeout: 'pause', autoResume: true } })
  await serve(box, inside('http_server.py'), 8000)
  await box.files.write('/tmp/note', 'awake')
  const ways = [
    async () => assert.equal(await box.files.read('/tmp/note'), 'awake'),
    async () => assert.ok((await box.files.list('/tmp')).length > 0),
    async () => assert.equal((await toPort(box, 8000, { path: '/' })).status, 200),
  ]
  for (const way of ways) {
    assert.equal(await box.pause(), true)
    await way()
    assert.equal(await state(box), 'running')
  }
})

test('auto-resume: files only is not woken by traffic', async () => {
  const box = await fresh({ lifecycle: { onTimeout: 'pause', autoResume: true } })
  await box.pause({ keepMemory: false })
  await rejects(box.commands.run('true'), SandboxNotFoundError)
  assert.equal(await state(box), 'paused')
})

test('the routes of old clients: resume, and refreshes', async () => {
  const box = await fresh({ timeoutMs: 60_000 })
  assert.equal((await api('POST', `/sandboxes/${box.sandboxId}/resume`, { body: { timeout: 100 } })).status, 409)
  await box.pause()
  const resumed = await api('POST', `/sandboxes/${box.sandboxId}/resume`, { body: { timeout: 100 } })
  assert.equal(resumed.status, 201)
  assert.equal(resumed.json.sandboxID, box.sandboxId)
  near((await box.getInfo()).endAt, Date.now() + 100_000, 3000, 'endAt after resume')
  assert.equal((await api('POST', `/sandboxes/${box.sandboxId}/refreshes`, { body: { duration: 10 } })).status, 204)
  near((await box.getInfo()).endAt, Date.now() + 100_000, 4000, 'refreshes never shortens')
  assert.equal((await api('POST', `/sandboxes/${box.sandboxId}/refreshes`, { body: { duration: 500 } })).status, 204)
  near((await box.getInfo()).endAt, Date.now() + 500_000, 4000, 'refreshes extends')
})

// ---- limits -------------------------------------------------------------------------------------

async function request(server, box) {
  const headers = { 'E2b-Sandbox-Id': box.sandboxId, 'E2b-Sandbox-Port': '49983', 'X-Access-Token': box.envdAccessToken }
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
