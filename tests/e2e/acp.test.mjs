// `sandglass acp`: an agent in a sandbox, on standard input and output, as an editor starts it. Both ends are the SDK's: the
// agent of inside/acp-agent.mjs, and a client here.
import { execFileSync, spawn } from 'node:child_process'
import crypto from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import { assert, eventually, run, same, sha256, sleep, test, unique } from './lib.mjs'
import { acp, inOrder, methods, Person, send, source, tallied } from './acp.mjs'
import { scratch, SG } from './server.mjs'

const AGENT = ['node', 'agent.mjs']
const hosts = []

// Starts it; `ended` gives its status, or the signal that ended it.
function host(command, ...options) {
  const child = spawn(SG, ['acp', ...options, '--', ...command], { stdio: ['pipe', 'pipe', 'pipe'] })
  const one = { child, err: '' }
  hosts.push(child)
  child.stderr.on('data', (d) => { one.err += d })
  child.stdin.on('error', () => {})
  one.ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)))
  one.stream = () => acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout), { maxMessageBytes: 64 << 20 })
  return one
}

// One that is spoken to: { person, host }.
async function talk(answers, { abilities, options = [] } = {}) {
  const one = host(AGENT, '--source', source(), ...options)
  const person = new Person(answers)
  await person.meet(one.stream(), abilities).catch((err) => assert.fail(`${err.message}\n${one.err}`))
  return { person, host: one }
}

// The turn of a prompt that nobody lives to end.
const last = (person, text) => person.prompt(text).then(() => assert.fail('the turn came to an end'), () => {})
const logged = (file) => fs.readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line))
function read(file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return '' // it has ended meanwhile
  }
}
const pages = (pid, field) => Number(fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(new RegExp(`${field}:\\s+(\\d+)`))[1]) / 1024

function each(name, body, opts) {
  test(name, async () => {
    try {
      await body()
    } finally {
      for (const child of hosts.splice(0)) child.kill('SIGKILL')
    }
  }, opts)
}

// ---- the protocol -------------------------------------------------------------------------------

each('a conversation: prompts, updates, questions to the client and its answers', async () => {
  const files = new Map([['/work/a.txt', 'of the editor']])
  const { person, host: one } = await talk({
    [methods.client.session.requestPermission]: ({ options, toolCall }) => ({ outcome: { outcome: 'selected', optionId: toolCall.title === 'good' ? options[0].optionId : options[1].optionId } }),
    [methods.client.fs.readTextFile]: ({ path: p }) => ({ content: files.get(p) }),
    [methods.client.fs.writeTextFile]: ({ path: p, content }) => { files.set(p, content) },
    [methods.client.terminal.create]: ({ command, args }) => ({ terminalId: `${command} ${args.join(' ')}` }),
    [methods.client.terminal.waitForExit]: () => ({ exitCode: 3, signal: null }),
    [methods.client.terminal.output]: ({ terminalId }) => ({ output: `ran ${terminalId}`, truncated: false }),
    [methods.client.terminal.release]: () => ({}),
  }, { abilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true }, options: ['--env', 'COLOUR=blue'] })
  same(await person.ask('echo héllo ☃ "quoted"\nand more'), 'héllo ☃ "quoted"\nand more')
  same(await person.ask('env COLOUR'), 'blue')
  same(await person.ask('where'), '/home/user/project')
  same(await person.ask('permission good'), 'yes')
  same(await person.ask('permission bad'), 'no')
  // The client's files and terminals, not the sandbox's.
  same(await person.ask('read /work/a.txt'), 'of the editor')
  same(await person.ask('write /work/b.txt of the agent'), 'written')
  same(files.get('/work/b.txt'), 'of the agent')
  assert.deepEqual(JSON.parse(await person.ask('terminal make')), { exitCode: 3, signal: null, output: 'ran sh -c make', truncated: false })
  const able = JSON.parse(await person.ask('abilities'))
  assert.deepEqual([able.fs, able.terminal], [{ readTextFile: true, writeTextFile: true }, true])
  inOrder(await person.prompt('updates 100'), 100)
  const waiting = person.prompt('cancel', 'cancelled')
  await person.agent.notify(methods.agent.session.cancel, { sessionId: person.sessionId })
  await waiting
  same(await person.ask('stderr not for the protocol'), 'said')
  await eventually('standard error is apart', () => one.err.includes('not for the protocol\n'))
  await assert.rejects(person.prompt('nonsense'), /Invalid params/i)
  // The client goes: so does the agent, in good order.
  one.child.stdin.end()
  same(await one.ended, 0, one.err)
})

each('5,000 messages each way at once', async () => {
  const { person } = await talk()
  const said = person.prompt('updates 5000 100')
  const all = crypto.createHash('sha256')
  await send(person, 5000, (i) => {
    const text = `${i} ${unique()}`
    all.update(text)
    return text
  })
  inOrder(await said, 5000, 100)
  assert.deepEqual(await tallied(person, 5000), { count: 5000, wrong: 0, hash: all.digest('hex') })
})

each('10 MB in one message, both ways at once', async () => {
  const { person } = await talk()
  const text = crypto.randomBytes(5 << 20).toString('hex')
  const [said] = await Promise.all([person.ask(`big ${10 << 20}`), send(person, 3, () => text)])
  same(sha256(said), sha256(crypto.createHash('shake256', { outputLength: 5 << 20 }).update('big').digest('hex')))
  const tally = JSON.parse(await person.ask('tally'))
  assert.deepEqual([tally.count, tally.hash], [3, sha256(text.repeat(3))])
})

each('byte for byte, whatever it is', async () => {
  const lines = Buffer.concat([
    Buffer.from('{ "jsonrpc" :"2.0",\t"method":"_x","params":{"a":"\\u00e9\\ud83d\\ude00\\/","n":1.0e+2, "big":12345678901234567890 } }  \r\n'),
    Buffer.from('\n   \nnot json at all\n[1,2]\n{"a":1}{"b":2}\n'),
    Buffer.from([0xff, 0xfe, 0x00, 0x01, 0x0a, 0xc3, 0x28, 0x0a]),
    crypto.randomBytes(1 << 20),
    Buffer.from('\nand the last has no end'),
  ])
  const one = host(['cat'])
  const back = []
  one.child.stdout.on('data', (d) => back.push(d))
  one.child.stdin.end(lines)
  same(await one.ended, 0, one.err)
  const got = Buffer.concat(back)
  same(got.length, lines.length)
  same(sha256(got), sha256(lines))
  same(one.err, '')
})

each('noise between messages is passed on, and nothing is lost by it', async () => {
  const { person, host: one } = await talk()
  same(await person.ask('noise binary'), 'still here')
  same(await person.ask('echo and now'), 'and now')
  one.child.stdin.end()
  same(await one.ended, 0, one.err)
})

// ---- ends ---------------------------------------------------------------------------------------

each('an agent that ends: its status, and whose fault it was', async () => {
  const ends = async ([verb, status, words]) => {
    const log = path.join(scratch, `log-${unique()}`)
    const { person, host: one } = await talk({}, { options: ['--log', log] })
    await last(person, verb)
    same(await one.ended, status, `${verb}: ${one.err}`)
    const blamed = logged(log).filter((l) => l.level === 'error')
    assert.deepEqual(blamed.map((l) => l.layer), words ? ['agent'] : [], fs.readFileSync(log, 'utf8'))
    if (words) assert.ok(one.err.includes(words), one.err)
  }
  const all = [['exit 0', 0], ['exit 7', 7, 'agent: exited with status 7'], ['signal SIGKILL', 137, 'agent: ended by signal 9'], ['signal SIGTERM', 143, 'agent: ended by signal 15']]
  await Promise.all(all.map(ends))
})

each('an agent that stalls is ended when its time is over', async () => {
  const log = path.join(scratch, `log-${unique()}`)
  const one = host(['sleep', '100'], '--timeout', '1s', '--log', log)
  await assert.rejects(new Person().meet(one.stream()), /closed/)
  same(await one.ended, 124, one.err)
  same(one.err, 'sandglass: timeout: the time limit of 1 s was reached; raise it with --timeout\n')
  assert.deepEqual(logged(log).filter((l) => l.level === 'error').map((l) => l.layer), ['sandbox'], fs.readFileSync(log, 'utf8'))
})

each('an agent that is not there', async () => {
  const one = host(['no-such-agent', '--flag'])
  same(await one.ended, 127, one.err)
  assert.match(one.err, /no-such-agent/)
  const not = host(['/etc/passwd'])
  same(await not.ended, 126, not.err)
})

each('a client that reads nothing: the agent waits, and nothing grows', async () => {
  const one = host(AGENT, '--source', source())
  const say = (id, method, params) => one.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
  say(1, 'initialize', { protocolVersion: 1 })
  say(2, 'session/new', { cwd: '/', mcpServers: [] })
  say(3, 'session/prompt', { sessionId: 'session-1', prompt: [{ type: 'text', text: 'flood 1000' }] })
  await eventually('it writes', () => one.child.stdout.readableLength > 0)
  await sleep(700)
  const before = pages(one.child.pid, 'VmRSS')
  await sleep(700)
  assert.ok(pages(one.child.pid, 'VmHWM') < 64 && pages(one.child.pid, 'VmRSS') - before < 4, `${before} MiB, then ${pages(one.child.pid, 'VmRSS')}`)
  let read = 0
  one.child.stdout.on('data', (d) => { read += d.length })
  await eventually('it goes on when somebody reads', () => read > 20 << 20)
  one.child.kill('SIGTERM')
  assert.ok([143, 'SIGTERM'].includes(await one.ended), one.err)
})

each('a client that vanishes takes the sandbox with it', async () => {
  const name = `left-${unique()}`
  const one = host(['bash', '-c', `exec -a ${name} sleep 100`])
  const running = () => fs.readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && read(`/proc/${pid}/cmdline`).startsWith(name))
  await eventually('it runs', running)
  one.child.kill('SIGKILL')
  await one.ended
  await eventually('nothing of it is left', () => !running())
})

// ---- what is put in -----------------------------------------------------------------------------

each('source code: a directory, a tar, a git bundle', async () => {
  const listing = ['sh', '-c', 'ls -A; cat hello.txt']
  const dir = path.join(scratch, `src-${unique()}`)
  fs.mkdirSync(path.join(dir, 'sub'), { recursive: true })
  fs.writeFileSync(path.join(dir, 'hello.txt'), 'hello\n')
  fs.writeFileSync(path.join(dir, 'sub/run.sh'), '#!/bin/sh\n', { mode: 0o755 })
  fs.symlinkSync('hello.txt', path.join(dir, 'link'))
  const output = async (...options) => {
    const one = host(listing, ...options)
    let out = ''
    one.child.stdout.on('data', (d) => { out += d })
    one.child.stdin.end()
    same(await one.ended, 0, one.err)
    return out
  }
  same(await output('--source', dir), 'hello.txt\nlink\nsub\nhello\n')
  execFileSync('tar', ['-C', dir, '-czf', `${dir}.tar.gz`, '.'])
  same(await output('--source', `${dir}.tar.gz`), 'hello.txt\nlink\nsub\nhello\n')
  const git = (...args) => execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.com', '-C', dir, ...args], { stdio: 'pipe' })
  git('init', '-q', '-b', 'main')
  git('add', '.')
  git('commit', '-qm', 'first')
  git('bundle', 'create', `${dir}.bundle`, 'main')
  same(await output('--source', `${dir}.bundle`), '.git\nhello.txt\nlink\nsub\nhello\n')
  // What is done to it inside stays there.
  const change = host(['sh', '-c', 'echo changed > hello.txt; cat hello.txt'], '--source', dir)
  same(await change.ended, 0, change.err)
  same(fs.readFileSync(path.join(dir, 'hello.txt'), 'utf8'), 'hello\n')
})

each('a tar that climbs out, and what is none', async () => {
  const bad = (name, text) => {
    const file = path.join(scratch, name)
    fs.writeFileSync(file, text)
    return file
  }
  const entry = path.join(scratch, 'climber')
  fs.writeFileSync(entry, 'x')
  const climber = execFileSync('tar', ['-P', '-cf', '-', '--transform', 's,.*,../../climbed,', entry])
  for (const [file, words] of [[bad('out.tar', climber), /\.\./], [bad('garbage', crypto.randomBytes(4096)), /tar/], [path.join(scratch, 'nothing-here'), /nothing-here/]]) {
    const one = host(['cat'], '--source', file)
    one.child.stdin.end()
    same(await one.ended, 2, `${file}: ${one.err}`)
    assert.match(one.err, words)
  }
})

// ---- --serve-fs ---------------------------------------------------------------------------------

each('--serve-fs: a client without files and terminals has an agent with both', async () => {
  const { person, host: one } = await talk({}, { options: ['--serve-fs'] })
  const able = JSON.parse(await person.ask('abilities'))
  assert.deepEqual([able.fs, able.terminal], [{ readTextFile: true, writeTextFile: true }, true])
  same(await person.ask('write /home/user/project/made.txt by the agent, ☃'), 'written')
  same(await person.ask('own /home/user/project/made.txt'), 'by the agent, ☃', 'in the sandbox')
  same(await person.ask('read /home/user/project/made.txt'), 'by the agent, ☃')
  await assert.rejects(person.prompt('read /home/user/none.txt'), /none\.txt|not found|No such/i)
  const done = JSON.parse(await person.ask('terminal echo out; echo err >&2; exit 5'))
  assert.deepEqual([done.exitCode, done.output.split('\n').sort().join(' ').trim()], [5, 'err out'])
  assert.deepEqual(person.asked, [], 'the client was asked for nothing')
  assert.deepEqual(person.notes, [])
  inOrder(await person.prompt('updates 2000'), 2000)
  one.child.stdin.end()
  same(await one.ended, 0, one.err)
})

await run()
