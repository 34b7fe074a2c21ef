// The server itself: what outlives its front, its own end, and a crash. These tests start servers of
// their own, because they end them.
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { assert, e2b, eventually, rejects, run, Sandbox, sh, sleep, test } from './lib.mjs'
import { freePort, killFront, launch, scratch, SG, start, stop } from './server.mjs'

test('the front is killed: sandboxes, programs, files, times and tokens are still there', async () => {
  const server = await start()
  const sandbox = await Sandbox.create({ ...server.as, metadata: { a: 'b' }, envs: { COLOUR: 'blue' } })
  const asleep = await Sandbox.create(server.as)
  await asleep.files.write('/home/user/f', 'asleep')
  await asleep.pause()
  const stored = await Sandbox.create(server.as)
  await stored.files.write('/home/user/f', 'stored')
  await stored.pause({ keepMemory: false })
  const handle = await sandbox.commands.run('n=0; while read x; do n=$((n + 1)); echo "$n $x $COLOUR"; done; exit 6', { background: true, stdin: true, timeoutMs: 0, cwd: '/tmp' })
  handle.wait().catch(() => {})
  await handle.sendStdin('one\n')
  await eventually('the first line', () => handle.stdout === '1 one blue\n')
  const before = [await sandbox.getInfo(), await sandbox.commands.list()]
  await killFront(server)
  const after = [await sandbox.getInfo(), await sandbox.commands.list()]
  assert.deepEqual(after[1], before[1])
  assert.ok(Math.abs(after[0].endAt - before[0].endAt) < 1000, 'the same end')
  assert.deepEqual({ ...after[0], startedAt: 0, endAt: 0 }, { ...before[0], startedAt: 0, endAt: 0 })
  const again = await sandbox.commands.connect(handle.pid)
  await again.sendStdin('two\n')
  await again.closeStdin()
  const err = await rejects(again.wait(), e2b.CommandExitError)
  assert.deepEqual([err.exitCode, err.stdout], [6, '2 two blue\n'])
  assert.equal((await asleep.getInfo()).state, 'paused')
  for (const [other, content] of [[asleep, 'asleep'], [stored, 'stored']]) {
    await other.connect()
    assert.equal(await other.files.read('/home/user/f'), content)
  }
  assert.equal(await sandbox.kill(), true)
  assert.equal(await stop(server), 0)
})

test('the front is killed: logs and metrics are still there', async () => {
  const server = await start(undefined, undefined, ['--pool-min', '0', '--pool-max', '1'])
  const [sandbox, ended] = [await Sandbox.create(server.as), await Sandbox.create(server.as)]
  const get = async (route) => (await fetch(server.url + route, { headers: { 'X-API-Key': server.as.apiKey } })).json()
  const log = async (b) => (await get(`/v2/sandboxes/${b.sandboxId}/logs?direction=forward`)).logs
  const metrics = () => get(`/sandboxes/${sandbox.sandboxId}/metrics`)
  for (const b of [sandbox, ended]) await b.commands.run('echo before; echo oops >&2')
  await ended.kill()
  const samples = await eventually('there is a sample', async () => (await metrics()).length && metrics())
  const before = [await log(sandbox), await log(ended)]
  assert.ok(before.every((l) => l.some((e) => e.message === 'oops')), JSON.stringify(before))
  for (let round = 0; round < 2; round++) {
    await killFront(server)
    assert.deepEqual((await log(sandbox)).slice(0, before[0].length), before[0])
    assert.deepEqual(await log(ended), before[1])
    assert.deepEqual((await metrics()).slice(0, samples.length), samples)
  }
  await sandbox.commands.run('echo after')
  assert.ok((await log(sandbox)).some((e) => e.message === 'after'))
  assert.equal(await stop(server), 0)
})

test('the front is killed again and again while sandboxes are made and used', async () => {
  const server = await start()
  let going = true
  let good = 0
  const strange = []
  const worker = async () => {
    while (going) {
      try {
        const sandbox = await Sandbox.create({ ...server.as, timeoutMs: 30_000 })
        if ((await sh(sandbox, 'echo $E2B_SANDBOX_ID')) !== sandbox.sandboxId) strange.push('another sandbox answered')
        await sandbox.kill()
        good++
      } catch (err) {
        // A connection that breaks is how a client sees the end of a front; wrong answers are not.
        if (err instanceof e2b.AuthenticationError || err instanceof e2b.CommandExitError) strange.push(String(err))
        await sleep(20)
      }
    }
  }
  const workers = Array.from({ length: 4 }, worker)
  for (let i = 0; i < 5; i++) {
    await sleep(300)
    await killFront(server)
  }
  const before = good
  await eventually('work goes on', () => good > before + 5)
  going = false
  await Promise.all(workers)
  assert.deepEqual(strange, [])
  const pages = Sandbox.list(server.as)
  for (const { sandboxId } of await pages.nextItems()) assert.equal(await Sandbox.kill(sandboxId, server.as), true, 'what is listed can be ended')
  assert.equal(await stop(server), 0)
})

test('times run out while there is no front', async () => {
  const server = await start()
  const sandbox = await Sandbox.create({ ...server.as, timeoutMs: 1000 })
  await killFront(server)
  await eventually('it is gone', async () => !(await sandbox.isRunning()))
  await rejects(sandbox.getInfo(), e2b.SandboxNotFoundError)
  await stop(server)
})

test('SIGTERM: what is under way is finished, then it ends with 0', async () => {
  const server = await start()
  const sandbox = await Sandbox.create(server.as)
  const under = sandbox.commands.run('sleep 1; echo finished')
  await eventually('it runs', async () => (await sandbox.commands.list()).length === 1)
  server.child.kill('SIGTERM')
  assert.equal((await under).stdout, 'finished\n')
  assert.equal(await server.ended, 0)
})

test('after a restart: keys and named snapshots are there, sandboxes are not', async () => {
  const first = await start()
  const sandbox = await Sandbox.create(first.as)
  await sandbox.files.write('/home/user/f', 'kept')
  const { snapshotId } = await sandbox.createSnapshot({ name: 'kept' })
  assert.equal(await stop(first), 0)
  const second = await start(first.state, first.as.apiKey)
  assert.doesNotMatch(second.out, /e2b_[0-9a-f]{40}/, 'a key is told once')
  await rejects(Sandbox.getInfo(sandbox.sandboxId, second.as), e2b.SandboxNotFoundError)
  const copy = await Sandbox.create(snapshotId, second.as)
  assert.equal(await copy.files.read('/home/user/f'), 'kept')
  assert.equal(await stop(second), 0)
})

test('killed whole: the next start finds nothing in its way, and takes over the state', async () => {
  const first = await start()
  const sandboxes = await Promise.all([1, 2, 3].map(() => Sandbox.create(first.as)))
  await Promise.all(sandboxes.map((b) => b.commands.run('sleep 1000', { background: true, timeoutMs: 0 }).then((h) => h.wait().catch(() => {}) && 0)))
  first.child.kill('SIGKILL')
  await first.ended
  const second = await start(first.state, first.as.apiKey)
  await rejects(Sandbox.getInfo(sandboxes[0].sandboxId, second.as), e2b.SandboxNotFoundError)
  const sandbox = await Sandbox.create(second.as)
  assert.equal(await sh(sandbox, 'echo again'), 'again')
  assert.equal(await stop(second), 0)
})

test('two servers do not share a state', async () => {
  const server = await start()
  const other = launch(['--listen', `127.0.0.1:${await freePort()}`, '--state', server.state])
  assert.notEqual(await other.ended, 0)
  assert.match(other.err, new RegExp(`^sandglass: .*\\b${server.child.pid}\\b`, 'm'))
  assert.equal((await fetch(`${server.url}/health`)).status, 204)
  await stop(server)
})

test('an address that others can reach needs TLS, or to be told', async () => {
  const open = launch(['--listen', '0.0.0.0:0', '--state', path.join(scratch, 'open')])
  assert.notEqual(await open.ended, 0)
  assert.match(open.err, /^sandglass: .*--insecure/m)
})

test('a port that is taken, and a bad option, are said in one line', async () => {
  const server = await start()
  const { port } = new URL(server.url)
  const taken = launch(['--listen', `127.0.0.1:${port}`, '--state', path.join(scratch, 'taken')])
  assert.notEqual(await taken.ended, 0)
  assert.match(taken.err, new RegExp(`sandglass: .*${port}`))
  const bad = launch(['--listen', 'nonsense', '--state', path.join(scratch, 'bad')])
  assert.equal(await bad.ended, 2)
  await stop(server)
})

test('keys: made, listed and taken back while the server runs', async () => {
  const server = await start()
  const sandglass = (...args) => execFileSync(SG, ['key', ...args, '--state', server.state], { encoding: 'utf8' })
  const key = sandglass('create', '--tenant', 'temp', '--name', 'short-lived').trim()
  const as = { ...server.as, apiKey: key }
  const sandbox = await Sandbox.create(as)
  const listed = JSON.parse(sandglass('list', '--json'))
  const mine = listed.find((k) => k.name === 'short-lived')
  assert.ok(mine, JSON.stringify(listed))
  assert.ok(!JSON.stringify(listed).includes(key), 'a key is not shown again')
  assert.match(sandglass('list'), /short-lived/)
  sandglass('revoke', mine.id)
  await eventually('it is refused', async () => {
    try {
      await Sandbox.getInfo(sandbox.sandboxId, as)
    } catch (err) {
      return err instanceof e2b.AuthenticationError
    }
    return false
  }, 2)
  assert.equal(await stop(server), 0)
})

await run()
