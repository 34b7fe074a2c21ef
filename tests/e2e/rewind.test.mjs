// Going back: checkpoints of a sandbox, messages of a path, branches at a message, best of N; and `sandglass ctx log`.
import { execFileSync } from 'node:child_process'
import { checkpoint, checkpoints, connect, fork, inTheWay, py, rewind, says, states, warm } from './fork.mjs'
import { assert, eventually, run, same, sh, test, unique } from './lib.mjs'
import { SG, start, stop } from './server.mjs'
import { Client, keyOf } from './v1.mjs'

const KEEP = 6
const MAX = 8
const limits = ['--checkpoint-keep', String(KEEP), '--checkpoint-max', String(MAX), '--tenant-contexts', '60', '--conversation-contexts', '20', '--tenant-sandboxes', '30']
const server = await start(undefined, undefined, limits)
const as = server.as
const v1 = new Client(server)

// ---- a sandbox ----------------------------------------------------------------------------------

test('rewind: variables and files are back, the sandbox is the same one', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'x = [1]\nf = open("/home/user/f", "a+")\nf.write("one\\n")\nf.flush()')
  await sandbox.files.write('/home/user/old', 'old')
  const before = await checkpoint(sandbox, { label: 'before' }, as)
  assert.deepEqual(states(before.kernels), { python: 'carried' })
  assert.deepEqual([before.checkpoint.messageId, before.checkpoint.kernels, before.checkpoint.current], ['before', true, true])
  await says(sandbox, 'x.append(2)\nf.write("two\\n")\nf.flush()\nimport os\nos.remove("/home/user/old")\nos.mkdir("/home/user/new")\nos.chdir("/home/user/new")')
  await sandbox.commands.run('exec sleep 1000', { background: true, timeoutMs: 0 }).then((h) => h.wait().catch(() => {}) && 0)
  const tokens = [sandbox.sandboxId, sandbox.envdAccessToken]
  const answer = await rewind(sandbox, { label: 'before' }, as)
  assert.equal(answer.checkpoint.checkpointId, before.checkpoint.checkpointId)
  assert.deepEqual(states(answer.kernels), { python: 'carried' })
  assert.deepEqual(await py(sandbox, '[x, f.tell(), __import__("os").getcwd()]'), [[1], 4, '/home/user'])
  assert.equal(await sh(sandbox, 'cat f old; ls -d new 2>/dev/null || echo gone'), 'one\noldgone')
  assert.deepEqual(await sandbox.commands.list(), [], 'what ran there has ended')
  assert.deepEqual([sandbox.sandboxId, sandbox.envdAccessToken], tokens)
  await says(sandbox, 'f.write("another\\n")\nf.flush()')
  assert.equal(await sandbox.files.read('/home/user/f'), 'one\nanother\n')
  // As often as one likes.
  for (let i = 0; i < 3; i++) {
    await rewind(sandbox, { checkpointId: before.checkpoint.checkpointId }, as)
    await says(sandbox, `x.append("${i}")`)
    assert.deepEqual(await py(sandbox, 'x'), [1, `${i}`])
    assert.equal(await sandbox.files.read('/home/user/f'), 'one\n')
  }
})

test('the list is a tree: parents, and where the sandbox is now; one is deleted, the others stay', async () => {
  const sandbox = await warm(as)
  const ids = {}
  const leave = async (label) => { ids[label] = (await checkpoint(sandbox, { label }, as)).checkpoint.checkpointId }
  await leave('a')
  await leave('b')
  await rewind(sandbox, { label: 'a' }, as)
  await leave('c')
  const list = await checkpoints(sandbox, as)
  assert.deepEqual(list.map((c) => [c.messageId, c.parentId, c.current]), [['a', undefined, false], ['b', ids.a, false], ['c', ids.a, true]])
  for (const c of list) {
    assert.match(c.createdAt, /^\d{4}-\d\d-\d\dT/)
    assert.ok(c.memoryBytes > 0 && c.kernels === true, JSON.stringify(c))
  }
  const one = `/sandboxes/${sandbox.sandboxId}/checkpoints/${ids.b}`
  assert.equal((await v1.ask('DELETE', one)).status, 204)
  assert.ok([404, 410].includes((await v1.ask('DELETE', one)).status))
  assert.deepEqual((await checkpoints(sandbox, as)).map((c) => c.messageId), ['a', 'c'])
  await rewind(sandbox, { label: 'c' }, as)
})

test('what is in the way of a checkpoint is told as of a fork; a cell that runs ends with a rewind', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'x = 1')
  await checkpoint(sandbox, { label: 'a' }, as)
  const cell = sandbox.runCode('import time\nx = 2\ntime.sleep(60)')
  await eventually('it runs', async () => (await v1.ask('POST', `/sandboxes/${sandbox.sandboxId}/checkpoints`, {})).status === 409)
  const [one] = await inTheWay(sandbox, { to: 'checkpoints', as })
  assert.equal(one.what, 'cell')
  await rewind(sandbox, { label: 'a' }, as)
  assert.ok((await cell).error, 'the cell was told')
  assert.equal(await py(sandbox, 'x'), 1)
})

test('a fork of a sandbox that went back; a rewind in the fork of what it came from', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'x = "a"')
  await checkpoint(sandbox, { label: 'a' }, as)
  await says(sandbox, 'x = "b"\nopen("/home/user/b", "w").close()')
  const { sandbox: later } = await fork(sandbox, {}, as)
  await rewind(sandbox, { label: 'a' }, as)
  const { sandbox: earlier } = await fork(sandbox, {}, as)
  assert.deepEqual([await py(later, 'x'), await py(earlier, 'x'), await py(sandbox, 'x')], ['b', 'a', 'a'])
  assert.deepEqual([await later.files.exists('/home/user/b'), await earlier.files.exists('/home/user/b')], [true, false])
  await checkpoint(later, { label: 'own' }, as)
  await says(later, 'x = "c"')
  await rewind(later, { label: 'own' }, as)
  assert.equal(await py(later, 'x'), 'b')
  await v1.refuses(404, /checkpoint/, 'POST', `/sandboxes/${later.sandboxId}/rewind`, { label: 'a' })
})

test('JavaScript is back with its files alone, and its next cell says so', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'let y = 2', { language: 'javascript' })
  await checkpoint(sandbox, { label: 'a' }, as)
  const { kernels } = await rewind(sandbox, { label: 'a' }, as)
  assert.equal(states(kernels).javascript, 'fresh', JSON.stringify(kernels))
  assert.match((await sandbox.runCode('typeof y', { language: 'javascript' })).logs.stderr.join(''), /gone/)
})

// ---- the messages of a path ---------------------------------------------------------------------

// Five messages, each of which changes a variable and a file.
async function five(conversation, path = 'main') {
  for (let n = 1; n <= 5; n++) {
    const code = n === 1 ? 'said = [1]\nopen("log", "w").write("1\\n");' : `said.append(${n})\nopen("log", "a").write("${n}\\n");`
    const answer = await v1.code(conversation, path, code, { messageId: `m${n}` })
    assert.equal(answer.success, true, JSON.stringify(answer.error))
    if (n > 1) assert.deepEqual([answer.checkpoint?.messageId, typeof answer.checkpoint?.checkpointId], [`m${n}`, 'string'], JSON.stringify(answer.checkpoint))
  }
  return (await v1.contexts({ conversationId: conversation, pathId: path }))[0]
}

const text = async (conversation, path, code) => {
  const answer = await v1.code(conversation, path, code)
  assert.equal(answer.error, null, JSON.stringify(answer.error))
  return answer.stdout
}
const seen = 'print(said, open("log").read().split())'

test('five messages; message 3 is edited: rewind, run', async () => {
  const talk = `talk-${unique()}`
  const context = await five(talk)
  const { checkpoints: list } = await v1.gives(200, 'GET', `/v1/contexts/${context.id}/checkpoints`)
  assert.deepEqual(list.map((c) => c.messageId).slice(-4), ['m2', 'm3', 'm4', 'm5'])
  assert.deepEqual(list.filter((c) => c.current).map((c) => c.messageId), ['m5'])
  const back = await v1.gives(200, 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: 'm3' })
  assert.equal(back.checkpoint.messageId, 'm3')
  assert.deepEqual([back.context.id, back.context.sandboxId], [context.id, context.sandboxId])
  assert.deepEqual(states(back.kernels), { python: 'carried' })
  same(await text(talk, 'main', seen), "[1, 2] ['1', '2']\n")
  await v1.code(talk, 'main', 'said.append("3, edited")', { messageId: 'm3-edited' })
  same(await text(talk, 'main', seen), "[1, 2, '3, edited'] ['1', '2']\n")
  // What was said before the edit is still there to go to.
  await v1.gives(200, 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: 'm5' })
  same(await text(talk, 'main', seen), "[1, 2, 3, 4] ['1', '2', '3', '4']\n")
  const log = execFileSync(SG, ['ctx', 'log', talk, 'main'], { encoding: 'utf8', env: { ...process.env, E2B_API_KEY: v1.key, E2B_API_URL: server.url } })
  assert.match(log, /^ *MESSAGE +CHECKPOINT/m)
  assert.match(log, /\|- m4 [^]*`- m3-edited /, 'two ways from before message 3')
  assert.match(log, /^\* .*\bm5\b/m, 'where it is')
  execFileSync(SG, ['ctx', 'rewind', talk, 'main', 'm3-edited'], { env: { ...process.env, E2B_API_KEY: v1.key, E2B_API_URL: server.url } })
  same(await text(talk, 'main', seen), "[1, 2] ['1', '2']\n")
  await v1.clear(talk)
})

test('a branch at message 3, whatever the path is now', async () => {
  const talk = `talk-${unique()}`
  const context = await five(talk)
  const branch = { conversationId: talk, fromPathId: 'main', toPathId: 'other', inherit: 'state' }
  const made = await v1.gives(201, 'POST', '/v1/contexts/branch', { ...branch, atMessageId: 'm3' })
  assert.equal(made.inherited, 'state')
  assert.deepEqual(states(made.kernels), { python: 'carried' })
  same(await text(talk, 'other', seen), "[1, 2] ['1', '2']\n")
  await v1.code(talk, 'other', 'said.append("3, otherwise")', { messageId: 'm3b' })
  same(await text(talk, 'main', seen), "[1, 2, 3, 4, 5] ['1', '2', '3', '4', '5']\n")
  const now = await v1.gives(201, 'POST', '/v1/contexts/branch', { ...branch, toPathId: 'now' })
  assert.equal(now.inherited, 'state')
  same(await text(talk, 'now', seen), "[1, 2, 3, 4, 5] ['1', '2', '3', '4', '5']\n")
  await v1.refuses(409, /other/, 'POST', '/v1/contexts/branch', { ...branch, atMessageId: 'm3' })
  same(await text(talk, 'other', 'print(said)'), "[1, 2, '3, otherwise']\n", 'the path that was there')
  await v1.refuses(404, /m99/, 'POST', '/v1/contexts/branch', { ...branch, toPathId: 'never', atMessageId: 'm99' })
  await v1.refuses(400, /\S/, 'POST', '/v1/contexts/branch', { ...branch, toPathId: 'never', inherit: 'files', atMessageId: 'm3' })
  await v1.refuses(400, /\S/, 'POST', '/v1/contexts/branch', { ...branch, toPathId: 'never', inherit: 'all' })
  assert.ok(!(await v1.contexts({ conversationId: talk })).some((c) => c.pathId === 'never'))
  assert.equal((await v1.context(context.id)).sandboxStatus, 'ready')
  await v1.clear(talk)
})

test('calls of one message leave one checkpoint, before the first; calls without one leave none', async () => {
  const talk = `talk-${unique()}`
  await v1.code(talk, 'main', 'x = 0')
  const first = await v1.code(talk, 'main', 'x = 1', { messageId: 'm1' })
  const second = await v1.code(talk, 'main', 'x = 2', { messageId: 'm1' })
  await v1.code(talk, 'main', 'x = 3')
  assert.deepEqual(second.checkpoint, first.checkpoint)
  const [context] = await v1.contexts({ conversationId: talk })
  const { checkpoints: list } = await v1.gives(200, 'GET', `/v1/contexts/${context.id}/checkpoints`)
  assert.deepEqual(list.map((c) => c.messageId), ['m1'])
  await v1.gives(200, 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: 'm1' })
  same(await text(talk, 'main', 'print(x)'), '0\n')
  await v1.clear(talk)
})

test('something in the way does not stop the code: the answer says why there is no checkpoint', async () => {
  const talk = `talk-${unique()}`
  await v1.code(talk, 'main', 'import threading\nstop = threading.Event()\nthreading.Thread(target=stop.wait).start()')
  const answer = await v1.code(talk, 'main', 'print("ran"); stop.set()', { messageId: 'm1' })
  assert.deepEqual([answer.stdout, answer.success], ['ran\n', true])
  assert.match(answer.checkpoint.skipped, /thread.*OpenBLAS.*rest by themselves/)
  const [context] = await v1.contexts({ conversationId: talk })
  assert.deepEqual((await v1.gives(200, 'GET', `/v1/contexts/${context.id}/checkpoints`)).checkpoints, [])
  await v1.refuses(404, /m1/, 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: 'm1' })
  for (const body of [{}, { messageId: 'a', checkpointId: 'b' }, { messageId: '' }, { messageId: 7 }, { nonsense: 1 }, '{']) await v1.refuses(400, /\S/, 'POST', `/v1/contexts/${context.id}/rewind`, body)
  await new Client(server, keyOf(server, 'other')).refuses(404, /\S/, 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: 'm1' })
  await v1.clear(talk)
})

test('older ones are thinned: 410 says what there is', async () => {
  const talk = `talk-${unique()}`
  await v1.code(talk, 'main', 'n = 0')
  for (let n = 1; n <= 14; n++) await v1.code(talk, 'main', `n = ${n}`, { messageId: `m${n}` })
  const [context] = await v1.contexts({ conversationId: talk })
  const { checkpoints: list } = await v1.gives(200, 'GET', `/v1/contexts/${context.id}/checkpoints`)
  const left = list.map((c) => c.messageId)
  assert.ok(left.length <= MAX, `${left}`)
  assert.deepEqual(left.slice(-KEEP), Array.from({ length: KEEP }, (_, i) => `m${14 - KEEP + 1 + i}`))
  const gone = Array.from({ length: 14 }, (_, i) => `m${i + 1}`).find((m) => !left.includes(m))
  const answer = await v1.refuses(410, new RegExp(gone), 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: gone })
  assert.deepEqual(answer.checkpoints.map((c) => c.messageId), left)
  await v1.refuses(410, new RegExp(gone), 'POST', '/v1/contexts/branch', { conversationId: talk, fromPathId: 'main', toPathId: 'b', inherit: 'state', atMessageId: gone })
  same(await text(talk, 'main', 'print(n)'), '14\n')
  await v1.gives(200, 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: left[0] })
  same(await text(talk, 'main', 'print(n)'), `${Number(left[0].slice(1)) - 1}\n`)
  await v1.clear(talk)
})

// ---- best of N ----------------------------------------------------------------------------------

test('explore: four codes side by side, one is adopted, the path itself was not touched', async () => {
  const talk = `talk-${unique()}`
  await v1.code(talk, 'main', 'base = 10\nopen("result", "w").write("none");')
  const [context] = await v1.contexts({ conversationId: talk })
  const codes = [1, 2, 3].map((n) => `x = base * ${n}\nopen("result", "w").write(str(x))\nprint(x)`)
  const answer = await v1.gives(200, 'POST', `/v1/contexts/${context.id}/explore`, { codes: [...codes, 'raise ValueError("no")'] })
  assert.deepEqual(answer.results.map((r) => [r.index, r.stdout, r.success]), [[0, '10\n', true], [1, '20\n', true], [2, '30\n', true], [3, '', false]])
  assert.equal(answer.results[3].error.name, 'ValueError')
  assert.ok(Date.parse(answer.keptUntil) > Date.now())
  same(await text(talk, 'main', 'print("x" in globals(), open("result").read())'), 'False none\n')
  const { candidateId } = answer.results[1]
  const { context: after } = await v1.gives(200, 'POST', `/v1/contexts/${context.id}/adopt`, { candidateId })
  assert.equal(after.id, context.id)
  assert.notEqual(after.sandboxId, context.sandboxId)
  same(await text(talk, 'main', 'print(x, open("result").read())'), '20 20\n')
  const here = (await v1.contexts({ conversationId: talk })).map((c) => c.sandboxId)
  await eventually('the others have ended', async () => (await v1.sandboxes()).every((s) => here.includes(s.sandboxID)))
  await v1.refuses(404, /\S/, 'POST', `/v1/contexts/${context.id}/adopt`, { candidateId: answer.results[0].candidateId })
  await v1.clear(talk)
})

test('explore: kept not at all; more than there are places; input that cannot be', async () => {
  const talk = `talk-${unique()}`
  await v1.code(talk, 'main', 'x = 1')
  const [context] = await v1.contexts({ conversationId: talk })
  const route = `/v1/contexts/${context.id}/explore`
  const before = (await v1.sandboxes()).length
  const none = await v1.gives(200, 'POST', route, { codes: ['x += 1; print(x)', 'print(-x)'], keepSeconds: 0 })
  assert.deepEqual(none.results.map((r) => [r.stdout, r.candidateId]), [['2\n', undefined], ['-1\n', undefined]])
  await eventually('none is left', async () => (await v1.sandboxes()).length === before)
  await v1.refuses(429, /\S/, 'POST', route, { codes: Array(40).fill('x') })
  assert.equal((await v1.sandboxes()).length, before)
  for (const body of [{}, { codes: [] }, { codes: 'x' }, { codes: [1] }, { codes: Array(65).fill('x') }, { codes: ['x'], language: 'cobol' }, { codes: ['x'], keepSeconds: -1 }]) await v1.refuses(400, /\S/, 'POST', route, body)
  await v1.refuses(404, /\S/, 'POST', `/v1/contexts/${'0'.repeat(20)}/explore`, { codes: ['x'] })
  same(await text(talk, 'main', 'print(x)'), '1\n')
  await v1.clear(talk)
})

// ---- the command line, settings -----------------------------------------------------------------

test('sandglass fork: ids, one a line; what is in the way as a table', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'x = "mine"')
  const env = { ...process.env, E2B_API_KEY: v1.key, E2B_API_URL: server.url, E2B_SANDBOX_URL: server.url }
  const ids = execFileSync(SG, ['fork', '-n', '2', sandbox.sandboxId], { encoding: 'utf8', env }).trim().split('\n')
  assert.equal(ids.length, 2)
  for (const id of ids) assert.equal(await py(await connect(id, as), 'x'), 'mine')
  await says(sandbox, 'import threading\nstop = threading.Event()\nthreading.Thread(target=stop.wait, daemon=True).start()')
  let told
  try {
    execFileSync(SG, ['fork', sandbox.sandboxId], { encoding: 'utf8', env, stdio: 'pipe' })
  } catch (err) {
    told = err
  }
  assert.equal(told?.status, 1)
  assert.match(told.stderr, /thread/)
  assert.match(told.stderr, /OpenBLAS.*rest by themselves/)
})

test('checkpoints = no: messages leave none, and say so; forks are made', async () => {
  const other = await start(undefined, undefined, ['--checkpoints', 'no'])
  const client = new Client(other)
  await client.code('talk', 'main', 'x = 1')
  const answer = await client.code('talk', 'main', 'print(x)', { messageId: 'm1' })
  assert.equal(answer.stdout, '1\n')
  assert.match(answer.checkpoint.skipped, /\S/)
  const made = await client.gives(201, 'POST', '/v1/contexts/branch', { conversationId: 'talk', fromPathId: 'main', toPathId: 'b', inherit: 'state' })
  assert.equal(made.inherited, 'state')
  assert.equal((await client.code('talk', 'b', 'print(x)')).stdout, '1\n')
  assert.equal(await stop(other), 0)
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

await run()
