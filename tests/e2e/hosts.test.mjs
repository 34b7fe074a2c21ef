// The addresses of a server on loopback without any setting of names, and those that a sandbox has for itself.
import { assert, common, fresh, run, sh, test } from './lib.mjs'

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
