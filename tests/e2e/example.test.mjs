// The worked example: examples/branching-chat, as its README says to run it.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { assert, run, same, test, TOP } from './lib.mjs'
import { start, stop } from './server.mjs'
import { Client } from './v1.mjs'

const FOLDER = path.join(TOP, 'examples/branching-chat')
const server = await start()
const v1 = new Client(server)

function chat(input, { env = {}, signal } = {}) {
  const child = spawn('node', ['chat.mjs'], {
    cwd: FOLDER,
    env: { PATH: process.env.PATH, E2B_API_URL: server.url, E2B_API_KEY: v1.key, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const said = { out: '', err: '', child }
  child.stdout.on('data', (d) => { said.out += d })
  child.stderr.on('data', (d) => { said.err += d })
  child.stdin.on('error', () => {})
  if (signal) child.stdin.write(input)
  else child.stdin.end(input)
  said.ended = new Promise((resolve) => child.on('close', (code) => resolve(code)))
  return said
}

const demo = () => fs.readFileSync(path.join(FOLDER, 'demo.txt'), 'utf8')

const EXPECTED = `you: Remember the costs: train 120, hotel 300, food 90
  [run_code on main: new sandbox]
    3 costs
assistant: I have written down 3 costs.
you: What is the total?
  [run_code on main: same sandbox]
    510
assistant: The total is 510.
you: Make the hotel 320
  [run_code on main: same sandbox]
    320
assistant: The hotel costs 320 now.
you: /branch cheaper 2
chat: cheaper branches off main after turn 2, as it was then
you: What is the total?
  [run_code on cheaper: same sandbox]
    510
assistant: The total is 510.
you: Make the hotel 150
  [run_code on cheaper: same sandbox]
    150
assistant: The hotel costs 150 now.
you: What is the total?
  [run_code on cheaper: same sandbox]
    360
assistant: The total is 360.
you: /switch main
chat: on main, 3 turns
you: What is the total?
  [run_code on main: same sandbox]
    530
assistant: The total is 530.
you: /edit 3 Make the hotel 280
you: Make the hotel 280
  [run_code on main: same sandbox]
    280
assistant: The hotel costs 280 now.
you: What is the total?
  [run_code on main: same sandbox]
    490
assistant: The total is 490.
you: /run print(costs["hotel"], __import__("json").load(open("costs.json"))["hotel"])
  [run_code on main: same sandbox]
    280 280
you: /tree
  * main (has a sandbox)
    - cheaper (has a sandbox)
you: /merge cheaper
chat: cheaper is merged into main, its sandbox has ended; it said: The total is 360.
you: /tree
  * main (has a sandbox)
    - cheaper (merged into main)
1 sandbox ended
`

test('the demo says what it should, and leaves nothing behind', async () => {
  const said = chat(demo())
  assert.equal(await said.ended, 0, said.err)
  same(said.out, EXPECTED, 'output')
  same(said.err, '', 'standard error')
  assert.deepEqual(await v1.contexts(), [])
  assert.deepEqual(await v1.sandboxes(), [])
})

test('it branches with variables and goes back without them, keeps off the network, and shows no control characters', async () => {
  const said = chat(`Remember the costs: train 1, food 2
/branch side
What is the total?
/branch before 0
What is the total?
/edit 1 Make the train 5
/switch main
/run import socket; socket.create_connection(("1.1.1.1", 53), 5)
/run print("\\x1b[31mred\\x1b[0m")
/edit 1 Remember the costs: train 7
What is the total?
/run import threading; stop = threading.Event(); threading.Thread(target=stop.wait).start()
What is the total?
/run stop.set()
/switch nowhere
/edit 9 x
/nonsense
Sing a song
`)
  assert.equal(await said.ended, 0, said.err)
  assert.match(said.out, /side branches off main after turn 1, as it is now\n.*\n  \[run_code on side: same sandbox\]\n    3\n/)
  // What `side` has of main's turns was run on main: there it goes back to.
  assert.match(said.out, /before branches off main after turn 0, as it was then\n.*\n.*\n    NameError/)
  assert.match(said.out, /(OSError|Error): .*(unreachable|timed out|refused|permitted)/i)
  assert.match(said.out, /·\[31mred·\[0m/)
  assert.doesNotMatch(said.out, /\x1b/)
  assert.match(said.out, /The total is 7\./)
  assert.match(said.out, /no way back: .*thread.*\]\n    7\n/)
  assert.match(said.out, /I only know about costs/)
  same(said.err, 'there is no path nowhere\nthere is no turn 9 on main\nthere is no /nonsense; /help says what there is\n')
})

test('a tool that is not available does not end the conversation', async () => {
  const small = await start(undefined, undefined, ['--conversation-contexts', '1'])
  const said = chat('Remember the costs: train 1\n/branch side 0\nSing a song\n', { env: { E2B_API_URL: small.url, E2B_API_KEY: small.as.apiKey } })
  assert.notEqual(await said.ended, 0, 'with files it needs a sandbox at once')
  assert.match(said.err, /conversation/)
  const v1small = new Client(small)
  await v1small.obtain('other', 'a')
  assert.equal((await v1small.contexts()).length, 1)
  assert.equal(await stop(small), 0)
  const tight = await start(undefined, undefined, ['--tenant-contexts', '1'])
  await new Client(tight).obtain('other', 'a')
  const without = chat('Remember the costs: train 1\nSing a song\n', { env: { E2B_API_URL: tight.url, E2B_API_KEY: tight.as.apiKey } })
  assert.equal(await without.ended, 0, without.err)
  assert.match(without.out, /no sandbox\]\n    ToolError: the tool is not available now: .*tenant/)
  assert.match(without.out, /I only know about costs/)
  assert.equal(await stop(tight), 0)
})

test('without a server or a key it says what to do', async () => {
  const none = chat('', { env: { E2B_API_KEY: '' } })
  assert.equal(await none.ended, 2)
  assert.match(none.err, /E2B_API_URL and E2B_API_KEY/)
  const wrong = chat('Remember the costs: a 1\n', { env: { E2B_API_KEY: 'e2b_' + '0'.repeat(40) } })
  assert.equal(await wrong.ended, 1)
  assert.match(wrong.err, /key/i)
})

test('ended by a signal it ends its sandboxes', async () => {
  const said = chat('Remember the costs: train 1\n', { signal: true })
  const until = Date.now() + 20_000
  while (!said.out.includes('assistant:') && Date.now() < until) await new Promise((r) => setTimeout(r, 20))
  assert.equal((await v1.contexts()).length, 1)
  said.child.kill('SIGTERM')
  assert.equal(await said.ended, 143, said.err)
  assert.deepEqual(await v1.contexts(), [])
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

await run()
