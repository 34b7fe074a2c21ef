// ComputeSDK with its E2B provider: the quick start, and all that a provider is asked for.
import { assert, eventually, require, run, same, test } from '../e2e/lib.mjs'
import { recipe } from './recipe.mjs'

const { compute } = require('computesdk')
const { e2b } = require('@computesdk/e2b')
const sdk = e2b({ apiKey: process.env.E2B_API_KEY })
const sandbox = await sdk.sandbox.create({ timeout: 120_000, envs: { COLOUR: 'blue' }, metadata: { of: 'computesdk' } })

test('the quick start of its README', async () => {
  const ran = await recipe('computesdk.mjs')
  assert.deepEqual([ran.status, ran.err], [0, ''])
  assert.match(ran.out, /^ {3}A {2}B\n0 {2}1 {2}4\n1 {2}2 {2}5\n2 {2}3 {2}6\nSum: 21\n/)
})

test('commands: output, status, directory, environment, background', async () => {
  const ran = await sandbox.runCommand('printenv MORE COLOUR; pwd; echo why >&2; exit 3', { cwd: '/tmp', env: { MORE: 'red' } })
  assert.deepEqual([ran.stdout, ran.stderr, ran.exitCode], ['red\nblue\n/tmp\n', 'why\n', 3])
  await sandbox.runCommand('sleep 0.2; touch /tmp/later', { background: true })
  await eventually('it goes on by itself', async () => (await sandbox.runCommand('ls /tmp/later')).exitCode === 0)
  same((await sandbox.runCommand('no-such-program')).exitCode, 127)
})

test('files, in directories of the system too', async () => {
  await sandbox.filesystem.mkdir('/analysis/data')
  await sandbox.filesystem.writeFile('/analysis/data/people.csv', 'name,age\nAlice,25\n')
  same(await sandbox.filesystem.readFile('/analysis/data/people.csv'), 'name,age\nAlice,25\n')
  same(await sandbox.filesystem.exists('/analysis/none'), false)
  assert.deepEqual((await sandbox.filesystem.readdir('/analysis')).map((e) => e.name), ['data'])
  await sandbox.filesystem.remove('/analysis')
  same(await sandbox.filesystem.exists('/analysis'), false)
})

test('by id, listed, described, with an address for a port', async () => {
  const again = await sdk.sandbox.getById(sandbox.sandboxId)
  same((await again.runCommand('echo again')).stdout, 'again\n')
  assert.ok((await sdk.sandbox.list()).some((s) => s.sandboxId === sandbox.sandboxId))
  same((await sandbox.getInfo()).status, 'running')
  assert.match(await sandbox.getUrl({ port: 8000 }), new RegExp(`^https://8000-${sandbox.sandboxId}\\.`))
})

test('a snapshot, and a sandbox made of it', async () => {
  await sandbox.runCommand('echo kept > /home/user/note')
  const { id } = await sdk.snapshot.create(sandbox.sandboxId, { name: 'of-computesdk' })
  const made = await sdk.sandbox.create({ snapshotId: id })
  same((await made.runCommand('cat note')).stdout, 'kept\n')
  await made.destroy()
})

test('a provider set for all', async () => {
  compute.setConfig({ provider: sdk })
  const one = await compute.sandbox.create()
  same((await one.runCommand('echo here')).stdout, 'here\n')
  await one.destroy()
})

test('ended', async () => {
  await sandbox.destroy()
  same(await sdk.sandbox.getById(sandbox.sandboxId), null)
})

await run()
