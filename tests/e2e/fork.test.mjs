// Live fork through E2B's surface: what a branch has, what it has not, and what is in the way.
import { began, err, Interpreter, out } from './code.mjs'
import { checkpoint, checkpoints, connect, fork, forks, here, http, inTheWay, make, py, rewind, says, states, warm } from './fork.mjs'
import { assert, eventually, mine, OTHER_KEY, run, sh, test } from './lib.mjs'
import { start, stop } from './server.mjs'

const NO_SUCH = 'i' + '0'.repeat(19)
// Sandboxes are small, and few: what runs out is memory and places.
const MEMORY = '256M'
const PLACES = 26
const small = await start(undefined, undefined, ['--sandbox-memory', MEMORY, '--sandbox-disk', '32M', '--tenant-sandboxes', String(PLACES)])

// ---- what a branch has --------------------------------------------------------------------------

// A package that needs no network to be installed.
const WHEEL = `
import zipfile
with zipfile.ZipFile("/tmp/greet-1.0-py3-none-any.whl", "w") as z:
    z.writestr("greet.py", "def hello():\\n    return 'hello'\\n")
    z.writestr("greet-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: greet\\nVersion: 1.0\\n")
    z.writestr("greet-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("greet-1.0.dist-info/RECORD", "")
`

const LIFE = `
import collections, os, sys, greet
class Counter:
    def __init__(self):
        self.n = 0
    def up(self):
        self.n += 1
        return self.n
counter = Counter()
counter.up()
numbers = list(range(100_000))
alias = numbers
lines = open("/home/user/lines", "w+")
lines.write("one\\ntwo\\nthree\\n")
lines.flush()
lines.seek(4)
os.makedirs("/home/user/work", exist_ok=True)
os.chdir("/home/user/work")
os.environ["COLOUR"] = "blue"
generator = (n * n for n in numbers)
next(generator), next(generator)
`

const LOOK = `[counter.up(), len(numbers), alias is numbers, lines.tell(), lines.readline(), os.getcwd(), os.environ["COLOUR"], greet.hello(), next(generator), collections.Counter("aab")["a"]]`
const SEEN = [2, 100_000, true, 4, 'two\n', '/home/user/work', 'blue', 'hello', 4, 2]

test('variables, imports, generators, an open file at its offset, directory, environment, packages, files', async () => {
  const sandbox = await warm(here, { envs: { SHAPE: 'round' } })
  await says(sandbox, WHEEL)
  await sh(sandbox, 'pip install -q --user --no-index --break-system-packages --no-warn-script-location /tmp/greet-1.0-py3-none-any.whl 2>&1')
  await says(sandbox, LIFE)
  await sandbox.files.write('/home/user/note', 'of the source')
  const before = await sandbox.getInfo()
  const [copy] = await sandbox.fork({ timeoutMs: 60_000 })
  if (copy instanceof Error) throw copy
  mine(copy)
  assert.notEqual(copy.sandboxId, sandbox.sandboxId)
  assert.notEqual(copy.envdAccessToken, sandbox.envdAccessToken)
  assert.deepEqual(await py(copy, LOOK), SEEN)
  assert.equal(await copy.files.read('/home/user/note'), 'of the source')
  assert.equal(await sh(copy, 'echo $SHAPE; python3 -c "import greet; print(greet.hello())"'), 'round\nhello')
  assert.equal(await py(copy, 'os.environ["E2B_SANDBOX_ID"]'), copy.sandboxId)
  // The source has not moved: its file is where it was, its generator too.
  assert.deepEqual(await py(sandbox, LOOK), SEEN)
  assert.equal(await py(sandbox, 'os.environ["E2B_SANDBOX_ID"]'), sandbox.sandboxId)
  const after = await sandbox.getInfo()
  assert.deepEqual([after.sandboxId, +after.endAt, after.state], [before.sandboxId, +before.endAt, 'running'])
})

test('three at once: what one does is in none of the others, nor in the source', async () => {
  const sandbox = await warm()
  await says(sandbox, 'x = ["start"]\nf = open("/home/user/f", "a+")\nf.write("start\\n")\nf.flush()')
  const copies = await forks(sandbox, { count: 3 })
  assert.equal(new Set([sandbox, ...copies.map((c) => c.sandbox)].map((b) => b.sandboxId)).size, 4)
  assert.equal(new Set([sandbox, ...copies.map((c) => c.sandbox)].map((b) => b.envdAccessToken)).size, 4)
  const all = [sandbox, ...copies.map((c) => c.sandbox)]
  for (const { kernels } of copies) assert.deepEqual(kernels.map((k) => [k.language, k.state]), [['python', 'carried']])
  await Promise.all(all.map((b, i) => says(b, `x.append(${i})\nf.write("${i}\\n")\nf.flush()`)))
  for (const [i, b] of all.entries()) {
    assert.deepEqual(await py(b, 'x'), ['start', i])
    assert.equal(await b.files.read('/home/user/f'), `start\n${i}\n`)
  }
})

test('contexts come along with their ids, and go on with their count', async () => {
  const sandbox = await warm()
  const context = await sandbox.createCodeContext({ cwd: '/tmp' })
  await says(sandbox, 'where = "default"')
  await says(sandbox, 'where = "second"', { context })
  const before = (await sandbox.listCodeContexts()).map((c) => c.id).sort()
  const { sandbox: copy, kernels } = await fork(sandbox)
  assert.deepEqual((await copy.listCodeContexts()).map((c) => c.id).sort(), before)
  assert.equal(kernels.find((k) => k.contextId === context.id)?.state, 'carried', JSON.stringify(kernels))
  assert.deepEqual([await py(copy, 'where'), await py(copy, 'where', { context })], ['default', 'second'])
  assert.equal(await py(copy, '__import__("os").getcwd()', { context }), '/tmp')
  const [a, b] = [await sandbox.runCode('1', { context }), await copy.runCode('1', { context })]
  assert.equal(b.executionCount, a.executionCount + 2, 'the copy has run two more since')
})

test('what does not come along is told: sockets, pipes, timers, children', async () => {
  const sandbox = await warm()
  await says(sandbox, `
import os, signal, socket, subprocess, time
server = socket.create_server(("127.0.0.1", 0))
reader, writer = os.pipe()
gone = open("/tmp/gone", "w+"); gone.write("x"); os.unlink("/tmp/gone"); gone.close()
signal.signal(signal.SIGALRM, lambda *_: rang.append(1)); rang = []
signal.alarm(3600)
child = subprocess.Popen(["sleep", "1000"], cwd="/")
`)
  const { sandbox: copy, kernels } = await fork(sandbox)
  const dropped = kernels[0].dropped ?? []
  assert.ok(dropped.some((d) => /socket/.test(d.what)) && dropped.filter((d) => /pipe/.test(d.what)).length === 2, JSON.stringify(kernels))
  const text = await says(copy, `
def trying(what):
    try:
        what()
        return "works"
    except OSError as e:
        return type(e).__name__
print(child.poll(), signal.alarm(0), trying(server.accept) != "works")
`)
  assert.equal(text, '-9 0 True')
  // In the source all of it is still there.
  assert.equal(await says(sandbox, 'os.write(writer, b"x")\nprint(child.poll(), os.read(reader, 1), signal.alarm(0) > 3000)'), "None b'x' True")
})

test('JavaScript begins anew and says why; bash too; the source keeps both', async () => {
  const sandbox = await warm()
  await says(sandbox, 'x = 1')
  await says(sandbox, 'let y = 2', { language: 'javascript' })
  await says(sandbox, 'z=3', { language: 'bash' })
  const { sandbox: copy, kernels } = await fork(sandbox)
  assert.deepEqual(states(kernels), { python: 'carried', javascript: 'fresh', bash: 'fresh' })
  for (const k of kernels) assert.equal(typeof k.reason, k.state === 'fresh' ? 'string' : 'undefined', JSON.stringify(k))
  assert.match(kernels.find((k) => k.language === 'javascript').reason, /thread/)
  assert.equal(await py(copy, 'x'), 1)
  const first = await copy.runCode('console.log(typeof y)', { language: 'javascript' })
  assert.equal(out(first), 'undefined\n')
  assert.match(err(first), /variables of this context are gone: .*thread/, 'its first cell says so too')
  assert.equal(await says(sandbox, 'console.log(y)', { language: 'javascript' }), '2')
  assert.equal(await says(sandbox, 'echo $z', { language: 'bash' }), '3')
})

test('replay: cells run again in order, and what they say differently is told', async () => {
  const sandbox = await warm()
  await says(sandbox, 'x = "carried"')
  const js = { language: 'javascript' }
  await says(sandbox, 'let total = 40', js)
  await says(sandbox, 'total += 2; console.log("total", total)', js)
  await says(sandbox, 'const luck = Math.random(); console.log(luck)', js)
  const { sandbox: copy, kernels } = await fork(sandbox, { inherit: 'replay' })
  assert.deepEqual(states(kernels), { python: 'carried', javascript: 'replayed' })
  const { diverged } = kernels.find((k) => k.language === 'javascript')
  assert.equal(diverged?.length, 1, JSON.stringify(kernels))
  assert.match(diverged[0].expected, /^0\.\d+/)
  assert.match(diverged[0].got, /^0\.\d+/)
  assert.notEqual(diverged[0].expected, diverged[0].got)
  assert.equal(await says(copy, 'console.log(total)', js), '42')
  assert.equal(await py(copy, 'x'), 'carried')
  const { sandbox: plain, kernels: none } = await fork(sandbox, { inherit: 'files' })
  assert.ok(none.every((k) => k.state === 'fresh'), JSON.stringify(none))
  assert.equal(await says(plain, 'print("x" in globals())'), 'False')
})

test('a function __on_fork__ is called in the copy alone', async () => {
  const sandbox = await warm()
  await says(sandbox, 'calls = 0\ndef __on_fork__():\n    global calls\n    calls += 1')
  const { sandbox: copy } = await fork(sandbox)
  assert.deepEqual([await py(sandbox, 'calls'), await py(copy, 'calls')], [0, 1])
})

// ---- snapshots ----------------------------------------------------------------------------------

test('createSnapshot: warm with its variables, also when the source is gone', async () => {
  const sandbox = await warm()
  await says(sandbox, 'x = {"deep": [1, 2, 3]}\nopen("/home/user/f", "w").write("kept");')
  const made = await http().gives(201, 'POST', `/sandboxes/${sandbox.sandboxId}/snapshots`, {})
  assert.equal(made.state, 'warm')
  assert.deepEqual(states(made.kernels), { python: 'carried' })
  await says(sandbox, 'x["deep"].append("later")')
  const first = await make(here, { template: made.snapshotID })
  assert.deepEqual([await py(first, 'x["deep"]'), await first.files.read('/home/user/f')], [[1, 2, 3], 'kept'])
  await sandbox.kill()
  const copies = await Promise.all([1, 2].map(() => make(here, { template: made.snapshotID })))
  for (const copy of copies) assert.deepEqual(await py(copy, 'x["deep"]'), [1, 2, 3])
  const listed = (await http().gives(200, 'GET', `/snapshots?sandboxID=${sandbox.sandboxId}`)).find((s) => s.snapshotID === made.snapshotID)
  assert.equal(listed?.state, 'warm', JSON.stringify(listed))
  assert.equal(await Interpreter.deleteSnapshot(made.snapshotID), true)
  assert.deepEqual(await py(copies[0], 'x["deep"]'), [1, 2, 3])
})

test('createSnapshot with something in the way: the files alone, and it says so', async () => {
  const sandbox = await warm()
  await says(sandbox, 'x = 1\nimport threading\nstop = threading.Event()\nthread = threading.Thread(target=stop.wait, daemon=True)\nthread.start()')
  const made = await http().gives(201, 'POST', `/sandboxes/${sandbox.sandboxId}/snapshots`, {})
  assert.equal(made.state, 'files', JSON.stringify(made))
  const copy = await make(here, { template: made.snapshotID })
  assert.equal(await says(copy, 'print("x" in globals())'), 'False')
  assert.equal(await py(sandbox, 'x'), 1)
  await Interpreter.deleteSnapshot(made.snapshotID)
})

test('more open files than are carried along, and deeper ones: all go on, on both sides', async () => {
  const sandbox = await warm()
  await says(sandbox, 'import os\nflat = [open(f"/home/user/f{n}", "w") for n in range(200)]\nos.chdir("/home/user")\nfor _ in range(300):\n    os.mkdir("d")\n    os.chdir("d")\ndeep = [open(f"f{n}", "w") for n in range(100)]\nos.chdir("/home/user")\nfor f in flat + deep:\n    f.write("before ")\n    f.flush()\ndef use(word):\n    for f in flat + deep:\n        f.write(word)\n        f.flush()\n    return sorted({os.pread(os.open(f"/proc/self/fd/{f.fileno()}", os.O_RDONLY), 99, 0).decode() for f in flat[:3] + flat[-3:] + deep[:3]})')
  await checkpoint(sandbox, { label: 'start' })
  const { sandbox: copy } = await fork(sandbox)
  assert.deepEqual(await py(copy, 'use("copy")'), ['before copy'])
  assert.deepEqual(await py(sandbox, 'use("source")'), ['before source'])
  await rewind(sandbox, { label: 'start' })
  assert.deepEqual(await py(sandbox, 'use("again")'), ['before again'])
})

// ---- what is in the way -------------------------------------------------------------------------

const REFUSALS = {
  'a thread': {
    begin: 'import threading\nstop = threading.Event()\nthread = threading.Thread(target=stop.wait)\nthread.start()',
    end: 'stop.set()\nthread.join()',
    expect: { what: 'thread', holds: /2 threads/, remedy: /OpenBLAS.*rest by themselves/, command: /python/ },
  },
  'a child that has a file open for writing': {
    begin: 'import subprocess\nchild = subprocess.Popen(["sleep", "1000"], stdout=open("/home/user/log", "a"))',
    end: 'child.kill()\nchild.wait()',
    expect: { what: 'file', holds: /^\/home\/user\/log$/, remedy: /close|end/, command: /^sleep 1000$/ },
  },
  'a shared mapping that can be written': {
    begin: 'import mmap\nwith open("/home/user/m", "w+b") as f:\n    f.truncate(4096)\n    m = mmap.mmap(f.fileno(), 4096)',
    end: 'm.close()',
    expect: { what: 'mapping', holds: /\/home\/user\/m/, remedy: /private|close/, command: /python/ },
  },
  'a lock on a file': {
    begin: 'import fcntl\nlocked = open("/home/user/lock", "w")\nfcntl.flock(locked, fcntl.LOCK_EX)',
    end: 'locked.close()',
    expect: { what: 'lock', holds: /^\/home\/user\/lock$/, remedy: /release|close/, command: /python/ },
  },
  'a file open for writing that has no name any more': {
    begin: 'import tempfile\nnameless = tempfile.TemporaryFile(dir="/home/user")',
    end: 'nameless.close()',
    expect: { what: 'file', holds: /deleted|\/home\/user/, remedy: /close/, command: /python/ },
  },
}

for (const [name, { begin, end, expect }] of Object.entries(REFUSALS))
  test(`${name} is in the way: 409 says who, what and what helps; without it the fork works`, async () => {
    const sandbox = await warm()
    await says(sandbox, `x = "still here"\n${begin}`)
    const list = await inTheWay(sandbox)
    const one = list.find((i) => i.what === expect.what)
    assert.ok(one, JSON.stringify(list))
    for (const key of ['holds', 'remedy', 'command']) assert.match(one[key], expect[key], JSON.stringify(one))
    assert.equal(typeof one.pid, 'number')
    const pid = await py(sandbox, expect.command.test('sleep 1000') ? 'child.pid' : '__import__("os").getpid()')
    assert.equal(one.pid, pid, 'as it is called inside')
    await says(sandbox, end)
    const { sandbox: copy } = await fork(sandbox)
    assert.equal(await py(copy, 'x'), 'still here')
  })

test('a program that only runs is not in the way: it goes on in the source, and is not in the branch', async () => {
  const sandbox = await warm()
  await says(sandbox, 'x = 1')
  const sleeper = await sandbox.commands.run('exec sleep 1000', { background: true, timeoutMs: 0, cwd: '/home/user' })
  sleeper.wait().catch(() => {})
  await sh(sandbox, 'echo text > read-me')
  const reader = await sandbox.commands.run('while sleep 0.05; do cat read-me; done', { background: true, timeoutMs: 0 })
  reader.wait().catch(() => {})
  const { sandbox: copy } = await fork(sandbox)
  assert.deepEqual((await sandbox.commands.list()).map((p) => p.pid).sort(), [sleeper.pid, reader.pid].sort())
  assert.deepEqual(await copy.commands.list(), [])
  const lines = reader.stdout.length
  await eventually('the reader still reads', () => reader.stdout.length > lines)
  // Its directory is the sandbox's as it is now, not as it was.
  await sandbox.files.write('/home/user/read-me', 'changed\n')
  await eventually('... what is there now', () => reader.stdout.includes('changed'))
  assert.equal(await copy.files.read('/home/user/read-me'), 'text\n')
})

test('a cell that runs: 409 at once, or waited for', async () => {
  const sandbox = await warm()
  const { cell } = await began(sandbox, 'import time\nprint("begun", flush=True)\ntime.sleep(1.5)\nx = "done"')
  const [one] = await inTheWay(sandbox)
  assert.equal(one.what, 'cell')
  assert.match(one.remedy, /waitMs|wait/)
  const [late] = await inTheWay(sandbox, { body: { waitMs: 50 } })
  assert.equal(late.what, 'cell')
  const { sandbox: copy } = await fork(sandbox, { waitMs: 20_000 })
  assert.equal((await cell).error, undefined)
  assert.equal(await py(copy, 'x'), 'done')
})

// ---- bad input ----------------------------------------------------------------------------------

test('what cannot be asked for is refused, and nothing is made', async () => {
  const sandbox = await make()
  const v1 = http()
  const route = `/sandboxes/${sandbox.sandboxId}/fork`
  for (const body of [{ count: 0 }, { count: -1 }, { count: 101 }, { count: 1.5 }, { count: '2' }, { inherit: 'everything' }, { inherit: 3 }, { waitMs: -1 }, { waitMs: 600_001 }, { timeout: -5 }, '{"count": 1', '[]', '"x"'])
    await v1.refuses(400, /\S/, 'POST', route, body)
  await v1.refuses(404, /not found|doesn't exist|no such/i, 'POST', `/sandboxes/${NO_SUCH}/fork`, {})
  await http({ ...here, apiKey: OTHER_KEY }).refuses(404, /not found|doesn't exist|no such/i, 'POST', route, {})
  await v1.refuses(404, /./, 'POST', `/sandboxes/${NO_SUCH}/rewind`, { label: 'a' })
  for (const body of [{}, { label: 'a', checkpointId: 'b' }, { label: 7 }]) await v1.refuses(400, /\S/, 'POST', `/sandboxes/${sandbox.sandboxId}/rewind`, body)
  await v1.refuses(404, /checkpoint/, 'POST', `/sandboxes/${sandbox.sandboxId}/rewind`, { checkpointId: NO_SUCH })
  await sandbox.pause()
  for (const [to, body] of [['fork', {}], ['checkpoints', {}], ['rewind', { label: 'a' }]])
    await v1.refuses(409, /paused/, 'POST', `/sandboxes/${sandbox.sandboxId}/${to}`, body)
  await sandbox.kill()
  await v1.refuses(404, /./, 'POST', route, {})
})

test('places run out in the middle of a fan-out: all of it or nothing', async () => {
  const sandbox = await warm(small.as)
  await says(sandbox, 'x = "here"')
  await make(small.as)
  const v1 = http(small.as)
  const before = (await v1.sandboxes()).length
  const route = `/sandboxes/${sandbox.sandboxId}/fork`
  await v1.refuses(429, new RegExp(`\\b${PLACES}\\b`), 'POST', route, { count: PLACES - 1, timeout: 60 })
  assert.equal((await v1.sandboxes()).length, before)
  const half = Math.ceil(PLACES * 0.6)
  const answers = await Promise.all([1, 2].map(() => v1.ask('POST', route, { count: half, timeout: 60 })))
  const made = answers.filter((a) => a.status === 201).flatMap((a) => a.json.map((f) => f.sandbox.sandboxID))
  assert.ok(answers.every((a) => [201, 409, 429].includes(a.status)), answers.map((a) => a.text.slice(0, 300)).join('\n'))
  assert.ok(made.length === half || made.length === 0, `${made.length} were made`)
  await eventually('no more are there than were told', async () => (await v1.sandboxes()).length === before + made.length)
  const left = await Promise.all(made.map((id) => connect(id, small.as)))
  assert.equal(await py(sandbox, 'x'), 'here')
  if (left.length) assert.equal(await py(left.at(-1), 'x'), 'here')
})

// ---- each on its own ----------------------------------------------------------------------------

const WHOLE = '[len(x), x[0], x[-1]]'

test('either side is killed, paused, or runs out of memory: the other does not notice', async () => {
  const sandbox = await warm(small.as)
  await says(sandbox, 'x = bytearray(b"x") * (40 << 20)')
  const whole = [40 << 20, 120, 120]
  const [killed, paused, greedy, kept] = (await forks(sandbox, { count: 4 }, small.as)).map((c) => c.sandbox)
  await killed.kill()
  await paused.pause()
  const cell = await greedy.runCode('y = []\nwhile True:\n    y.append(bytearray(b"y") * (8 << 20))')
  assert.ok(cell.error, 'there is no end of memory')
  for (const b of [sandbox, kept]) assert.deepEqual(await py(b, WHOLE), whole)
  // And the source's end is none of theirs.
  const mad = await sandbox.runCode('y = []\nwhile True:\n    y.append(bytearray(b"y") * (8 << 20))')
  assert.ok(mad.error, 'there is no end of memory')
  assert.deepEqual(await py(kept, WHOLE), whole)
  await sandbox.pause()
  assert.deepEqual(await py(kept, WHOLE), whole)
  await sandbox.kill()
  assert.deepEqual(await py(kept, WHOLE), whole)
  await paused.connect()
  assert.deepEqual(await py(paused, WHOLE), whole)
})

test('a chain of twenty, each forked from the one before, which is then killed', async () => {
  let sandbox = await warm(small.as)
  await says(sandbox, 'levels = []\nlog = open("/home/user/log", "a+")')
  for (let level = 0; level < 20; level++) {
    await says(sandbox, `levels.append(${level})\nlog.write("${level}\\n")\nlog.flush()\nopen("/home/user/level-${level}", "w").write("x");`)
    const { sandbox: next } = await fork(sandbox, {}, small.as)
    await sandbox.kill()
    sandbox = next
  }
  const all = Array.from({ length: 20 }, (_, i) => i)
  assert.deepEqual(await py(sandbox, 'levels'), all)
  assert.equal(await sandbox.files.read('/home/user/log'), all.map((n) => `${n}\n`).join(''))
  assert.equal(await sh(sandbox, 'ls -d level-* | wc -l'), '20')
})

test('memory too small for the copies: checkpoints lose their kernels first, the source lives', async () => {
  const sandbox = await warm(small.as)
  await says(sandbox, 'x = bytearray(b"0") * (60 << 20)')
  const answers = []
  for (let round = 1; round <= 3; round++) {
    answers.push((await http(small.as).ask('POST', `/sandboxes/${sandbox.sandboxId}/checkpoints`, { label: `m${round}` })).status)
    await says(sandbox, `x[:] = b"${round}" * len(x)`)
  }
  assert.deepEqual(await py(sandbox, '[len(x), chr(x[0]), chr(x[-1])]'), [60 << 20, '3', '3'])
  assert.ok(answers.every((s) => [201, 409, 429, 507].includes(s)), `${answers}`)
  const left = await checkpoints(sandbox, small.as)
  assert.ok(left.some((c) => !c.kernels), JSON.stringify(left))
  const { sandbox: copy } = await fork(sandbox, {}, small.as)
  assert.equal(await py(copy, 'chr(x[0])'), '3')
})

// ---- the server's end ---------------------------------------------------------------------------

test('after a restart a snapshot has its files alone, and says so', async () => {
  const sandbox = await warm(small.as)
  await says(sandbox, 'x = 1\nopen("/home/user/f", "w").write("durable");')
  const made = await http(small.as).gives(201, 'POST', `/sandboxes/${sandbox.sandboxId}/snapshots`, { name: 'kept' })
  assert.equal(made.state, 'warm')
  assert.equal(await stop(small), 0)
  const again = await start(small.state, small.as.apiKey)
  const [listed] = await http(again.as).gives(200, 'GET', '/snapshots')
  assert.deepEqual([listed.snapshotID, listed.state], [made.snapshotID, 'files'])
  const copy = await make(again.as, { template: made.snapshotID })
  assert.equal(await copy.files.read('/home/user/f'), 'durable')
  assert.equal(await says(copy, 'print("x" in globals())'), 'False')
  assert.equal(await stop(again), 0)
})

await run()
