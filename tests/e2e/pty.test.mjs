// Terminals inside.
import { assert, common, e2b, eventually, rejects, run, test } from './lib.mjs'

const { AuthenticationError, CommandExitError, InvalidArgumentError, NotFoundError } = e2b
const bytes = (text) => new TextEncoder().encode(text)

// A terminal whose screen is a string; `type` sends, `shows` waits for what came since the last call.
async function terminal(sandbox, opts) {
  const t = { screen: '', read: 0 }
  const onData = (data) => {
    t.screen += Buffer.from(data).toString('latin1')
  }
  t.handle = await sandbox.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData, ...opts })
  t.handle.wait().catch(() => {})
  t.onData = onData
  t.type = (text) => sandbox.pty.sendInput(t.handle.pid, bytes(text))
  t.shows = (pattern) =>
    eventually(`the terminal shows ${pattern}`, () => {
      const found = t.screen.slice(t.read).match(pattern)
      if (found) t.read += found.index + found[0].length
      return found
    }).catch((err) => assert.fail(`${err.message}\nscreen: ${JSON.stringify(t.screen.slice(-500))}`))
  return t
}

test('a shell on a terminal of the size that was asked for', async () => {
  const t = await terminal(await common(), { cols: 101, rows: 33 })
  await t.shows(/\$ $/)
  await t.type('tty; stty size; echo $TERM $LANG $(id -un) $PWD\r')
  await t.shows(/\/dev\/pts\/\d+\r\n33 101\r\nxterm-256color C.UTF-8 user \/home\/user\r\n/)
  await t.type('exit 7\r')
  const err = await rejects(t.handle.wait(), CommandExitError)
  assert.equal(err.exitCode, 7)
})

test('user, directory and environment', async () => {
  const t = await terminal(await common(), { user: 'root', cwd: '/var/tmp', envs: { COLOUR: 'blue', TERM: 'vt100' } })
  await t.type('echo $COLOUR $TERM $(id -un) $PWD\r')
  await t.shows(/blue vt100 root \/var\/tmp\r\n/)
  await t.handle.kill()
})

test('resize', async () => {
  const sandbox = await common()
  const t = await terminal(sandbox)
  await t.type("trap 'echo changed' WINCH; stty size\r")
  await t.shows(/24 80\r\n/)
  await sandbox.pty.resize(t.handle.pid, { cols: 120, rows: 50 })
  await t.type('stty size\r')
  await t.shows(/50 120\r\n/)
  await t.handle.kill()
})

test('^C interrupts what runs, ^D ends the shell', async () => {
  const t = await terminal(await common())
  await t.type('sh -c \'echo rea""dy; exec sleep 1000\'\r')
  await t.shows(/ready\r\n/)
  await t.type('\x03')
  await t.shows(/\^C/)
  await t.type('echo status $?\r')
  await t.shows(/status 130\r\n/)
  await t.type('true\r\x04')
  const result = await t.handle.wait()
  assert.equal(result.exitCode, 0)
})

test('UTF-8 goes through as it is', async () => {
  const t = await terminal(await common())
  await t.type("printf 'sh\\303\\266n %s\\n' 'ü€😀'\r")
  await t.shows(new RegExp(Buffer.from('shön ü€😀\r\n').toString('latin1')))
  await t.handle.kill()
})

test('kill: once', async () => {
  const sandbox = await common()
  const t = await terminal(sandbox)
  assert.equal(await sandbox.pty.kill(t.handle.pid), true)
  const err = await rejects(t.handle.wait(), CommandExitError)
  assert.deepEqual([err.exitCode, err.error], [-1, 'signal: killed'])
  assert.equal(await sandbox.pty.kill(t.handle.pid), false)
})

test('disconnect, then connect', async () => {
  const sandbox = await common()
  const t = await terminal(sandbox)
  await t.type('X=remembered\r')
  await t.handle.disconnect()
  let screen = ''
  const again = await sandbox.pty.connect(t.handle.pid, { timeoutMs: 0, onData: (d) => { screen += Buffer.from(d) } })
  assert.equal(again.pid, t.handle.pid)
  await sandbox.pty.sendInput(again.pid, bytes('echo "it is $X"\r'))
  await eventually('the shell answers', () => screen.includes('it is remembered\r\n'))
  await sandbox.pty.sendInput(again.pid, bytes('exit 3\r'))
  assert.equal((await rejects(again.wait(), CommandExitError)).exitCode, 3)
})

test('it is listed as what it is', async () => {
  const sandbox = await common()
  const t = await terminal(sandbox)
  const found = (await sandbox.commands.list()).find((p) => p.pid === t.handle.pid)
  assert.deepEqual([found.cmd, found.args, found.envs.TERM], ['/bin/bash', ['-i', '-l'], 'xterm-256color'])
  await t.handle.kill()
})

test('much output', async () => {
  const t = await terminal(await common())
  await t.type('seq 1 100000; echo e""nd\r')
  await t.shows(/99999\r\n100000\r\nend\r\n/)
  await t.handle.kill()
})

test('what is not there, and what is no terminal', async () => {
  const sandbox = await common()
  await rejects(sandbox.pty.sendInput(4_000_000, bytes('x')), NotFoundError)
  await rejects(sandbox.pty.resize(4_000_000, { cols: 1, rows: 1 }), NotFoundError)
  await rejects(sandbox.pty.connect(4_000_000), NotFoundError)
  assert.equal(await sandbox.pty.kill(4_000_000), false)
  await rejects(sandbox.pty.create({ cols: 80, rows: 24, onData: () => {}, user: 'nobody-here' }), AuthenticationError)
  await rejects(sandbox.pty.create({ cols: 80, rows: 24, onData: () => {}, cwd: '/no/such' }), InvalidArgumentError)
  const plain = await sandbox.commands.run('sleep 1000', { background: true, stdin: true })
  plain.wait().catch(() => {})
  await assert.rejects(sandbox.pty.sendInput(plain.pid, bytes('x')), Error)
  await assert.rejects(sandbox.pty.resize(plain.pid, { cols: 10, rows: 10 }), Error)
  await plain.kill()
})

await run()
