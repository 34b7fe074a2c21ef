// One version of E2B's SDK (PROGRAM), with the calls of its time: what every program does with a sandbox.
import { assert, eventually, mine, rejects, run, same, test } from '../e2e/lib.mjs'
import { listAll, Sandbox, sdk, since } from './version.mjs'

const sandbox = await Sandbox.create({ timeoutMs: 120_000, metadata: { of: 'programs' }, envs: { COLOUR: 'blue' } })
const said = async (command, opts) => (await sandbox.commands.run(command, opts)).stdout

test('create, and it runs', async () => {
  assert.match(sandbox.sandboxId, /^[a-z0-9]{20}(-[0-9a-z]+)?$/)
  same(await sandbox.isRunning(), true)
})

test('a command in the foreground: output, status, environment, directory, user', async () => {
  const ran = await sandbox.commands.run('echo out $COLOUR $MORE; echo err >&2; pwd', { envs: { MORE: 'red' }, cwd: '/tmp' })
  assert.deepEqual([ran.exitCode, ran.stdout, ran.stderr], [0, 'out blue red\n/tmp\n', 'err\n'])
  same(await said('whoami'), 'user\n')
  same(await said('whoami', { user: 'root' }), 'root\n')
  const pieces = []
  await sandbox.commands.run('echo one; sleep 0.1; echo two', { onStdout: (text) => { pieces.push(text) } })
  same(pieces.join(''), 'one\ntwo\n')
  const failed = await rejects(sandbox.commands.run('echo why >&2; exit 3'), sdk.CommandExitError)
  assert.deepEqual([failed.exitCode, failed.stderr], [3, 'why\n'])
})

test('a command that takes longer than it may', async () => {
  await rejects(sandbox.commands.run('sleep 60', { timeoutMs: 300 }), sdk.TimeoutError)
})

test('a command in the background: listed, joined, killed', async () => {
  const handle = await sandbox.commands.run('echo begun; exec sleep 100', { background: true })
  await eventually('it has begun', () => handle.stdout === 'begun\n')
  const isListed = async () => (await sandbox.commands.list()).some((p) => p.pid === handle.pid)
  same(await isListed(), true)
  const again = await sandbox.commands.connect(handle.pid)
  same(again.pid, handle.pid)
  same(await sandbox.commands.kill(handle.pid), true)
  await rejects(handle.wait(), sdk.CommandExitError)
  same(await isListed(), false)
  same(await sandbox.commands.kill(handle.pid), false)
})

test('standard input of a command', async () => {
  const handle = await sandbox.commands.run('read -r line; echo "got $line"', { background: true, stdin: true })
  await sandbox.commands.sendStdin(handle.pid, 'hello\n')
  same((await handle.wait()).stdout, 'got hello\n')
})

test('files: written, read, listed, renamed, removed', async () => {
  const dir = '/home/user/papers'
  same(await sandbox.files.makeDir(dir), true)
  same(await sandbox.files.makeDir(dir), false)
  const bytes = new Uint8Array([0, 255, 10, 13])
  same((await sandbox.files.write(`${dir}/text`, 'täxt\n')).path, `${dir}/text`)
  await sandbox.files.write(`${dir}/new/bytes`, bytes.buffer)
  same(await sandbox.files.read(`${dir}/text`), 'täxt\n')
  assert.deepEqual(new Uint8Array(await sandbox.files.read(`${dir}/new/bytes`, { format: 'bytes' })), bytes)
  const listed = await sandbox.files.list(dir)
  assert.deepEqual(listed.map((e) => [e.name, e.type, e.path]).sort(), [['new', 'dir', `${dir}/new`], ['text', 'file', `${dir}/text`]])
  same((await sandbox.files.rename(`${dir}/text`, `${dir}/renamed`)).name, 'renamed')
  same(await sandbox.files.exists(`${dir}/text`), false)
  await sandbox.files.remove(`${dir}/renamed`)
  same(await sandbox.files.exists(`${dir}/renamed`), false)
  await rejects(sandbox.files.read(`${dir}/renamed`), since('2.28.0') ? sdk.FileNotFoundError : sdk.NotFoundError)
})

test('a directory is watched', async () => {
  await sandbox.files.makeDir('/home/user/watched')
  const seen = []
  const watch = await sandbox.files.watchDir('/home/user/watched', (event) => { seen.push(`${event.type} ${event.name}`) })
  await sandbox.files.write('/home/user/watched/note', 'x')
  await eventually('it is seen', () => seen.includes('create note') && seen.includes('write note'))
  await watch.stop()
})

test('a terminal', async () => {
  let screen = ''
  const pty = await sandbox.pty.create({ cols: 80, rows: 24, onData: (d) => { screen += Buffer.from(d) } })
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('echo he""re; exit\r'))
  await pty.wait()
  assert.match(screen, /here\r\n/)
})

test('addresses to upload and download at', async () => {
  const [up, down] = [await sandbox.uploadUrl('/home/user/up'), await sandbox.downloadUrl('/home/user/up')]
  const form = new FormData()
  form.append('file', new Blob(['by its address']), 'up')
  same((await fetch(up, { method: 'POST', body: form })).status, 200)
  same(await (await fetch(down)).text(), 'by its address')
})

test('the sandbox is found by its id, and listed', async () => {
  const again = await Sandbox.connect(sandbox.sandboxId)
  same((await again.commands.run('echo $COLOUR')).stdout, 'blue\n')
  const listed = (await listAll()).find((s) => s.sandboxId === sandbox.sandboxId)
  assert.deepEqual(listed?.metadata, { of: 'programs' })
  if (since('1.1.0')) same((await Sandbox.getInfo(sandbox.sandboxId)).metadata.of, 'programs')
})

if (process.env.E2B_DOMAIN)
  test('a server inside has an https address', async () => {
    await sandbox.commands.run('cd /home/user && exec python3 -m http.server 8000', { background: true, timeoutMs: 0 })
    await sandbox.files.write('/home/user/page', 'a page')
    await eventually('it answers', async () => (await (await fetch(`https://${sandbox.getHost(8000)}/page`)).text()) === 'a page')
  })

if (since('2.0.0'))
  test('paused, and back with what ran', async () => {
    const handle = await sandbox.commands.run('exec sleep 1000', { background: true, timeoutMs: 0 })
    handle.wait().catch(() => {})
    await (sandbox.pause ?? sandbox.betaPause).call(sandbox)
    const back = await Sandbox.connect(sandbox.sandboxId)
    assert.ok((await back.commands.list()).some((p) => p.pid === handle.pid))
  })

if (sdk.Template)
  test('a template is built, and used', async () => {
    const name = `built-${process.env.PROGRAM.replaceAll('.', '-')}`
    const { Template } = sdk
    await Template.build(Template().fromTemplate('base').runCmd('echo in the template > /home/user/built').setWorkdir('/home/user'), { alias: name })
    const made = mine(await Sandbox.create(name, { timeoutMs: 60_000 }))
    same((await made.commands.run('cat built')).stdout, 'in the template\n')
  })

test('time: it is prolonged, and ends when it is over', async () => {
  const short = mine(await Sandbox.create({ timeoutMs: 60_000 }))
  await short.setTimeout(1000)
  await eventually('it is gone', async () => !(await short.isRunning()))
})

test('killed: it is no longer listed, and a second time there is nothing to kill', async () => {
  await sandbox.kill()
  same(await sandbox.isRunning(), false)
  same((await listAll()).some((s) => s.sandboxId === sandbox.sandboxId), false)
  same(await Sandbox.kill(sandbox.sandboxId), false)
})

await run()
