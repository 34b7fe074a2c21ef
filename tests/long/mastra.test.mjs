// Mastra with its own E2B sandbox, as its users have it: nothing is set but E2B's variables. It builds its default template, with apt, at first
// use, and finds it at the next.
import { api, assert, eventually, require, run, same, test } from '../e2e/lib.mjs'

const { E2BSandbox } = require('@mastra/e2b')
const { Workspace, createWorkspaceTools } = require('@mastra/core/workspace')
const BUILD_S = 900
const ID = 'conversation-7'
const sandboxes = async () => (await api('GET', '/v2/sandboxes?state=running,paused')).json.filter((s) => s.metadata?.['mastra-sandbox-id'] === ID)

let sandbox = new E2BSandbox({ id: ID, timeout: 600_000, env: { COLOUR: 'blue' } })
let workspace = new Workspace({ sandbox })

test('a workspace begins: its default template is built', async () => {
  await workspace.init()
  same(sandbox.status, 'running')
  const built = (await api('GET', '/templates')).json.filter((t) => /^mastra-[0-9a-f]{16}$/.test(t.aliases[0] ?? ''))
  same(built.length, 1, 'templates of Mastra')
  same(built[0].buildStatus, 'ready')
  const { exitCode, stdout } = await sandbox.executeCommand('s3fs', ['--version'])
  same(exitCode, 0)
  assert.match(stdout, /Simple Storage Service/)
}, { seconds: BUILD_S })

test('commands: output, status, directory, environment', async () => {
  const said = await sandbox.executeCommand('echo', ['one two', '$COLOUR'])
  same(said.stdout, 'one two $COLOUR\n')
  same((await sandbox.executeCommand('sh', ['-c', 'echo $COLOUR $MORE; pwd'], { cwd: '/tmp', env: { MORE: 'red' } })).stdout, 'blue red\n/tmp\n')
  const failed = await sandbox.executeCommand('sh', ['-c', 'echo oops >&2; exit 7'])
  same(failed.success, false)
  same(failed.exitCode, 7)
  assert.match(failed.stderr, /^oops\n/) // Mastra itself puts it there twice
})

test('files are written, texts and bytes', async () => {
  await sandbox.writeFiles([
    { path: '/home/user/app/text.txt', content: 'täxt\n' },
    { path: '/home/user/app/bytes', content: Buffer.from([0, 255, 10, 13]) },
  ])
  same((await sandbox.executeCommand('cat', ['app/text.txt'])).stdout, 'täxt\n')
  same((await sandbox.executeCommand('od', ['-An', '-tu1', 'app/bytes'])).stdout.trim().replace(/ +/g, ' '), '0 255 10 13')
  same(await sandbox.e2b.files.read('app/text.txt'), 'täxt\n')
})

test('processes in the background: standard input, list, an end', async () => {
  const handle = await sandbox.processes.spawn('while read -r line; do echo "got $line"; done')
  await handle.sendStdin('hello\n')
  await eventually('it answers', () => handle.stdout === 'got hello\n')
  assert.ok((await sandbox.processes.list()).some((p) => p.pid === handle.pid), 'it is listed')
  same(await handle.kill(), true)
  same((await handle.wait()).success, false)
})

test('the tools that an agent is given', async () => {
  const tools = await createWorkspaceTools(workspace)
  const execute = tools.mastra_workspace_execute_command
  const told = await execute.execute({ command: 'uname -s; echo $((6 * 7))' }, { workspace })
  assert.match(String(told), /^Linux\n42/)
})

test('a bucket cannot be mounted, which is told, and the sandbox goes on', async () => {
  const config = { type: 's3', bucket: 'a-bucket', region: 'auto', endpoint: 'http://127.0.0.1:9', accessKeyId: 'k', secretAccessKey: 's' }
  const mounted = await sandbox.mount({ id: 'bucket', provider: 's3', getMountConfig: () => config }, '/data')
  same(mounted.success, false)
  assert.match(mounted.error, /fuse/i)
  same((await sandbox.executeCommand('echo', ['on'])).stdout, 'on\n')
}, { seconds: 120 })

test('it is paused, and found by its name from another process of the program', async () => {
  await sandbox.stop()
  same((await sandboxes())[0].state, 'paused')
  sandbox = new E2BSandbox({ id: ID })
  workspace = new Workspace({ sandbox })
  await workspace.init()
  same((await sandbox.executeCommand('cat', ['/home/user/app/text.txt'])).stdout, 'täxt\n')
  same((await sandboxes()).length, 1)
}, { seconds: 120 })

test('the next one builds nothing', async () => {
  const other = new E2BSandbox({ id: 'conversation-8' })
  await other._start()
  same((await other.executeCommand('sh', ['-c', 'command -v s3fs'])).stdout, '/usr/bin/s3fs\n')
  await other._destroy()
  const { json } = await api('GET', '/templates')
  same(json.find((t) => t.aliases[0]?.startsWith('mastra-')).buildCount, 1)
}, { seconds: 120 })

test('and ended', async () => {
  await workspace.destroy()
  same((await sandboxes()).length, 0)
})

await run()
