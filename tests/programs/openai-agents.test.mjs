// OpenAI's Agents SDK with its sandbox client for E2B, defaults throughout; the model is played.
import { assert, require, run, same, test } from '../e2e/lib.mjs'
import { Model } from './model.mjs'
import { recipe } from './recipe.mjs'

process.env.OPENAI_AGENTS_DISABLE_TRACING = '1'
const { E2BSandboxClient } = require('@openai/agents-extensions/sandbox/e2b')
const { Manifest } = require('@openai/agents/sandbox')

test('an agent: editor, shell, a terminal that waits for input', async () => {
  const model = await Model.play(
    { item: { type: 'apply_patch_call', operation: { type: 'create_file', path: 'answer.py', diff: '+print(6 * 7)\n' } } },
    { item: { type: 'apply_patch_call', operation: { type: 'update_file', path: 'answer.py', diff: '@@\n-print(6 * 7)\n+print(input("name? "), 6 * 7)\n' } } },
    { call: 'exec_command', with: { cmd: 'pwd; ls; cat answer.py; exit 3' } },
    { call: 'exec_command', with: { cmd: 'python3 answer.py', tty: true, yield_time_ms: 2000 } },
    (begun) => ({ call: 'write_stdin', with: { session_id: Number(/session ID (\d+)/i.exec(begun)[1]), chars: 'it is\n', yield_time_ms: 2000 } }),
    (told) => `It printed ${/it is 42/.exec(told)?.[0]}.`)
  const ran = await recipe('openai-agents.mjs', { env: { OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'sk-of-nobody' } })
  model.close()
  assert.deepEqual([ran.status, ran.out], [0, 'It printed it is 42.\n'], `${ran.err}\n${JSON.stringify(model.returned)}`)
  const shell = model.returned.find((text) => text.includes('answer.py'))
  assert.match(shell, /\/workspace\nanswer\.py\nprint\(input\("name\? "\), 6 \* 7\)/)
  assert.match(shell, /code 3/)
}, { seconds: 60 })

// What the runner does with a session, call by call.
const client = new E2BSandboxClient()
let session

test('a session: its manifest is laid out, with an environment', async () => {
  const manifest = new Manifest({ entries: { 'notes/a.txt': { type: 'file', content: 'of the manifest\n' } }, environment: { COLOUR: 'blue' } })
  session = await client.create({ manifest, options: { exposedPorts: [8000] } })
  const ran = await session.execCommand({ cmd: 'cat notes/a.txt; echo $COLOUR; whoami' })
  assert.match(ran, /of the manifest\nblue\nuser/)
  same(await session.pathExists('notes/a.txt'), true)
  same(Buffer.from(await session.readFile({ path: 'notes/a.txt' })).toString(), 'of the manifest\n')
})

test('its workspace is kept as an archive, and laid out in another', async () => {
  const archive = await session.persistWorkspace()
  const other = await client.create({})
  await other.hydrateWorkspace(archive)
  assert.match(await other.execCommand({ cmd: 'cat notes/a.txt' }), /of the manifest/)
  await other.close()
})

test('it is resumed from what was stored of it', async () => {
  const stored = JSON.parse(JSON.stringify(await client.serializeSessionState(session.state)))
  const again = await client.resume(await client.deserializeSessionState(stored))
  assert.match(await again.execCommand({ cmd: 'cat notes/a.txt' }), /of the manifest/)
})

test('a port has an address', async () => {
  const { host, tls } = await session.resolveExposedPort(8000)
  assert.ok(host.startsWith('8000-'), host)
  same(tls, true)
})

test('ended', async () => {
  await session.close()
  await assert.rejects(session.execCommand({ cmd: 'true' }))
})

test('snapshots of E2B as workspaces, and a pause at the end', async () => {
  const keeping = new E2BSandboxClient({ workspacePersistence: 'snapshot', pauseOnExit: true })
  const one = await keeping.create({})
  await one.execCommand({ cmd: 'echo kept > note' })
  const snapshot = await one.persistWorkspace()
  await one.execCommand({ cmd: 'echo other > note' })
  await one.hydrateWorkspace(snapshot)
  assert.match(await one.execCommand({ cmd: 'cat note' }), /kept/)
  await one.close()
  const back = await keeping.resume(one.state)
  assert.match(await back.execCommand({ cmd: 'cat note' }), /kept/)
  await back.sandbox.kill()
}, { seconds: 60 })

await run()
