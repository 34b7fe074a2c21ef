// Contexts: several kernels in one sandbox, their languages, variables, folders and order.
import http from 'node:http'
import { ask, began, context, err, fails, fresh, Interpreter, main, out, PORT, shared, value } from './code.mjs'
import { assert, e2b, rejects, run, same, sleep, test, unique } from './lib.mjs'

const { NotFoundError, SandboxError, TimeoutError, InvalidArgumentError } = e2b
const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

// ---- contexts -----------------------------------------------------------------------------------

test('state is kept from cell to cell, for each language', async () => {
  const sandbox = await fresh()
  const cells = [
    ['python', 'x = 1', 'x + 1'],
    ['javascript', 'const x = 1', 'x + 1'],
    ['typescript', 'const y: number = 1', 'y + 1'],
  ]
  for (const [language, first, second] of cells) {
    assert.equal(await value(sandbox, first, { language }), undefined)
    assert.equal(await value(sandbox, second, { language }), '2', language)
  }
  await sandbox.runCode('x=1', { language: 'bash' })
  assert.equal(out(await sandbox.runCode('echo $((x + 1))', { language: 'bash' })), '2\n')
})

test('no context and no language: the default of python', async () => {
  const sandbox = await fresh()
  await sandbox.runCode('kept = 5')
  assert.equal(await value(sandbox, 'kept', { language: 'python' }), '5')
})

test('the defaults of python and javascript are listed before anything ran', async () => {
  const sandbox = await fresh()
  const listed = await sandbox.listCodeContexts()
  assert.deepEqual(listed.map((c) => [c.language, c.cwd]).sort(), [['javascript', '/home/user'], ['python', '/home/user']])
  for (const c of listed) assert.match(c.id, UUID)
  const python = listed.find((c) => c.language === 'python')
  await sandbox.runCode('here = 1')
  assert.equal(await value(sandbox, 'here', { context: python }), '1')
  assert.deepEqual(await sandbox.listCodeContexts(), listed)
})

test('the defaults are listed before a context that was created first', async () => {
  const sandbox = await fresh()
  const made = await sandbox.createCodeContext({ language: 'bash' })
  const listed = await sandbox.listCodeContexts()
  assert.deepEqual(listed.map((c) => c.language), ['python', 'javascript', 'bash'])
  assert.equal(listed[2].id, made.id)
})

test('create: names of one context are not known in another', async () => {
  const sandbox = await shared()
  const [one, two] = [await sandbox.createCodeContext(), await sandbox.createCodeContext()]
  assert.match(one.id, UUID)
  assert.notEqual(one.id, two.id)
  assert.deepEqual([one.language, one.cwd], ['python', '/home/user'])
  await value(sandbox, 'x = "one"', { context: one })
  await value(sandbox, 'x = "two"', { context: two })
  assert.equal(await value(sandbox, 'x', { context: one }), 'one')
  assert.equal(await value(sandbox, 'x', { context: two }), 'two')
  await fails(sandbox, 'x', 'NameError', /x/, await context(sandbox))
  const listed = await sandbox.listCodeContexts()
  for (const c of [one, two]) assert.deepEqual(listed.find((l) => l.id === c.id), c)
})

test('create: with a language and a folder', async () => {
  const sandbox = await shared()
  await sandbox.files.makeDir('/home/user/work')
  for (const [language, code] of [['python', 'import os\nos.getcwd()'], ['javascript', 'process.cwd()'], ['typescript', 'process.cwd() as string']]) {
    const c = await sandbox.createCodeContext({ language, cwd: '/home/user/work' })
    assert.deepEqual([c.language, c.cwd], [language, '/home/user/work'])
    assert.equal(await value(sandbox, code, { context: c }), '/home/user/work')
  }
  const shell = await sandbox.createCodeContext({ language: 'bash', cwd: '/tmp' })
  assert.equal(out(await sandbox.runCode('pwd', { context: shell })), '/tmp\n')
})

test('a folder that does not exist is made', async () => {
  const sandbox = await shared()
  const cwd = `/home/user/${unique()}/deep`
  assert.equal(await value(sandbox, 'import os\nos.getcwd()', await context(sandbox, { cwd })), cwd)
})

test('the folder is the home by default, for every language', async () => {
  const sandbox = await shared()
  assert.equal(await value(sandbox, 'import os\nos.getcwd()'), '/home/user')
  assert.equal(await value(sandbox, 'process.cwd()', { language: 'js' }), '/home/user')
  assert.equal(out(await sandbox.runCode('pwd', { language: 'bash' })), '/home/user\n')
})

test('remove: it is gone, and what runs there ends', async () => {
  const sandbox = await shared()
  const c = await sandbox.createCodeContext()
  const { cell } = await began(sandbox, 'import time\nprint("go", flush=True)\ntime.sleep(600)', { context: c })
  await sandbox.removeCodeContext(c)
  assert.equal((await cell).error.name, 'ContextRemoved')
  await rejects(sandbox.runCode('1', { context: c }), NotFoundError, new RegExp(c.id))
  await rejects(sandbox.removeCodeContext(c), NotFoundError)
  await rejects(sandbox.restartCodeContext(c.id), NotFoundError)
  assert.ok(!(await sandbox.listCodeContexts()).some((l) => l.id === c.id))
})

test('restart: state is cleared, the id stays', async () => {
  const sandbox = await shared()
  const c = await sandbox.createCodeContext({ cwd: '/tmp' })
  await value(sandbox, 'x = 1', { context: c })
  await sandbox.restartCodeContext(c)
  await fails(sandbox, 'x', 'NameError', /x/, { context: c })
  assert.equal(await value(sandbox, 'import os\nos.getcwd()', { context: c }), '/tmp')
  assert.deepEqual((await sandbox.listCodeContexts()).find((l) => l.id === c.id), c)
  assert.equal((await sandbox.runCode('1', { context: c })).executionCount, 3, 'counted anew')
})

test('restart: of the default, and of javascript', async () => {
  const sandbox = await fresh()
  for (const [language, set, get] of [['python', 'x = 1', '"x" in globals()'], ['javascript', 'globalThis.x = 1', '"x" in globalThis']]) {
    await sandbox.runCode(set, { language })
    const c = (await sandbox.listCodeContexts()).find((l) => l.language === language)
    await sandbox.restartCodeContext(c.id)
    assert.match(await value(sandbox, get, { language }), /^[Ff]alse$/)
  }
})

test('restart: the cell that runs is told', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  const { cell } = await began(sandbox, 'import time\nprint("go", flush=True)\ntime.sleep(600)', opts)
  await sandbox.restartCodeContext(opts.context)
  assert.equal((await cell).error.name, 'ContextRestarting')
  assert.equal(await value(sandbox, '1 + 1', opts), '2')
})

test('an unknown context', async () => {
  const sandbox = await shared()
  await rejects(sandbox.runCode('1', { context: { id: UNKNOWN, language: 'python', cwd: '/' } }), NotFoundError, new RegExp(UNKNOWN))
  await rejects(sandbox.restartCodeContext(UNKNOWN), NotFoundError)
  await rejects(sandbox.removeCodeContext(UNKNOWN), NotFoundError)
})

test('a context and a language at once are refused', async () => {
  const sandbox = await shared()
  const c = await sandbox.createCodeContext()
  await rejects(sandbox.runCode('1', { context: c, language: 'python' }), InvalidArgumentError)
  const answer = await ask(sandbox, 'POST', '/execute', { code: '1', context_id: c.id, language: 'python' })
  assert.equal(answer.status, 400)
})

test('more contexts than there may be are refused, and removing one makes room', async () => {
  const sandbox = await fresh()
  const made = []
  let refusal
  while (!refusal && made.length < 200) {
    const answer = await ask(sandbox, 'POST', '/contexts', { language: 'python' })
    if (answer.status === 200) made.push(answer.json.id)
    else refusal = answer
  }
  assert.equal(refusal?.status, 429, refusal?.text)
  assert.ok(made.length >= 10, `${made.length} contexts`)
  await sandbox.removeCodeContext(made[0])
  assert.equal((await ask(sandbox, 'POST', '/contexts', {})).status, 200)
})

// ---- languages ----------------------------------------------------------------------------------

test('languages: each by its name, in any case', async () => {
  const sandbox = await shared()
  for (const language of ['python', 'Python', 'PYTHON']) assert.equal(await value(sandbox, '6 * 7', { language }), '42')
  assert.equal(out(await sandbox.runCode('echo $BASH_VERSION', { language: 'Bash' })).length > 3, true)
})

test('languages: js and ts are short for javascript and typescript', async () => {
  const sandbox = await shared()
  await sandbox.runCode('globalThis.shared = 1', { language: 'js' })
  assert.equal(await value(sandbox, 'globalThis.shared', { language: 'javascript' }), '1')
  assert.equal(await value(sandbox, 'const n: number = 3; n', { language: 'ts' }), '3')
  const c = await sandbox.createCodeContext({ language: 'js' })
  assert.equal(c.language, 'javascript')
})

test('languages: r and java', async () => {
  const sandbox = await shared()
  assert.match(await value(sandbox, 'mean(c(1, 2, 6))', { language: 'r' }), /3/)
  assert.match(await value(sandbox, 'int n = 41; n + 1', { language: 'java' }), /42/)
}, { seconds: 60 })

test('languages: one that is not there is refused with a list of those that are', async () => {
  const sandbox = await shared()
  await rejects(sandbox.runCode('1', { language: 'cobol' }), SandboxError, /^400/)
  await rejects(sandbox.createCodeContext({ language: 'cobol' }), SandboxError, /^400/)
  for (const answer of [await ask(sandbox, 'POST', '/execute', { code: '1', language: 'cobol' }), await ask(sandbox, 'POST', '/contexts', { language: 'cobol' })]) {
    assert.equal(answer.status, 400)
    assert.match(answer.text, /cobol/)
    for (const name of ['python', 'javascript', 'typescript', 'bash', 'r', 'java']) assert.match(answer.text, new RegExp(`\\b${name}\\b`), answer.text)
  }
})

test('languages: any kernel of Jupyter that is installed', async () => {
  const sandbox = await shared()
  assert.equal(await value(sandbox, 'import sys\n[sys.version_info[0]]', { language: 'python3' }), '[3]')
  const c = { context: (await sandbox.listCodeContexts()).find((l) => l.language === 'python3') }
  await sandbox.runCode('kept = 9', c)
  assert.equal(await value(sandbox, 'kept', c), '9')
  const execution = await sandbox.runCode('from IPython.display import HTML\nprint("out")\ndisplay(HTML("<b>1</b>"))\n1 / 0', c)
  assert.equal(out(execution), 'out\n')
  assert.equal(execution.results[0].html, '<b>1</b>')
  assert.equal(execution.error.name, 'ZeroDivisionError')
  assert.ok(!execution.error.traceback.includes('\u001b'), 'no colours')
}, { seconds: 60 })

// ---- variables ----------------------------------------------------------------------------------

const ENV = {
  python: ['import os\nos.environ.get("NAME", "none")', (e) => e.text],
  javascript: ['process.env.NAME ?? "none"', (e) => e.text],
  typescript: ['(process.env.NAME as string) ?? "none"', (e) => e.text],
  bash: ['echo "${NAME:-none}"', (e) => out(e).trim()],
  r: ['cat(Sys.getenv("NAME", "none"))', (e) => out(e).trim()],
}

test('variables: those of the sandbox, and those of one call', async () => {
  const sandbox = await fresh({ envs: { NAME: 'global' } })
  for (const [language, [code, get]] of Object.entries(ENV)) {
    assert.equal(get(await sandbox.runCode(code, { language })), 'global', language)
    assert.equal(get(await sandbox.runCode(code, { language, envs: { NAME: 'call', OTHER: 'x' } })), 'call', language)
    assert.equal(get(await sandbox.runCode(code, { language })), 'global', `${language}: put back`)
  }
})

test('variables: of one call only, gone afterwards', async () => {
  const sandbox = await fresh()
  for (const [language, [code, get]] of Object.entries(ENV)) {
    assert.equal(get(await sandbox.runCode(code, { language })), 'none', language)
    assert.equal(get(await sandbox.runCode(code, { language, envs: { NAME: 'ünï ☃ "$x' } })), 'ünï ☃ "$x', language)
    assert.equal(get(await sandbox.runCode(code, { language })), 'none', `${language}: taken away`)
  }
})

test('variables: put back after an error, and seen by programs', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  await fails(sandbox, 'import subprocess\nsubprocess.run("echo $NAME", shell=True)\n1/0', 'ZeroDivisionError', /./, { ...opts, envs: { NAME: 'child' } })
  const execution = await sandbox.runCode('!echo $NAME', { ...opts, envs: { NAME: 'child' } })
  assert.equal(out(execution), 'child\n')
  assert.equal(await value(sandbox, 'import os\nos.environ.get("NAME")', opts), undefined)
})

test('variables: what a cell sets itself stays', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  await value(sandbox, 'import os\nos.environ["OWN"] = "1"', opts)
  assert.equal(await value(sandbox, 'os.environ["OWN"]', opts), '1')
})

test('the sandbox names itself', async () => {
  const sandbox = await shared()
  assert.equal(await value(sandbox, 'import os\nos.environ["E2B_SANDBOX_ID"]'), sandbox.sandboxId)
  assert.equal(await value(sandbox, 'import getpass, os\n(getpass.getuser(), os.getuid() != 0, os.environ["HOME"])'), "('user', True, '/home/user')")
})

// ---- order --------------------------------------------------------------------------------------

test('calls on one context run in order, one at a time', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  await value(sandbox, 'import time\nlog = []', opts)
  const cells = await Promise.all(Array.from({ length: 8 }, (_, i) => sleep(i * 30).then(() => sandbox.runCode(`log.append(("begin", ${i}))\ntime.sleep(0.05)\nlog.append(("end", ${i}))\nlen(log)`, opts))))
  assert.deepEqual(cells.map((c) => c.text), Array.from({ length: 8 }, (_, i) => String(2 * i + 2)))
  assert.deepEqual(cells.map((c) => c.executionCount), Array.from({ length: 8 }, (_, i) => i + 2))
  assert.deepEqual(main(await sandbox.runCode('log', opts)).json, Array.from({ length: 8 }, (_, i) => [['begin', i], ['end', i]]).flat())
})

test('contexts run side by side', async () => {
  const sandbox = await shared()
  const [a, b] = [await context(sandbox), await context(sandbox)]
  const waiting = sandbox.runCode('import os, time\nwhile not os.path.exists("/tmp/side"): time.sleep(0.01)\n"released"', a)
  await value(sandbox, 'open("/tmp/side", "w").close()', b)
  assert.equal((await waiting).text, 'released')
})

test('a cell that waits for its turn can be given up', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  const { cell: first } = await began(sandbox, 'import os, time\nprint("go")\nwhile not os.path.exists("/tmp/turn"): time.sleep(0.01)', opts)
  await rejects(sandbox.runCode('never = 1', { ...opts, requestTimeoutMs: 300 }), TimeoutError)
  await sandbox.files.write('/tmp/turn', '')
  assert.equal((await first).error, undefined)
  assert.equal(await value(sandbox, '"never" in globals()', opts), 'False')
})

// ---- interrupt ----------------------------------------------------------------------------------

const ENDLESS = {
  python: ['print("go", flush=True)\nwhile True: pass', '"next"', /KeyboardInterrupt/],
  javascript: ['console.log("go"); for (;;) {}', '"next"', /./],
  typescript: ['console.log("go" as string); for (;;) {}', '"next"', /./],
  bash: ['echo go; while :; do :; done', 'echo next', /./],
  r: ['cat("go\\n"); flush(stdout()); repeat {}', 'cat("next")', /./],
}

for (const [language, [code, next, name]] of Object.entries(ENDLESS)) {
  test(`interrupt: ${language}, by request, with its state kept`, async () => {
    const sandbox = await shared()
    const opts = await context(sandbox, { language })
    const { cell } = await began(sandbox, code, opts)
    const answer = await ask(sandbox, 'POST', `/contexts/${opts.context.id}/interrupt`)
    assert.deepEqual([answer.status, answer.text], [200, 'null'])
    const execution = await cell
    assert.match(execution.error.name, name)
    const after = await sandbox.runCode(next, opts)
    assert.equal(after.error, undefined)
    assert.equal((after.text ?? out(after)).trim(), 'next')
  })

  test(`interrupt: ${language}, by the client's timeout`, async () => {
    const sandbox = await shared()
    const opts = await context(sandbox, { language })
    await rejects(sandbox.runCode(code, { ...opts, timeoutMs: 700 }), TimeoutError, /timed out/)
    const after = await sandbox.runCode(next, opts)
    assert.equal(after.error, undefined)
    assert.equal((after.text ?? out(after)).trim(), 'next')
  })
}

test('interrupt: in sleep, in await, in a program, and the state stays', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  await value(sandbox, 'import asyncio, subprocess, time\nkept = 1', opts)
  for (const code of ['time.sleep(600)', 'await asyncio.sleep(600)', 'subprocess.run(["sleep", "600"])', '!sleep 600', '%%bash\nsleep 600']) {
    const { cell } = await began(sandbox, code.startsWith('%%') ? code.replace('\n', '\necho go\n') : `print("go", flush=True)\n${code}`, opts)
    await ask(sandbox, 'POST', `/contexts/${opts.context.id}/interrupt`)
    assert.equal((await cell).error?.name, 'KeyboardInterrupt', code)
  }
  assert.equal(await value(sandbox, 'kept', opts), '1')
})

test('interrupt: a client that goes away', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  const url = new URL(process.env.E2B_SANDBOX_URL)
  await new Promise((resolve, reject) => {
    const req = http.request(
      {
        host: url.hostname,
        port: url.port,
        method: 'POST',
        path: '/execute',
        headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': PORT, 'X-Access-Token': sandbox.envdAccessToken ?? '', 'Content-Type': 'application/json' },
      },
      (res) => {
        res.on('error', () => {})
        res.on('data', (d) => {
          if (!d.includes('go')) return
          req.destroy()
          resolve()
        })
      },
    )
    req.on('error', (err) => (req.destroyed ? resolve() : reject(err)))
    req.end(JSON.stringify({ code: 'import time\nkept = 7\nprint("go", flush=True)\ntime.sleep(600)', context_id: opts.context.id }))
  })
  assert.equal(await value(sandbox, 'kept', opts), '7')
})

test('interrupt: one that is caught, and one that is not heeded', async () => {
  const sandbox = await fresh()
  const { cell } = await began(sandbox, 'try:\n    print("go", flush=True)\n    while True: pass\nexcept KeyboardInterrupt:\n    caught = True')
  const { id } = (await sandbox.listCodeContexts()).find((c) => c.language === 'python')
  await ask(sandbox, 'POST', `/contexts/${id}/interrupt`)
  assert.equal((await cell).error, undefined)
  assert.equal(await value(sandbox, 'caught'), 'True')
  const { cell: deaf } = await began(sandbox, 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint("go", flush=True)\nwhile True: pass')
  await ask(sandbox, 'POST', `/contexts/${id}/interrupt`)
  const execution = await deaf
  assert.equal(execution.error.name, 'ExecutionInterrupted')
  assert.match(execution.error.value, /variables are gone/)
  assert.equal(await value(sandbox, '"caught" in globals()'), 'False')
})

test('interrupt: an idle context does not mind, an unknown one is 404', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  await value(sandbox, 'x = 3', opts)
  assert.equal((await ask(sandbox, 'POST', `/contexts/${opts.context.id}/interrupt`)).status, 200)
  assert.equal(await value(sandbox, 'x', opts), '3')
  assert.equal((await ask(sandbox, 'POST', `/contexts/${UNKNOWN}/interrupt`)).status, 404)
})

test('interrupt: a time limit of the call', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  const answer = await ask(sandbox, 'POST', '/execute', { code: 'x = 1\nwhile True: pass', context_id: opts.context.id, timeout: 0.5 })
  const lines = answer.text.trim().split('\n').map((line) => JSON.parse(line))
  assert.deepEqual(lines.slice(-2).map((l) => l.type), ['error', 'end_of_execution'])
  assert.equal(lines.at(-2).name, 'TimeoutError')
  assert.match(lines.at(-2).value, /0\.5 s/)
  assert.equal(await value(sandbox, 'x', opts), '1')
})

test('another client of the same sandbox has the same contexts', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  await value(sandbox, 'x = "mine"', opts)
  const again = await Interpreter.connect(sandbox.sandboxId)
  assert.equal(await value(again, 'x', opts), 'mine')
  same(err(await again.runCode('1', opts)), '')
})

await run()
