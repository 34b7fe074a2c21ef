// What a cell gives its caller: every kind of result, and the callbacks that tell of it while it runs.
import { context, err, fails, fresh, main, out, shared, shown, value } from './code.mjs'
import { assert, eventually, run, same, sleep, test } from './lib.mjs'

const png = (base64) => {
  const bytes = Buffer.from(base64, 'base64')
  assert.equal(bytes.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n', 'first bytes of a PNG')
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

// ---- kinds --------------------------------------------------------------------------------------

test('text: the value of the cell', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode('x = 41\nx + 1')
  assert.equal(execution.text, '42')
  assert.equal(execution.results.length, 1)
  assert.equal(execution.results[0].isMainResult, true)
  assert.deepEqual(execution.logs, { stdout: [], stderr: [] })
  assert.equal(execution.error, undefined)
  assert.equal(typeof execution.executionCount, 'number')
  assert.deepEqual(execution.results[0].formats(), [])
  assert.deepEqual(Object.keys(execution.results[0].raw).filter((k) => !['type', 'is_main_result'].includes(k)), ['text'])
})

const KINDS = {
  html: ['_repr_html_', '"<h1>é</h1>"', '<h1>é</h1>'],
  markdown: ['_repr_markdown_', '"# é"', '# é'],
  svg: ['_repr_svg_', '"<svg>é</svg>"', '<svg>é</svg>'],
  png: ['_repr_png_', 'b"\\x89PNG\\r\\n"', 'iVBORw0K'],
  jpeg: ['_repr_jpeg_', 'b"\\xff\\xd8\\xff"', '/9j/'],
  pdf: ['_repr_pdf_', 'b"%PDF-1.7"', 'JVBERi0xLjc='],
  latex: ['_repr_latex_', '"$\\\\frac{1}{2}$"', '$\\frac{1}{2}$'],
  javascript: ['_repr_javascript_', '"f(1)"', 'f(1)'],
  json: ['_repr_json_', '{"a": [1, None, True, "é", 2.5]}', { a: [1, null, true, 'é', 2.5] }],
}

for (const [kind, [method, given, wanted]] of Object.entries(KINDS))
  test(`${kind}: as a value, and displayed`, async () => {
    const sandbox = await shared()
    const code = `class Thing:\n    def ${method}(self): return ${given}\n    def __repr__(self): return "<thing>"\ndisplay(Thing())\nThing()`
    const execution = await sandbox.runCode(code)
    assert.equal(execution.error, undefined)
    assert.deepEqual(execution.results.map((r) => r.isMainResult), [false, true])
    for (const result of execution.results) {
      assert.deepEqual(result[kind], wanted)
      assert.equal(result.text, '<thing>')
      assert.deepEqual(result.formats(), [kind])
      assert.deepEqual(JSON.parse(JSON.stringify(result))[kind], wanted)
    }
  })

test('data: a pandas frame as columns, HTML and text', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode(`
import pandas as pd
pd.DataFrame({"name": ["ann", "bob"], "n": [1, 2], "x": [0.5, None], "on": [True, False],
              "at": pd.to_datetime(["2024-05-06T07:08:09", None])})`)
  const result = main(execution)
  assert.deepEqual(result.data, { name: ['ann', 'bob'], n: [1, 2], x: [0.5, null], on: [true, false], at: ['2024-05-06T07:08:09', null] })
  assert.deepEqual(Object.keys(result.data), ['name', 'n', 'x', 'on', 'at'])
  assert.match(result.html, /<table/)
  assert.match(result.text, /name +n +x +on +at/)
  assert.deepEqual(result.formats(), ['html', 'data'])
})

test('data: a large frame is shortened in text and HTML, not in its data', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode('import pandas as pd\npd.DataFrame({"i": range(5000)})')
  assert.equal(main(execution).data.i.length, 5000)
  assert.match(main(execution).text, /5000 rows x 1 columns/)
  assert.ok(main(execution).html.length < 20_000, 'HTML of a page')
})

test('png: images of PIL, and of matplotlib', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode('from PIL import Image\nImage.new("RGB", (7, 5), "blue")')
  assert.deepEqual(png(main(execution).png), { width: 7, height: 5 })
  const figure = await sandbox.runCode('import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 1))\nplt.plot([1, 2])\nplt.show()')
  assert.equal(figure.results.length, 1)
  assert.ok(png(figure.results[0].png).width > 50)
})

test('jpeg: an image that was one', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode('from PIL import Image\nimport io\nb = io.BytesIO()\nImage.new("RGB", (4, 4)).save(b, "JPEG")\nb.seek(0)\nImage.open(b)')
  assert.equal(Buffer.from(main(execution).jpeg, 'base64').subarray(0, 2).toString('hex'), 'ffd8')
})

test('latex: sympy', async () => {
  const sandbox = await shared()
  assert.match(main(await sandbox.runCode('import sympy\nsympy.Rational(1, 3)')).latex, /\\frac\{1\}\{3\}/)
})

test('plotly: HTML, and what draws it', async () => {
  const sandbox = await shared()
  const result = main(await sandbox.runCode('import plotly.graph_objects as go\ngo.Figure(go.Scatter(x=[1, 2], y=[3, 4]))'))
  assert.match(result.html, /plotly/)
  const drawn = result.raw.extra['application/vnd.plotly.v1+json']
  assert.deepEqual([drawn.data[0].x, drawn.data[0].y], [[1, 2], [3, 4]])
})

test('extra: a type without a field of its own', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode('display({"text/plain": "t", "application/x-tree": {"a": [1]}}, raw=True)')
  assert.deepEqual(shown(execution)[0].raw.extra, { 'application/x-tree': { a: [1] } })
})

test('several displays, a figure and a value: in their order', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode('import matplotlib.pyplot as plt\ndisplay("one")\nplt.plot([1])\nplt.show()\ndisplay("three")\n"last"')
  assert.deepEqual(execution.results.map((r) => [r.isMainResult, r.png ? 'png' : r.text]), [[false, 'one'], [false, 'png'], [false, 'three'], [true, 'last']])
  assert.equal(execution.text, 'last')
})

test('javascript: values have text and JSON', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode('const o = { a: [1, "x"], b: null }; o', { language: 'javascript' })
  assert.deepEqual(main(execution).json, { a: [1, 'x'], b: null })
  assert.equal(execution.text, "{ a: [ 1, 'x' ], b: null }")
})

test('an error: name, value, traceback', async () => {
  const sandbox = await shared()
  const execution = await fails(sandbox, 'def f():\n    raise ValueError("wröng")\nf()', 'ValueError', /^wröng$/)
  assert.match(execution.error.traceback, /line 3[^]*line 2[^]*ValueError: wröng/)
  assert.ok(!execution.error.traceback.includes('\u001b'), 'no colours')
  assert.equal(execution.text, undefined)
})

// ---- callbacks ----------------------------------------------------------------------------------

test('callbacks: output, results and errors, in order', async () => {
  const sandbox = await shared()
  const told = []
  const execution = await sandbox.runCode('import sys\nprint("out")\nprint("err", file=sys.stderr)\ndisplay("shown")\nprint("again")\n1 / 0', {
    onStdout: (m) => { told.push(['stdout', m.line, m.error, typeof m.timestamp]) },
    onStderr: (m) => { told.push(['stderr', m.line, m.error, typeof m.timestamp]) },
    onResult: (r) => { told.push(['result', r.text, r.isMainResult]) },
    onError: (e) => { told.push(['error', e.name, e.value]) },
  })
  assert.deepEqual(told, [
    ['stdout', 'out\n', false, 'number'],
    ['stderr', 'err\n', true, 'number'],
    ['result', 'shown', false],
    ['stdout', 'again\n', false, 'number'],
    ['error', 'ZeroDivisionError', 'division by zero'],
  ])
  assert.equal(out(execution), 'out\nagain\n')
  assert.equal(err(execution), 'err\n')
})

test('callbacks: the value of the cell too', async () => {
  const sandbox = await shared()
  const told = []
  await sandbox.runCode('[1, 2]', { onResult: (r) => { told.push([r.text, r.json, r.isMainResult]) } })
  assert.deepEqual(told, [['[1, 2]', [1, 2], true]])
})

// ---- streaming ----------------------------------------------------------------------------------

for (const [language, code] of [
  ['python', 'import os, time\nprint("first")\nwhile not os.path.exists("/tmp/go-python"): time.sleep(0.01)\nprint("second")'],
  ['javascript', 'const { existsSync } = require("fs"); console.log("first"); while (!existsSync("/tmp/go-javascript")) await new Promise((r) => setTimeout(r, 10)); console.log("second")'],
  ['bash', 'echo first; until [ -e /tmp/go-bash ]; do sleep 0.01; done; echo second'],
])
  test(`streaming: ${language} is heard while the cell runs`, async () => {
    const sandbox = await shared()
    const lines = []
    const cell = sandbox.runCode(code, { language, onStdout: (m) => { lines.push(m.line) } })
    await eventually('the first line', () => lines.join('').includes('first'))
    assert.ok(!lines.join('').includes('second'), 'the cell waits')
    await sandbox.files.write(`/tmp/go-${language}`, '')
    same(out(await cell), 'first\nsecond\n')
  })

test('streaming: a display is heard while the cell runs', async () => {
  const sandbox = await shared()
  let result
  const cell = sandbox.runCode('import os, time\ndisplay("now")\nwhile not os.path.exists("/tmp/go-display"): time.sleep(0.01)', { onResult: (r) => { result = r } })
  await eventually('the display', () => result?.text === 'now')
  await sandbox.files.write('/tmp/go-display', '')
  assert.equal((await cell).error, undefined)
})

test('a cell without output for more than five seconds: the connection lives', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  assert.equal(await value(sandbox, 'import time\ntime.sleep(5.5)\n"awake"', opts), 'awake')
})

test('a slow reader loses nothing', async () => {
  const sandbox = await fresh()
  let bytes = 0
  let calls = 0
  const execution = await sandbox.runCode('for i in range(200_000): print("x" * 49)', {
    onStdout: async (m) => {
      bytes += m.line.length
      if (++calls % 50 === 0) await sleep(5)
    },
  })
  assert.equal(execution.error, undefined)
  assert.equal(bytes, 200_000 * 50)
})

await run()
