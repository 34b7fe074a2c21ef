// The tools for language models: run_code and run_analysis on the paths of a conversation, and execute.
import fs from 'node:fs'
import path from 'node:path'
import { assert, eventually, run, sleep, test, unique } from './lib.mjs'
import { scratch, start, stop } from './server.mjs'
import { Client, events, keyOf } from './v1.mjs'

const server = await start(undefined, undefined, ['--reap-every', '500ms', '--tenant-contexts', '20', '--tenant-sandboxes', '40'])
const v1 = new Client(server)
const LANGUAGES = ['python', 'javascript', 'typescript', 'bash', 'sh']

// A test with a conversation of its own, which is ended after it.
function talk(name, body, opts) {
  test(name, async () => {
    const id = `talk-${unique()}`
    try {
      await body(id)
    } finally {
      await v1.clear(id)
    }
  }, opts)
}

const texts = (answer) => answer.results.map((r) => r.text)

// ---- run_code -----------------------------------------------------------------------------------

talk('the answer says all there is to say', async (id) => {
  const first = await v1.code(id, 'main', 'import sys\nprint("out")\nprint("err", file=sys.stderr)\n6 * 7')
  assert.deepEqual(Object.keys(first).sort(), ['contextId', 'error', 'executionTimeMs', 'exitCode', 'replaced', 'results', 'sandboxId', 'stderr', 'stdout', 'success', 'truncated', 'wasCreated'])
  assert.deepEqual([first.success, first.exitCode, first.stdout, first.stderr, first.error], [true, 0, 'out\n', 'err\n', null])
  assert.deepEqual([first.wasCreated, first.replaced, first.truncated], [true, false, { stdout: false, stderr: false }])
  assert.deepEqual(texts(first), ['42'])
  assert.ok(first.executionTimeMs >= 0 && Number.isFinite(first.executionTimeMs))
  const second = await v1.code(id, 'main', '1')
  assert.deepEqual([second.wasCreated, second.sandboxId, second.contextId], [false, first.sandboxId, first.contextId])
  assert.equal((await v1.context(first.contextId)).sandboxId, first.sandboxId)
})

const CELLS = {
  python: ['x = 41', 'print(x + 1)'],
  javascript: ['let x = 41', 'console.log(x + 1)'],
  typescript: ['let x: number = 41', 'console.log(x + 1)'],
  bash: ['x=41', 'echo $((x + 1))'],
  sh: ['y=41', 'echo $((y + 1))'],
}

talk('five languages, each with a memory', async (id) => {
  for (const language of LANGUAGES) {
    const [write, read] = CELLS[language]
    await v1.code(id, 'main', write, { language })
    const answer = await v1.code(id, 'main', read, { language })
    assert.deepEqual([answer.stdout, answer.success, answer.exitCode], ['42\n', true, 0], `${language}: ${JSON.stringify(answer)}`)
  }
  assert.equal((await v1.contexts({ conversationId: id })).length, 1, 'all of them in one sandbox')
})

talk('what failed, and how', async (id) => {
  const failed = await v1.code(id, 'main', 'print("before")\n1 / 0')
  assert.deepEqual([failed.success, failed.exitCode, failed.stdout], [false, 1, 'before\n'])
  assert.equal(failed.error.name, 'ZeroDivisionError')
  assert.match(failed.error.value, /division/)
  assert.match(failed.error.traceback, /1 \/ 0/)
  const syntax = await v1.code(id, 'main', 'def (')
  assert.deepEqual([syntax.success, syntax.error.name], [false, 'SyntaxError'])
  for (const [language, code] of [['javascript', 'throw new TypeError("bad")'], ['typescript', 'throw new TypeError("bad")']]) {
    const answer = await v1.code(id, 'main', code, { language })
    assert.deepEqual([answer.success, answer.exitCode, answer.error.name, answer.error.value], [false, 1, 'TypeError', 'bad'], language)
  }
  for (const [code, exitCode] of [['echo no >&2; false', 1], ['echo no >&2; exit 3', 3], ['echo no >&2; no_such_command', 127]]) {
    const shell = await v1.code(id, 'main', code, { language: 'bash' })
    assert.deepEqual([shell.success, shell.exitCode], [false, exitCode], JSON.stringify(shell))
    assert.match(shell.stderr, /^no\n/)
  }
  const died = await v1.code(id, 'main', 'x = 1\nimport os\nos._exit(7)')
  assert.deepEqual([died.success, died.error.name], [false, 'UnexpectedEndOfExecution'])
  assert.ok([1, 7].includes(died.exitCode), `its own, or 1 if nobody saw it: ${died.exitCode}`)
  assert.deepEqual(texts(await v1.code(id, 'main', '"x" in globals()')), ['False'])
})

talk('pictures and charts', async (id) => {
  const answer = await v1.code(id, 'main', 'import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [4, 5, 6])\nplt.title("T")\nplt.show()')
  assert.equal(answer.error, null, JSON.stringify(answer.error))
  const [result] = answer.results
  assert.equal(Buffer.from(result.png, 'base64').subarray(1, 4).toString(), 'PNG')
  assert.deepEqual([result.chart.type, result.chart.title], ['line', 'T'])
  assert.deepEqual(result.chart.elements[0].points, [[1, 4], [2, 5], [3, 6]])
  const rich = await v1.code(id, 'main', 'import pandas as pd\npd.DataFrame({"a": [1, 2]})')
  assert.match(rich.results[0].html, /<table/)
}, { seconds: 60 })

talk('out of time: 124, and the kernel goes on', async (id) => {
  await v1.code(id, 'main', 'x = 5')
  const late = await v1.code(id, 'main', 'import time\nprint("begun", flush=True)\ntime.sleep(60)', { timeoutSeconds: 1 })
  assert.deepEqual([late.success, late.exitCode, late.stdout], [false, 124, 'begun\n'], JSON.stringify(late))
  assert.ok(late.error)
  assert.deepEqual(texts(await v1.code(id, 'main', 'x')), ['5'], 'with what it knew')
  const shell = await v1.code(id, 'main', 'sleep 60', { language: 'bash', timeoutSeconds: 0.5 })
  assert.equal(shell.exitCode, 124, JSON.stringify(shell))
  assert.equal((await v1.code(id, 'main', 'echo again', { language: 'bash' })).stdout, 'again\n')
})

talk('whoever leaves takes the cell along', async (id) => {
  await v1.code(id, 'main', 'import time\ninterrupted = False')
  const leaving = new AbortController()
  const cell = v1.ask('POST', '/v1/tools/run_code', { conversationId: id, pathId: 'main', code: 'try:\n    open("/tmp/begun", "w").close()\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    interrupted = True' }, { signal: leaving.signal })
  cell.catch(() => {})
  await eventually('it runs', async () => (await v1.code(id, 'main', 'ls /tmp', { language: 'bash' })).stdout.includes('begun'))
  leaving.abort()
  assert.deepEqual(texts(await v1.code(id, 'main', 'interrupted', { timeoutSeconds: 20 })), ['True'])
  await assert.rejects(cell)
})

talk('twenty calls at once run one after the other, in order', async (id) => {
  await v1.code(id, 'main', 'seen = []\nbusy = 0')
  const calls = []
  for (let i = 0; i < 20; i++) {
    calls.push(v1.code(id, 'main', `busy += 1\nassert busy == 1\nimport time; time.sleep(0.01)\nseen.append(${i})\nbusy -= 1\nlen(seen)`))
    await sleep(5) // so that they come in this order
  }
  const answers = await Promise.all(calls)
  assert.deepEqual(answers.map((a) => a.error), Array(20).fill(null))
  assert.deepEqual(answers.flatMap(texts), Array.from({ length: 20 }, (_, i) => String(i + 1)))
  assert.deepEqual(texts(await v1.code(id, 'main', 'seen == list(range(20))')), ['True'])
})

talk('twenty calls at once on a cold path: one sandbox, one kernel', async (id) => {
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => v1.code(id, 'cold', `globals().setdefault("seen", []).append(${i})\nlen(seen)`)))
  assert.equal(new Set(answers.map((a) => a.sandboxId)).size, 1)
  assert.equal(answers.filter((a) => a.wasCreated).length, 1)
  assert.deepEqual(answers.flatMap(texts).map(Number).sort((a, b) => a - b), Array.from({ length: 20 }, (_, i) => i + 1))
})

talk('variables of a call, and the place in the address', async (id) => {
  assert.deepEqual(texts(await v1.code(id, 'main', 'import os\nos.environ["COLOUR"]', { envs: { COLOUR: 'blue' } })), ['blue'])
  assert.deepEqual(texts(await v1.code(id, 'main', '"COLOUR" in os.environ')), ['False'])
  const bound = await v1.gives(200, 'POST', `/v1/tools/run_code?conversationId=${id}&pathId=main`, { code: '2 + 2' })
  assert.deepEqual([texts(bound), bound.wasCreated], [['4'], false])
})

talk('output beyond a megabyte is cut, and said to be', async (id) => {
  const answer = await v1.code(id, 'main', 'print("x" * 3_000_000)\nimport sys\nprint("ä" * 10, file=sys.stderr)')
  assert.deepEqual([answer.truncated, answer.success], [{ stdout: true, stderr: false }, true])
  assert.ok(answer.stdout.length > 900_000 && answer.stdout.length <= 1024 * 1024, `${answer.stdout.length}`)
  assert.equal(answer.stderr, 'ä'.repeat(10) + '\n')
})

talk('a lost sandbox is replaced under the call', async (id) => {
  const first = await v1.code(id, 'main', 'x = 1')
  await v1.gives(204, 'DELETE', `/sandboxes/${first.sandboxId}`)
  const second = await v1.code(id, 'main', '"x" in globals()')
  assert.deepEqual([second.success, second.replaced, texts(second), second.contextId], [true, true, ['False'], first.contextId])
  assert.notEqual(second.sandboxId, first.sandboxId)
})

talk('a long cell keeps its path alive', async (id) => {
  await v1.obtain(id, 'main', { ttlSeconds: 1 })
  const answer = await v1.code(id, 'main', 'import time\ntime.sleep(3)\n"awake"')
  assert.deepEqual(texts(answer), ['awake'])
})

// ---- streams ------------------------------------------------------------------------------------

talk('the same, as events while they happen', async (id) => {
  const code = 'import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.2)\n6 * 7'
  const res = await fetch(`${server.url}/v1/tools/run_code`, {
    method: 'POST',
    headers: { 'X-API-Key': v1.key, 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ conversationId: id, pathId: 'main', code }),
  })
  assert.equal(res.status, 200)
  assert.match(res.headers.get('content-type'), /^text\/event-stream/)
  let text = ''
  let early = false
  for await (const part of res.body.pipeThrough(new TextDecoderStream())) {
    text += part
    early ||= text.includes('event: stdout') && !text.includes('event: done')
  }
  assert.ok(early, 'output came before the end')
  const all = events(text)
  assert.equal(all[0].event, 'context')
  assert.ok(all[0].data.contextId && all[0].data.sandboxId, JSON.stringify(all[0]))
  assert.equal(all.at(-1).event, 'done')
  const done = all.at(-1).data
  assert.deepEqual([done.stdout, done.success, texts(done), done.contextId], ['0\n1\n2\n', true, ['42'], all[0].data.contextId])
  assert.equal(all.filter((e) => e.event === 'stdout').map((e) => e.data.text).join(''), '0\n1\n2\n')
  assert.equal(all.find((e) => e.event === 'result').data.text, '42')

  const asked = await v1.ask('POST', '/v1/tools/run_code', { conversationId: id, pathId: 'main', code: '1 / 0', stream: true })
  const failed = events(asked.text)
  assert.equal(failed.find((e) => e.event === 'error').data.name, 'ZeroDivisionError')
  assert.deepEqual([failed.at(-1).event, failed.at(-1).data.exitCode], ['done', 1])
  const analysis = await v1.ask('POST', '/v1/tools/run_analysis', { conversationId: id, pathId: 'main', analysisType: 'custom', code: 'print("[1]")', stream: true })
  assert.deepEqual(events(analysis.text).at(-1).data.parsedOutput, [1])
})

talk('a stream that is left interrupts the cell', async (id) => {
  await v1.code(id, 'main', 'import time\ninterrupted = False')
  const leaving = new AbortController()
  const res = await fetch(`${server.url}/v1/tools/run_code`, {
    method: 'POST', signal: leaving.signal,
    headers: { 'X-API-Key': v1.key, 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ conversationId: id, pathId: 'main', code: 'try:\n    print("go", flush=True)\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    interrupted = True' }),
  })
  let text = ''
  try {
    for await (const part of res.body.pipeThrough(new TextDecoderStream())) if ((text += part).includes('"go')) leaving.abort()
  } catch {}
  assert.match(text, /"go/)
  assert.deepEqual(texts(await v1.code(id, 'main', 'interrupted', { timeoutSeconds: 20 })), ['True'])
})

// ---- run_analysis -------------------------------------------------------------------------------

talk('parameters are data, whatever they are', async (id) => {
  const evil = '"""\'; import os; os._exit(1) #\n\\u0000{}'
  for (const parameters of [{ a: [1, 2.5, null, true], 'ключ': 'значение 💡' }, [1, 2], 'text', 7, null, false, { evil }, { big: 'x'.repeat(300_000) }]) {
    const answer = await v1.analysis(id, 'main', 'custom', parameters, { code: 'import json\nprint(json.dumps(parameters))\n"value"' })
    assert.deepEqual([answer.success, answer.parsedOutput, answer.parseError], [true, parameters, null], JSON.stringify(answer).slice(0, 500))
    assert.equal(answer.result, 'value')
  }
  const js = await v1.analysis(id, 'main', 'custom', { evil }, { language: 'javascript', code: 'console.log(JSON.stringify(parameters))' })
  assert.deepEqual(js.parsedOutput, { evil })
})

talk('output is parsed by its format, and what cannot be is told beside it', async (id) => {
  const custom = (code, outputFormat) => v1.analysis(id, 'main', 'custom', {}, { code, outputFormat })
  const json = await custom('print(\'{"a": [1, 2]}\')', 'json')
  assert.deepEqual([json.parsedOutput, json.parseError, json.stdout], [{ a: [1, 2] }, null, '{"a": [1, 2]}\n'])
  const text = await custom('print("just words")', 'text')
  assert.deepEqual([text.parseError, String(text.parsedOutput).trim()], [null, 'just words'])
  const csv = await custom('print("name,n")\nprint(\'"Doe, Jane",1\')\nprint("x,2")', 'csv')
  assert.equal(csv.parseError, null, JSON.stringify(csv))
  assert.match(JSON.stringify(csv.parsedOutput), /Doe, Jane/)
  const wrong = await custom('print("not json")', 'json')
  assert.deepEqual([wrong.success, wrong.parsedOutput, wrong.stdout], [true, null, 'not json\n'])
  assert.match(wrong.parseError, /JSON/)
  const failed = await custom('print("half")\n1 / 0', 'json')
  assert.deepEqual([failed.success, failed.error.name, failed.parsedOutput], [false, 'ZeroDivisionError', null])
})

talk('the programs that come with the server', async (id) => {
  const tax = await v1.analysis(id, 'main', 'tax_calculation', { income: 50_000, brackets: [{ upTo: 10_000, rate: 0 }, { upTo: 40_000, rate: 0.2 }, { upTo: null, rate: 0.4 }] })
  assert.deepEqual([tax.success, tax.parsedOutput?.tax], [true, 10_000], JSON.stringify(tax))
  const records = [{ name: 'a', n: 1 }, { name: 'b', n: 3 }, { name: 'a', n: 5 }]
  const data = await v1.analysis(id, 'main', 'data_analysis', { records, groupBy: 'name' })
  assert.equal(data.success, true, JSON.stringify(data))
  assert.match(JSON.stringify(data.parsedOutput), /"mean": ?3\b/)
  const rules = [{ id: 'small', field: 'n', check: 'max', value: 4 }]
  const check = await v1.analysis(id, 'main', 'compliance_check', { records, rules })
  assert.equal(check.success, true, JSON.stringify(check))
  assert.match(JSON.stringify(check.parsedOutput), /small/)
  const wrong = await v1.analysis(id, 'main', 'tax_calculation', { income: 'much' })
  assert.deepEqual([wrong.success, wrong.error?.name], [false, 'ValueError'], JSON.stringify(wrong))
})

test('an operator\'s own programs', async () => {
  const folder = fs.mkdtempSync(path.join(scratch, 'analysis-'))
  fs.chmodSync(folder, 0o755)
  fs.writeFileSync(path.join(folder, 'tax_calculation.py'), 'print(\'{"tax": 0}\')\n')
  fs.writeFileSync(path.join(folder, 'weather.py'), 'import json\nprint(json.dumps({"city": parameters["city"]}))\n')
  const own = await start(undefined, undefined, ['--analysis', folder])
  const client = new Client(own)
  assert.deepEqual((await client.analysis('talk', 'main', 'tax_calculation', {})).parsedOutput, { tax: 0 })
  assert.deepEqual((await client.analysis('talk', 'main', 'weather', { city: 'Rome' })).parsedOutput, { city: 'Rome' })
  assert.equal((await client.analysis('talk', 'main', 'data_analysis', { records: [{ a: 1 }] })).success, true, 'the others stay')
  assert.equal(await stop(own), 0)
})

talk('what was used is counted', async (id) => {
  const before = (await v1.gives(200, 'GET', '/v1/usage')).total
  const { contextId } = await v1.code(id, 'main', 'sum(range(3_000_000))')
  await v1.code(id, 'main', 'print("x" * 1000)')
  await v1.end(contextId)
  const { resourceUsage } = await eventually('it is in the store', async () => {
    const context = await v1.context(contextId)
    return context.resourceUsage.executions === 2 && context
  })
  assert.ok(resourceUsage.cpuSeconds > 0 && resourceUsage.bytesOut >= 1000 && resourceUsage.sandboxes === 1, JSON.stringify(resourceUsage))
  const usage = await v1.gives(200, 'GET', '/v1/usage')
  assert.ok(usage.total.executions >= before.executions + 2 && usage.total.cpuSeconds > before.cpuSeconds)
  assert.deepEqual([usage.limits.contexts, usage.limits.conversationContexts, usage.limits.executionSeconds, usage.limits.codeBytes], [20, 5, 60, 102_400])
  await v1.refuses(400, /from/, 'GET', '/v1/usage?from=yesterday')
})

// ---- the registry -------------------------------------------------------------------------------

test('the tools, as three kinds of models want to hear of them', async () => {
  const all = await v1.gives(200, 'GET', '/v1/tools')
  assert.deepEqual(Object.keys(all).sort(), ['anthropic', 'mcp', 'openai'])
  const names = (tools, name) => tools.map(name).sort()
  assert.deepEqual(names(all.mcp, (t) => t.name), ['run_analysis', 'run_code'])
  assert.deepEqual(names(all.anthropic, (t) => t.name), ['run_analysis', 'run_code'])
  assert.deepEqual(names(all.openai, (t) => t.function.name), ['run_analysis', 'run_code'])
  for (const t of all.mcp) assert.ok(t.description && t.inputSchema.type === 'object' && t.inputSchema.required.includes('conversationId'), t.name)
  for (const t of all.anthropic) assert.ok(t.description && t.input_schema.properties.pathId, t.name)
  for (const t of all.openai) assert.deepEqual([t.type, t.function.parameters.type], ['function', 'object'])
  const code = all.mcp.find((t) => t.name === 'run_code').inputSchema.properties
  assert.deepEqual(code.language.enum, LANGUAGES)
  for (const format of ['mcp', 'openai', 'anthropic']) {
    const one = await v1.gives(200, 'GET', `/v1/tools?format=${format}`)
    assert.deepEqual(one.tools ?? one, all[format], format)
  }
  const bound = await v1.gives(200, 'GET', '/v1/tools?format=anthropic&conversationId=c&pathId=p')
  for (const t of bound.tools ?? bound) {
    assert.ok(!t.input_schema.properties.conversationId && !t.input_schema.properties.pathId, 'a bound tool asks for no place')
    assert.ok(!t.input_schema.required.includes('pathId'))
  }
  await v1.refuses(400, /format/, 'GET', '/v1/tools?format=yaml')
})

// ---- execute ------------------------------------------------------------------------------------

const execute = (body) => v1.gives(200, 'POST', '/v1/execute', body)

test('a program without a conversation', async () => {
  const before = (await v1.sandboxes()).length
  const answer = await execute({ code: 'import sys\nprint(sys.stdin.read().upper())\nprint("e", file=sys.stderr)', stdin: 'hello' })
  assert.deepEqual([answer.stdout, answer.stderr, answer.exitCode, answer.status, answer.errorMessage], ['HELLO\n', 'e\n', 0, 'success', null])
  assert.ok(answer.duration >= 0 && answer.resourceUsage.cpuSeconds >= 0, JSON.stringify(answer))
  const failed = await execute({ code: 'import sys; sys.exit(3)' })
  assert.deepEqual([failed.exitCode, failed.status], [3, 'execution_error'])
  const late = await execute({ code: 'print("begun", flush=True)\nwhile True: pass', timeoutSeconds: 1 })
  assert.deepEqual([late.status, late.stdout], ['timeout', 'begun\n'])
  assert.ok(late.errorMessage)
  for (const [language, code] of [['javascript', 'console.log(6 * 7)'], ['bash', 'echo $((6 * 7))'], ['typescript', 'const x: number = 42; console.log(x)']])
    assert.equal((await execute({ code, language })).stdout, '42\n', language)
  assert.equal((await execute({ code: 'import os; print(os.environ["A"])', envs: { A: 'b' } })).stdout, 'b\n')
  await eventually('nothing is left', async () => (await v1.sandboxes()).length === before)
}, { seconds: 60 })

test('bad requests to execute', async () => {
  for (const [message, body] of [
    [/code/, {}],
    [/code/, { code: '' }],
    [/code/, { code: 5 }],
    [/language/, { code: '1', language: 'cobol' }],
    [/timeoutSeconds/, { code: '1', timeoutSeconds: 0 }],
    [/timeoutSeconds/, { code: '1', timeoutSeconds: 301 }],
    [/timeoutSeconds/, { code: '1', timeoutSeconds: -1 }],
    [/colour/, { code: '1', colour: 'red' }],
    [/stdin/, { code: '1', stdin: 5 }],
    [/limits|memoryMb/, { code: '1', limits: { memoryMb: -1 } }],
    [/limits|nonsense/, { code: '1', limits: { nonsense: 1 } }],
    [/envs/, { code: '1', envs: 'x' }],
  ])
    await v1.refuses(400, message, 'POST', '/v1/execute', body)
})

// ---- bad input ----------------------------------------------------------------------------------

talk('bad calls are told what is wrong, and nothing is made', async (id) => {
  const place = { conversationId: id, pathId: 'main' }
  const bad = (message, body, tool = 'run_code') => v1.refuses(400, message, 'POST', `/v1/tools/${tool}`, body)
  for (const field of ['conversationId', 'pathId']) {
    const { [field]: _, ...without } = { ...place, code: '1' }
    await bad(new RegExp(field), without)
    for (const value of ['', 'x'.repeat(10_240), 'a\u0001b', 7, null]) await bad(new RegExp(field), { ...place, code: '1', [field]: value })
  }
  await bad(/code/, place)
  await bad(/code/, { ...place, code: '' })
  await bad(/code/, { ...place, code: ['print(1)'] })
  await bad(/language/, { ...place, code: '1', language: 'cobol' })
  await bad(/language/, { ...place, code: '1', language: 5 })
  for (const timeoutSeconds of [0, -1, 601, 1e9, '5', true]) await bad(/timeoutSeconds/, { ...place, code: '1', timeoutSeconds })
  await bad(/envs/, { ...place, code: '1', envs: { A: 1 } })
  await bad(/colour/, { ...place, code: '1', colour: 'red' })
  await bad(/./, '{"conversationId":')
  const long = await v1.ask('POST', '/v1/tools/run_code', { ...place, code: '#'.repeat(102_401) })
  assert.ok([400, 413].includes(long.status), long.text)
  assert.equal(long.json.code, long.status)
  assert.match(long.json.message, /limit/)
  assert.equal((await v1.ask('POST', '/v1/tools/run_code', { ...place, code: '#'.repeat(3_000_000) })).status, 413)

  const analysis = (message, body) => bad(message, { ...place, ...body }, 'run_analysis')
  await analysis(/analysisType/, {})
  await analysis(/analysisType/, { analysisType: 'astrology' })
  await analysis(/analysisType/, { analysisType: '../../etc/passwd' })
  await analysis(/analysisType/, { analysisType: 5 })
  await analysis(/code/, { analysisType: 'custom' })
  await analysis(/outputFormat/, { analysisType: 'custom', code: '1', outputFormat: 'xml' })
  await bad(/JSON/, `{"conversationId": "${id}", "pathId": "main", "analysisType": "custom", "code": "1", "parameters": {a}}`, 'run_analysis')
  await v1.refuses(404, /./, 'POST', '/v1/tools/rm_rf', { ...place })
  await v1.refuses(405, /./, 'GET', '/v1/tools/run_code')
  assert.deepEqual(await v1.contexts({ conversationId: id, status: 'all' }), [], 'nothing was made')
  // At the limit it runs.
  assert.equal((await v1.code(id, 'main', `1 #${'x'.repeat(102_400 - 3)}`)).success, true)
})

test('no place for a sandbox: the tool is unavailable, and says so', async () => {
  const small = await start(undefined, undefined, ['--tenant-contexts', '1'])
  const client = new Client(small)
  await client.code('talk', 'main', '1')
  for (const [tool, body] of [['run_code', { code: '1' }], ['run_analysis', { analysisType: 'custom', code: '1' }]]) {
    const refusal = await client.refuses(429, /\b1\b.*tenant/, 'POST', `/v1/tools/${tool}`, { conversationId: 'talk', pathId: 'side', ...body })
    assert.equal(refusal.unavailable, true, JSON.stringify(refusal))
  }
  assert.equal((await client.code('talk', 'main', '1')).success, true, 'the path that has one goes on')
  const wrong = await client.refuses(400, /language/, 'POST', '/v1/tools/run_code', { conversationId: 'talk', pathId: 'main', code: '1', language: 'x' })
  assert.notEqual(wrong.unavailable, true, 'that would be no better later')
  await client.refuses(404, /template/i, 'POST', '/v1/tools/run_code', { conversationId: 'other', pathId: 'side', code: '1', template: 'nosuchtemplate' }).catch(() => {})
  assert.equal(await stop(small), 0)
})

test('the tools of two tenants do not meet', async () => {
  const others = new Client(server, keyOf(server, 'others'))
  const id = `talk-${unique()}`
  const mine = await v1.code(id, 'main', 'secret = 1')
  const theirs = await others.code(id, 'main', '"secret" in globals()')
  assert.deepEqual([texts(theirs), theirs.sandboxId === mine.sandboxId], [['False'], false])
  await others.clear(id)
  await v1.clear(id)
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

await run()
