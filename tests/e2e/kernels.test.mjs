// Kernels in trouble: what ends them, what outlives what, and what cells do that nobody should.
import fs from 'node:fs'
import { ask, began, context, err, fails, fresh, Interpreter, main, out, PORT, value } from './code.mjs'
import { assert, e2b, eventually, mine, rejects, run, same, sh, sleep, test } from './lib.mjs'
import { killFront, start, stop } from './server.mjs'

const { SandboxNotFoundError, TimeoutError } = e2b
const MIB = 1024 * 1024

// Its default kernel of python runs, and its names are those of a new one.
async function works(sandbox, opts) {
  assert.equal(await value(sandbox, '1 + 1', opts), '2')
}

// ---- where kernels come from --------------------------------------------------------------------

test('a kernel of python is a copy of a warm one, which knows its libraries', async () => {
  const sandbox = await fresh()
  await eventually('a kernel whose parent is outside', async () => (await value(sandbox, 'import os\nos.getppid()', await context(sandbox))) === '0')
})

test('without warm kernels everything is the same', async () => {
  const server = await start(undefined, undefined, ['--warm-kernels', 'none'])
  const sandbox = await Interpreter.create({ ...server.as, envs: { A: 'b' } })
  assert.equal(await value(sandbox, 'import os\nx = 20\n(os.getppid(), os.environ["A"], os.getcwd(), x + 1)'), "(1, 'b', '/home/user', 21)")
  assert.equal(await value(sandbox, 'x'), '20')
  assert.equal(await value(sandbox, '[1].map((x) => x + 1)', { language: 'js' }), '[ 2 ]')
  assert.equal(out(await sandbox.runCode('echo $((1 + 1))', { language: 'bash' })), '2\n')
  const dead = await sandbox.runCode('import os\nos._exit(3)')
  assert.match(dead.error.value, /exit status 3/)
  assert.equal(await stop(server), 0)
})

test('warm kernels have the libraries loaded that are installed', async () => {
  const server = await start(undefined, undefined, ['--warm-kernels', 'auto'])
  const sandbox = await Interpreter.create(server.as)
  const code = 'import os, sys\n(os.getppid(), "numpy" in sys.modules, "pandas" in sys.modules, "matplotlib.pyplot" in sys.modules)'
  await eventually('a warm one', async () => (await value(sandbox, code, await context(sandbox))) === '(0, True, True, True)', 30)
  const execution = await sandbox.runCode('import numpy as np, matplotlib.pyplot as plt\nplt.plot(np.arange(3))\nplt.show()')
  assert.deepEqual(execution.results[0].chart.elements[0].points, [[0, 0], [1, 1], [2, 2]])
  assert.equal(await value(sandbox, 'np.ones((300, 300)).dot(np.ones((300, 300)))[0, 0]'), '300.0')
  assert.equal(await stop(server), 0)
}, { seconds: 60 })

test('kernels by plain fork are the same', async () => {
  const server = await start(undefined, undefined, ['--kernel-fork', 'plain'])
  const sandbox = await Interpreter.create({ ...server.as, envs: { A: 'b' } })
  await eventually('a copied one', async () => (await value(sandbox, 'import os\nos.getppid()', await context(sandbox))) === '0')
  const opts = await context(sandbox)
  assert.equal(await value(sandbox, 'import os\nx = 20\n(os.environ["A"], os.getcwd(), x + 1)', opts), "('b', '/home/user', 21)")
  assert.equal(await value(sandbox, 'x', opts), '20')
  assert.equal(out(await sandbox.runCode('echo $A', { language: 'bash' })), 'b\n')
  assert.equal(await stop(server), 0)
})

// The warm process that a server copies kernels from: of all that look like it, copies too, the oldest.
function zygote(server) {
  const stat = (pid) => fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
  const parent = (pid) => Number(stat(pid)[1])
  const found = []
  for (const name of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n)))
    try {
      if (!fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').includes('--zygote')) continue
      for (let pid = parent(name); pid > 1; pid = parent(pid))
        if (pid === server.child.pid) found.push({ pid: Number(name), start: Number(stat(name)[19]) })
    } catch {}
  return found.sort((a, b) => a.start - b.start)[0]?.pid
}

test('the process that kernels are copied from dies: cells go on, and it is replaced', async () => {
  const server = await start()
  const sandbox = await Interpreter.create(server.as)
  const warm = async () => (await value(sandbox, 'import os\nos.getppid()', await context(sandbox))) === '0'
  await eventually('a copied one', warm)
  const opts = await context(sandbox)
  await value(sandbox, 'x = 1', opts)
  const old = zygote(server)
  assert.ok(old, 'there is one')
  process.kill(old, 'SIGKILL')
  assert.equal(await value(sandbox, '"new"', await context(sandbox)), 'new')
  assert.equal(await value(sandbox, 'x', opts), '1')
  // More than the few that may have been made ahead.
  await eventually('copied ones again', async () => (await warm()) && (await warm()) && (await warm()) && (await warm()))
  assert.equal(await stop(server), 0)
})

test('a cell is a user, and may become root', async () => {
  const sandbox = await fresh()
  const opts = await context(sandbox)
  same(out(await sandbox.runCode('!id -un; sudo id -un', opts)), 'user\nroot\n')
})

test('many sandboxes at once, all with a kernel', async () => {
  const sandboxes = await Promise.all(Array.from({ length: 12 }, () => fresh()))
  const texts = await Promise.all(sandboxes.map((b, i) => value(b, `x = ${i}\nx * 2`)))
  assert.deepEqual(texts, sandboxes.map((_, i) => String(2 * i)))
  assert.deepEqual(await Promise.all(sandboxes.map((b) => value(b, 'x'))), sandboxes.map((_, i) => String(i)))
})

// ---- what outlives what -------------------------------------------------------------------------

test('reconnect: state is still there', async () => {
  const sandbox = await fresh()
  await value(sandbox, 'x = {"a": 1}')
  await sandbox.runCode('let y = 5', { language: 'js' })
  const again = await Interpreter.connect(sandbox.sandboxId)
  assert.equal(await value(again, 'x["a"]'), '1')
  assert.equal(await value(again, 'y', { language: 'js' }), '5')
})

test('pause and resume: variables are still there', async () => {
  const sandbox = await fresh()
  const opts = await context(sandbox)
  await value(sandbox, 'x = list(range(1000))\nimport time\nbefore = time.monotonic()', opts)
  await sandbox.runCode('let y = "kept"', { language: 'js' })
  await sandbox.runCode('z=kept', { language: 'bash' })
  await sandbox.pause()
  await sleep(200)
  await sandbox.connect()
  assert.equal(await value(sandbox, 'sum(x)', opts), '499500')
  assert.equal(await value(sandbox, 'y', { language: 'js' }), 'kept')
  assert.equal(out(await sandbox.runCode('echo $z', { language: 'bash' })), 'kept\n')
})

test('pause of files only: a new kernel', async () => {
  const sandbox = await fresh()
  await value(sandbox, 'x = 1\nopen("/home/user/f", "w").write("kept");')
  await sandbox.pause({ keepMemory: false })
  await sandbox.connect()
  assert.equal(await value(sandbox, '("x" in globals(), open("/home/user/f").read())'), "(False, 'kept')")
})

test('a snapshot: its sandboxes have its variables, and kernels of their own', async () => {
  const sandbox = await fresh()
  await value(sandbox, 'x = 1\nopen("/home/user/module.py", "w").write("n = 5");')
  const { snapshotId } = await sandbox.createSnapshot()
  const copies = await Promise.all([1, 2].map(async () => mine(await Interpreter.create(snapshotId, { timeoutMs: 60_000 }))))
  for (const copy of copies) {
    assert.equal(await value(copy, 'import module\n(x, module.n)'), '(1, 5)')
    assert.equal(await value(copy, '6 * 7', { language: 'js' }), '42')
  }
  assert.equal(await value(sandbox, 'x'), '1')
  await Interpreter.deleteSnapshot(snapshotId)
})

test('a fork: a working kernel, and the files', async () => {
  const sandbox = await fresh()
  await value(sandbox, 'open("/home/user/f", "w").write("here");')
  const forks = await sandbox.fork()
  for (const f of forks) if (f instanceof Error) throw f
  const copy = mine(await Interpreter.connect(forks[0].sandboxId))
  assert.equal(await value(copy, 'open("/home/user/f").read()'), 'here')
})

test('the front is killed under a cell: the kernel and its variables are still there', async () => {
  const server = await start()
  const sandbox = await Interpreter.create(server.as)
  await value(sandbox, 'import os, time\nx = 5\npid = os.getpid()')
  const before = await sandbox.listCodeContexts()
  const { cell } = await began(sandbox, 'x = 6\nprint("go", flush=True)\ntime.sleep(600)')
  await killFront(server)
  await assert.rejects(cell)
  const opts = { context: before.find((c) => c.language === 'python') }
  assert.equal(await value(sandbox, '(x, pid == os.getpid())', opts), '(6, True)')
  assert.deepEqual(await sandbox.listCodeContexts(), before)
  assert.equal(await stop(server), 0)
})

test('a killed sandbox: the classes of the SDK', async () => {
  const sandbox = await fresh()
  const { cell } = await began(sandbox, 'import time\nprint("go", flush=True)\ntime.sleep(600)')
  await sandbox.kill()
  await rejects(cell, TimeoutError, /killed|timeout/)
  await rejects(sandbox.runCode('1'), TimeoutError, /timeout/)
  await rejects(sandbox.listCodeContexts(), TimeoutError)
  await rejects(sandbox.getInfo(), SandboxNotFoundError)
})

// ---- the end of a kernel ------------------------------------------------------------------------

const ENDS = {
  'os._exit': 'import os\nos._exit(3)',
  'kill -9 of itself': 'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)',
  'a crash': 'import ctypes\nctypes.string_at(0)',
  'kill -9 of its group': 'import os\nos.killpg(0, 9)',
  'another program in its place': 'import os\nos.execv("/bin/true", ["true"])',
}

for (const [name, code] of Object.entries(ENDS))
  test(`the kernel ends: ${name}`, async () => {
    const sandbox = await fresh()
    await value(sandbox, 'x = 1')
    const execution = await fails(sandbox, `print("before", flush=True)\n${code}`, 'UnexpectedEndOfExecution', /kernel ended/)
    assert.match(execution.error.value, /variables are gone/)
    assert.doesNotMatch(execution.error.value, /4294967295/)
    same(out(execution), 'before\n')
    assert.equal(await value(sandbox, '"x" in globals()'), 'False')
  })

test('the kernel ends: javascript and bash', async () => {
  const sandbox = await fresh()
  await sandbox.runCode('globalThis.x = 1', { language: 'js' })
  await fails(sandbox, 'process.kill(process.pid, "SIGKILL"); for (;;) {}', 'UnexpectedEndOfExecution', /SIGKILL/, { language: 'js' })
  assert.equal(await value(sandbox, 'typeof globalThis.x', { language: 'js' }), 'undefined')
})

test('the kernel ends between cells: the next one is told', async () => {
  const sandbox = await fresh()
  const pid = await value(sandbox, 'import os\nx = 1\nos.getpid()')
  await sh(sandbox, `kill -9 ${pid}; while kill -0 ${pid} 2>/dev/null; do sleep 0.01; done`)
  const execution = await sandbox.runCode('"x" in globals()')
  assert.equal(execution.text, 'False')
  assert.match(err(execution), /^sandglass: .*variables/m)
  assert.equal(err(await sandbox.runCode('1')), '')
})

test('the kernel ends while cells wait: they run in a new one', async () => {
  const sandbox = await fresh()
  const { cell: first } = await began(sandbox, 'import os, time\nprint("go", flush=True)\ntime.sleep(0.5)\nos._exit(1)')
  const second = sandbox.runCode('"second"')
  assert.equal((await first).error.name, 'UnexpectedEndOfExecution')
  assert.equal((await second).text, 'second')
})

test('memory runs out: the kernel is gone, and it is said', async () => {
  const sandbox = await fresh()
  const execution = await sandbox.runCode('x = []\nwhile True: x.append(bytearray(16 << 20))')
  assert.ok(['MemoryError', 'UnexpectedEndOfExecution'].includes(execution.error?.name), JSON.stringify(execution.error))
  await works(sandbox, await context(sandbox))
  await eventually('the context works again', async () => (await sandbox.runCode('x = None\n1')).text === '1')
  assert.equal(await sh(sandbox, 'echo fine'), 'fine')
})

test('as many processes as there may be: the context recovers', async () => {
  const sandbox = await fresh()
  const execution = await sandbox.runCode(`
import os, time
n = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(600)
        n += 1
except OSError as e:
    pass
n > 10`)
  assert.ok(execution.text === 'True' || execution.error, 'it ended')
  await sandbox.restartCodeContext((await sandbox.listCodeContexts()).find((c) => c.language === 'python').id)
  // Hundreds of processes take their time to end, and hold memory meanwhile.
  await eventually('a cell can be run', async () => (await sandbox.runCode('1 + 1').catch(() => ({}))).text === '2')
  await works(sandbox)
  await eventually('a command can be started', async () => (await sh(sandbox, 'echo fine').catch(() => '')) === 'fine')
})

// ---- damage -------------------------------------------------------------------------------------

test('closing all descriptors, the control one too', async () => {
  const sandbox = await fresh()
  const execution = await sandbox.runCode('import os\nos.closerange(0, 4)\nprint("lost")')
  assert.ok(!execution.error || execution.error.name === 'UnexpectedEndOfExecution', JSON.stringify(execution.error))
  const after = await sandbox.runCode('print("works")\n1')
  assert.deepEqual([out(after), after.text], ['works\n', '1'])
  const all = await sandbox.runCode('os = __import__("os")\nos.closerange(0, 4096)')
  assert.ok(!all.error || all.error.name === 'UnexpectedEndOfExecution', JSON.stringify(all.error))
  await works(sandbox)
})

test('a control socket that is written to: nobody is confused but the cell', async () => {
  const sandbox = await fresh()
  const texts = ['b"F\\0\\0\\0\\0"', 'b"Rm"', 'b"Ttext\\0forged"', 'b"X" * 1000', 'b"\\xff"', 'b"F\\x01\\0\\0\\0"', 'b"Jjson\\0{"']
  for (const text of texts) {
    const answer = await ask(sandbox, 'POST', '/execute', { code: `import socket\ns = socket.socket(fileno=3)\ns.send(${text})\ns.detach()\nprint("after")` })
    const lines = answer.text.trim().split('\n').map((line) => JSON.parse(line))
    assert.equal(lines.at(-1).type, 'end_of_execution', text)
    assert.equal(lines.filter((l) => l.type === 'end_of_execution').length, 1)
    await eventually('the next cell works', async () => (await sandbox.runCode('1 + 1')).text === '2')
  }
  assert.equal(await sh(sandbox, 'echo fine'), 'fine')
})

test('threads that go on: their output belongs to the next cell, and the kernel stays', async () => {
  const sandbox = await fresh()
  await value(sandbox, `
import threading, time
go = threading.Event()
def work():
    go.wait()
    print("late", flush=True)
    done.set()
done = threading.Event()
threading.Thread(target=work).start()`)
  const execution = await sandbox.runCode('go.set()\ndone.wait();')
  assert.equal(out(execution), 'late\n')
  await works(sandbox)
})

test('a repr that never returns is interrupted like any cell', async () => {
  const sandbox = await fresh()
  const code = 'class Endless:\n    def __repr__(self):\n        print("go", flush=True)\n        while True: pass\nkept = 1\nEndless()'
  const { cell } = await began(sandbox, code)
  const { id } = (await sandbox.listCodeContexts()).find((c) => c.language === 'python')
  await ask(sandbox, 'POST', `/contexts/${id}/interrupt`)
  assert.equal((await cell).error.name, 'KeyboardInterrupt')
  assert.equal(await value(sandbox, 'kept'), '1')
})

test('results of a hundred megabytes are left out, and said to be', async () => {
  const sandbox = await fresh()
  const opts = { timeoutMs: 60_000 }
  for (const code of ['"x" * 104_857_600', 'class H:\n    def _repr_html_(self): return "x" * 104_857_600\n    def __repr__(self): return "h"\nH()']) {
    const execution = await sandbox.runCode(code, opts)
    assert.equal(execution.error, undefined, execution.error?.value)
    assert.ok(JSON.stringify(main(execution).raw).length < 40 * MIB)
    assert.match(main(execution).text, /left out|h/)
  }
  const list = await sandbox.runCode('[0] * 20_000_000', opts)
  assert.equal(list.error, undefined)
  assert.ok(JSON.stringify(main(list).raw).length < 40 * MIB)
  await works(sandbox)
}, { seconds: 90 })

test('a result of eight megabytes comes whole', async () => {
  const sandbox = await fresh()
  const execution = await sandbox.runCode('"é" * 4_000_000')
  same(execution.text, 'é'.repeat(4_000_000))
})

const rss = (pid) => Number(fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) / 1024

function frontOf(pid) {
  for (const name of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n)))
    try {
      const stat = fs.readFileSync(`/proc/${name}/stat`, 'utf8')
      if (stat.includes('(sandglass-front') && stat.replace(/^.*\) /s, '').split(' ')[1] === String(pid)) return Number(name)
    } catch {}
  return undefined
}

// The answer as bytes: the SDK would keep it all.
async function drain(sandbox, code, each = () => {}) {
  const res = await fetch(`${process.env.E2B_SANDBOX_URL}/execute`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': String(PORT), 'X-Access-Token': sandbox.envdAccessToken ?? '' },
    body: JSON.stringify({ code }),
  })
  assert.equal(res.status, 200)
  let bytes = 0
  let tail = Buffer.alloc(0)
  for await (const part of res.body) {
    bytes += part.length
    tail = Buffer.concat([tail, part]).subarray(-4096)
    await each(bytes)
  }
  return { bytes, last: JSON.parse(tail.toString().trim().split('\n').at(-1)) }
}

test('output without end: memory of the server stays flat, nothing is lost', async () => {
  const sandbox = await fresh()
  const pid = frontOf(process.env.E2E_SERVER_PID)
  assert.ok(pid, 'the front of the server')
  const before = rss(pid)
  let most = 0
  const { bytes, last } = await drain(sandbox, 'import sys\nline = "x" * 999 + "\\n"\nfor i in range(300_000): sys.stdout.write(line)', () => { most = Math.max(most, rss(pid)) })
  assert.equal(last.type, 'end_of_execution')
  assert.ok(bytes >= 300_000_000, `${bytes} bytes`)
  assert.ok(most < before + 64, `the front grew from ${before} to ${most} MiB`)
  await works(sandbox)
}, { seconds: 60 })

test('output that nobody reads: the cell waits, memory stays flat', async () => {
  const sandbox = await fresh()
  const pid = frontOf(process.env.E2E_SERVER_PID)
  const before = rss(pid)
  let paused = false
  const { last } = await drain(sandbox, 'for i in range(60_000): print("x" * 999)', async (bytes) => {
    if (paused || bytes < MIB) return
    paused = true
    await sleep(1500)
    assert.ok(rss(pid) < before + 64, `the front grew from ${before} to ${rss(pid)} MiB`)
  })
  assert.equal(last.type, 'end_of_execution')
})

test('code of many megabytes', async () => {
  const sandbox = await fresh()
  const execution = await sandbox.runCode(`data = "${'x'.repeat(8 * MIB)}"\nlen(data)`)
  assert.equal(execution.text, String(8 * MIB))
  const answer = await ask(sandbox, 'POST', '/execute', { code: `#${'x'.repeat(17 * MIB)}` })
  assert.ok([400, 413].includes(answer.status), `status ${answer.status}`)
  await works(sandbox)
})

await run()
