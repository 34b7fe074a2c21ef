// One version of E2B's code interpreter (PROGRAM), with the SDK of its time beneath it.
import { assert, rejects, run, same, test } from '../e2e/lib.mjs'
import { listAll, Sandbox, sdk, since } from './version.mjs'

const sandbox = await Sandbox.create({ timeoutMs: 120_000 })

test('code: its value, its output as it comes', async () => {
  const [out, err] = [[], []]
  const ran = await sandbox.runCode('import sys\nprint("out")\nprint("err", file=sys.stderr)\n6 * 7', {
    onStdout: (m) => { out.push(m.line) },
    onStderr: (m) => { err.push(m.line) },
  })
  same(ran.text, '42')
  assert.deepEqual([ran.logs, out.join(''), err.join('')], [{ stdout: ['out\n'], stderr: ['err\n'] }, 'out\n', 'err\n'])
  same(ran.error, undefined)
})

test('variables stay, errors are told', async () => {
  await sandbox.runCode('kept = [1, 2, 3]')
  same((await sandbox.runCode('sum(kept)')).text, '6')
  const failed = await sandbox.runCode('kept[7]')
  assert.deepEqual([failed.error.name, failed.error.value], ['IndexError', 'list index out of range'])
  assert.match(failed.error.traceback, /kept\[7\]/)
})

test('results: HTML, and the form that libraries give', async () => {
  const ran = await sandbox.runCode('class Page:\n    def _repr_html_(self):\n        return "<b>bold</b>"\nPage()')
  same(ran.results[0].html, '<b>bold</b>')
  assert.ok(ran.results[0].formats().includes('html'))
})

test('environment of one cell, and another language', async () => {
  same((await sandbox.runCode('import os\nos.environ["COLOUR"]', { envs: { COLOUR: 'blue' } })).text, 'blue')
  same((await sandbox.runCode('[1, 2].map((x) => x * 2).join()', { language: 'js' })).text, '2,4')
})

test('a context of its own', async () => {
  const context = await sandbox.createCodeContext({ cwd: '/tmp' })
  same((await sandbox.runCode('import os\nos.getcwd()', { context })).text, '/tmp')
  const shared = await sandbox.runCode('kept', { context })
  same(shared.error.name, 'NameError')
  if (!sandbox.listCodeContexts) return
  assert.ok((await sandbox.listCodeContexts()).some((c) => c.id === context.id))
  await sandbox.restartCodeContext(context)
  await sandbox.removeCodeContext(context)
  same((await sandbox.listCodeContexts()).some((c) => c.id === context.id), false)
})

test('a cell that takes longer than it may, and the next', async () => {
  await rejects(sandbox.runCode('import time\ntime.sleep(60)', { timeoutMs: 300 }), sdk.TimeoutError)
  same((await sandbox.runCode('1 + 1')).text, '2')
})

test('commands and files are the same sandbox', async () => {
  await sandbox.files.write('/home/user/note', 'for the cell')
  same((await sandbox.runCode('open("/home/user/note").read()')).text, 'for the cell')
  await sandbox.runCode('open("/home/user/back", "w").write("from the cell")')
  same((await sandbox.commands.run('cat back')).stdout, 'from the cell')
})

if (since('2.0.0'))
  test('paused, and the variables are there', async () => {
    await (sandbox.pause ?? sandbox.betaPause).call(sandbox)
    const back = await Sandbox.connect(sandbox.sandboxId)
    same((await back.runCode('sum(kept)')).text, '6')
  })

test('killed', async () => {
  await sandbox.kill()
  same((await listAll()).some((s) => s.sandboxId === sandbox.sandboxId), false)
})

await run()
