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

async function repository(sandbox) {
  const dir = await folder(sandbox)
  await sandbox.git.init(dir, { initialBranch: 'main' })
  await sandbox.git.setConfig('user.name', 'Tester', { scope: 'local', path: dir })
  await sandbox.git.setConfig('user.email', 'tester@example.com', { scope: 'local', path: dir })
  await sandbox.files.write(`${dir}/file`, 'one\n')
  await sandbox.git.add(dir)
  await sandbox.git.commit(dir, 'first commit')
  return dir
}

test('a repository, from the first commit to a branch', async () => {
  const sandbox = await common()
  const dir = await repository(sandbox)
  assert.equal((await sandbox.git.status(dir)).isClean, true)
  await sandbox.files.write(`${dir}/file`, 'two\n')
  await sandbox.files.write(`${dir}/new`, 'x')
  const status = await sandbox.git.status(dir)
  assert.deepEqual(status.fileStatus.map((f) => [f.name, f.status]).sort(), [['file', 'modified'], ['new', 'untracked']])
  await sandbox.git.createBranch(dir, 'side')
  const branches = await sandbox.git.branches(dir)
  assert.equal(branches.currentBranch, 'side')
  assert.deepEqual([...branches.branches].sort(), ['main', 'side'])
  assert.equal(await sh(sandbox, 'git log --format=%s', { cwd: dir }), 'first commit')
})

test('clone, change, push, pull between two directories', async () => {
  const sandbox = await common()
  const origin = await folder(sandbox)
  await sandbox.git.init(origin, { bare: true, initialBranch: 'main' })
  const dir = await repository(sandbox)
  await sandbox.git.remoteAdd(dir, 'origin', origin)
  assert.equal(await sandbox.git.remoteGet(dir, 'origin'), origin)
  await rejects(sandbox.git.pull(dir), GitUpstreamError)
  await sandbox.git.push(dir, { remote: 'origin', branch: 'main', setUpstream: true })
  const copy = `${await folder(sandbox)}/copy`
  await sandbox.git.clone(origin, { path: copy })
  assert.equal(await sandbox.files.read(`${copy}/file`), 'one\n')
})

test('a repository that wants a password', async () => {
  const sandbox = await common()
  await serve(sandbox, LOCKED, 8002)
  await rejects(sandbox.git.clone('http://127.0.0.1:8002/locked.git', { path: `${await folder(sandbox)}/copy` }), GitAuthError)
})

await run()
