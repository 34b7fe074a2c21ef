// Running programs: output, status, input, signals, users, surroundings, limits.
import { assert, common, e2b, eventually, fresh, rejects, run, same, sh, sha256, test, unique } from './lib.mjs'

const { AuthenticationError, CommandExitError, InvalidArgumentError, NotFoundError, SandboxError, TimeoutError } = e2b

// A process that nobody waits for must not end the test program when it ends.
async function background(sandbox, command, opts) {
  const handle = await sandbox.commands.run(command, { background: true, timeoutMs: 0, ...opts })
  handle.wait().catch(() => {})
  return handle
}

const pids = async (sandbox) => (await sandbox.commands.list()).map((p) => p.pid)

test('run: output, error output and status 0', async () => {
  const sandbox = await common()
  const result = await sandbox.commands.run('echo out; echo err >&2')
  assert.deepEqual({ ...result }, { exitCode: 0, error: undefined, stdout: 'out\n', stderr: 'err\n' })
})

test('run: another status is a CommandExitError that carries everything', async () => {
  const sandbox = await common()
  const err = await rejects(sandbox.commands.run('echo out; echo err >&2; exit 3'), CommandExitError)
  assert.deepEqual([err.exitCode, err.stdout, err.stderr, err.error], [3, 'out\n', 'err\n', 'exit status 3'])
})

test('run: a program that is not there is 127', async () => {
  const sandbox = await common()
  const err = await rejects(sandbox.commands.run('no-such-program-here'), CommandExitError)
  assert.equal(err.exitCode, 127)
  assert.match(err.stderr, /command not found/)
})

test('run: the shell is a login bash', async () => {
  const sandbox = await common()
  same(await sh(sandbox, 'shopt -q login_shell && echo login $BASH'), 'login /bin/bash')
})

test('run: killed by a signal', async () => {
  const sandbox = await common()
  const err = await rejects(sandbox.commands.run('kill -9 $$'), CommandExitError)
  assert.deepEqual([err.exitCode, err.error], [-1, 'signal: killed'])
  const term = await rejects(sandbox.commands.run('kill -TERM $$'), CommandExitError)
  assert.deepEqual([term.exitCode, term.error], [-1, 'signal: terminated'])
})

test('callbacks get what is written, when it is written', async () => {
  const sandbox = await common()
  const seen = []
  let sent = false
  const handle = await sandbox.commands.run('echo first; read x; echo "second $x"; echo third >&2', {
    background: true,
    stdin: true,
    onStdout: async (data) => {
      seen.push(['out', data])
      if (!sent) {
        sent = true
        await handle.sendStdin('go\n')
      }
    },
    onStderr: (data) => seen.push(['err', data]),
  })
  const result = await handle.wait()
  const joined = (kind) => seen.filter(([k]) => k === kind).map(([, d]) => d).join('')
  assert.deepEqual(seen[0], ['out', 'first\n'])
  assert.equal(joined('out'), 'first\nsecond go\n')
  assert.equal(joined('err'), 'third\n')
  assert.equal(result.stdout, joined('out'))
})

test('background: a handle with a pid, and wait', async () => {
  const sandbox = await common()
  const handle = await sandbox.commands.run('sleep 0.3; echo done', { background: true })
  assert.ok(Number.isInteger(handle.pid) && handle.pid > 1, `pid ${handle.pid}`)
  assert.equal(handle.exitCode, undefined)
  const result = await handle.wait()
  assert.deepEqual([result.exitCode, result.stdout, handle.exitCode], [0, 'done\n', 0])
})

test('kill: by the handle and by pid, and once only', async () => {
  const sandbox = await common()
  for (const kill of [(h) => h.kill(), (h) => sandbox.commands.kill(h.pid)]) {
    const handle = await background(sandbox, 'sleep 1000')
    assert.equal(await kill(handle), true)
    const err = await rejects(handle.wait(), CommandExitError)
    assert.deepEqual([err.exitCode, err.error], [-1, 'signal: killed'])
    assert.equal(await kill(handle), false)
  }
  assert.equal(await sandbox.commands.kill(4_000_000), false)
})

test('list: what runs, as it was asked for', async () => {
  const sandbox = await fresh()
  assert.deepEqual(await sandbox.commands.list(), [])
  const envs = { A: '1', 'B C': 'ü' }
  const handle = await background(sandbox, 'sleep 1000', { cwd: '/tmp', envs })
  const plain = await background(sandbox, 'sleep 1001')
  const listed = (await sandbox.commands.list()).sort((a, b) => a.pid - b.pid)
  assert.deepEqual(listed, [
    { pid: handle.pid, cmd: '/bin/bash', args: ['-l', '-c', 'sleep 1000'], envs, cwd: '/tmp' },
    { pid: plain.pid, cmd: '/bin/bash', args: ['-l', '-c', 'sleep 1001'], envs: {} },
  ])
  await handle.kill()
  await eventually('it is not listed any more', async () => !(await pids(sandbox)).includes(handle.pid))
})

test('disconnect leaves it running; connect gets the rest', async () => {
  const sandbox = await common()
  const handle = await background(sandbox, 'echo early; while read x; do echo "got $x"; done; exit 4', { stdin: true })
  await eventually('the first line', () => handle.stdout === 'early\n')
  await handle.disconnect()
  assert.ok((await pids(sandbox)).includes(handle.pid))
  let told = ''
  const again = await sandbox.commands.connect(handle.pid, { onStdout: (d) => { told += d } })
  assert.equal(again.pid, handle.pid)
  await again.sendStdin('one\n')
  await eventually('the answer', () => told === 'got one\n')
  await again.closeStdin()
  const err = await rejects(again.wait(), CommandExitError)
  assert.deepEqual([err.exitCode, err.stdout], [4, 'got one\n'])
})

test('two may be connected at once', async () => {
  const sandbox = await common()
  const first = await background(sandbox, 'cat', { stdin: true })
  const second = await sandbox.commands.connect(first.pid)
  await second.sendStdin('both\n')
  await second.closeStdin()
  assert.equal((await first.wait()).stdout, 'both\n')
  assert.equal((await second.wait()).stdout, 'both\n')
})

test('connect to one that has just ended: its status is still known', async () => {
  const sandbox = await common()
  const handle = await background(sandbox, 'exit 6')
  await rejects(handle.wait(), CommandExitError)
  const again = await sandbox.commands.connect(handle.pid)
  assert.equal((await rejects(again.wait(), CommandExitError)).exitCode, 6)
})

test('connect to nothing', async () => {
  const sandbox = await common()
  await rejects(sandbox.commands.connect(4_000_000), NotFoundError, /process with pid 4000000 not found/)
})

test('stdin: text, bytes, and its end', async () => {
  const sandbox = await common()
  const text = await background(sandbox, 'cat', { stdin: true })
  await text.sendStdin('héllo ')
  await sandbox.commands.sendStdin(text.pid, 'wörld\n')
  await sandbox.commands.closeStdin(text.pid)
  assert.equal((await text.wait()).stdout, 'héllo wörld\n')
  const bytes = await background(sandbox, 'od -An -v -tx1 | tr -d " \\n"', { stdin: true })
  await bytes.sendStdin(Uint8Array.from([0, 1, 255, 10, 13, 0]))
  await bytes.closeStdin()
  assert.equal((await bytes.wait()).stdout, '0001ff0a0d00')
})

test('stdin: a megabyte, in order', async () => {
  const sandbox = await common()
  const handle = await background(sandbox, 'sha256sum', { stdin: true })
  const part = Buffer.from(Array.from({ length: 65536 }, (_, i) => (i * 7) & 255))
  for (let i = 0; i < 16; i++) await handle.sendStdin(new Uint8Array(part))
  await handle.closeStdin()
  same((await handle.wait()).stdout.split(' ')[0], sha256(Buffer.concat(Array(16).fill(part))))
})

test('stdin: none unless it is asked for', async () => {
  const sandbox = await common()
  same(await sh(sandbox, 'cat; readlink /proc/self/fd/0'), '/dev/null')
  const handle = await background(sandbox, 'sleep 1000')
  await rejects(handle.sendStdin('x'), SandboxError)
  await handle.kill()
})

test('stdin: of nothing, and after its end', async () => {
  const sandbox = await common()
  await rejects(sandbox.commands.sendStdin(4_000_000, 'x'), NotFoundError)
  await rejects(sandbox.commands.closeStdin(4_000_000), NotFoundError)
  const handle = await background(sandbox, 'cat; sleep 1000', { stdin: true })
  await handle.closeStdin()
  await rejects(handle.sendStdin('late'), SandboxError)
  await handle.kill()
})

test('timeout: a TimeoutError, and everything it started is gone', async () => {
  const sandbox = await fresh()
  const mark = '7' + String(Date.now()).slice(-8)
  await rejects(sandbox.commands.run(`sleep ${mark} & sleep ${mark}`, { timeoutMs: 800 }), TimeoutError)
  const left = `for f in /proc/[0-9]*/cmdline; do tr "\\0" " " < $f; echo; done 2>/dev/null | grep -c "^sleep ${mark}" || true`
  await eventually('no process is left', async () => (await sh(sandbox, left)) === '0')
  assert.deepEqual(await sandbox.commands.list(), [])
})

test('timeout: what was written before it came through', async () => {
  const sandbox = await common()
  let told = ''
  await rejects(sandbox.commands.run('echo before; sleep 60', { timeoutMs: 800, onStdout: (d) => { told += d } }), TimeoutError)
  assert.equal(told, 'before\n')
})

test('timeout: 0 is none', async () => {
  const sandbox = await common()
  assert.equal(await sh(sandbox, 'sleep 0.2; echo fine', { timeoutMs: 0 }), 'fine')
})

test('cwd: the home by default, another by name, an error if it is not there', async () => {
  const sandbox = await common()
  assert.equal(await sh(sandbox, 'pwd'), '/home/user')
  assert.equal(await sh(sandbox, 'pwd', { cwd: '/var/tmp' }), '/var/tmp')
  assert.equal(await sh(sandbox, 'pwd', { user: 'root' }), '/root')
  assert.equal(await sh(sandbox, 'mkdir -p sub && cd sub && pwd'), '/home/user/sub')
  assert.equal(await sh(sandbox, 'pwd', { cwd: 'sub' }), '/home/user/sub')
  await rejects(sandbox.commands.run('pwd', { cwd: '/no/such' }), InvalidArgumentError, /cwd '\/no\/such' does not exist/)
})

test('envs: the usual ones, and those of the call', async () => {
  const sandbox = await common()
  assert.equal(await sh(sandbox, 'echo $HOME $USER $LOGNAME'), '/home/user user user')
  assert.equal(await sh(sandbox, 'echo $HOME $USER $LOGNAME', { user: 'root' }), '/root root root')
  assert.match(await sh(sandbox, 'echo $PATH'), /(^|:)\/usr\/bin(:|$)/)
  const value = 'a=b c\n"d" $e \\ ü 💥'
  same(await sh(sandbox, 'printf %s "$ODD"', { envs: { ODD: value } }), value)
  assert.equal(await sh(sandbox, 'echo "${ODD-unset}"'), 'unset')
})

test('user: root, user, sudo, and nobody who exists', async () => {
  const sandbox = await common()
  assert.equal(await sh(sandbox, 'id -un; id -u'), 'user\n1000')
  assert.equal(await sh(sandbox, 'id -un; id -u', { user: 'root' }), 'root\n0')
  assert.equal(await sh(sandbox, 'id -un', { user: 'user' }), 'user')
  assert.equal(await sh(sandbox, 'sudo id -un'), 'root')
  await rejects(sandbox.commands.run('true', { user: 'nobody-here' }), AuthenticationError, /invalid username: 'nobody-here'/)
})

test('users that are made inside: commands, files, su and sudo as they', async () => {
  const sandbox = await fresh()
  await sh(sandbox, 'useradd -m -U -s /bin/sh alice; groupadd crew; usermod -aG crew alice', { user: 'root' })
  assert.equal(await sh(sandbox, 'id -un; pwd; echo $HOME $USER', { user: 'alice' }), 'alice\n/home/alice\n/home/alice alice')
  assert.equal(await sh(sandbox, 'sudo -u alice id -un; sudo su - alice -c pwd; sudo -iu alice pwd'), 'alice\n/home/alice\n/home/alice')
  assert.equal(await sh(sandbox, 'sudo true 2>&1 || echo refused', { user: 'alice' }), 'sudo: user id 1001 may not use sudo\nrefused')
  const { path } = await sandbox.files.write('notes/today', 'hers', { user: 'alice' })
  assert.equal(path, '/home/alice/notes/today')
  assert.equal(await sandbox.files.read('~/notes/today', { user: 'alice' }), 'hers')
  const info = await sandbox.files.getInfo('notes/today', { user: 'alice' })
  assert.deepEqual([info.owner, info.group, info.path], ['alice', 'alice', path])
  assert.deepEqual((await sandbox.files.list('', { user: 'alice' })).map((f) => f.name), ['notes'])
  await sandbox.files.write('/home/user/hers', 'x', { user: 'alice' })
  assert.equal((await sandbox.files.getInfo('/home/user/hers')).owner, 'alice')
  assert.equal(await sh(sandbox, 'touch /home/user/x 2>/dev/null || echo refused', { user: 'alice' }), 'refused')
  await rejects(sandbox.commands.run('true', { user: 'nobody' }), e2b.InvalidArgumentError, /the home of user 'nobody' does not exist: give a cwd/)
  assert.equal(await sh(sandbox, 'id -u', { user: 'nobody', cwd: '/' }), '65534')
  await sh(sandbox, 'userdel -r alice', { user: 'root' })
  await rejects(sandbox.commands.run('true', { user: 'alice' }), AuthenticationError, /invalid username: 'alice'/)
})

test('large output arrives whole, on both streams at once', async () => {
  const sandbox = await common()
  const program = 'import sys\nfor i in range(60000):\n print("out", i, "x" * 60)\n print("err", i, "y" * 60, file=sys.stderr)\n'
  await sandbox.files.write('/tmp/loud.py', program)
  const { stdout, stderr } = await sandbox.commands.run('python3 /tmp/loud.py')
  const lines = (word, c) => Array.from({ length: 60000 }, (_, i) => `${word} ${i} ${c.repeat(60)}\n`).join('')
  same(stdout, lines('out', 'x'), 'stdout')
  same(stderr, lines('err', 'y'), 'stderr')
})

test('UTF-8 is not broken where chunks end', async () => {
  const sandbox = await common()
  const program = [
    'import sys, time',
    'sys.stdout.buffer.write(b"x" + "😀€ü".encode() * 30000)',
    'for b in "😀€ü\\n".encode(): sys.stderr.buffer.write(bytes([b])); sys.stderr.buffer.flush(); time.sleep(0.01)',
  ].join('\n')
  await sandbox.files.write('/tmp/utf8.py', program)
  const { stdout, stderr } = await sandbox.commands.run('python3 /tmp/utf8.py')
  same(stdout, 'x' + '😀€ü'.repeat(30000), 'stdout')
  same(stderr, '😀€ü\n', 'stderr')
})

test('a slow reader loses nothing', async () => {
  const sandbox = await common()
  let bytes = 0
  let first = true
  await sandbox.commands.run('head -c 8000000 /dev/zero | tr "\\0" z', {
    onStdout: async (data) => {
      bytes += data.length
      if (first) await new Promise((done) => setTimeout(done, 700))
      first = false
    },
  })
  assert.equal(bytes, 8_000_000)
})

test('thirty commands at once', async () => {
  const sandbox = await common()
  const said = await Promise.all(Array.from({ length: 30 }, (_, i) => sh(sandbox, `sleep 0.2; echo ${i}`)))
  assert.deepEqual(said, Array.from({ length: 30 }, (_, i) => String(i)))
})

test('a program that leaves a child with its output open does not hold the command', async () => {
  const sandbox = await common()
  const mark = unique()
  const { stdout } = await sandbox.commands.run(`echo ${mark}; (sleep 30 > /dev/null 2>&1 &)`, { timeoutMs: 10_000 })
  assert.equal(stdout, `${mark}\n`)
})

test('a long command line, and one that is too long', async () => {
  const sandbox = await common()
  const long = 'a'.repeat(100_000)
  assert.equal(await sh(sandbox, `echo ${long} | wc -c`), '100001')
  const tooLong = 'a'.repeat(3_000_000)
  await assert.rejects(sandbox.commands.run(`echo ${tooLong}`), Error)
  assert.equal(await sh(sandbox, 'echo fine'), 'fine')
})

test('a NUL in a command is refused', async () => {
  const sandbox = await common()
  await rejects(sandbox.commands.run('echo a\0b'), InvalidArgumentError)
})

await run()
