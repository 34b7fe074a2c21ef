// Ports of a sandbox from outside, and the network options.
import http from 'node:http'
import { api, assert, common, e2b, eventually, fresh, inside, refused, rejects, require, run, same, Sandbox, serve, sha256, test, toPort } from './lib.mjs'

const { ALL_TRAFFIC, SandboxNotFoundError } = e2b
const { WebSocket } = require('undici')

// One sandbox with both servers for the whole file.
let made
function served() {
  made ??= (async () => {
    const sandbox = await common()
    await serve(sandbox, inside('http_server.py'), 8000)
    await serve(sandbox, inside('ws_server.py'), 8001)
    return sandbox
  })()
  return made
}

test('a request reaches the port, and its answer comes back', async () => {
  const sandbox = await served()
  const res = await toPort(sandbox, 8000, { path: '/some/path?q=a%20b&c' })
  assert.deepEqual([res.status, res.text], [200, 'GET /some/path?q=a%20b&c 0'])
  for (const status of [201, 204, 302, 404, 418, 500, 503]) {
    const other = await toPort(sandbox, 8000, { path: `/status/${status}` })
    assert.deepEqual([other.status, other.headers['x-from']], [status, 'inside'])
  }
})

test('methods and bodies', async () => {
  const sandbox = await served()
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    assert.equal((await toPort(sandbox, 8000, { method, path: `/m/${method}`, body: 'body' })).status, 200, method)
  assert.equal((await toPort(sandbox, 8000, { path: '/m/PUT' })).text, 'body')
  const head = await toPort(sandbox, 8000, { method: 'HEAD', path: '/x' })
  assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', String('HEAD /x 0'.length)])
})

test('large bodies, both ways, with a length and in chunks', async () => {
  const sandbox = await served()
  const body = Buffer.alloc(8_000_000, 'sandglass')
  for (const headers of [{ 'Content-Length': body.length }, { 'Transfer-Encoding': 'chunked' }])
    same((await toPort(sandbox, 8000, { method: 'POST', path: '/hash', body, headers })).text, sha256(body))
  const big = await toPort(sandbox, 8000, { path: '/big/16000000' })
  same(sha256(big.data), sha256(Buffer.alloc(16_000_000, '0123456789abcdef')))
})

test('what is streamed arrives as it is written', async () => {
  const sandbox = await served()
  const url = new URL(process.env.E2B_SANDBOX_URL)
  const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '8000' }
  const times = await new Promise((resolve, reject) => {
    const got = []
    http.get({ host: url.hostname, port: url.port, path: '/stream', headers }, (res) => {
      res.on('data', (d) => got.push([Date.now(), String(d)]))
      res.on('end', () => resolve(got))
    }).on('error', reject)
  })
  assert.equal(times.map(([, d]) => d).join(''), [0, 1, 2, 3, 4].map((i) => `tick ${i}\n`).join(''))
  assert.ok(times.length >= 3 && times.at(-1)[0] - times[0][0] > 400, 'not all at once')
})

test('one connection, many requests', async () => {
  const sandbox = await served()
  const url = new URL(process.env.E2B_SANDBOX_URL)
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '8000' }
  const ask = (i) =>
    new Promise((resolve, reject) => {
      http.get({ agent, host: url.hostname, port: url.port, path: `/n/${i}`, headers }, (res) => {
        let text = ''
        res.on('data', (d) => { text += d })
        res.on('end', () => resolve(text))
      }).on('error', reject)
    })
  const said = await Promise.all(Array.from({ length: 30 }, (_, i) => ask(i)))
  assert.deepEqual(said, Array.from({ length: 30 }, (_, i) => `GET /n/${i} 0`))
  agent.destroy()
})

test('a WebSocket', async () => {
  const sandbox = await served()
  const url = process.env.E2B_SANDBOX_URL.replace('http', 'ws') + '/chat?room=1'
  const socket = new WebSocket(url, { headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '8001' } })
  socket.binaryType = 'arraybuffer'
  const got = []
  socket.addEventListener('message', (e) => got.push(e.data))
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', (e) => reject(e.error ?? new Error('the socket did not open')))
  })
  await eventually('the greeting', () => got[0] === 'path /chat?room=1')
  socket.send('héllo')
  await eventually('a text back', () => got[1] === 'héllo')
  socket.send(new Uint8Array(100_000).fill(7))
  await eventually('bytes back', () => got[2]?.byteLength === 100_000)
  const closed = new Promise((resolve) => socket.addEventListener('close', resolve))
  socket.close(1000)
  assert.equal((await closed).code, 1000)
})

test('a port that nobody listens on', async () => {
  const sandbox = await served()
  const { status, json } = await toPort(sandbox, 9999)
  assert.equal(status, 502)
  assert.deepEqual(json, { sandboxId: sandbox.sandboxId, message: 'The sandbox is running but port is not open', port: 9999, code: 502 })
})

test('a sandbox that is not there', async () => {
  const id = 'i' + '0'.repeat(19)
  const { status, json } = await toPort(id, 8000)
  assert.equal(status, 502)
  assert.deepEqual(json, { sandboxId: id, message: 'The sandbox was not found', code: 502 })
})

test('ports that are none, and paths of the inside', async () => {
  const sandbox = await served()
  for (const port of [0, 65536, -1, 'abc', '80x', ''])
    assert.ok((await toPort(sandbox, port)).status >= 400, `port ${port}`)
  for (const path of ['/init', '/freeze', '/unfreeze', '/collapse', '/fsfreeze', '/fsthaw', '/upgrade']) {
    const { status, json } = await toPort(sandbox, 49983, { method: 'POST', path, headers: { 'X-Access-Token': sandbox.envdAccessToken } })
    assert.deepEqual([status, json?.code, json?.path], [404, 404, path])
  }
})

test('headers reach the inside, those of the hop do not', async () => {
  const sandbox = await served()
  const { json } = await toPort(sandbox, 8000, { path: '/asked', headers: { 'X-Mine': 'kept', Connection: 'keep-alive, X-Hop', 'X-Hop': 'dropped' } })
  const names = json.headers.map(([name]) => name.toLowerCase())
  assert.ok(names.includes('x-mine'))
  assert.ok(!names.includes('x-hop'), 'a header of the hop')
})

test('allowPublicTraffic: false asks for the token on every port but the one of the API', async () => {
  const sandbox = await fresh({ network: { allowPublicTraffic: false } })
  assert.ok(sandbox.trafficAccessToken, 'a token came with it')
  await serve(sandbox, inside('http_server.py'), 8000)
  const ask = (headers) => toPort(sandbox, 8000, { path: '/', headers })
  for (const headers of [{}, { 'E2B-Traffic-Access-Token': 'wrong' }, { 'E2B-Traffic-Access-Token': '' }]) {
    const { status, json } = await ask(headers)
    assert.deepEqual([status, json?.sandboxId, json?.code], [403, sandbox.sandboxId, 403])
  }
  assert.equal((await ask({ 'E2B-Traffic-Access-Token': sandbox.trafficAccessToken })).status, 200)
  assert.equal((await sandbox.getInfo()).network.allowPublicTraffic, false)
  const again = await Sandbox.connect(sandbox.sandboxId)
  assert.equal(again.trafficAccessToken, sandbox.trafficAccessToken)
  await sandbox.pause()
  await sandbox.connect()
  assert.equal((await ask({})).status, 403, 'after a pause too')
})

test('allowPublicTraffic: true is how it is', async () => {
  const sandbox = await fresh()
  assert.equal(sandbox.trafficAccessToken, undefined)
})

test('maskRequestHost: what the inside sees as the host', async () => {
  const sandbox = await fresh({ network: { maskRequestHost: 'inner.test:${PORT}' } })
  await serve(sandbox, inside('http_server.py'), 8000)
  const { json } = await toPort(sandbox, 8000, { path: '/asked' })
  const hosts = json.headers.filter(([name]) => name.toLowerCase() === 'host').map(([, value]) => value)
  assert.deepEqual(hosts, ['inner.test:8000'])
  assert.equal((await sandbox.getInfo()).network.maskRequestHost, 'inner.test:${PORT}')
})

test('without it, the host is the one that was asked for', async () => {
  const sandbox = await served()
  const { json } = await toPort(sandbox, 8000, { path: '/asked' })
  const host = new URL(process.env.E2B_SANDBOX_URL).host
  assert.deepEqual(json.headers.filter(([n]) => n.toLowerCase() === 'host').map(([, v]) => v), [host])
})

test('rules that cannot be are refused', async () => {
  const make = (network) => fresh({ network })
  await refused(make({ allowOut: ['example.com'] }), 400, /must include 'ALL_TRAFFIC' in deny out/)
  await refused(make({ allowOut: ['*.example.com'], denyOut: ['10.0.0.0/8'] }), 400, /ALL_TRAFFIC/)
  await refused(make({ denyOut: ['300.1.2.3/8'] }), 400, /invalid denied CIDR 300\.1\.2\.3\/8/)
  await refused(make({ denyOut: ['example.com'] }), 400, /invalid denied CIDR example\.com/)
  await refused(make({ denyOut: ['10.0.0.0/99'] }), 400, /invalid denied CIDR/)
  const rules = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`h${i}.test`, [{ transform: { headers: { A: 'b' } } }]]))
  await refused(make({ rules }), 400)
  await refused(make({ rules: { 'h.test': [{ transform: { headers: { ['N'.repeat(65)]: 'v' } } }] } }), 400)
  await refused(make({ rules: { 'h.test': [{ transform: { headers: { N: 'v'.repeat(2049) } } }] } }), 400)
  await refused(make({ httpsPorts: [0] }), 400)
  await refused(make({ httpsPorts: [70000] }), 400)
})

test('public traffic can only be closed on a secured sandbox', async () => {
  const body = { templateID: 'base', timeout: 60, network: { allowPublicTraffic: false } }
  const { status, json } = await api('POST', '/sandboxes', { body })
  assert.deepEqual([status, json.code], [400, 400])
})

test('allowInternetAccess: false is told back', async () => {
  const sandbox = await fresh({ allowInternetAccess: false })
  assert.equal((await sandbox.getInfo()).allowInternetAccess, false)
})

test('denyOut is told back, and there is no way out', async () => {
  const sandbox = await fresh({ network: { denyOut: ({ allTraffic }) => [allTraffic] } })
  assert.deepEqual((await sandbox.getInfo()).network.denyOut, [ALL_TRAFFIC])
  const connect = 'import socket; s = socket.create_connection(("192.0.2.1", 80), 2)'
  await assert.rejects(sandbox.commands.run(`python3 -c '${connect}'`), e2b.CommandExitError)
})

test('updateNetwork: checked like the options of create', async () => {
  const sandbox = await fresh()
  await refused(sandbox.updateNetwork({ denyOut: ['nonsense'] }), 400, /invalid denied CIDR nonsense/)
  await rejects(Sandbox.updateNetwork('i' + '0'.repeat(19), { denyOut: [ALL_TRAFFIC] }), SandboxNotFoundError)
  await sandbox.updateNetwork({ denyOut: [ALL_TRAFFIC] })
  assert.deepEqual((await sandbox.getInfo()).network.denyOut, [ALL_TRAFFIC])
})

await run()
