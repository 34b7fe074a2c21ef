// kill -9 of whoever takes part in a fork, at any moment: the front, the broker, an agent, the server. Whatever it hits, a branch
// is whole or not there, what should go on does, and nothing is left behind.
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { err, out } from './code.mjs'
import { checkpoint, fork, http, LONG, make, py, rewind, says, warm } from './fork.mjs'
import { assert, eventually, run, sleep, test, TOP } from './lib.mjs'
import { killFront, scratch, start, stop } from './server.mjs'
import { Client } from './v1.mjs'

const ROUNDS = LONG ? 300 : 12
const HOST_STATE = ['-B', path.join(TOP, 'tests/system/host_state.py')]
const before = path.join(scratch, 'before')
execFileSync('/usr/bin/python3', [...HOST_STATE, 'save', before, String(process.pid)])

// ---- processes ----------------------------------------------------------------------------------

const read = (file) => {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
const link = (file) => {
  try {
    return fs.readlinkSync(file)
  } catch {
    return undefined
  }
}

// All that come from a server: [{ pid, name }].
function family(server) {
  const parents = new Map()
  for (const pid of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
    const [, name, rest] = read(`/proc/${pid}/stat`).match(/^\d+ \((.*)\) \S (.*)/s) ?? []
    if (rest) parents.set(Number(pid), { pid: Number(pid), name, parent: Number(rest.split(' ')[0]) })
  }
  const found = []
  for (let next = [server.child.pid]; next.length; ) {
    const mine = [...parents.values()].filter((p) => next.includes(p.parent))
    found.push(...mine)
    next = mine.map((p) => p.pid)
  }
  return found
}

const named = (server, name) => family(server).filter((p) => p.name === name).map((p) => p.pid)
const kernels = (server) => family(server).filter((p) => p.name.startsWith('python')).length

// The agent of a sandbox: in the same pid namespace as a process that has given itself a name.
async function agentOf(server, sandbox) {
  const mark = `mark${Math.random().toString(36).slice(2, 10)}`
  await says(sandbox, `open("/proc/self/comm", "w").write("${mark}");`)
  const space = link(`/proc/${named(server, mark)[0]}/ns/pid`)
  assert.ok(space, 'the kernel is found')
  return named(server, 'sg-agent').find((pid) => link(`/proc/${pid}/ns/pid`) === space)
}

// A call that somebody may cut short: its status, or undefined.
const status = (as, method, route, body) => http(as).ask(method, route, body).then((a) => a.status, () => undefined)

const STATE = 'x = list(range(1000))\nf = open("/home/user/f", "a+")\nf.write("start\\n")\nf.flush()\ndef whole():\n    f.seek(0)\n    return [sum(x), f.read(), __import__("glob").glob("/home/user/*")]'
const WHOLE = [499500, 'start\n', ['/home/user/f']]

// What there is: the source, and branches that are whole. All but the source are ended.
async function wholeOrGone(server, sandbox) {
  const v1 = http(server.as)
  assert.deepEqual(await eventually('the source answers', () => py(sandbox, 'whole()')), WHOLE)
  for (const { sandboxID } of await v1.sandboxes()) {
    if (sandboxID === sandbox.sandboxId) continue
    const copy = await sandbox.constructor.connect(sandboxID, server.as)
    assert.deepEqual(await py(copy, 'whole()'), WHOLE, 'a branch that nobody was told of')
    await copy.kill()
  }
}

// A test with a server of its own. What that has said is part of what went wrong; and it is not left behind.
const hurt = (name, body, seconds) =>
  test(name, async () => {
    const mine = { server: await start() }
    try {
      await body(mine.server, mine)
      assert.equal(await stop(mine.server), 0)

    } catch (err) {
      err.message += `\n${mine.server.err.split('\n').slice(-25).join('\n')}`
      throw err
    } finally {
      await stop(mine.server, 'SIGTERM')
    }
  }, { seconds: LONG ? 900 : seconds })

// ---- the front ----------------------------------------------------------------------------------

hurt('the front, at any moment of a fork, a checkpoint and a rewind', async (server) => {
  const { as } = server
  const sandbox = await warm(as)
  await says(sandbox, STATE)
  await checkpoint(sandbox, { label: 'start' }, as)
  const there = kernels(server)
  const route = `/sandboxes/${sandbox.sandboxId}`
  const acts = [
    () => status(as, 'POST', `${route}/fork`, { count: 2, timeout: 60 }),
    () => status(as, 'POST', `${route}/checkpoints`, { label: 'later' }),
    () => status(as, 'POST', `${route}/rewind`, { label: 'start' }),
  ]
  for (let round = 0; round < ROUNDS; round++) {
    const call = acts[round % 3]()
    await sleep((round * 1.3) % 15)
    await killFront(server)
    await call
    await wholeOrGone(server, sandbox)
  }
  await rewind(sandbox, { label: 'start' }, as)
  assert.deepEqual(await py(sandbox, 'whole()'), WHOLE)
  const { sandbox: copy } = await fork(sandbox, {}, as)
  assert.deepEqual(await py(copy, 'whole()'), WHOLE)
  await copy.kill()
  // Copies that nobody has a name for have ended; what is kept are checkpoints that are listed.
  const kept = (await http(as).gives(200, 'GET', `${route}/checkpoints`)).checkpoints.length
  await eventually('no copy is left that nobody knows', () => kernels(server) <= there + kept)
  await sandbox.kill()
  await eventually('all kernels are gone with it', () => kernels(server) < there)
}, 60)

// ---- the broker ---------------------------------------------------------------------------------

hurt('the broker, at any moment: what runs goes on, others can be forked again', async (server) => {
  const { as } = server
  for (let round = 0; round < (LONG ? 30 : 3); round++) {
    const sandbox = await warm(as)
    await says(sandbox, STATE)
    const call = http(as).ask('POST', `/sandboxes/${sandbox.sandboxId}/fork`, { count: 2, timeout: 60 })
    await sleep(round * 2.5)
    const brokers = named(server, 'sg-broker')
    assert.ok(brokers.length > 0, 'there is a broker')
    for (const pid of brokers) process.kill(pid, 'SIGKILL')
    const answer = await call
    assert.ok([201, 409, 503].includes(answer.status), `${answer.status} ${answer.text}`)
    await eventually('it is gone', () => brokers.every((pid) => !named(server, 'sg-broker').includes(pid)))
    // Unless it was being taken to its new root just then, in the broker's hands: then it ends, and that is said.
    const cell = await sandbox.runCode('import json\nprint(json.dumps(whole()))')
    if (cell.error) assert.match(`${err(cell)} ${cell.error.value}`, /variables are gone/, `the kernel goes on: ${cell.error.name}`)
    else assert.deepEqual(JSON.parse(out(cell)), WHOLE)
    await sandbox.kill()
    for (const { sandboxID } of await http(as).sandboxes()) await http(as).ask('DELETE', `/sandboxes/${sandboxID}`)
    // Some that wait to be used have a kernel of the old one still, and say so.
    await eventually('a new sandbox can be forked', async () => {
      const next = await warm(as)
      await says(next, STATE)
      const made = await fork(next, {}, as).catch((err) => assert.match(err.message, /broker/))
      if (made) assert.deepEqual(await py(made.sandbox, 'whole()'), WHOLE)
      await Promise.all([made?.sandbox.kill(), next.kill()])
      return made
    })
  }
}, 60)

async function killBrokers(server) {
  const brokers = named(server, 'sg-broker')
  assert.ok(brokers.length > 0, 'there is a broker')
  for (const pid of brokers) process.kill(pid, 'SIGKILL')
  await eventually('they are gone', () => brokers.every((pid) => !named(server, 'sg-broker').includes(pid)))
}

hurt('the broker, later: what checkpoints and snapshots knew is lost, and nobody is told that it is there', async (server) => {
  const { as } = server
  const v1 = new Client(server)
  const sandbox = await warm(as)
  await says(sandbox, STATE)
  await checkpoint(sandbox, { label: 'start' }, as)
  const route = `/sandboxes/${sandbox.sandboxId}`
  const { snapshotID, state } = await http(as).gives(201, 'POST', `${route}/snapshots`, {})
  assert.equal(state, 'warm')
  await says(sandbox, 'live = 1\nopen("/tmp/later", "w").close()')
  // A path of a conversation, whose first kernel is a copy too.
  const talk = await eventually('its kernel is a copy', async () => {
    const name = `talk-${Math.random().toString(36).slice(2)}`
    const first = await v1.code(name, 'main', 'import os\nx = 1\nprint(os.getppid())')
    return first.stdout === '0\n' ? name : undefined
  })
  assert.equal((await v1.code(talk, 'main', 'x = 2', { messageId: 'm1' })).checkpoint?.skipped, undefined)
  const [context] = await v1.contexts({ conversationId: talk })

  await killBrokers(server)
  const lost = (answer) => assert.equal(answer.reason, 'state_lost', JSON.stringify(answer))
  await eventually('the checkpoints say so', async () => !(await http(as).gives(200, 'GET', `${route}/checkpoints`)).checkpoints[0].kernels)
  lost(await http(as).refuses(409, /start|gone/, 'POST', `${route}/rewind`, { label: 'start' }))
  assert.deepEqual(await py(sandbox, '[live, whole()]'), [1, WHOLE], 'what runs has lost nothing')
  lost(await v1.refuses(409, /gone/, 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: 'm1' }))
  const branch = { conversationId: talk, fromPathId: 'main', toPathId: 'b', inherit: 'state', atMessageId: 'm1' }
  lost(await v1.refuses(409, /gone/, 'POST', '/v1/contexts/branch', branch))
  lost(await v1.refuses(409, /gone/, 'POST', '/v1/contexts/branch', { ...branch, inherit: 'replay' }))
  assert.equal((await v1.code(talk, 'main', 'print(x)')).stdout, '2\n')
  lost(await http(as).refuses(409, /\S/, 'POST', '/sandboxes', { templateID: snapshotID, inherit: 'state' }))

  // Who takes the files alone gets them, and the next cell says what is gone.
  const back = await http(as).gives(200, 'POST', `${route}/rewind`, { label: 'start', accept: 'files' })
  assert.deepEqual(back.kernels.map((k) => k.state), ['fresh'])
  const cell = await sandbox.runCode('import os\nprint(os.path.exists("/tmp/later"), "live" in globals())')
  assert.equal(out(cell), 'False False\n')
  assert.match(err(cell), /variables of this context are gone/)
  const branched = await v1.gives(201, 'POST', '/v1/contexts/branch', { ...branch, accept: 'files' })
  assert.deepEqual(branched.kernels.map((k) => k.state), ['fresh'])
  await v1.gives(200, 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: 'm1', accept: 'files' })
  const made = await make(as, { template: snapshotID })
  const told = await made.runCode('print("whole" in globals())')
  assert.equal(out(told), 'False\n')
  assert.match(err(told), /variables of this context are gone/)
  await v1.clear(talk)
}, 60)

// ---- agents -------------------------------------------------------------------------------------

hurt('the agent of the source, or of a branch, at any moment', async (server) => {
  const { as } = server
  const other = await warm(as)
  await says(other, STATE)
  for (let round = 0; round < (LONG ? 60 : 6); round++) {
    const sandbox = await warm(as)
    await says(sandbox, STATE)
    const agent = await agentOf(server, sandbox)
    const agents = named(server, 'sg-agent')
    const call = http(as).ask('POST', `/sandboxes/${sandbox.sandboxId}/fork`, { count: 2, timeout: 60 })
    await sleep((round * 2) % 9)
    // The source's own, or one that was not anybody's before: it may become a branch's.
    const mine = [agent, await agentOf(server, other)]
    const victim = round % 2 ? agent : agents.find((pid) => !mine.includes(pid))
    if (victim) process.kill(victim, 'SIGKILL')
    const answer = await call
    assert.ok([201, 409, 503, ...(victim === agent ? [404] : [])].includes(answer.status), `${answer.status} ${answer.text}`)
    if (answer.status === 201)
      for (const { sandbox: made } of answer.json) {
        const copy = await sandbox.constructor.connect(made.sandboxID, as).catch(() => undefined)
        if (copy) assert.deepEqual(await py(copy, 'whole()').catch(() => WHOLE), WHOLE)
      }
    if (victim !== agent) assert.deepEqual(await py(sandbox, 'whole()'), WHOLE, 'the source goes on')
    for (const { sandboxID } of await http(as).sandboxes())
      if (sandboxID !== other.sandboxId) await http(as).ask('DELETE', `/sandboxes/${sandboxID}`)
  }
  assert.deepEqual(await py(other, 'whole()'), WHOLE, 'who had no part in it')
  await other.kill()
}, 60)

// ---- the server ---------------------------------------------------------------------------------

hurt('the whole server, at any moment: nothing is left, the next one starts and forks', async (first, mine) => {
  let server = first
  for (let round = 0; round < (LONG ? 40 : 4); round++) {
    const { as } = server
    const sandbox = await warm(as)
    await says(sandbox, STATE)
    const route = `/sandboxes/${sandbox.sandboxId}`
    const calls = [status(as, 'POST', `${route}/${round % 2 ? 'checkpoints' : 'fork'}`, round % 2 ? { label: 'a' } : { count: 3, timeout: 60 }), status(as, 'POST', `${route}/snapshots`, {})]
    await sleep((round * 3) % 14)
    server.child.kill('SIGKILL')
    await server.ended
    await Promise.all(calls)
    server = mine.server = await start(server.state, as.apiKey)
  }
  const sandbox = await warm(server.as)
  await says(sandbox, STATE)
  const { sandbox: copy } = await fork(sandbox, {}, server.as)
  assert.deepEqual(await py(copy, 'whole()'), WHOLE)
}, 60)

test('no process, namespace, mount, control group or place is left of any of this', () => {
  const { status: left, stdout } = spawnSync('/usr/bin/python3', [...HOST_STATE, 'check', before, String(process.pid)], { encoding: 'utf8' })
  assert.equal(left, 0, stdout)
})

await run()
