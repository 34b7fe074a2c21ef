// The end of a server in order: readiness, what is refused, what is waited for, and `sandglass drain`.
import { spawn } from 'node:child_process'
import { assert, eventually, run, Sandbox, test } from './lib.mjs'
import { SG, start, stop } from './server.mjs'

// `sandglass drain`, without waiting for it.
function drain(state, ...more) {
  const child = spawn(SG, ['drain', '--state', state, ...more], { stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { out: '', err: '' }
  child.stdout.on('data', (d) => { said.out += d })
  child.stderr.on('data', (d) => { said.err += d })
  said.ended = new Promise((resolve) => child.on('exit', resolve))
  return said
}

const health = (server, query = '') => fetch(`${server.url}/health${query}`)
const draining = (server) => eventually('it is not ready', async () => (await health(server, '?ready')).status === 503)
// A command that ends when it is told to, and somebody who waits for it.
const waiting = (sandbox) => sandbox.commands.run('read -r line; echo "got $line"', { background: true, stdin: true })

test('a server is ready when a sandbox can be handed out', async () => {
  const server = await start()
  await eventually('it is ready', async () => (await health(server, '?ready')).status === 204)
  await Sandbox.create(server.as)
  assert.equal((await health(server, '?ready')).status, 204)
  assert.equal(await stop(server), 0)
})

test('drain: nothing new is begun, what is under way may end, then the server does', async () => {
  const server = await start()
  const sandbox = await Sandbox.create(server.as)
  const under = await waiting(sandbox)
  const watch = await sandbox.files.watchDir('/tmp', () => {}) // nobody waits for the end of that
  const said = drain(server.state, '--json')
  await draining(server)
  const why = await health(server, '?ready')
  assert.match((await why.json()).message, /draining/)
  assert.match(why.headers.get('retry-after'), /^\d+$/)
  assert.equal((await health(server)).status, 204, 'it lives')
  const headers = { 'X-API-Key': server.as.apiKey, 'Content-Type': 'application/json' }
  const create = await fetch(`${server.url}/v2/sandboxes`, { method: 'POST', headers, body: '{"templateID":"base"}' })
  assert.equal(create.status, 503)
  assert.match(create.headers.get('retry-after'), /^\d+$/)
  assert.equal(create.headers.get('connection'), 'close')
  for (const [port, path, body] of [[49983, '/process.Process/Start', '{"process":{"cmd":"true"}}'], [49999, '/execute', '{"code":"1"}']]) {
    const a = await fetch(server.url + path, { method: 'POST', headers: { ...headers, 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': `${port}`, 'X-Access-Token': sandbox.envdAccessToken ?? '' }, body })
    assert.equal(a.status, 503, path)
    assert.match(a.headers.get('retry-after'), /^\d+$/)
  }
  assert.equal(await sandbox.isRunning(), true, 'what is there can be looked at')
  await sandbox.commands.sendStdin(under.pid, 'it\n')
  assert.equal((await under.wait()).stdout, 'got it\n')
  assert.equal(await said.ended, 0, said.err)
  const told = JSON.parse(said.out)
  assert.deepEqual([told.state, told.pid, told.ended], [server.state, server.child.pid, true])
  assert.equal(await server.ended, 0)
  await watch.stop().catch(() => {})
})

test('drain_timeout: what does not end is ended', async () => {
  const server = await start(undefined, undefined, ['--drain-timeout', '1s'])
  const sandbox = await Sandbox.create(server.as)
  const under = await waiting(sandbox)
  assert.equal(await stop(server), 0)
  assert.match(server.err, /drain_timeout has expired/)
  await assert.rejects(under.wait())
})

test('a second time, it ends now', async () => {
  for (const again of ['SIGTERM', 'drain']) {
    const server = await start(undefined, undefined, ['--drain-timeout', '1h'])
    const sandbox = await Sandbox.create(server.as)
    const under = await waiting(sandbox)
    const end = under.wait().catch((err) => err)
    server.child.kill('SIGTERM')
    await draining(server)
    if (again === 'SIGTERM') server.child.kill(again)
    else assert.equal(await drain(server.state, '--now').ended, 0)
    assert.equal(await server.ended, 0)
    assert.ok((await end) instanceof Error)
  }
})

test('without a server there is nothing to drain', async () => {
  const server = await start()
  assert.equal(await stop(server), 0)
  for (const state of [server.state, '/nowhere/at/all']) {
    const said = drain(state)
    assert.equal(await said.ended, 1, said.err)
    assert.match(said.err, /^sandglass: no server runs with the state directory '/)
  }
})

await run()
