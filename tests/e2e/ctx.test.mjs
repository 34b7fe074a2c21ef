// sandglass ctx and sandglass usage, against a server of their own: contexts are limited, and usage is all of a tenant's.
import { execFile } from 'node:child_process'
import http from 'node:http'
import { assert, eventually, run, same, Sandbox, test, unique } from './lib.mjs'
import { SG, start, stop } from './server.mjs'
import { surroundings, Terminal } from './terminal.mjs'

const server = await start()
const KEY = server.as.apiKey
const here = { ...surroundings, E2B_API_KEY: KEY, E2B_API_URL: server.url, E2B_SANDBOX_URL: server.url }

function sandglass(args, env = {}) {
  return new Promise((resolve) => {
    const options = { env: { ...here, ...env }, timeout: 30_000 }
    const child = execFile(SG, args, options, (err, stdout, stderr) =>
      resolve({ status: err ? (err.code ?? `signal ${err.signal}`) : 0, stdout, stderr }),
    )
    child.stdin.end()
  })
}

async function works(args, env) {
  const { status, stdout, stderr } = await sandglass(args, env)
  same(status, 0, `sandglass ${args.join(' ')}: ${stderr}${stdout}`)
  same(stderr, '', 'nothing on standard error')
  return stdout
}

async function fails(status, message, args, env) {
  const result = await sandglass(args, env)
  same(result.status, status, `sandglass ${args.join(' ')}: ${result.stderr}${result.stdout}`)
  assert.match(result.stderr, message)
  assert.match(result.stderr, /^sandglass: [^\n]*\n$/, 'one line')
}

const json = async (args) => JSON.parse(await works([...args, '--json']))

async function v1(method, route, body) {
  const res = await fetch(server.url + route, {
    method,
    headers: { 'X-API-KEY': KEY, ...(body ? { 'Content-Type': 'application/json' } : {}) },
    body: body && JSON.stringify(body),
  })
  const answer = await res.json()
  assert.ok(res.ok, `${method} ${route}: ${res.status} ${JSON.stringify(answer)}`)
  return answer
}

// A conversation of the test's own; its contexts are ended after it.
async function conversation(body, paths = ['main']) {
  const id = `talk ${unique()}`
  try {
    const made = []
    for (const pathId of paths) made.push((await v1('PUT', '/v1/contexts', { conversationId: id, pathId, template: 'base' })).context)
    await body(id, ...made)
  } finally {
    await v1('POST', '/v1/contexts/cleanup', { conversationId: id })
  }
}

// First: what others use is counted seconds later.
test('usage: a table with a total, JSON, days', async () => {
  const before = (await json(['usage'])).total
  const sandbox = await Sandbox.create('base', server.as)
  await sandbox.commands.run('head -c 300000 /dev/zero | tr "\\0" x')
  await sandbox.kill()
  const used = await eventually('it is counted', async () => {
    const { total } = await json(['usage'])
    return total.sandboxes > before.sandboxes && total
  })
  same(used.executions, before.executions + 1)
  assert.ok(used.bytesOut - before.bytesOut >= 300_000, JSON.stringify(used))
  const lines = (await works(['usage'])).trimEnd().split('\n')
  assert.match(lines[0], /^DAY +CPU s +MEMORY GiB s +IN +OUT +EGRESS +EXECUTIONS +SANDBOXES$/)
  assert.match(lines[1], /^20\d\d-\d\d-\d\d +\d+\.\d+ .* \d+ +\d+$/)
  assert.match(lines.at(-4), /^total +\d/)
  same(lines.at(-1), 'What was used in the last 10 seconds is not in it yet.')
  assert.match(lines.at(-2), /^Sandboxes of contexts now: \d+, of at most 10, and 5 of one conversation$/)
  assert.ok(lines.slice(1, -3).every((line) => line.length === lines[0].length), lines.join('\n'))
  assert.deepEqual((await json(['usage', '--from', '2020-01-01', '--to', '2020-01-31'])).days, [])
  await fails(1, /./, ['usage', '--from', '2026-02-31', '--to', '2026-03-31'])
  await fails(1, /./, ['usage', '--from', '2026-03-02', '--to', '2026-03-01'])
})

test('ls: a table, ids only, JSON, by status', () =>
  conversation(async (talk, main, other) => {
    const [head, ...rows] = (await works(['ctx', 'ls'])).trimEnd().split('\n')
    assert.match(head, /^ID +STATUS +USED +ENDS +SANDBOX +CONVERSATION +PATH *$/)
    same(rows.length, 2)
    const row = rows.find((r) => r.startsWith(main.id))
    assert.match(row, new RegExp(`^${main.id} +ready +(now|\\d+ s ago) +in \\d+ min +${main.sandboxId} +${talk} +main$`))
    const ids = (await works(['ctx', 'ls', '-q', talk])).trim().split('\n')
    assert.deepEqual(ids.sort(), [main.id, other.id].sort())
    await works(['ctx', 'rm', other.id])
    same((await works(['ctx', 'ls', '-q'])).trim(), main.id)
    same((await works(['ctx', 'ls', '-q', '--status', 'terminated', talk])).trim(), other.id)
    same((await json(['ctx', 'ls', '--status', 'all', talk])).length, 2)
    await fails(1, /status/, ['ctx', 'ls', '--status', 'sleeping'])
  }, ['main', 'o%2F ther?']))

test('ls CONVERSATION: the tree of its paths', () =>
  conversation(async (talk, main) => {
    await works(['ctx', 'branch', talk, 'main', 'bold'])
    await works(['ctx', 'branch', talk, 'bold', 'bolder'])
    await works(['ctx', 'branch', talk, 'main', 'calm'])
    await works(['ctx', 'merge', talk, 'calm', 'main'])
    const [head, ...rows] = (await works(['ctx', 'ls', talk])).trimEnd().split('\n')
    assert.match(head, /^PATH +STATUS +MADE +USED +ENDS +CONTEXT *$/)
    assert.match(rows[0], new RegExp(`^main +ready .* in \\d+ min +${main.id}$`))
    assert.match(rows[1], /^\|- bold +lazy /)
    assert.match(rows[2], /^\| {2}`- bolder +lazy /)
    assert.match(rows[3], /^`- calm -> main +merged /)
    same(rows.length, 4)
    const paths = await json(['ctx', 'ls', talk])
    assert.deepEqual(paths.map((p) => [p.pathId, p.parentPathId, p.mergedInto]).sort(),
      [['bold', 'main', null], ['bolder', 'bold', null], ['calm', 'main', 'main'], ['main', null, null]])
    const terminal = new Terminal()
    try {
      const command = `E2B_API_KEY=${KEY} E2B_API_URL=${server.url} NO_COLOR=1 ${SG} ctx ls '${talk}'`
      const { shown } = await terminal.run(command)
      assert.match(shown, /^├─ bold +lazy/m)
      assert.match(shown, /^│ {2}└─ bolder/m)
      assert.match(shown, /^└─ calm → main +merged/m)
      assert.match((await terminal.run(`LC_ALL=C ${command}`)).shown, /^\|- bold/m, 'ASCII without UTF-8')
      await terminal.run('stty cols 70')
      const narrow = (await terminal.run(command)).shown
      assert.match(narrow, new RegExp(`^main +ready .* in \\d+ min +${main.id}$`, 'm'), 'the id is whole')
    } finally {
      terminal.end()
    }
  }))

test('get: by id, and by conversation and path', () =>
  conversation(async (talk, main) => {
    const told = await works(['ctx', 'get', main.id])
    assert.match(told, new RegExp(`^id +${main.id}$`, 'm'))
    assert.match(told, new RegExp(`^conversation +${talk}$`, 'm'))
    assert.match(told, /^status +ready$/m)
    assert.match(told, /^usage +.* s of processor, .* GiB s of memory, .*executions?, .*sandbox(es)?$/m)
    same((await json(['ctx', 'get', talk, 'main'])).sandboxId, main.sandboxId)
    await fails(1, /path 'nowhere' of conversation '.*' has no context/, ['ctx', 'get', talk, 'nowhere'])
    await fails(1, /./, ['ctx', 'get', 'c'.repeat(20)])
    await fails(1, /'a\/b' is not the id of a context/, ['ctx', 'get', 'a/b'])
  }))

test('touch: it lives on, for another time if one is given', () =>
  conversation(async (talk, main) => {
    const row = await json(['ctx', 'touch', main.id, '--ttl', '1h'])
    same(row.ttlSeconds, 3600)
    assert.ok(Math.abs(Date.parse(row.expiresAt) - Date.now() - 3600_000) < 10_000, row.expiresAt)
    assert.match(await works(['ctx', 'touch', talk, 'main']), /^ends +.*\(in (60 min|1 h)\)$/m)
  }))

test('branch: lazy, with files, onto one that has a context', () =>
  conversation(async (talk, main) => {
    const sandbox = await Sandbox.connect(main.sandboxId, server.as)
    await sandbox.files.write('/home/user/kept', 'of the parent')
    assert.match(await works(['ctx', 'branch', talk, 'main', 'lazy']), /^lazy: its sandbox is made when it is first used\n$/)
    const { context, inherited } = await json(['ctx', 'branch', talk, 'main', 'files', '--inherit', 'files'])
    same(inherited, 'files')
    same(await (await Sandbox.connect(context.sandboxId, server.as)).files.read('/home/user/kept'), 'of the parent')
    await fails(1, /./, ['ctx', 'branch', talk, 'main', 'files'])
    await fails(1, /./, ['ctx', 'branch', talk, 'main', 'x', '--inherit', 'all'])
    await fails(1, /./, ['ctx', 'branch', talk, 'main', 'main'])
  }))

test('branch --state, log, rewind: variables and files of any message', () =>
  conversation(async (talk) => {
    const say = (pathId, messageId, code) => v1('POST', '/v1/tools/run_code', { conversationId: talk, pathId, code, messageId })
    const heard = async (pathId, code) => (await v1('POST', '/v1/tools/run_code', { conversationId: talk, pathId, code })).stdout.trim()
    await say('main', 'm1', 'x = 1; open("f", "w").write("one")')
    await say('main', 'm2', 'x = 2; open("f", "w").write("two")')
    await say('main', 'm3', 'x = 3; del x')
    const log = async () => (await works(['ctx', 'log', talk, 'main'])).trimEnd().split('\n')
    const [head, ...rows] = await log()
    assert.match(head, /^ +MESSAGE +CHECKPOINT +MADE +MEMORY +KERNELS$/)
    assert.deepEqual(rows.map((r) => r.slice(0, 7).trimEnd()), ['    m1', '    m2', '*   m3'])
    const checkpoints = await json(['ctx', 'log', talk, 'main'])
    assert.deepEqual(checkpoints.map((c) => c.messageId), ['m1', 'm2', 'm3'])

    assert.match(await works(['ctx', 'branch', talk, 'main', 'alt', '--at', 'm3']), /^alt: context \S+, sandbox \S+\n.*CONTEXT[^]* carried/)
    same(await heard('alt', 'print(x, open("f").read())'), '2 two')
    assert.match(await works(['ctx', 'rewind', talk, 'main', 'm2']), /^main: as it was before message m2 \(checkpoint \S+\)\n/)
    same(await heard('main', 'print(x, open("f").read())'), '1 one')
    await say('main', 'm2b', 'x = 20')
    const [, ...after] = await log()
    assert.deepEqual(after.map((r) => r.slice(0, 10).trimEnd()), ['    m1', '    m2', '    |- m3', '*   `- m2b'])
    await works(['ctx', 'rewind', talk, 'main', '--checkpoint', checkpoints[2].checkpointId])
    same(await heard('main', 'print(x, open("f").read())'), '2 two')
    assert.match(await works(['ctx', 'branch', talk, 'main', 'now', '--state']), /^now: context /)
    await fails(1, /nothing-like-it/, ['ctx', 'rewind', talk, 'main', 'nothing-like-it'])
    await fails(1, /has no context/, ['ctx', 'log', talk, 'nowhere'])
    await fails(1, /./, ['ctx', 'branch', talk, 'main', 'alt', '--state'])
  }, []))

test('merge: the source ends, the target stays', () =>
  conversation(async (talk, main, side) => {
    assert.match(await works(['ctx', 'merge', talk, 'side', 'main']), new RegExp(`^side: merged into main, context ${side.id} has ended\n$`))
    same((await json(['ctx', 'get', side.id])).sandboxStatus, 'terminated')
    same((await json(['ctx', 'get', main.id])).sandboxStatus, 'ready')
    await fails(1, /./, ['ctx', 'merge', talk, 'main', 'main'])
  }, ['main', 'side']))

test('rm: ids, a conversation, what has expired', () =>
  conversation(async (talk, a, b, c) => {
    same(await works(['ctx', 'rm', a.id]), `${a.id}\n`)
    same(await works(['ctx', 'rm', '-q', a.id]), '', 'twice is fine')
    await fails(1, /./, ['ctx', 'rm', 'c'.repeat(20)])
    same(await works(['ctx', 'rm', '--conversation', talk]), '2 contexts ended\n')
    assert.deepEqual(await json(['ctx', 'ls', '--status', 'ready', talk]), [])
    assert.deepEqual(await json(['ctx', 'rm', '--expired']), { terminated: 0 })
    assert.ok(b.id && c.id)
  }, ['a', 'b', 'c']))

test('rm --conversation asks on a terminal', () =>
  conversation(async (talk, main) => {
    const terminal = new Terminal()
    try {
      terminal.type(`E2B_API_KEY=${KEY} E2B_API_URL=${server.url} ${SG} ctx rm --conversation '${talk}'; echo "left with $?"`)
      await terminal.shows(/End all contexts of conversation .*\?/)
      terminal.type('n')
      await terminal.shows(/left with 1/)
    } finally {
      terminal.end()
    }
    same((await json(['ctx', 'get', main.id])).sandboxStatus, 'ready')
  }))

test('what another server has is asked for there, with the key', () =>
  conversation(async (talk, main) => {
    const seen = []
    const other = http.createServer((req, res) => {
      seen.push(req.headers['x-api-key'])
      res.writeHead(307, { Location: server.url + req.url }).end()
    })
    const round = http.createServer((req, res) => res.writeHead(307, { Location: req.url }).end())
    const listening = (s) => new Promise((done) => s.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${s.address().port}`)))
    try {
      const url = await listening(other)
      same((JSON.parse(await works(['ctx', 'get', main.id, '--json', '--url', url]))).id, main.id)
      same((JSON.parse(await works(['ctx', 'touch', main.id, '--ttl', '2h', '--json', '--url', url]))).ttlSeconds, 7200, 'the body too')
      assert.deepEqual(seen, [KEY, KEY])
      await fails(1, /status 307/, ['ctx', 'get', main.id, '--url', await listening(round)])
    } finally {
      other.close()
      round.close()
    }
  }))

test('settings: a wrong key, nobody there, a wrong command line, help', async () => {
  await fails(1, /./, ['ctx', 'ls'], { E2B_API_KEY: `e2b_${'0'.repeat(40)}` })
  await fails(125, /./, ['usage', '--url', 'http://127.0.0.1:1'])
  await fails(2, /no action given/, ['ctx'])
  await fails(2, /'show' is not/, ['ctx', 'show'])
  assert.match(await works(['ctx', '--help']), /^Usage: sandglass ctx ls .*\n( +sandglass ctx .*\n)+/)
  assert.match(await works(['help', 'usage']), /--from DAY/)
})

test('the server ends in order', async () => same(await stop(server), 0))

await run()
