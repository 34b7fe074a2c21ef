// sdk/js and sdk/python: their READMEs run as they are, with what is written beside each line; types; what goes wrong.
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { assert, eventually, rejects, run, same, test, TOP } from './lib.mjs'
import { scratch, start, stop } from './server.mjs'

const PACKAGE = path.join(TOP, 'build/sdk/sandglass')
const PYTHON = process.env.PYTHON ?? '/usr/bin/python3'
const execute = promisify(execFile)

const [server] = await Promise.all([start(undefined, undefined, ['--tenant-contexts', '20']), execute(path.join(TOP, 'tools/sdk-js'))])
const env = { PATH: process.env.PATH, HOME: scratch, E2B_API_URL: server.url, E2B_API_KEY: server.as.apiKey }
const sdk = await import(pathToFileURL(path.join(PACKAGE, 'dist/index.js')))
const { Sandglass, policies } = sdk
const ours = new Sandglass({ url: server.url, apiKey: server.as.apiKey })

// The blocks of a README, each with what it must print: the comments beside its lines that print.
function blocksOf(readme, language, comment) {
  const text = fs.readFileSync(path.join(TOP, readme), 'utf8')
  return [...text.matchAll(new RegExp(`^## (.*?)$|^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].reduce((found, [, title, code]) => {
    if (title) return [...found, { title }]
    const wanted = [...code.matchAll(new RegExp(`(?:console\\.log|print)\\(.*\\S\\s\\s+${comment} (?!a policy)(.*)$`, 'gm'))].map((m) => m[1])
    return [...found.slice(0, -1), { title: found.at(-1).title, code, wanted }]
  }, []).filter((b) => b.code)
}

async function says({ title, code, wanted }, [program, ...args], file) {
  fs.writeFileSync(file, code)
  const { stdout } = await execute(program, [...args, file], { env, cwd: path.dirname(file) }).catch((err) => assert.fail(`${title}: ${err.stderr}${err.stdout}`))
  const lines = stdout.trimEnd().split('\n').filter((line) => !/^[{ }]/.test(line))
  assert.deepEqual(lines, wanted, `${title}: ${stdout}`)
}

// ---- the JavaScript package ---------------------------------------------------------------------

const blocks = [...blocksOf('sdk/js/README.md', 'js', '//'), ...blocksOf('docs/migrating.md', 'js', '//')]
const place = path.join(PACKAGE, 'examples')
fs.mkdirSync(place, { recursive: true })

test('sdk/js: every block of the README and of docs/migrating.md says what is written beside it', async () => {
  assert.ok(blocks.length >= 11, `${blocks.length} blocks`)
  await Promise.all(blocks.map((b, i) => says(b, ['node'], path.join(place, `block${i}.mjs`))))
}, { seconds: 90 })

test('sdk/js: types hold for the README, and refuse what is wrong', async () => {
  const wrong = `import { Sandglass, policies } from 'sandglass'
const server = new Sandglass()
const context = await server.getOrCreateContext({ conversationId: 'c', pathId: 'p' })
// @ts-expect-error a path is missing
await server.getOrCreateContext({ conversationId: 'c' })
// @ts-expect-error no such language
await context.run('1', { language: 'cobol' })
// @ts-expect-error a message or a checkpoint
await context.rewind({})
// @ts-expect-error there is no such field
;(await server.executeCode('1')).output
// @ts-expect-error names are given one by one
policies.only(['pypi.org'])
`
  const files = blocks.map((b, i) => [`types${i}.mts`, b.code]).concat([['wrong.mts', wrong]])
  for (const [name, code] of files) fs.writeFileSync(path.join(place, name), code)
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022,esnext.disposable,dom', '--types', 'node', '--skipLibCheck']
  const tsc = path.join(TOP, 'build/sdk/node_modules/.bin/tsc')
  await execute(tsc, [...options, ...files.map(([name]) => name)], { cwd: place }).catch((err) => assert.fail(err.stdout))
})

test('sdk/js: Node 18 loads it', async () => {
  const node = path.join(TOP, 'build/node/node_modules/node-18/bin/node')
  await says(blocks[0], [node], path.join(place, 'old.mjs'))
})

test('sdk/js: sandboxes fork, go back, and are made from snapshots', async () => {
  await ours.withSandbox(async (sandbox) => {
    await sandbox.writeFile('/home/user/a', '1')
    const { checkpointId } = await sandbox.checkpoint('first')
    await sandbox.writeFile('/home/user/a', '2')
    const [fork] = await sandbox.fork({ count: 1 })
    same(await fork.sandbox.readFile('/home/user/a'), '2')
    await fork.sandbox.kill()
    await sandbox.rewind({ checkpointId })
    same(await sandbox.readFile('/home/user/a'), '1')
    assert.deepEqual((await sandbox.checkpoints()).map((c) => c.messageId), ['first'])
    const { snapshotID } = await sandbox.snapshot()
    same(await ours.withSandbox((s) => s.readFile('/home/user/a'), { template: snapshotID }), '1')
    await sandbox.pause()
    same((await sandbox.info()).state, 'paused')
    await sandbox.resume()
    await sandbox.setNetwork(policies.only('pypi.org'))
    assert.deepEqual((await sandbox.info()).network.allowOut, ['pypi.org'])
  })
})

test('sdk/js: files, commands that are stopped, sandboxes that are gone', async () => {
  const sandbox = await ours.createSandbox()
  await sandbox.makeDir('/tmp/d/e')
  await sandbox.makeDir('/tmp/d/e')
  await sandbox.writeFile('/tmp/d/bytes', Uint8Array.of(0, 255))
  await sandbox.moveFile('/tmp/d/bytes', '/tmp/d/moved')
  assert.deepEqual([...(await sandbox.readBytes('/tmp/d/moved'))], [0, 255])
  const moved = (await sandbox.listFiles('/tmp/d')).find((f) => f.name === 'moved')
  assert.deepEqual(moved, { name: 'moved', path: '/tmp/d/moved', type: 'file', size: 2 })
  await sandbox.removeFile('/tmp/d')
  same(await sandbox.fileExists('/tmp/d'), false)
  await rejects(sandbox.readFile('/tmp/d'), sdk.NotFoundError)
  await rejects(sandbox.exec('sleep 9', { timeoutSeconds: 0.2 }), sdk.TimedOutError)
  const stop = new AbortController()
  await assert.rejects(sandbox.exec('echo on; exec sleep 98', { signal: stop.signal, onStdout: () => stop.abort() }), { name: 'AbortError' })
  await eventually('the command is killed', async () => !(await sandbox.exec('pgrep -f "sleep 9[8]"')).success)
  same((await sandbox.exec('kill -9 $$')).exitCode, 137)
  await sandbox.kill()
  await sandbox.kill()
  await rejects(sandbox.fetch(80, '@127.0.0.1:1/'), sdk.InvalidError)
  const gone = await rejects(sandbox.exec('true'), sdk.UnavailableError)
  same(gone.status, 502)
  await rejects(sandbox.waitForPort(80, { mode: 'http' }), sdk.UnavailableError)
})

test('sdk/js: processes are found again by their names, and end as they end', async () => {
  await ours.withSandbox(async (sandbox) => {
    const slow = await sandbox.start('echo héllo; sleep 0.3; printf last', { id: 'slow', cwd: '/tmp' })
    same(await slow.exitCode(), undefined)
    let text = ''
    for await (const piece of slow.output()) text += piece.text
    same(text, 'héllo\nlast')
    same((await slow.waitForLog('last')).line, 'last')
    same(await slow.wait(), 0)
    const cat = await sandbox.start('cat', { stdin: true })
    await cat.sendInput('said')
    await cat.closeInput()
    same(await cat.wait(5), 0)
    same((await cat.logs()).stdout, 'said')
    const err = await rejects((await sandbox.start('exit 4')).waitForLog('never'), sdk.ProcessExitedError)
    same(err.exitCode, 4)
    await rejects((await sandbox.start('sleep 1')).waitForLog('never', 0.2), sdk.TimedOutError)
    await rejects((await sandbox.start('true')).waitForPort(81), sdk.ProcessExitedError)
    await rejects(sandbox.waitForPort(81, { timeoutSeconds: 0.1 }), sdk.TimedOutError)
    await rejects(sandbox.start('true', { id: 'slow' }), sdk.ConflictError, /exists/)
    await rejects(sandbox.start('true', { id: '../x' }), sdk.InvalidError)
    const tree = await (await ours.getSandbox(sandbox.id)).start('sleep 97 & sleep 97', { id: 'tree' })
    await tree.kill('SIGKILL')
    same(await tree.wait(), 137)
    await eventually('its children are killed', async () => !(await sandbox.exec('pgrep -f "sleep 9[7]"')).success)
    assert.ok((await sandbox.listProcesses()).map((p) => p.id).includes('tree'))
    same(await sandbox.getProcess('none'), undefined)
  })
})

test('sdk/js: a session outlives a timeout, and an end of its shell', async () => {
  await ours.withSandbox(async (sandbox) => {
    const shell = await sandbox.session({ envs: { Q: `it's "fine"` } })
    same((await shell.exec('X=1; echo "$Q"')).stdout, `it's "fine"\n`)
    await rejects(shell.exec('sleep 9', { timeoutSeconds: 0.3 }), sdk.TimedOutError)
    same((await shell.exec('echo $X $Y', { envs: { Y: '2' } })).stdout, '1 2\n')
    same((await (await sandbox.session({ id: shell.id })).exec('echo $X')).stdout, '1\n')
    same((await shell.exec('exit 9')).exitCode, 9)
    same((await shell.exec('echo [$X]')).stdout, '[]\n')
    assert.equal((await shell.exec('if')).success, false)
    await shell.close()
    await rejects(shell.exec('true'), sdk.NotFoundError)
  })
})

// ---- the JavaScript package: what servers do ----------------------------------------------------

// A server that answers as it is told, one request after the other.
async function scripted(...answers) {
  const asked = []
  const fake = http.createServer((req, res) => {
    asked.push(`${req.method} ${req.url}`)
    const answer = answers.shift()
    if (!answer) return
    req.resume().on('end', () => (answer.cut ? req.socket.destroy() : res.writeHead(answer.status, { 'X-Request-Id': 'r'.repeat(20), ...answer.headers }).end(JSON.stringify(answer.body ?? {}))))
  })
  await new Promise((resolve) => fake.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${fake.address().port}`, asked, close: () => fake.close().closeAllConnections() }
}

const busy = { status: 503, headers: { 'Retry-After': '1' }, body: { message: 'no room' } }
const limit = { status: 429, body: { message: 'tenant_contexts', unavailable: true } }
const paths = { status: 200, body: { paths: [] } }

test('sdk/js: a program inside is not given the key, nor can an id lead elsewhere', async () => {
  const asked = []
  const fake = http.createServer((req, res) => {
    asked.push(req)
    res.end('{"sandboxID": "s", "templateID": "t", "envdAccessToken": "e"}')
  })
  await new Promise((resolve) => fake.listen(0, '127.0.0.1', resolve))
  const there = new Sandglass({ url: `http://127.0.0.1:${fake.address().port}`, apiKey: 'k' })
  const sandbox = await there.getSandbox('../a/b?c')
  same(asked[0].url, '/sandboxes/..%2Fa%2Fb%3Fc')
  same(asked[0].headers['x-api-key'], 'k')
  ;(await sandbox.fetch(8000, '/a b?c=é')).resume()
  same(asked[1].url, '/a%20b?c=%C3%A9')
  assert.deepEqual(['x-api-key', 'x-access-token'].map((name) => asked[1].headers[name]), [undefined, undefined])
  same(await sandbox.readFile('/x').then(() => asked[2].headers['x-access-token']), 'e')
  there.close()
  fake.close().closeAllConnections()
})

test('sdk/js: it tries again what was put off, and nothing else', async () => {
  const fake = await scripted(busy, paths, limit, busy, { status: 307, headers: { Location: '/v1/elsewhere' } }, paths, { cut: true })
  const there = new Sandglass({ url: fake.url, apiKey: 'k', retries: 1, requestTimeoutSeconds: 0.3 })
  assert.deepEqual(await there.listPaths('c'), [])
  const refused = await rejects(there.listPaths('c'), sdk.LimitError, /^tenant_contexts$/)
  assert.deepEqual([refused.status, refused.requestId, refused.unavailable], [429, 'r'.repeat(20), true])
  const none = new Sandglass({ url: fake.url, apiKey: 'k', retries: 0, requestTimeoutSeconds: 0.3 })
  await rejects(none.listPaths('c'), sdk.UnavailableError, /no room/)
  assert.deepEqual(await none.listPaths('c'), [])
  await rejects(none.cleanUp('c'), sdk.ConnectionFailedError)
  await rejects(none.listPaths('c'), sdk.TimedOutError)
  same(fake.asked.length, 8)
  there.close()
  none.close()
  fake.close()
})

test('sdk/js: messages of an agent survive a connection that breaks', async () => {
  const cut = new Set()
  const port = new URL(server.url).port
  const proxy = net.createServer((near) => {
    const far = net.connect(port, '127.0.0.1')
    for (const [a, b] of [[near, far], [far, near]]) a.on('error', () => b.destroy()).on('close', () => b.destroy()).pipe(b)
    cut.add(near)
  })
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const through = new Sandglass({ url: `http://127.0.0.1:${proxy.address().port}`, apiKey: server.as.apiKey })
  const echo = 'import json, sys\nfor line in sys.stdin: print(line, end="", flush=True)'
  const agent = await through.startAgent({ command: ['python3', '-c', echo] })
  const line = await agent.connect()
  const came = []
  line.send({ n: 0, big: 'x'.repeat(200_000) })
  for await (const { n } of line) {
    came.push(n)
    if (n === 9) break
    if (n % 3 === 2) for (const socket of cut) socket.destroy()
    line.send({ n: n + 1 })
  }
  assert.deepEqual(came, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  await rejects(agent.connect(), sdk.ConflictError)
  const other = await agent.connect({ takeover: true })
  other.close()
  assert.ok((await agent.refresh()).info.messagesOut >= 10)
  await agent.stop()
  through.close()
  proxy.close()
})

// ---- the Python package -------------------------------------------------------------------------

const pyBlocks = [...blocksOf('sdk/python/README.md', 'python', '#'), ...blocksOf('docs/migrating.md', 'python', '#')]
const pyPlace = path.join(TOP, 'build/sdk/python')
fs.mkdirSync(pyPlace, { recursive: true })
Object.assign(env, { PYTHONPATH: path.join(TOP, 'sdk/python'), PYTHONDONTWRITEBYTECODE: '1' })

test('sdk/python: every block of the README and of docs/migrating.md says what is written beside it', async () => {
  assert.ok(pyBlocks.length >= 11, `${pyBlocks.length} blocks`)
  await Promise.all(pyBlocks.map((b, i) => says(b, [PYTHON], path.join(pyPlace, `block${i}.py`))))
}, { seconds: 90 })

test('sdk/python: types hold for it and the README in Python 3.9, and refuse what is wrong', async () => {
  const wrong = `from sandglass import Sandglass, policies
with Sandglass() as server:
    server.get_or_create_context("c")  # pyright: ignore[reportCallIssue]
    server.execute_code("1").output  # pyright: ignore[reportAttributeAccessIssue]
    server.create_sandbox(network=policies.only(["pypi.org"]))  # pyright: ignore[reportArgumentType]
`
  const unknown = ['Member', 'Variable', 'Argument', 'Lambda', 'Parameter'].map((what) => [`reportUnknown${what}Type`, false])
  fs.writeFileSync(path.join(pyPlace, 'wrong.py'), wrong)
  fs.writeFileSync(path.join(pyPlace, 'pyrightconfig.json'), JSON.stringify({
    include: ['.', path.relative(pyPlace, path.join(TOP, 'sdk/python/sandglass'))],
    extraPaths: [path.relative(pyPlace, path.join(TOP, 'sdk/python'))],
    pythonVersion: '3.9',
    typeCheckingMode: 'strict',
    reportUnnecessaryTypeIgnoreComment: true,
    reportPrivateUsage: false,
    ...Object.fromEntries(unknown),
  }))
  await execute('node', [path.join(TOP, 'build/sdk/node_modules/pyright/index.js')], { cwd: pyPlace, env }).catch((err) => assert.fail(err.stdout || err.message))
}, { seconds: 60 })

test('sdk/python: what waits is made of what awaits, and both take what goes wrong', async () => {
  await execute(path.join(TOP, 'tools/sdk-python'), ['--check']).catch((err) => assert.fail(`run tools/sdk-python: ${err.stdout}`))
  await execute(PYTHON, [path.join(TOP, 'tests/sdk/python.py')], { env }).catch((err) => assert.fail(err.stderr))
}, { seconds: 60 })

test('the server ends in good order', async () => {
  same(await stop(server), 0)
})

await run()
