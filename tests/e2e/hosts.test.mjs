// A server on loopback that was told no names. Its domain is localhost:PORT: programs need E2B_DOMAIN alone, and the file
// of its authority. Names below localhost lead to the loopback address where libnss-myhostname is installed; here this
// process looks them up itself. And what a sandbox has on those of its own ports that the server answers.
import dns from 'node:dns'
import http from 'node:http'
import net from 'node:net'
import tls from 'node:tls'
import { assert, common, eventually, fresh, inside, require, run, serve, sh, test } from './lib.mjs'

const { WebSocket } = require('undici')
const DOMAIN = process.env.E2B_DOMAIN
const PORT = Number(DOMAIN.split(':')[1])

const lookup = dns.lookup
dns.lookup = (host, options, callback) => {
  if (!host.endsWith('.localhost')) return lookup(host, options, callback)
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

// What the server says to somebody who asks by that name.
const asks = (host, path = '/', headers = {}) =>
  new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port: PORT, path, headers: { host, ...headers } }, async (res) => {
      let text = ''
      for await (const d of res) text += d
      resolve({ status: res.statusCode, message: text && JSON.parse(text).message })
    }).on('error', reject)
  })

test('the SDK needs nothing but the domain', async () => {
  for (const name of ['E2B_API_URL', 'E2B_SANDBOX_URL']) assert.equal(process.env[name], undefined, `${name} is not set`)
  const sandbox = await fresh()
  assert.equal(sandbox.getHost(3000), `3000-${sandbox.sandboxId}.${DOMAIN}`)
  assert.equal((await sandbox.getInfo()).sandboxDomain, DOMAIN)
  assert.equal(await sh(sandbox, 'echo by name'), 'by name')
  await sandbox.files.write('/home/user/note', 'x'.repeat(1_000_000))
  const url = await sandbox.downloadUrl('/home/user/note', { useSignatureExpiration: 60 })
  assert.equal((await (await fetch(url)).text()).length, 1_000_000)
})

test('getHost: with https:// and with http://, on one port', async () => {
  const sandbox = await served()
  for (const scheme of ['https', 'http']) {
    const { headers } = await (await fetch(`${scheme}://${sandbox.getHost(8000)}/asked`)).json()
    const told = Object.fromEntries(headers.map(([k, v]) => [k.toLowerCase(), v]))
    assert.deepEqual([told.host, told['x-forwarded-proto']], [sandbox.getHost(8000), scheme])
    const socket = new WebSocket(`${scheme.replace('http', 'ws')}://${sandbox.getHost(8001)}/chat`)
    const first = await new Promise((resolve, reject) => {
      socket.addEventListener('message', (e) => resolve(e.data))
      socket.addEventListener('error', (e) => reject(e.error ?? new Error('the socket did not open')))
    })
    assert.equal(first, 'path /chat')
    socket.close()
  }
})

test('a certificate for each name below localhost, and for no other', async () => {
  const shake = (servername) =>
    new Promise((resolve) => {
      const socket = tls.connect({ host: '127.0.0.1', port: PORT, servername, rejectUnauthorized: false }, () => {
        resolve([socket.getPeerCertificate().subjectaltname, socket.authorized || socket.authorizationError.code])
        socket.destroy()
      })
      socket.on('error', (err) => resolve(err.code))
    })
  for (const name of ['localhost', 'api.localhost', '3000-abc.localhost', 'A.B.LOCALHOST'])
    assert.deepEqual(await shake(name), [`DNS:${name.toLowerCase()}`, true])
  assert.equal((await shake(''))[0], 'DNS:localhost')
  for (const name of ['example.com', 'notlocalhost', 'localhost.example.com', 'a b.localhost']) assert.match(String(await shake(name)), /^ERR_SSL/)
})

test('whatever begins neither TLS nor HTTP is cut off, and others are served meanwhile', async () => {
  const said = (bytes) =>
    new Promise((resolve) => {
      const socket = net.connect(PORT, '127.0.0.1', () => socket.write(bytes))
      let text = ''
      socket.on('data', (d) => { text += d.toString('latin1') })
      socket.on('error', () => {})
      socket.on('close', () => resolve(text))
    })
  const silent = [1, 2, 3].map(() => net.connect(PORT, '127.0.0.1', function () { this.write('\x16') }))
  assert.match(await said('\0\0\0\0\r\n\r\n'), /^HTTP\/1.1 400 /)
  assert.match(await said('\x80\x2e\x01\x03\x01\r\n\r\n'), /^HTTP\/1.1 400 /)
  assert.doesNotMatch(await said(`\x16${'x'.repeat(20000)}`), /HTTP/)
  assert.doesNotMatch(await said('\x16GET / HTTP/1.1\r\nHost: a\r\n\r\n'), /HTTP/)
  assert.equal((await asks(DOMAIN, '/health')).status, 204)
  silent.forEach((s) => s.destroy())
})

test('a name that is no sandbox is told what to do', async () => {
  const id = 'i'.repeat(20)
  for (const [host, message] of [
    [`3000-${id}.example.com`, new RegExp(`domain is ${DOMAIN}. Ask for PORT-ID.${DOMAIN}, or .*--domain`)],
    ['8080-short.localhost', new RegExp(`a sandbox's port is at PORT-ID.${DOMAIN}.* API at api.${DOMAIN}`)],
    [`${id}.${DOMAIN}`, /names no sandbox/],
  ])
    for (const path of ['/', '/sandboxes', '/v1/contexts', '/mcp']) {
      const answer = await asks(host, path)
      assert.equal(answer.status, 404, `${host}${path}`)
      assert.match(answer.message, message)
    }
  // The API keeps every name that it can be reached by, and a key is always heard.
  for (const host of ['sandglass.example.com', `api.${DOMAIN}`, DOMAIN, '127.0.0.1', 'localhost'])
    assert.match((await asks(host, '/sandboxes')).message, /^Invalid API key: none was given/)
  assert.equal((await asks(`3000-${id}.example.com`, '/health')).status, 204)
  assert.equal((await asks(`3000-${id}.example.com`, '/sandboxes', { 'X-API-Key': process.env.E2B_API_KEY })).status, 200)
})

test('a link opens one port that is not public, for a time', async () => {
  const sandbox = await fresh({ network: { allowPublicTraffic: false } })
  await serve(sandbox, inside('http_server.py'), 8000)
  await serve(sandbox, inside('ws_server.py'), 8001)
  const link = async (port, seconds, id = sandbox.sandboxId) => {
    const headers = { 'X-API-Key': process.env.E2B_API_KEY, 'Content-Type': 'application/json' }
    const res = await fetch(`https://api.${DOMAIN}/v1/sandboxes/${id}/links`, { method: 'POST', headers, body: JSON.stringify({ port, seconds }) })
    assert.equal(res.status, 201)
    return (await res.json()).url
  }
  const status = async (url) => (await fetch(url)).status
  const url = await link(8000, 600)
  assert.match(url, new RegExp(`^http://8000-${sandbox.sandboxId}-[0-9a-z]{35}.${DOMAIN}$`))
  assert.equal(await status(`http://${sandbox.getHost(8000)}/hello`), 403)
  assert.equal(await (await fetch(`${url}/hello?x=1`)).text(), 'GET /hello?x=1 0')
  assert.equal(await status(url.replace('http:', 'https:')), 200)
  const socket = new WebSocket(`${(await link(8001, 600)).replace('http', 'ws')}/chat`)
  await new Promise((resolve, reject) => {
    socket.addEventListener('message', resolve)
    socket.addEventListener('error', (e) => reject(e.error ?? new Error('the socket did not open')))
  })
  socket.close()
  // Not for another port, end, sandbox, or a little less of a signature.
  const [, end, mac] = url.match(/-([0-9a-z]{7})([0-9a-f]{28})\./)
  const other = await fresh({ network: { allowPublicTraffic: false } })
  const later = (parseInt(end, 36) + 1).toString(36).padStart(7, '0')
  for (const wrong of [url.replace('8000-', '8001-'), url.replace(sandbox.sandboxId, other.sandboxId), url.replace(end, later), url.replace(end, '-000001'),
    url.replace(mac, mac.slice(1)), url.replace(mac, mac.replace(/^./, (c) => (c === '0' ? '1' : '0'))), url.replace(end + mac, '')])
    assert.equal(await status(wrong), 403, wrong)
  const short = await link(8000, 1)
  await eventually('the link ends', async () => (await status(short)) === 403)
  const open = await fresh()
  assert.equal(await link(8000, 60, open.sandboxId), `http://${open.getHost(8000)}`)
})

test('inside, ports 49999 and 49983 say that they are well', async () => {
  const sandbox = await fresh('code-interpreter-v1')
  const status = 'curl -s -o /dev/null -w "%{http_code}"'
  assert.equal(await sh(sandbox, `${status} http://0.0.0.0:49999/health`), '200')
  assert.equal(await sh(sandbox, 'curl -s localhost:49999/health'), '"OK"')
  assert.equal(await sh(sandbox, `${status} localhost:49983/health`), '204')
})

test('... and where the rest of their API is', async () => {
  const sandbox = await common()
  for (const [port, path] of [[49999, '/contexts'], [49983, '/files?path=/etc/passwd'], [49999, '/healthy']]) {
    const { code, message } = JSON.parse(await sh(sandbox, `curl -s 'localhost:${port}${path}'`))
    assert.equal(code, 404)
    assert.match(message, new RegExp(`port ${port} answers GET /health alone`))
  }
  assert.match(await sh(sandbox, 'head -c 3000000 /dev/zero | curl -s --data-binary @- localhost:49999/execute'), /answers GET \/health alone/)
})

test('... and nobody else can have them', async () => {
  const bind = 'import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("0.0.0.0", 49999)); s.listen()'
  assert.match(await sh(await common(), `python3 -c '${bind}' 2>&1 || true`), /Address already in use/)
})

test('... and who says nothing, too much or nonsense is let go, while others are answered', async () => {
  const program = `
import socket, urllib.request
def ask(data):
    s = socket.create_connection(("127.0.0.1", 49999))
    s.settimeout(20)
    s.sendall(data)
    return s
silent = [ask(b"G") for _ in range(40)]
assert urllib.request.urlopen("http://127.0.0.1:49999/health", timeout=20).read() == b'"OK"'
assert silent[0].recv(10) == b""
for data in (b"A" * 100000, b"\\0" * 2000, b"\\x16\\x03\\x01\\n", b"\\r\\n"):
    assert ask(data).recv(12) == b"HTTP/1.1 404", data
slow = ask(b"GET /hea")
slow.sendall(b"lth HTTP/1.1\\r\\n")
assert slow.recv(12) == b"HTTP/1.1 200"
print("fine")`
  assert.equal(await sh(await common(), `python3 - <<'END'\n${program}\nEND`), 'fine')
})

await run()
