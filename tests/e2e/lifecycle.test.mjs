// Creating, describing, prolonging, connecting to and ending sandboxes.
import { api, assert, common, e2b, eventually, fresh, KEY, mine, near, OTHER_KEY, refused, rejects, run, same, Sandbox, sh, test, unique } from './lib.mjs'

const { AuthenticationError, E2B, InvalidArgumentError, SandboxError, SandboxNotFoundError, TimeoutError } = e2b
const NO_SUCH = 'i' + '0'.repeat(19)

test('create: an id that fits into a host name, and it runs', async () => {
  const sandbox = await fresh()
  assert.match(sandbox.sandboxId, /^[a-z0-9]{20}$/)
  assert.equal(await sandbox.isRunning(), true)
  assert.ok(sandbox.getHost(8000).startsWith(`8000-${sandbox.sandboxId}.`), sandbox.getHost(8000))
})

test('create: the template as first argument, as option, and another one', async () => {
  const a = await fresh('base')
  const b = await fresh({ template: 'base' })
  const c = await fresh('code-interpreter-v1')
  const infos = await Promise.all([a, b, c].map((sandbox) => sandbox.getInfo()))
  assert.equal(infos[0].templateId, infos[1].templateId)
  assert.notEqual(infos[0].templateId, infos[2].templateId)
  assert.equal(infos[0].name, 'base')
  assert.equal(infos[2].name, 'code-interpreter-v1')
})

test('create: an unknown template is 404', async () => {
  await refused(fresh('no-such-template-anywhere'), 404, /no-such-template-anywhere/)
})

test('create: a template name with characters it cannot have is refused', async () => {
  const err = await rejects(fresh('No Such/../Template'), SandboxError)
  assert.ok([400, 404].includes(err.statusCode), err.message)
})

test('getInfo: both forms say the same, and everything', async () => {
  const metadata = { purpose: 'test', 'odd key': 'ünï & "quoted"' }
  const before = Date.now()
  const sandbox = await fresh({ metadata, timeoutMs: 90_000 })
  const info = await sandbox.getInfo()
  assert.deepEqual(await Sandbox.getInfo(sandbox.sandboxId), info)
  assert.deepEqual(await Sandbox.getFullInfo(sandbox.sandboxId), info)
  assert.equal(info.sandboxId, sandbox.sandboxId)
  assert.equal(info.state, 'running')
  assert.deepEqual(info.metadata, metadata)
  near(info.startedAt, before, 5000, 'startedAt')
  near(info.endAt, +info.startedAt + 90_000, 2000, 'endAt')
  assert.ok(Number.isInteger(info.cpuCount) && info.cpuCount >= 1, `cpuCount ${info.cpuCount}`)
  assert.ok(Number.isInteger(info.memoryMB) && info.memoryMB >= 64, `memoryMB ${info.memoryMB}`)
  assert.match(info.envdVersion, /^\d+\.\d+\.\d+$/)
  assert.deepEqual(info.lifecycle, { onTimeout: 'kill', autoResume: false })
  assert.deepEqual(info.volumeMounts, [])
})

test('create: 300 s is the time it gets when none is named', async () => {
  const sandbox = mine(await Sandbox.create())
  const info = await sandbox.getInfo()
  near(info.endAt, +info.startedAt + 300_000, 2000, 'endAt')
})

test('create: no time, less than none, or a year is refused', async () => {
  await refused(fresh({ timeoutMs: 0 }), 400)
  await refused(fresh({ timeoutMs: -5000 }), 400)
  await refused(fresh({ timeoutMs: 365 * 24 * 3600_000 }), 400, /Timeout cannot be greater than \d+ hours?/)
})

test('setTimeout: extends and shortens, both forms', async () => {
  const sandbox = await fresh({ timeoutMs: 60_000 })
  await sandbox.setTimeout(600_000)
  near((await sandbox.getInfo()).endAt, Date.now() + 600_000, 3000, 'extended')
  await sandbox.setTimeout(30_000)
  near((await sandbox.getInfo()).endAt, Date.now() + 30_000, 3000, 'shortened')
  await Sandbox.setTimeout(sandbox.sandboxId, 120_000)
  near((await sandbox.getInfo()).endAt, Date.now() + 120_000, 3000, 'extended again')
})

test('setTimeout: 0 ends it now', async () => {
  const sandbox = await fresh()
  await sandbox.setTimeout(0)
  await eventually('it is gone', async () => !(await sandbox.isRunning()))
  await rejects(sandbox.getInfo(), SandboxNotFoundError)
})

test('a sandbox ends when its time is over', async () => {
  const sandbox = await fresh({ timeoutMs: 1000 })
  assert.equal(await sh(sandbox, 'echo here'), 'here')
  await eventually('it is gone', async () => !(await sandbox.isRunning()))
  await rejects(sandbox.getInfo(), SandboxNotFoundError)
  assert.equal(await sandbox.kill(), false)
})

test('setTimeout: an unknown sandbox', async () => {
  await rejects(Sandbox.setTimeout(NO_SUCH, 1000), SandboxNotFoundError)
})

test('connect: only ever extends', async () => {
  const sandbox = await fresh({ timeoutMs: 600_000 })
  const end = +(await sandbox.getInfo()).endAt
  const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 5000 })
  near((await again.getInfo()).endAt, end, 2000, 'not shortened')
  same(await sandbox.connect({ timeoutMs: 1_200_000 }), sandbox, 'the instance form gives itself')
  near((await sandbox.getInfo()).endAt, Date.now() + 1_200_000, 3000, 'extended')
})

test('connect: the same sandbox through another handle', async () => {
  const sandbox = await fresh()
  await sandbox.files.write('/tmp/note', 'from the first')
  const again = await Sandbox.connect(sandbox.sandboxId)
  assert.equal(again.sandboxId, sandbox.sandboxId)
  assert.equal(await again.files.read('/tmp/note'), 'from the first')
  await again.files.write('/tmp/note', 'from the second')
  assert.equal(await sh(sandbox, 'cat /tmp/note'), 'from the second')
})

test('connect: unknown, and gone', async () => {
  await rejects(Sandbox.connect(NO_SUCH), SandboxNotFoundError)
  const sandbox = await fresh()
  await sandbox.kill()
  await rejects(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError)
})

test('an id with the suffix of old clients still names the sandbox', async () => {
  const sandbox = await fresh()
  const info = await Sandbox.getInfo(`${sandbox.sandboxId}-6532622b`)
  assert.equal(info.sandboxId, sandbox.sandboxId)
})

test('kill: true the first time, false the second, both forms', async () => {
  const sandbox = await fresh()
  assert.equal(await sandbox.kill(), true)
  assert.equal(await sandbox.kill(), false)
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
  const other = await fresh()
  assert.equal(await Sandbox.kill(other.sandboxId), true)
  assert.equal(await Sandbox.kill(NO_SUCH), false)
})

test('after kill: not running, not described, nothing can be done with it', async () => {
  const sandbox = await fresh()
  await sandbox.kill()
  assert.equal(await sandbox.isRunning(), false)
  await rejects(sandbox.getInfo(), SandboxNotFoundError)
  await rejects(sandbox.commands.run('true'), SandboxNotFoundError)
  await rejects(sandbox.commands.list(), TimeoutError)
  await rejects(sandbox.files.read('/etc/hostname'), TimeoutError)
  await rejects(sandbox.files.list('/'), TimeoutError)
  await rejects(sandbox.files.watchDir('/', () => {}), SandboxNotFoundError)
  await rejects(sandbox.getMetrics(), SandboxNotFoundError)
  await rejects(sandbox.setTimeout(1000), SandboxNotFoundError)
})

test('kill while a command runs: the command ends with a TimeoutError', async () => {
  const sandbox = await fresh()
  const handle = await sandbox.commands.run('sleep 60', { background: true })
  assert.equal(await sandbox.kill(), true)
  await rejects(handle.wait(), TimeoutError)
})

test('the end of its time while a command runs: a TimeoutError too', async () => {
  const sandbox = await fresh()
  const running = sandbox.commands.run('echo on; sleep 60', { onStdout: () => sandbox.setTimeout(0) })
  await rejects(running, TimeoutError)
})

test('envs: global ones are in every command, a command can change them for itself', async () => {
  const envs = { PLAIN: 'one', ODD: 'a b "c" $d \\ ü', EMPTY: '' }
  const sandbox = await fresh({ envs })
  same(await sh(sandbox, 'printf %s "$PLAIN|$ODD|${EMPTY-unset}"'), 'one|a b "c" $d \\ ü|', 'environment')
  assert.equal(await sh(sandbox, 'echo $PLAIN', { envs: { PLAIN: 'two' } }), 'two')
  assert.equal(await sh(sandbox, 'echo $PLAIN', { user: 'root' }), 'one')
  assert.equal(await sh(sandbox, 'echo $PLAIN'), 'one')
})

test('envs: the sandbox knows that it is one, and which', async () => {
  const sandbox = await fresh()
  const { templateId } = await sandbox.getInfo()
  assert.equal(await sh(sandbox, 'echo $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID'), `true ${sandbox.sandboxId} ${templateId}`)
  const files = 'for f in E2B_SANDBOX E2B_SANDBOX_ID E2B_TEMPLATE_ID; do cat /run/e2b/.$f; echo; done | xargs'
  assert.equal(await sh(sandbox, files), `true ${sandbox.sandboxId} ${templateId}`)
})

test('the client class binds its options', async () => {
  const client = new E2B({ apiKey: OTHER_KEY })
  const sandbox = mine(await client.Sandbox.create({ timeoutMs: 60_000 }))
  assert.equal(await sh(sandbox, 'echo bound'), 'bound')
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false, 'the key of the environment is another tenant')
  assert.equal(await client.Sandbox.kill(sandbox.sandboxId), true)
})

test('another tenant: a foreign sandbox does not exist', async () => {
  const sandbox = await common()
  const as = { apiKey: OTHER_KEY }
  await rejects(Sandbox.getInfo(sandbox.sandboxId, as), SandboxNotFoundError)
  await rejects(Sandbox.connect(sandbox.sandboxId, as), SandboxNotFoundError)
  await rejects(Sandbox.pause(sandbox.sandboxId, as), SandboxNotFoundError)
  await rejects(Sandbox.setTimeout(sandbox.sandboxId, 0, as), SandboxNotFoundError)
  await rejects(Sandbox.fork(sandbox.sandboxId, as), SandboxNotFoundError)
  assert.equal(await Sandbox.kill(sandbox.sandboxId, as), false)
  assert.equal(await sandbox.isRunning(), true)
})

test('a missing sandbox is told by one message', async () => {
  const { status, json } = await api('GET', `/sandboxes/${NO_SUCH}`)
  assert.equal(status, 404)
  assert.deepEqual(json, { code: 404, message: `Sandbox "${NO_SUCH}" doesn't exist or you don't have access to it` })
})

test('twenty at once, each runs its command', async () => {
  const said = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const sandbox = await fresh({ metadata: { i: String(i) } })
      return sh(sandbox, `echo ${i} $E2B_SANDBOX_ID`).then((out) => [out, `${i} ${sandbox.sandboxId}`])
    }),
  )
  for (const [got, wanted] of said) same(got, wanted)
})

test('sandboxes do not see each other', async () => {
  const [a, b] = await Promise.all([fresh(), fresh()])
  const secret = unique()
  await a.files.write(`/tmp/${secret}`, secret)
  const handle = await a.commands.run('sleep 1000', { background: true })
  assert.equal(await b.files.exists(`/tmp/${secret}`), false)
  assert.equal((await b.commands.list()).length, 0)
  assert.equal(await b.commands.kill(handle.pid), false)
  const bootId = (sandbox) => sh(sandbox, 'cat /proc/sys/kernel/random/boot_id')
  assert.notEqual(await bootId(a), await bootId(b))
})

test('lifecycle options that contradict each other are refused', async () => {
  const make = (lifecycle) => fresh({ lifecycle })
  await rejects(make({ onTimeout: 'kill', autoResume: true }), InvalidArgumentError)
  await rejects(make({ onTimeout: { action: 'kill', keepMemory: true } }), InvalidArgumentError)
  await rejects(make({ onTimeout: { action: 'pause', keepMemory: false }, autoResume: true }), InvalidArgumentError)
  await rejects(make({ onTimeout: 'explode' }), InvalidArgumentError)
})

test('a key that was never given out', async () => {
  await rejects(fresh({ apiKey: 'e2b_' + '0'.repeat(40) }), AuthenticationError, /Unauthorized/)
  await rejects(fresh({ apiKey: KEY.slice(0, -1) }), AuthenticationError)
  await rejects(fresh({ apiKey: 'nonsense' }), AuthenticationError)
})

await run()
