// The server behind its own names: https://api.DOMAIN and https://PORT-ID.DOMAIN, as E2B has it. The
// names are not in any DNS: this process looks them up as the loopback address.
import dns from 'node:dns'
import https from 'node:https'
import tls from 'node:tls'
import { assert, common, e2b, eventually, fresh, inside, require, run, same, serve, sh, sha256, test } from './lib.mjs'

const { WebSocket } = require('undici')
const DOMAIN = process.env.E2B_DOMAIN
const [NAME, PORT] = DOMAIN.split(':')

const lookup = dns.lookup
dns.lookup = (host, options, callback) => {
  if (!host.endsWith(`.${NAME}`)) return lookup(host, options, callback)
  if (typeof options === 'function') [callback, options] = [options, {}]
  const found = { address: '127.0.0.1', family: 4 }
  process.nextTick(() => (options?.all ? callback(null, [found]) : callback(null, found.address, found.family)))
}

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

test('the SDK needs nothing but the domain', async () => {
  for (const name of ['E2B_API_URL', 'E2B_SANDBOX_URL']) assert.equal(process.env[name], undefined, `${name} is not set`)
  const sandbox = await fresh()
  assert.equal(sandbox.getHost(8000), `8000-${sandbox.sandboxId}.${DOMAIN}`)
  assert.equal((await sandbox.getInfo()).sandboxDomain, DOMAIN)
  assert.equal(await sh(sandbox, 'echo over TLS'), 'over TLS')
  const data = 'x'.repeat(3_000_000)
  await sandbox.files.write('/home/user/big', data)
  same(sha256(await sandbox.files.read('/home/user/big')), sha256(data))
  assert.equal(await sandbox.isRunning(), true)
  await sandbox.kill()
  assert.equal(await sandbox.isRunning(), false)
})

test('streams: a command, a watch and a terminal at once', async () => {
  const sandbox = await common()
  const events = []
  const watch = await sandbox.files.watchDir('/home/user', (e) => { events.push(e.name) }, { timeoutMs: 0 })
  let screen = ''
  const pty = await sandbox.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: (d) => { screen += Buffer.from(d) } })
  pty.wait().catch(() => {})
  const command = sandbox.commands.run('sleep 0.5; touch seen; echo done')
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('echo he""re\r'))
  await eventually('the terminal', () => screen.includes('here\r\n'))
  assert.equal((await command).stdout, 'done\n')
  await eventually('the watch', () => events.includes('seen'))
  await watch.stop()
  await pty.kill()
})

test('getHost: a server inside has an https address', async () => {
  const sandbox = await served()
  const res = await fetch(`https://${sandbox.getHost(8000)}/hello?x=1`)
  assert.deepEqual([res.status, await res.text()], [200, 'GET /hello?x=1 0'])
  const post = await fetch(`https://${sandbox.getHost(8000)}/hash`, { method: 'POST', body: 'y'.repeat(2_000_000) })
  same(await post.text(), sha256('y'.repeat(2_000_000)))
  const big = Buffer.from(await (await fetch(`https://${sandbox.getHost(8000)}/big/8000000`)).arrayBuffer())
  same(sha256(big), sha256(Buffer.alloc(8_000_000, '0123456789abcdef')))
})

test('getHost: what the server inside is told', async () => {
  const sandbox = await served()
  const { headers } = await (await fetch(`https://${sandbox.getHost(8000)}/asked`)).json()
  const told = Object.fromEntries(headers.map(([k, v]) => [k.toLowerCase(), v]))
  assert.equal(told.host, sandbox.getHost(8000))
  assert.equal(told['x-forwarded-proto'], 'https')
})

test('getHost: a WebSocket', async () => {
  const sandbox = await served()
  const socket = new WebSocket(`wss://${sandbox.getHost(8001)}/chat`)
  const got = []
  socket.addEventListener('message', (e) => got.push(e.data))
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', (e) => reject(e.error ?? new Error('the socket did not open')))
  })
  socket.send('over TLS')
  socket.send('z'.repeat(200_000))
  await eventually('all came back', () => got.length === 3)
  assert.deepEqual(got.map((m) => m.slice(0, 10)), ['path /chat', 'over TLS', 'zzzzzzzzzz'])
  same(got[2].length, 200_000)
  socket.close()
})

test('getHost: a port that is closed, a sandbox that is not there', async () => {
  const sandbox = await served()
  const closed = await fetch(`https://${sandbox.getHost(9999)}/`)
  assert.equal(closed.status, 502)
  assert.deepEqual(await closed.json(), { sandboxId: sandbox.sandboxId, message: 'The sandbox is running but port is not open', port: 9999, code: 502 })
  const id = 'i' + '0'.repeat(19)
  const none = await fetch(`https://8000-${id}.${DOMAIN}/`)
  assert.equal(none.status, 502)
  assert.deepEqual(await none.json(), { sandboxId: id, message: 'The sandbox was not found', code: 502 })
})

test('a person with a browser gets a page', async () => {
  const sandbox = await served()
  const headers = { Accept: 'text/html', 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64)', 'Sec-Fetch-Mode': 'navigate' }
  const res = await new Promise((resolve, reject) => https.get(`https://${sandbox.getHost(9999)}/`, { headers }, resolve).on('error', reject))
  res.resume()
  assert.equal(res.statusCode, 502)
  assert.match(res.headers['content-type'], /^text\/html/)
})

test('allowPublicTraffic: false and maskRequestHost by name', async () => {
  const sandbox = await fresh({ network: { allowPublicTraffic: false, maskRequestHost: 'inner.test:${PORT}' } })
  await serve(sandbox, inside('http_server.py'), 8000)
  const url = `https://${sandbox.getHost(8000)}/asked`
  assert.equal((await fetch(url)).status, 403)
  const res = await fetch(url, { headers: { 'e2b-traffic-access-token': sandbox.trafficAccessToken } })
  assert.equal(res.status, 200)
  const headers = (await res.json()).headers.map(([k, v]) => [k.toLowerCase(), v])
  assert.deepEqual(headers.filter(([k]) => k === 'host'), [['host', 'inner.test:8000']])
  assert.ok(!headers.some(([, v]) => v.includes(sandbox.trafficAccessToken)), 'the token stays outside')
})

test('signed addresses name the sandbox in their host', async () => {
  const sandbox = await common()
  await sandbox.files.write('/home/user/note', 'signed')
  const url = await sandbox.downloadUrl('/home/user/note', { useSignatureExpiration: 60 })
  assert.equal(new URL(url).host, `49983-${sandbox.sandboxId}.${DOMAIN}`)
  assert.equal(await (await fetch(url)).text(), 'signed')
  assert.equal((await fetch(url.replace('note', 'nota'))).status, 401)
})

test('old versions of TLS are refused, new ones are not', async () => {
  const shake = (version) =>
    new Promise((resolve) => {
      const options = { host: '127.0.0.1', port: PORT, servername: `api.${NAME}`, minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' }
      const socket = tls.connect(options, () => {
        resolve(socket.getProtocol())
        socket.destroy()
      })
      socket.on('error', () => resolve(null))
    })
  assert.deepEqual([await shake('TLSv1'), await shake('TLSv1.1')], [null, null])
  assert.deepEqual([await shake('TLSv1.2'), await shake('TLSv1.3')], ['TLSv1.2', 'TLSv1.3'])
})

test('plain HTTP on that port gets no answer from the API', async () => {
  await assert.rejects(fetch(`http://api.${DOMAIN}/health`))
})

test('Sandbox.create by option instead of environment', async () => {
  const client = new e2b.E2B({ domain: DOMAIN, apiKey: process.env.E2B_API_KEY })
  const sandbox = await client.Sandbox.create({ timeoutMs: 60_000 })
  assert.equal(await sh(sandbox, 'echo fine'), 'fine')
  assert.equal(await sandbox.kill(), true)
})

await run()
