// The SDK's git module: git inside, driven through commands.
import { assert, common, e2b, folder, rejects, run, serve, sh, test } from './lib.mjs'

const { GitAuthError, GitUpstreamError } = e2b

// A server that wants a password for everything.
const LOCKED = `
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="locked"')
        self.send_header("Content-Length", "0")
        self.end_headers()

HTTPServer(("127.0.0.1", 8002), Handler).serve_forever()
`

async function repository(box) {
  const dir = await folder(box)
  await box.git.init(dir, { initialBranch: 'main' })
  await box.git.setConfig('user.name', 'Tester', { scope: 'local', path: dir })
  await box.git.setConfig('user.email', 'tester@example.com', { scope: 'local', path: dir })
  await box.files.write(`${dir}/file`, 'one\n')
  await box.git.add(dir)
  await box.git.commit(dir, 'first commit')
  return dir
}

test('a repository, from the first commit to a branch', async () => {
  const box = await common()
  const dir = await repository(box)
  assert.equal((await box.git.status(dir)).isClean, true)
  await box.files.write(`${dir}/file`, 'two\n')
  await box.files.write(`${dir}/new`, 'x')
  const status = await box.git.status(dir)
  assert.deepEqual(status.fileStatus.map((f) => [f.name, f.status]).sort(), [['file', 'modified'], ['new', 'untracked']])
  await box.git.createBranch(dir, 'side')
  const branches = await box.git.branches(dir)
  assert.equal(branches.currentBranch, 'side')
  assert.deepEqual([...branches.branches].sort(), ['main', 'side'])
  assert.equal(await sh(box, 'git log --format=%s', { cwd: dir }), 'first commit')
})

test('clone, change, push, pull between two directories', async () => {
  const box = await common()
  const origin = await folder(box)
  await box.git.init(origin, { bare: true, initialBranch: 'main' })
  const dir = await repository(box)
  await box.git.remoteAdd(dir, 'origin', origin)
  assert.equal(await box.git.remoteGet(dir, 'origin'), origin)
  await rejects(box.git.pull(dir), GitUpstreamError)
  await box.git.push(dir, { remote: 'origin', branch: 'main', setUpstream: true })
  const copy = `${await folder(box)}/copy`
  await box.git.clone(origin, { path: copy })
  assert.equal(await box.files.read(`${copy}/file`), 'one\n')
})

test('a repository that wants a password', async () => {
  const box = await common()
  await serve(box, LOCKED, 8002)
  await rejects(box.git.clone('http://127.0.0.1:8002/locked.git', { path: `${await folder(box)}/copy` }), GitAuthError)
})

await run()
