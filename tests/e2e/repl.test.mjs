// sandglass repl: a person at a terminal (tmux), and a cell in a pipe.
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { assert, eventually, fresh, mine, run, same, Sandbox, sh, test, TOP, toPort, unique } from './lib.mjs'
import { home, surroundings, Terminal } from './terminal.mjs'

const SG = process.env.SANDGLASS ?? path.join(TOP, 'build/bin/sandglass')
const history = (language) => path.join(home, '.local/state/sandglass', `repl_history-${language}`)

function repl(args, input, { env = {}, seconds = 30 } = {}) {
  return new Promise((resolve) => {
    const options = { env: { ...surroundings, ...env }, timeout: seconds * 1000, maxBuffer: 1 << 28 }
    const child = execFile(SG, ['repl', ...args], options, (err, stdout, stderr) =>
      resolve({ status: err ? (err.code ?? `signal ${err.signal}`) : 0, stdout, stderr }),
    )
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

// A prompt in a terminal of its own, in a directory of its own.
async function atPrompt(args, body, { size, env = '' } = {}) {
  const t = new Terminal(size)
  const dir = path.join(home, unique())
  fs.mkdirSync(dir)
  t.type(`cd ${dir}; ${env} ${SG} repl ${args}`)
  try {
    await t.shows(/ in sandbox [\s\S]*In \[1\]:/)
    await body(t, dir)
  } finally {
    t.end()
  }
}

// ---- in a pipe ------------------------------------------------------------------------------------

test('a pipe: one cell, plain output, the value last', async () => {
  const { status, stdout, stderr } = await repl([], 'x = 20\nprint("hello")\n\n\nx * 2 + 2\n')
  same(stderr, '')
  same(stdout, 'hello\n42\n')
  same(status, 0)
})

test('a pipe: streams apart, an error is status 1', async () => {
  const { status, stdout, stderr } = await repl([], 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nnope')
  same(stdout, 'out\n')
  assert.match(stderr, /^err\n/)
  assert.match(stderr, /NameError: name 'nope' is not defined\n$/)
  assert.doesNotMatch(stderr, /\x1b/)
  same(status, 1)
})

test('a pipe: other languages, and one that is not there', async () => {
  same((await repl(['-l', 'javascript'], 'const n = [1, 2, 3]; n.map((x) => x * x).length')).stdout, '3\n')
  same((await repl(['-l', 'bash'], 'for i in 1 2; do echo $i; done')).stdout, '1\n2\n')
  const { status, stderr } = await repl(['-l', 'cobol'], 'x')
  same(status, 1)
  assert.match(stderr, /^sandglass: .*cobol.*python.*\n$/)
})

test('a pipe: --json is the server’s events', async () => {
  const { status, stdout } = await repl(['--json'], 'print(1)\n2')
  const events = stdout.trimEnd().split('\n').map((l) => JSON.parse(l))
  same(status, 0)
  same(events.at(0).type, 'number_of_executions')
  same(events.at(-1).type, 'end_of_execution')
  same(events.filter((e) => e.type === 'stdout').map((e) => e.text).join(''), '1\n')
  same(events.find((e) => e.type === 'result').text, '2')
  same((await repl(['--json'], '1/0')).status, 1)
})

test('a pipe: variables, and a sandbox that was named: its files stay, our context does not', async () => {
  same((await repl(['--env', 'COLOUR=blue'], 'import os; os.environ["COLOUR"]')).stdout, 'blue\n')
  const sandbox = await fresh('code-interpreter-v1')
  const contexts = async () => (await toPort(sandbox, 49999, { path: '/contexts' })).json.map((c) => c.id).sort()
  const before = await contexts()
  same((await repl([sandbox.sandboxId], 'ours = open("mark", "w").write("x"); ours')).stdout, '1\n')
  same(await sh(sandbox, 'cat /home/user/mark'), 'x')
  same((await repl([sandbox.sandboxId], '"ours" in globals()')).stdout, 'False\n')
  assert.deepEqual(await contexts(), before)
})

test('a pipe: pictures become files', async () => {
  const dir = path.join(home, unique())
  fs.mkdirSync(dir)
  const svg = 'class S:\n  def _repr_svg_(self): return "<svg/>"\n  def __repr__(self): return "drawn"\nS()'
  const result = await new Promise((resolve) => {
    const child = execFile(SG, ['repl'], { env: surroundings, cwd: dir }, (err, stdout, stderr) => resolve({ err, stdout, stderr }))
    child.stdin.end(svg)
  })
  assert.equal(result.err, null, result.stderr)
  assert.match(result.stderr, /picture saved as \.\/sandglass-1\.svg/)
  same(fs.readFileSync(path.join(dir, 'sandglass-1.svg'), 'utf8'), '<svg/>')
  same(result.stdout, 'drawn\n')
})

test('a pipe: no such sandbox, bad options', async () => {
  const none = await repl(['i' + '0'.repeat(19)], '1')
  same(none.status, 1)
  assert.match(none.stderr, /^sandglass: [^\n]*\n$/)
  same((await repl(['--nonsense'], '1')).status, 2)
  same((await repl(['--url', 'http://127.0.0.1:1'], '1')).status, 125)
})

// ---- at a terminal --------------------------------------------------------------------------------

test('a terminal: cells, values, state, blocks and brackets over lines', async () => {
  await atPrompt('', async (t) => {
    t.type('x = 20')
    await t.shows(/In \[2\]:/)
    t.type('x * 2 + 2')
    await t.shows(/Out\[2\]: 42/)
    t.type('def double(n):')
    await t.shows(/In \[3\]: def double\(n\):\n +\.\.\.: +$/m)
    t.type('return n * 2')
    t.press('Enter')
    await t.shows(/In \[4\]:/)
    t.type('double(')
    await t.shows(/double\(\n +\.\.\.:/)
    t.type('4)')
    await t.shows(/Out\[4\]: 8/)
    t.type("print('no line end', end='')")
    await t.shows(/\nno line end\nIn \[6\]:/)
    t.press('C-d')
    await t.shows(/ready> $/m)
  })
})

test('a terminal: colours for values, errors and standard error; none with NO_COLOR or --no-color', async () => {
  const look = async (args, env) => {
    let screen
    await atPrompt(args, async (t) => {
      t.type('import sys; _ = sys.stderr.write("to stderr\\n")')
      await t.shows(/^to stderr/m)
      t.type('def f(): return 1/0')
      t.press('Enter')
      t.type('f()')
      await t.shows(/^ZeroDivisionError: division by zero\s+In \[/m)
      screen = t.tmux('capture-pane', '-p', '-e', '-S', '-')
    }, { env })
    return screen.slice(screen.indexOf(' in sandbox '))
  }
  const coloured = await look('')
  assert.match(coloured, /\x1b\[32mIn \[1\]:/)
  assert.match(coloured, /\x1b\[31mto stderr/)
  assert.match(coloured, /\x1b\[1m\x1b\[31mZeroDivisionError/)
  assert.match(coloured, /line \x1b\[32m1/)
  assert.doesNotMatch(await look('--no-color'), /\x1b/)
  assert.doesNotMatch(await look('', 'NO_COLOR=1'), /\x1b/)
})

test('a terminal: ^C interrupts a cell, and the next one works; ^C clears the line', async () => {
  await atPrompt('', async (t) => {
    t.type('kept = 7')
    t.type('import itertools; print("be" + "gun"); [0 for _ in itertools.count()]')
    await t.shows(/^begun$/m)
    t.press('C-c')
    await t.shows(/KeyboardInterrupt[\s\S]*In \[3\]:/)
    t.type('kept')
    await t.shows(/Out\[3\]: 7/)
    t.press('n', 'o', 'n', 's', 'e')
    await t.shows(/In \[4\]: nonse/)
    t.press('C-c')
    await t.shows(/In \[4\]: nonse\nIn \[4\]:/)
    t.type('kept + 1')
    await t.shows(/Out\[4\]: 8/)
  })
})

test('a terminal: a second ^C leaves a cell that does not want to end', async () => {
  await atPrompt('', async (t) => {
    t.type('import signal, time; _ = signal.signal(signal.SIGINT, signal.SIG_IGN); print("be" + "gun"); time.sleep(60)')
    await t.shows(/^begun$/m)
    // Two that come at once may be one to the program.
    await eventually('the prompt is back', () => {
      t.press('C-c')
      return /left the cell[\s\S]*In \[2\]:/.test(t.screen())
    })
    t.type(':restart')
    await t.shows(/new kernel[\s\S]*In \[1\]:/)
    t.type('40 + 2')
    await t.shows(/Out\[1\]: 42/)
  })
})

test('a terminal: a paste of several lines is one cell', async () => {
  await atPrompt('', async (t) => {
    t.tmux('set-buffer', 'def f(a):\n    b = a + 1\n\n    return b\n\nf(41)\n')
    t.tmux('paste-buffer', '-p')
    await t.shows(/f\(41\)/)
    t.press('Enter')
    await t.shows(/Out\[1\]: 42/)
    await t.shows(/In \[2\]:/)
  })
})

test('a terminal: history is kept, whole cells, for its owner only', async () => {
  fs.rmSync(history('python'), { force: true })
  await atPrompt('', async (t) => {
    t.type('for i in range(2):')
    t.type('print("round", i)')
    t.press('Enter')
    await t.shows(/^round 1$/m)
    t.press('C-d')
    await t.shows(/ready> $/m)
  })
  same(fs.statSync(history('python')).mode & 0o777, 0o600)
  await atPrompt('', async (t) => {
    t.press('Up')
    await t.shows(/In \[1\]: for i in range\(2\):\n +print/)
    t.press('Enter')
    await t.shows(/^round 1$/m)
    t.press('C-r')
    t.press('r', 'a', 'n', 'g')
    await t.shows(/for i in range[\s\S]*for i in range/)
  })
})

test('a terminal: commands', async () => {
  await atPrompt('', async (t, dir) => {
    t.type(':help')
    await t.shows(/:restart .*\n[\s\S]*:quit/)
    t.type('secret = 1')
    await t.shows(/In \[2\]:/)
    t.type(':language javascript')
    t.type('[1, 2].length')
    await t.shows(/Out\[1\]: 2/)
    t.type(':contexts')
    await t.shows(/\* \S+ +javascript/)
    t.type(':language python')
    t.type('secret + 1')
    await t.shows(/Out\[2\]: 2/)
    t.type(':save cells.py')
    await t.shows(/written to cells\.py/)
    same(fs.readFileSync(path.join(dir, 'cells.py'), 'utf8').split('\n')[0], 'secret = 1')
    t.type(':save cells.py')
    await t.shows(/already exists/)
    t.type(':nonsense')
    await t.shows(/no command ':nonsense'/)
    t.type(':language cobol')
    await t.shows(/sandglass: .*cobol/)
    t.type(':quit')
    await t.shows(/ready> $/m)
  })
})

test('a terminal: :back undoes cells, variables and files, and the number goes back', async () => {
  await atPrompt('', async (t, dir) => {
    t.type('x = [1]; _ = open("f", "w").write("one")')
    await t.shows(/In \[2\]:/)
    t.type('x.append(2); _ = open("f", "w").write("two")')
    await t.shows(/In \[3\]:/)
    t.type('del x')
    await t.shows(/In \[4\]:/)
    t.type(':log')
    await t.shows(/^:back 2 +2 .* x\.append/m)
    t.type(':back')
    await t.shows(/^Before cell 3: .*\nIn \[3\]:/m)
    t.type('x, open("f").read()')
    await t.shows(/Out\[3\]: \(\[1, 2\], 'two'\)/)
    t.type(':back 2')
    await t.shows(/^Before cell 2: .*\nIn \[2\]:/m)
    t.type('x, open("f").read()')
    await t.shows(/Out\[2\]: \(\[1\], 'one'\)/)
    t.type(':back 7')
    await t.shows(/there are 2 cells to undo/)
    t.type(':save cells.py')
    await t.shows(/written to cells\.py/)
    same(fs.readFileSync(path.join(dir, 'cells.py'), 'utf8').split('\n').filter(Boolean).length, 2, 'without those that were undone')
  })
})

test('a terminal: :fork copies the sandbox and stays in it', async () => {
  await atPrompt('', async (t) => {
    t.type('x = 41')
    await t.shows(/In \[2\]:/)
    t.type(':fork')
    const [, context, id] = await t.shows(/^ +sandglass repl --context (\S+) ([a-z0-9]+)$/m)
    mine(await Sandbox.connect(id))
    t.type('x = 0; x')
    await t.shows(/Out\[2\]: 0/)
    t.press('C-d')
    await t.shows(/ready> $/m)
    same((await repl(['--context', context, id], 'x += 1; x')).stdout, '42\n')
    same((await repl(['--context', context, id], 'x')).stdout, '42\n', 'the context stays')
  })
})

test('a terminal: cells without a way back: JavaScript, what is in the way, --no-checkpoints', async () => {
  await atPrompt('--language javascript', async (t) => {
    t.type('globalThis.y = 1; y')
    await t.shows(/Out\[1\]: 1/)
    t.type('y + 1')
    await t.shows(/Out\[2\]: 2/)
    assert.doesNotMatch(t.screen(), /cannot be undone/)
    t.type(':back')
    await t.shows(/there is no checkpoint before cell 2: \S/)
    t.type(':back 2') // there was no kernel yet
    await t.shows(/^Before cell 1:/m)
    t.type('typeof y')
    await t.shows(/Out\[1\]: '?undefined/)
  })
  await atPrompt('', async (t) => {
    t.type('import subprocess; p = subprocess.Popen(["sh", "-c", "exec 5> log; exec sleep 1000"])')
    await t.shows(/In \[2\]:/)
    t.type('1')
    await t.shows(/this cell cannot be undone: .*pid \d+[\s\S]*Out\[2\]: 1/)
    t.type('p.kill(); _ = p.wait()')
    await t.shows(/In \[4\]:/)
    t.type('x = 1')
    await t.shows(/In \[5\]:/)
    t.type(':back')
    await t.shows(/^Before cell 4:/m)
  })
  await atPrompt('--no-checkpoints', async (t) => {
    t.type('x = 1')
    await t.shows(/In \[2\]:/)
    t.type(':back')
    await t.shows(/--no-checkpoints$/m)
  })
})

test('a terminal: the sandbox ends with the prompt, or is kept with its contexts', async () => {
  let id
  await atPrompt('', async (t) => {
    id = (await t.shows(/in sandbox ([a-z0-9]+)/))[1]
    assert.ok(await Sandbox.getInfo(id))
    t.press('C-d')
    await eventually('the sandbox is gone', () => Sandbox.getInfo(id).then(() => false, () => true))
  })
  await atPrompt('--keep', async (t) => {
    id = (await t.shows(/in sandbox ([a-z0-9]+)/))[1]
    mine(await Sandbox.connect(id))
    t.type('kept = 41')
    await t.shows(/In \[2\]:/)
    t.type(':contexts')
    const context = (await t.shows(/\* (\S+) +python/))[1]
    t.press('C-d')
    await t.shows(/keeps running/)
    const t2 = `${SG} repl ${id}`
    t.type(`clear; ${t2}`)
    await t.shows(/in sandbox/)
    t.type(`:use ${context}`)
    t.type('kept + 1')
    await t.shows(/Out\[\d+\]: 42/)
  })
})

test('a terminal: a sandbox that has ended is told, and :new goes on', async () => {
  await atPrompt('', async (t) => {
    const id = (await t.shows(/in sandbox ([a-z0-9]+)/))[1]
    await Sandbox.kill(id)
    t.type('1')
    await t.shows(/the sandbox has ended .*:new makes another/)
    t.type(':new')
    await t.shows(/python in sandbox[\s\S]*python in sandbox ([a-z0-9]+)/)
    t.type('5 * 5')
    await t.shows(/Out\[1\]: 25/)
  })
})

test('a terminal: a sandbox whose time is over while nobody types', async () => {
  await atPrompt('--timeout 2s', async (t) => {
    await t.shows(/the sandbox has ended .*:new makes another\nIn \[1\]:/, 30)
  })
}, { seconds: 60 })

test('a terminal: what code writes cannot drive it', async () => {
  await atPrompt('', async (t) => {
    t.type(String.raw`print("a\033]0;stolen\007b\033[31mred\033[0m\033[6nc")`)
    await t.shows(/^abredc$/m)
    assert.doesNotMatch(t.tmux('display-message', '-p', '#{pane_title}'), /stolen/)
    t.type('1')
    await t.shows(/Out\[2\]: 1/)
  })
})

test('a terminal: a picture inside tmux is a file', async () => {
  await atPrompt('', async (t, dir) => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    t.type(`import base64; P = type("P", (), {"_repr_png_": lambda self: base64.b64decode("${png}")}); P()`)
    await t.shows(/picture saved as \.\/sandglass-1\.png/)
    assert.deepEqual(fs.readFileSync(path.join(dir, 'sandglass-1.png')), Buffer.from(png, 'base64'))
  })
})

test('a terminal: a picture in a terminal that can', async () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const t = new Terminal()
  const dir = path.join(home, unique())
  fs.mkdirSync(dir)
  try {
    // script notes what is written to its terminal, which is not one of tmux to the program.
    t.type(`cd ${dir}; env -u TMUX TERM=xterm-256color KITTY_WINDOW_ID=1 script -q -c '${SG} repl' seen`)
    await t.shows(/In \[1\]:/)
    t.type(`import base64; P = type("P", (), {"_repr_png_": lambda self: base64.b64decode("${png}")}); P()`)
    await t.shows(/In \[2\]:/)
    t.press('C-d')
    await t.shows(/ready> $/m)
  } finally {
    t.end()
  }
  const seen = fs.readFileSync(path.join(dir, 'seen'), 'latin1')
  assert.ok(seen.includes(`\x1b_Ga=T,f=100,q=2,m=0;${png}\x1b\\`), JSON.stringify(seen.slice(-1500)))
  assert.deepEqual(fs.readdirSync(dir), ['seen'])
})

test('a terminal: suspended and back, resized', async () => {
  await atPrompt('', async (t) => {
    t.press('h', 'a', 'l', 'f')
    await t.shows(/In \[1\]: half/)
    t.press('C-z')
    await t.shows(/Stopped/)
    t.type('fg')
    await t.shows(/fg\n[\s\S]*In \[1\]: half/)
    t.resize(100, 40)
    t.type(' = 21')
    await t.shows(/In \[2\]:/)
    t.type('half * 2')
    await t.shows(/Out\[2\]: 42/)
  })
})

await run()
