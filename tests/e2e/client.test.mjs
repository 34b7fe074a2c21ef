// Our own verbs for a server: sandglass ps, create, exec, cp, logs, kill, pause, resume, fork, top. They are
// checked against what E2B's SDK sees of the same server.
import { execFile, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { API, assert, eventually, fresh, KEY, mine, OTHER_KEY, run, same, Sandbox, sh, sha256, test, TOP, unique } from './lib.mjs'
import { fresh as interpreter, value } from './code.mjs'
import { home, surroundings, Terminal } from './terminal.mjs'

const SG = process.env.SANDGLASS ?? path.join(TOP, 'build/bin/sandglass')

function sandglass(args, { env = {}, input, seconds = 30 } = {}) {
  return new Promise((resolve) => {
    const options = { env: { ...surroundings, ...env }, timeout: seconds * 1000, maxBuffer: 1 << 28, encoding: 'buffer' }
    const child = execFile(SG, args, options, (err, stdout, stderr) =>
      resolve({ status: err ? (err.code ?? `signal ${err.signal}`) : 0, data: stdout, stdout: String(stdout), stderr: String(stderr) }),
    )
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

async function works(args, opts) {
  const { status, data, stdout, stderr } = await sandglass(args, opts)
  same(status, 0, `sandglass ${args.join(' ')}: ${stderr}${stdout}`)
  same(stderr, '', 'nothing on standard error')
  return opts?.bytes ? data : stdout
}

async function fails(status, message, args, opts) {
  const result = await sandglass(args, opts)
  same(result.status, status, `sandglass ${args.join(' ')}: ${result.stderr}${result.stdout}`)
  assert.match(result.stderr, message)
  assert.match(result.stderr, /^sandglass: [^\n]*\n$/, 'one line')
}

async function inTerminal(body, size) {
  const terminal = new Terminal(size)
  try {
    await body(terminal)
  } finally {
    terminal.end()
  }
}

const scratch = (name) => path.join(home, `${unique()}-${name}`)

test('create: prints the id, and makes what was asked for', async () => {
  const args = ['create', 'base', '--timeout', '5m', '--env', 'COLOUR=blue', '--metadata', 'a b=c&d', '--auto-pause']
  const id = (await works(args)).trim()
  assert.match(id, /^[a-z0-9]{20}$/)
  const sandbox = mine(await Sandbox.connect(id, { timeoutMs: 1000 }))
  const info = await sandbox.getInfo()
  assert.deepEqual(info.metadata, { 'a b': 'c&d' })
  assert.equal(info.lifecycle.onTimeout, 'pause')
  assert.ok(Math.abs(info.endAt - info.startedAt - 300_000) < 3000, `${info.endAt - info.startedAt} ms`)
  assert.equal(await sh(sandbox, 'echo $COLOUR'), 'blue')
})

test('create --json: the server’s object', async () => {
  const made = JSON.parse(await works(['create', '--json']))
  mine(await Sandbox.connect(made.sandboxID))
  assert.equal((await Sandbox.getInfo(made.sandboxID)).name, 'base')
})

test('ps: a table, ids only, JSON, by state and metadata', async () => {
  const metadata = { run: unique() }
  const sandbox = await fresh({ metadata })
  const asleep = await fresh({ metadata })
  await asleep.pause()
  const by = ['--metadata', `run=${metadata.run}`]
  const table = await works(['ps', ...by])
  const [head, ...rows] = table.trimEnd().split('\n')
  assert.match(head, /^ID +TEMPLATE +STATE +STARTED +ENDS +METADATA *$/)
  assert.equal(rows.length, 2)
  assert.ok(rows.some((r) => r.includes(sandbox.sandboxId) && / running /.test(r) && r.includes(`run=${metadata.run}`)), table)
  assert.ok(rows.some((r) => r.includes(asleep.sandboxId) && / paused /.test(r)), table)
  assert.equal(await works(['ps', '-q', ...by, '--state', 'paused']), `${asleep.sandboxId}\n`)
  const objects = JSON.parse(await works(['ps', '--json', ...by]))
  assert.deepEqual(objects.map((o) => o.sandboxID).sort(), [sandbox.sandboxId, asleep.sandboxId].sort())
  assert.deepEqual(JSON.parse(await works(['ps', '--json', '--metadata', `run=${unique()}`])), [])
})

test('exec: output apart, status passed on', async () => {
  const sandbox = await fresh()
  const id = sandbox.sandboxId
  const both = await sandglass(['exec', id, 'sh', '-c', 'echo out; echo err >&2; exit 7'])
  assert.deepEqual([both.status, both.stdout, both.stderr], [7, 'out\n', 'err\n'])
  assert.equal(await works(['exec', id, 'printf', '%s|', 'a b', '$HOME', '*']), 'a b|$HOME|*|')
  assert.equal(await works(['exec', id, 'echo $((6 * 7)) | tr 4 5']), '52\n')
  assert.equal((await sandglass(['exec', id, 'sh', '-c', 'kill -9 $$'])).status, 137)
  assert.equal(await works(['exec', '--user', 'root', '--cwd', '/tmp', '--env', 'A=b', id, 'sh', '-c', 'echo $(id -un) $PWD $A']), 'root /tmp b\n')
})

test('exec: a program that is not there, a user that is not there', async () => {
  const sandbox = await fresh()
  const { status, stderr } = await sandglass(['exec', sandbox.sandboxId, 'no-such-program'])
  assert.notEqual(status, 0)
  assert.match(stderr, /^sandglass: .*no-such-program/)
  await fails(1, /nobody-here/, ['exec', '--user', 'nobody-here', sandbox.sandboxId, 'true'])
})

test('exec -i: input goes in, to its end', async () => {
  const sandbox = await fresh()
  const data = Buffer.alloc(3_000_000, 'abcdefg\0')
  const out = await works(['exec', '-i', sandbox.sandboxId, 'sha256sum'], { input: data })
  same(out.split(' ')[0], sha256(data))
  same(await works(['exec', sandbox.sandboxId, 'cat'], { input: 'not wanted' }), '')
})

test('exec: large output, whole', async () => {
  const sandbox = await fresh()
  const out = await works(['exec', sandbox.sandboxId, 'sh', '-c', 'head -c 20000000 /dev/zero | tr "\\0" z'], { bytes: true })
  same(out.length, 20_000_000)
})

test('exec --timeout: 124, and the program is gone', async () => {
  const sandbox = await fresh()
  const { status } = await sandglass(['exec', '--timeout', '1s', sandbox.sandboxId, 'sleep', '1000'])
  assert.equal(status, 124)
  await eventually('nothing runs', async () => (await sandbox.commands.list()).length === 0)
})

test('exec --detach: prints the pid and leaves it', async () => {
  const sandbox = await fresh()
  const pid = Number(await works(['exec', '--detach', sandbox.sandboxId, 'sleep', '1000']))
  assert.deepEqual((await sandbox.commands.list()).map((p) => p.pid), [pid])
})

test('exec: ^C ends the program inside', async () => {
  const sandbox = await fresh()
  const child = spawn(SG, ['exec', sandbox.sandboxId, 'sleep', '1000'], { env: surroundings })
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)))
  await eventually('it runs', async () => (await sandbox.commands.list()).length === 1)
  child.kill('SIGINT')
  assert.equal(await ended, 143)
  await eventually('nothing runs', async () => (await sandbox.commands.list()).length === 0)
})

test('exec -it: a shell in the terminal', async () => {
  const sandbox = await fresh()
  await inTerminal(async (t) => {
    t.type(`stty -g > ${home}/before; ${SG} exec -it ${sandbox.sandboxId} bash; echo "left with $?"; stty -g > ${home}/after`)
    await t.shows(/user@.*\$ *$/m)
    t.type('echo "it is $((6 * 7)) for $(id -un)"; stty size; tty')
    await t.shows(/^it is 42 for user\n40 120\n\/dev\/pts\/\d+$/m)
    t.resize(90, 30)
    await eventually('the new size', () => {
      t.type('stty size')
      return /^30 90$/m.test(t.screen())
    })
    t.type('sleep 1000')
    await eventually('it sleeps', async () => /sleep/.test(await sh(sandbox, 'cat /proc/[0-9]*/comm')))
    t.press('C-c')
    t.type('echo "status $?"')
    await t.shows(/^status 130$/m)
    t.type('exit 5')
    await t.shows(/^left with 5$/m)
    await t.shows(/^ready> *$/m)
    await eventually('the settings of the terminal', () => fs.existsSync(`${home}/after`))
    same(fs.readFileSync(`${home}/after`, 'utf8'), fs.readFileSync(`${home}/before`, 'utf8'), 'the terminal is itself again')
  }, { cols: 120, rows: 40 })
})

test('exec -it: a shell ends with its input', async () => {
  const sandbox = await fresh()
  const { status, stdout } = await sandglass(['exec', '-it', sandbox.sandboxId, 'bash'])
  same(status, 0, stdout)
  const typed = await sandglass(['exec', '-it', sandbox.sandboxId, 'bash'], { input: 'echo $((6 * 7))\nexit 3\n' })
  same(typed.status, 3)
  assert.match(typed.stdout, /^42\r$/m)
})

test('exec -it: a shell that ignores SIGTERM is ended all the same', async () => {
  const sandbox = await fresh()
  const child = spawn(SG, ['exec', '-it', sandbox.sandboxId, 'bash'], { env: surroundings })
  const ended = new Promise((resolve) => child.on('exit', resolve))
  await new Promise((resolve) => child.stdout.once('data', resolve))
  child.kill('SIGTERM')
  same(await ended, 128 + 9)
  await eventually('nothing runs', async () => (await sandbox.commands.list()).length === 0)
})

test('exec -it: the terminal is itself again when the sandbox ends', async () => {
  const sandbox = await fresh()
  await inTerminal(async (t) => {
    t.type(`${SG} exec -it ${sandbox.sandboxId} bash; echo "left with $?"`)
    await t.shows(/user@.*\$ *$/m)
    await sandbox.kill()
    await t.shows(/left with \d+/)
    const { shown } = await t.run('stty -a | tr ";" "\\n" | grep -ow "\\-\\?\\(icanon\\|echo\\)"')
    assert.match(shown, /^icanon$/m)
    assert.match(shown, /^echo$/m)
  })
})

test('cp: a file in, a file out, a pipe each way', async () => {
  const sandbox = await fresh()
  const id = sandbox.sandboxId
  const file = scratch('file ü.bin')
  const data = Buffer.alloc(5_000_000, 'sandglass\0')
  fs.writeFileSync(file, data)
  await works(['cp', file, `${id}:/home/user/in side.bin`])
  same(sha256(await sandbox.files.read('/home/user/in side.bin', { format: 'bytes' })), sha256(data))
  const back = scratch('back')
  await works(['cp', `${id}:/home/user/in side.bin`, back])
  same(sha256(fs.readFileSync(back)), sha256(data))
  await works(['cp', '-', `${id}:/home/user/piped`], { input: 'through a pipe' })
  assert.equal(await works(['cp', `${id}:/home/user/piped`, '-']), 'through a pipe')
  fs.writeFileSync(file, '')
  await works(['cp', file, `${id}:empty`])
  assert.equal(await sandbox.files.read('/home/user/empty'), '')
})

test('cp: into a directory under the name it has', async () => {
  const sandbox = await fresh()
  const file = scratch('named')
  fs.writeFileSync(file, 'x')
  await works(['cp', file, `${sandbox.sandboxId}:/tmp/`])
  assert.equal(await sandbox.files.read(`/tmp/${path.basename(file)}`), 'x')
})

test('cp: whole directories, both ways', async () => {
  const sandbox = await fresh()
  const dir = scratch('tree')
  fs.mkdirSync(`${dir}/a/b`, { recursive: true })
  fs.writeFileSync(`${dir}/top`, 'top')
  fs.writeFileSync(`${dir}/a/b/deep ü`, 'deep')
  await works(['cp', '-r', dir, `${sandbox.sandboxId}:/home/user/tree`])
  assert.equal(await sandbox.files.read('/home/user/tree/a/b/deep ü'), 'deep')
  const back = scratch('back')
  await works(['cp', `${sandbox.sandboxId}:/home/user/tree`, back])
  assert.equal(fs.readFileSync(`${back}/top`, 'utf8'), 'top')
  assert.equal(fs.readFileSync(`${back}/a/b/deep ü`, 'utf8'), 'deep')
})

test('cp: a progress bar for what takes its time, on a terminal only', async () => {
  const sandbox = await fresh()
  await inTerminal(async (t) => {
    t.type(`(head -c 3M /dev/zero; sleep 1.5; head -c 3M /dev/zero; sleep 1) | ${SG} cp - ${sandbox.sandboxId}:/tmp/slow; echo "left with $?"`)
    await t.shows(/\d+(\.\d+)? ?[KM]i?B/)
    await t.shows(/left with 0/)
  })
  assert.equal(await sh(sandbox, 'stat -c %s /tmp/slow'), String(6 * 1024 * 1024))
})

test('cp: what is not there, on either side', async () => {
  const sandbox = await fresh()
  await fails(1, /no-such/, ['cp', `${sandbox.sandboxId}:/no-such`, scratch('x')])
  const { status, stderr } = await sandglass(['cp', '/no/such/file', `${sandbox.sandboxId}:/tmp/x`])
  assert.notEqual(status, 0)
  assert.match(stderr, /^sandglass: .*\/no\/such\/file/)
})

test('logs: what was written inside, by level, as JSON, followed', async () => {
  const sandbox = await fresh()
  const word = unique()
  await sh(sandbox, `echo said-${word}`)
  await eventually('it is in the log', async () => (await works(['logs', sandbox.sandboxId])).includes(`said-${word}`))
  const lines = (await works(['logs', '--json', sandbox.sandboxId])).trim()
  assert.ok(lines.includes(`said-${word}`))
  const child = spawn(SG, ['logs', '-f', sandbox.sandboxId], { env: surroundings })
  let told = ''
  child.stdout.on('data', (d) => { told += d })
  await sh(sandbox, `echo later-${word}`)
  await eventually('it follows', () => told.includes(`later-${word}`))
  const ended = new Promise((resolve) => child.on('exit', resolve))
  await sandbox.kill()
  await Promise.race([ended, new Promise((_, no) => setTimeout(() => no(new Error('logs -f goes on after the end')), 10_000))])
})

test('pause and resume', async () => {
  const [a, b] = await Promise.all([fresh(), fresh()])
  await works(['pause', a.sandboxId, b.sandboxId])
  assert.deepEqual(await Promise.all([a, b].map(async (x) => (await x.getInfo()).state)), ['paused', 'paused'])
  await works(['resume', '--timeout', '50s', a.sandboxId, b.sandboxId])
  const info = await a.getInfo()
  assert.equal(info.state, 'running')
  assert.ok(Math.abs(info.endAt - Date.now() - 50_000) < 4000, `ends ${info.endAt}`)
})

test('fork: ids for scripts; variables and files come along, and each goes its own way', async () => {
  const sandbox = await interpreter()
  const { id: context } = await sandbox.createCodeContext()
  await value(sandbox, 'x = 41; open("kept", "w").write("of the first")', { context: { id: context } })
  const ids = (await works(['fork', '-n', '2', '--timeout', '50s', sandbox.sandboxId])).trim().split('\n')
  same(ids.length, 2)
  for (const id of ids) {
    const info = await mine(await Sandbox.connect(id, { timeoutMs: 1000 })).getInfo()
    assert.ok(Math.abs(info.endAt - info.startedAt - 50_000) < 4000, `${info.endAt - info.startedAt} ms`)
    same(await works(['repl', '--context', context, id], { input: 'x += 1; f"{x} {open(\'kept\').read()}"' }), '42 of the first\n')
  }
  same(await value(sandbox, 'x', { context: { id: context } }), '41')
  const [{ sandbox: copy, kernels }] = JSON.parse(await works(['fork', '--json', '--inherit', 'files', sandbox.sandboxId]))
  mine(await Sandbox.connect(copy.sandboxID))
  assert.ok(kernels.every((k) => k.state === 'fresh'), JSON.stringify(kernels))
})

test('fork: a table of kernels on a terminal', async () => {
  const sandbox = await interpreter()
  const js = await sandbox.createCodeContext({ language: 'javascript' })
  await value(sandbox, '1', { context: js })
  await inTerminal(async (t) => {
    const { shown, status } = await t.run(`NO_COLOR=1 ${SG} fork ${sandbox.sandboxId}`)
    same(status, 0)
    const [head, ...rows] = shown.trimEnd().split('\n')
    assert.match(head, /^SANDBOX +CONTEXT +LANGUAGE +KERNEL/)
    assert.ok(rows.some((r) => /^[a-z0-9]{20} +\S+ +python +carried/.test(r)), shown)
    assert.ok(rows.some((r) => new RegExp(`^[a-z0-9]{20} +${js.id} +javascript +fresh +\\S`).test(r)), shown)
    await Sandbox.kill(rows[0].split(' ')[0])
  })
})

test('fork: what is in the way is listed with what helps, and the sandbox goes on', async () => {
  const sandbox = await interpreter()
  await value(sandbox, 'x = 1')
  await sandbox.commands.run('exec 5> /home/user/log; exec sleep 1000', { background: true })
  const { status, stdout, stderr } = await sandglass(['fork', sandbox.sandboxId])
  same(status, 1)
  same(stdout, '')
  const [line, head, row, ...rest] = stderr.trimEnd().split('\n')
  assert.match(line, /^sandglass: \S/)
  assert.match(head, /^ *PID +COMMAND +WHAT +HOLDS$/)
  assert.match(row, /^ *\d+ +sleep.* +\S*\/home\/user\/log$/)
  assert.match(rest.join('\n'), /^What helps: \S/)
  same(await value(sandbox, 'x'), '1')
  await works(['pause', sandbox.sandboxId])
  await fails(1, /paused/, ['fork', sandbox.sandboxId])
  await fails(1, /./, ['fork', 'i' + '0'.repeat(19)])
})

test('top: one look for programs, a live table on a terminal', async () => {
  const sandbox = await fresh()
  const shown = await works(['top', '--once', sandbox.sandboxId])
  assert.ok(shown.includes(sandbox.sandboxId), shown)
  const [object] = JSON.parse(await works(['top', '--json', sandbox.sandboxId]))
  assert.ok(JSON.stringify(object).includes(sandbox.sandboxId))
  await inTerminal(async (t) => {
    t.type(`${SG} top ${sandbox.sandboxId}; echo "left with $?"`)
    await t.shows(new RegExp(`${sandbox.sandboxId}.*MiB`))
    t.press('C-c')
    await t.shows(/left with \d+/)
  })
})

test('kill: one, several, and one that is gone', async () => {
  const [a, b] = await Promise.all([fresh(), fresh()])
  await works(['kill', a.sandboxId, b.sandboxId])
  assert.deepEqual(await Promise.all([a, b].map((x) => x.isRunning())), [false, false])
  await fails(1, new RegExp(a.sandboxId), ['kill', a.sandboxId])
})

test('kill --all: asks on a terminal, and means the tenant’s own', async () => {
  const other = await fresh({ apiKey: OTHER_KEY })
  const sandbox = await fresh()
  await inTerminal(async (t) => {
    t.type(`E2B_API_KEY=${OTHER_KEY} ${SG} kill --all; echo "left with $?"`)
    await t.shows(/\?/)
    t.type('n')
    await t.shows(/left with \d+/)
    assert.equal(await other.isRunning(), true)
    t.type(`E2B_API_KEY=${OTHER_KEY} ${SG} kill --all; echo "left again with $?"`)
    await eventually('it asks again', () => (t.screen().match(/\? *(\[.*\]|\(.*\))? *$/m) ?? []).length > 0)
    t.type('y')
    await t.shows(/left again with 0/)
  })
  assert.deepEqual([await other.isRunning(), await sandbox.isRunning()], [false, true])
})

test('settings: --url, --api-key-file, a missing key, a wrong key, nobody there', async () => {
  const keyFile = scratch('key')
  fs.writeFileSync(keyFile, `${KEY}\n`, { mode: 0o600 })
  const bare = { E2B_API_KEY: '', E2B_API_URL: '', E2B_SANDBOX_URL: '' }
  await works(['ps', '--url', API, '--api-key-file', keyFile], { env: bare })
  const { status, stderr } = await sandglass(['ps', '--url', API], { env: bare })
  assert.notEqual(status, 0)
  assert.match(stderr, /sandglass key create/)
  await fails(1, /./, ['ps'], { env: { E2B_API_KEY: 'e2b_' + '0'.repeat(40) } })
  await fails(125, /./, ['ps', '--url', 'http://127.0.0.1:1'])
  await fails(1, /doesn't exist|not found/, ['exec', 'i' + '0'.repeat(19), 'true'])
  await fails(2, /--no-such/, ['ps', '--no-such'])
})

test('colours on a terminal, none with NO_COLOR, none in a pipe', async () => {
  await inTerminal(async (t) => {
    const bold = async (command) => {
      await t.run(`${command} 2>&1 | cat -v; ${command}`)
      return t.tmux('capture-pane', '-p', '-e', '-S', '-')
    }
    const none = 'i' + '0'.repeat(19)
    assert.match(await bold(`${SG} kill ${none}`), /\x1b\[[0-9;]*m[^\n]*sandglass:/)
    assert.doesNotMatch(await bold(`NO_COLOR=1 ${SG} kill ${none}`), /\x1b\[[0-9;]*m[^\n]*sandglass:/)
  })
})

await run()
