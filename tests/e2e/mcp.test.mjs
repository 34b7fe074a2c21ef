// The server's tools as MCP clients see them: the SDK's client over HTTP and over `sandglass mcp`, in the versions
// with sessions and in the one without, and single requests where an SDK would never make them.
import { spawn } from 'node:child_process'
import { assert, eventually, require, run, same, sleep, test, unique } from './lib.mjs'
import { keyOf, Client as V1 } from './v1.mjs'
import { killFront, SG, start, stop } from './server.mjs'
import { surroundings } from './terminal.mjs'

const old = {
  Client: require('@modelcontextprotocol/sdk/client/index.js').Client,
  Http: require('@modelcontextprotocol/sdk/client/streamableHttp.js').StreamableHTTPClientTransport,
  Stdio: require('@modelcontextprotocol/sdk/client/stdio.js').StdioClientTransport,
}
const current = {
  Client: require('@modelcontextprotocol/client').Client,
  Http: require('@modelcontextprotocol/client').StreamableHTTPClientTransport,
  Stdio: require('@modelcontextprotocol/client/stdio').StdioClientTransport,
}

const server = await start(undefined, undefined, ['--tenant-contexts', '20', '--tenant-sandboxes', '40'])
const key = server.as.apiKey
const v1 = new V1(server)

// ---- clients ------------------------------------------------------------------------------------

let clients = []

function http(sdk, { query = '', headers = {} } = {}) {
  return new sdk.Http(new URL(`${server.url}/mcp${query}`), { requestInit: { headers: { 'X-API-Key': key, ...headers } } })
}

function stdio(sdk, { args = [], env = {} } = {}) {
  const clean = { PATH: surroundings.PATH, HOME: surroundings.HOME, LC_ALL: 'C.UTF-8' }
  return new sdk.Stdio({ command: SG, args: ['mcp', '--url', server.url, ...args], env: { ...clean, E2B_API_KEY: key, ...env }, stderr: 'pipe' })
}

async function connect(transport, sdk = old, options = {}) {
  const client = new sdk.Client({ name: 'sandglass-e2e', version: '1.0.0' }, options)
  clients.push(client)
  await client.connect(transport)
  return client
}

// Without sessions nobody but the client can say which conversation it is.
const modern = { versionNegotiation: { mode: { pin: '2026-07-28' } } }
const ways = {
  http: () => connect(http(old)),
  stdio: () => connect(stdio(old)),
  'http, 2026-07-28': () => connect(http(current, { query: `?conversationId=e2e-${unique()}` }), current, modern),
  'stdio, 2026-07-28': () => connect(stdio(current), current, modern),
}

// The same test over each of them, with a client of its own, whose contexts are ended after it.
function everyWay(name, body, opts) {
  for (const [way, open] of Object.entries(ways)) one(`${way}: ${name}`, async () => body(await open(), way), opts)
}

function one(name, body, opts) {
  test(name, async () => {
    try {
      await body()
    } finally {
      await Promise.all(clients.map((c) => c.close().catch(() => {})))
      clients = []
      for (const { conversationId } of await v1.contexts()) await v1.clear(conversationId)
    }
  }, opts)
}

const call = (client, name, args = {}, options) =>
  client instanceof old.Client ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options)
const code = (client, text, more = {}, options) => call(client, 'run_code', { code: text, ...more }, options)
const texts = (result) => result.content.filter((c) => c.type === 'text').map((c) => c.text)

async function works(client, text, more) {
  const result = await code(client, text, more)
  assert.ok(!result.isError, JSON.stringify(result).slice(0, 600))
  return texts(result).join('\n').trimEnd()
}

async function fails(promise, message) {
  const result = await promise
  assert.equal(result.isError, true, JSON.stringify(result).slice(0, 600))
  assert.match(texts(result).join('\n'), message)
  return result
}

// ---- every way ----------------------------------------------------------------------------------

everyWay('who is there, and which tools', async (client) => {
  assert.equal(client.getServerVersion().name, 'sandglass')
  assert.match(client.getInstructions(), /sandbox/)
  const { tools } = await client.listTools()
  assert.deepEqual(tools.map((t) => t.name).sort(), ['end_context', 'execute_code', 'list_contexts', 'list_files', 'read_file', 'run_analysis', 'run_code', 'write_file'])
  for (const tool of tools) assert.ok(tool.description && tool.title && tool.inputSchema.type === 'object', tool.name)
  assert.deepEqual(tools.find((t) => t.name === 'run_code').inputSchema.required, ['code'])
})

everyWay('run_code: state from call to call, output, results, data', async (client) => {
  await works(client, 'x = 41')
  const result = await code(client, 'import sys\nprint("hello")\nprint("careful", file=sys.stderr)\nx + 1')
  assert.deepEqual(texts(result), ['hello\n', '[stderr]\ncareful\n', '42'])
  const data = result.structuredContent
  assert.deepEqual([data.success, data.stdout, data.exitCode, data.wasCreated], [true, 'hello\n', 0, false])
  assert.equal(await works(client, 'pass'), '(no output)')
  assert.equal(await works(client, 'console.log([1, 2].length)', { language: 'javascript' }), '2')
})

const PICTURE = `
import base64
from IPython.display import display, Image, SVG, HTML, JSON
png = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
display(Image(png, format="png"))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'))
display(HTML("<b>bold</b>"))
display(JSON({"a": [1, 2]}))
`

everyWay('run_code: pictures, SVG, HTML and JSON are content', async (client) => {
  const { content, structuredContent, isError } = await code(client, PICTURE)
  assert.ok(!isError, JSON.stringify(content).slice(0, 600))
  const image = content.find((c) => c.type === 'image')
  assert.equal(image.mimeType, 'image/png')
  assert.equal(Buffer.from(image.data, 'base64').subarray(1, 4).toString(), 'PNG')
  const svg = content.find((c) => c.resource?.mimeType === 'image/svg+xml')
  assert.match(svg.resource.text, /^<svg/)
  assert.deepEqual(content.filter((c) => c.type === 'text').map((c) => c.text), ['<b>bold</b>', '{"a":[1,2]}'])
  const [png] = structuredContent.results
  assert.equal(png.png, undefined, 'the bytes are there once')
  assert.deepEqual(png.omitted, ['png'])
})

everyWay('run_code: a chart comes with its numbers', async (client) => {
  const plot = 'import matplotlib.pyplot as plt\nplt.bar(["a", "b"], [3, 5])\nplt.title("Bars")\nplt.show()'
  const { content } = await code(client, plot)
  assert.ok(content.some((c) => c.type === 'image' && c.mimeType === 'image/png'), JSON.stringify(content).slice(0, 400))
  const chart = JSON.parse(content.find((c) => c.resource?.mimeType === 'application/json').resource.text)
  assert.deepEqual([chart.type, chart.title], ['bar', 'Bars'])
})

everyWay('run_code: an error of the code', async (client) => {
  const result = await fails(code(client, 'print("before")\n1 / 0'), /ZeroDivisionError/)
  assert.equal(texts(result)[0], 'before\n')
  assert.equal(result.structuredContent.error.name, 'ZeroDivisionError')
  await fails(code(client, 'import time\ntime.sleep(60)', { timeoutSeconds: 1 }), /time/i)
  assert.equal(await works(client, '1 + 1'), '2', 'and it goes on')
})

everyWay('run_analysis: the result, and output that is not have the declared format', async (client) => {
  const good = await call(client, 'run_analysis', { analysisType: 'custom', parameters: { n: 20 }, code: 'import json\nprint(json.dumps({"double": parameters["n"] * 2}))' })
  assert.ok(!good.isError, JSON.stringify(good))
  assert.deepEqual(good.structuredContent.parsedOutput, { double: 40 })
  const bad = await call(client, 'run_analysis', { analysisType: 'custom', parameters: null, code: 'print("no json")' })
  assert.match(texts(bad).join('\n'), /not have the declared format/)
})

everyWay('execute_code: once, without a memory', async (client) => {
  const result = await call(client, 'execute_code', { code: 'import sys\nprint(sys.stdin.read().upper())', stdin: 'quiet' })
  assert.equal(texts(result)[0], 'QUIET\n')
  assert.equal(result.structuredContent.status, 'success')
  const failed = await fails(call(client, 'execute_code', { code: 'exit 3', language: 'bash' }), /3/)
  assert.equal(failed.structuredContent.exitCode, 3)
})

everyWay('files: text, bytes, pictures, directories, and what is not there', async (client) => {
  const bytes = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 256))
  const written = await call(client, 'write_file', { path: 'notes/a.txt', content: 'grüße\n' })
  assert.equal(written.structuredContent.path, '/home/user/notes/a.txt')
  assert.equal(await works(client, 'open("notes/a.txt").read() == "grüße\\n"'), 'True')
  await call(client, 'write_file', { path: '/home/user/notes/b', content: bytes.toString('base64'), encoding: 'base64' })
  assert.deepEqual(texts(await call(client, 'read_file', { path: 'notes/a.txt' })), ['grüße\n'])
  const { resource } = (await call(client, 'read_file', { path: 'notes/b' })).content[0]
  assert.ok(Buffer.from(resource.blob, 'base64').equals(bytes))
  assert.deepEqual([resource.uri, resource.mimeType], ['file:///home/user/notes/b', 'application/octet-stream'])
  await works(client, 'import base64\nopen("dot.png", "wb").write(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))')
  const [picture] = (await call(client, 'read_file', { path: 'dot.png' })).content
  assert.deepEqual([picture.type, picture.mimeType], ['image', 'image/png'])
  const part = await call(client, 'read_file', { path: 'notes/a.txt', offset: 2, length: 2 })
  assert.equal(part.content[0].text, 'ü')
  assert.match(part.content[1].text, /bytes 2 to 4 of 8/)
  const list = await call(client, 'list_files', { path: 'notes' })
  assert.deepEqual(list.structuredContent.entries.map((e) => [e.path, e.type, e.size]), [['/home/user/notes/a.txt', 'file', 8], ['/home/user/notes/b', 'file', 1000]])
  assert.match(texts(await call(client, 'list_files'))[0], /\/home\/user\/notes\/\n/)
  await fails(call(client, 'read_file', { path: 'nowhere' }), /nowhere/)
  await fails(call(client, 'read_file', { path: 'notes' }), /notes/)
  await fails(call(client, 'write_file', { path: '/proc/x', content: 'a' }), /\/proc\/x/)
  await fails(call(client, 'list_files', { path: 'notes/b' }), /notes\/b/)
})

everyWay('contexts: listed, another path by argument, ended', async (client) => {
  await works(client, 'x = 1')
  await works(client, 'x = 2', { pathId: 'side' })
  const listed = (await call(client, 'list_contexts')).structuredContent.contexts
  assert.deepEqual(listed.map((c) => c.pathId).sort(), ['main', 'side'])
  assert.equal(await works(client, 'x', { pathId: 'side' }), '2')
  assert.equal(await works(client, 'x'), '1')
  const ended = await call(client, 'end_context', { pathId: 'side' })
  assert.equal(ended.structuredContent.sandboxStatus, 'terminated')
  await fails(call(client, 'end_context', { pathId: 'side' }), /no sandbox/)
  await fails(code(client, 'x', { pathId: 'side' }), /NameError/)
  const { id } = listed.find((c) => c.pathId === 'main')
  await call(client, 'end_context', { contextId: id })
  assert.equal((await v1.context(id)).sandboxStatus, 'terminated')
})

everyWay('progress: news of a long run, with its last line', async (client) => {
  const news = []
  const result = await code(client, 'import time\nfor i in range(6):\n    print("line", i, flush=True)\n    time.sleep(0.5)', {}, { onprogress: (p) => news.push(p) })
  assert.ok(!result.isError)
  assert.ok(news.length >= 2 && news.length <= 6, `${news.length} notifications`)
  assert.ok(news.every((p, i) => i === 0 || p.progress > news[i - 1].progress), JSON.stringify(news))
  assert.match(news.at(-1).message, /^line \d$/)
  same(texts(result)[0].split('\n').length, 7, 'lines')
})

everyWay('cancellation interrupts the cell, and the next call works', async (client) => {
  await works(client, 'seen = []')
  const gone = new AbortController()
  const long = code(client, 'import time\ntry:\n    time.sleep(120)\nexcept KeyboardInterrupt:\n    seen.append("interrupted")\n    raise', {}, { signal: gone.signal })
  await sleep(1000)
  gone.abort('enough')
  await assert.rejects(long)
  assert.equal(await works(client, 'seen'), "['interrupted']")
})

everyWay('several calls at once, in order on a path', async (client) => {
  await works(client, 'n = 0')
  await Promise.all(Array.from({ length: 8 }, () => works(client, 'n += 1')))
  assert.equal(await works(client, 'n'), '8')
})

everyWay('what does not exist', async (client) => {
  await assert.rejects(call(client, 'format_disk'), /Unknown tool/)
  await fails(code(client, '1', { language: 'cobol' }), /language/)
  await fails(code(client, '1', { pathId: 'a\nb' }), /pathId/)
})

everyWay('a great deal of output', async (client) => {
  const { content, isError } = await code(client, 'print("x" * 900_000)')
  assert.ok(!isError)
  assert.equal(content[0].text.length, 900_001)
  const streamed = await code(client, 'import os, time\nfrom IPython.display import display, Image\ntime.sleep(1.5)\ndisplay(Image(b"\\x89PNG\\r\\n\\x1a\\n" + os.urandom(4_000_000), format="png"))', {}, { onprogress: () => {} })
  assert.equal(Buffer.from(streamed.content[0].data, 'base64').length, 4_000_008)
  const result = await code(client, 'import base64, os\nfrom IPython.display import display, Image\nfor i in range(3):\n    display(Image(b"\\x89PNG\\r\\n\\x1a\\n" + os.urandom(2_500_000), format="png"))\nprint("all shown")')
  assert.match(texts(result).join('\n'), /all shown[^]*left out/)
  assert.ok(JSON.stringify(result).length < 8 << 20)
  assert.equal(await works(client, '1'), '1')
})

// ---- where ----------------------------------------------------------------------------------------

one('the conversation and path of the configuration', async () => {
  const id = `e2e-${unique()}`
  const a = await connect(http(old, { query: `?conversationId=${id}&pathId=left` }))
  const b = await connect(http(old, { headers: { 'Sandglass-Conversation-Id': id, 'Sandglass-Path-Id': 'left' } }))
  const c = await connect(stdio(old, { args: ['--conversation', id, '--path', 'left'] }))
  await works(a, 'x = 7')
  assert.equal(await works(b, 'x'), '7')
  assert.equal(await works(c, 'x'), '7')
  assert.deepEqual((await v1.contexts({ conversationId: id })).map((x) => x.pathId), ['left'])
  const { tools } = await a.listTools()
  assert.deepEqual(tools.filter((t) => t.inputSchema.properties.conversationId || t.inputSchema.properties.pathId), [])
  await fails(code(b, 'x', { conversationId: `${id}-other` }), /NameError/)
  await c.close()
  assert.equal((await v1.contexts({ conversationId: id })).length, 1, 'one with a name is kept')
})

one('two sessions do not see each other, and end with their clients', async () => {
  const a = await connect(http(old)), b = await connect(stdio(old))
  await works(a, 'x = "a"')
  await works(b, 'x = "b"')
  assert.equal(await works(a, 'x'), 'a')
  assert.equal((await v1.contexts()).length, 2)
  await b.close()
  await eventually('its context has ended', async () => (await v1.contexts()).length === 1)
  await a.transport.terminateSession()
  await eventually('and so has the other', async () => (await v1.contexts()).length === 0)
  await assert.rejects(a.listTools())
})

one('a client that finds out by itself which versions there are', async () => {
  const client = await connect(http(current, { query: `?conversationId=e2e-${unique()}` }), current, { versionNegotiation: { mode: 'auto' } })
  assert.equal(await works(client, '6 * 7'), '42')
  const legacy = await connect(http(current), current)
  assert.equal(await works(legacy, '6 * 7'), '42')
})

one('a session outlives the front', async () => {
  const client = await connect(http(old)), child = await connect(stdio(old))
  await works(client, 'x = 5')
  await works(child, 'x = 6')
  await killFront(server)
  await eventually('it answers again', () => client.listTools())
  assert.equal(await works(client, 'x'), '5')
  assert.equal(await works(child, 'x'), '6')
})

one('a wrong key', async () => {
  const wrong = { 'X-API-Key': `e2b_${'0'.repeat(40)}` }
  await assert.rejects(connect(http(old, { headers: wrong })), /401/)
  await assert.rejects(connect(stdio(old, { env: { E2B_API_KEY: wrong['X-API-Key'] } })), /Invalid API key/)
})

one('a tenant that has no room: the tool is unavailable, and says why', async () => {
  const tight = await start(undefined, undefined, ['--tenant-contexts', '1'])
  const transport = new old.Http(new URL(`${tight.url}/mcp`), { requestInit: { headers: { 'X-API-Key': tight.as.apiKey } } })
  const client = await connect(transport)
  await works(client, 'x = 1')
  const result = await fails(code(client, 'x', { pathId: 'second' }), /run_code is unavailable now: .*1/)
  assert.equal(result.structuredContent.unavailable, true)
  await fails(call(client, 'list_files', { pathId: 'second' }), /list_files is unavailable now/)
  assert.equal(await works(client, 'x'), '1')
  tight.child.kill('SIGTERM')
  await tight.ended
})

one('another tenant cannot use a session, nor see what it ran', async () => {
  const other = keyOf(server, 'stranger')
  const client = await connect(http(old))
  await works(client, 'x = 1')
  const ask = (method) => fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { 'X-API-Key': other, 'Mcp-Session-Id': client.transport.sessionId, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method }),
  })
  assert.equal((await ask('tools/list')).status, 404)
  const stranger = await connect(http(old, { headers: { 'X-API-Key': other } }))
  assert.deepEqual((await call(stranger, 'list_contexts', { allConversations: true })).structuredContent.contexts, [])
})

one('a connection that is closed interrupts too', async () => {
  const client = await connect(http(old, { query: `?conversationId=e2e-${unique()}` }))
  await works(client, 'seen = []')
  const gone = new AbortController()
  const asked = fetch(client.transport._url, {
    method: 'POST',
    signal: gone.signal,
    headers: { 'X-API-Key': key, 'Mcp-Session-Id': client.transport.sessionId, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name: 'run_code', arguments: { code: 'import time\ntry:\n    time.sleep(120)\nexcept KeyboardInterrupt:\n    seen.append(1)\n    raise' } } }),
  })
  await sleep(1000)
  gone.abort()
  await assert.rejects(asked)
  assert.equal(await works(client, 'seen'), '[1]')
})

one('a quiet run becomes a stream, which is kept alive', async () => {
  const client = await connect(http(old))
  const res = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Mcp-Session-Id': client.transport.sessionId, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'run_code', arguments: { code: 'import time\ntime.sleep(17)\nprint("over")', timeoutSeconds: 40 } } }),
  })
  assert.equal(res.headers.get('content-type'), 'text/event-stream')
  const text = await res.text()
  assert.match(text, /^: still there\n\n/m)
  const message = JSON.parse(text.match(/^data: (.*)$/m)[1])
  assert.deepEqual([message.id, message.result.content[0].text], [9, 'over\n'])
})

// ---- the bridge ---------------------------------------------------------------------------------

// Runs `sandglass mcp` with these lines as its input.
function bridge(lines, { args = ['--url', server.url], env = { E2B_API_KEY: key } } = {}) {
  return new Promise((resolve) => {
    const child = spawn(SG, ['mcp', ...args], { env: { PATH: surroundings.PATH, HOME: surroundings.HOME, ...env } })
    const parts = { stdout: [], stderr: [] }
    for (const name of ['stdout', 'stderr']) child[name].on('data', (d) => parts[name].push(d))
    child.on('close', (status) => {
      const [stdout, stderr] = [Buffer.concat(parts.stdout).toString(), Buffer.concat(parts.stderr).toString()]
      resolve({ status, stderr, messages: stdout.split('\n').filter(Boolean).map((l) => JSON.parse(l)) })
    })
    child.stdin.on('error', () => {})
    child.stdin.end(lines.join('\n'))
  })
}

const initialize = JSON.stringify({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } } })
const runs = (id, text) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'run_code', arguments: { code: text } } })

one('bridge: all at once, and the end of the input waits for the answers', async () => {
  const { status, stderr, messages } = await bridge([initialize, '{"jsonrpc":"2.0","method":"notifications/initialized"}', runs(1, 'import time\ntime.sleep(2)\nprint("late")'), '', '{"jsonrpc":"2.0","id":2,"method":"ping"}'])
  assert.deepEqual([status, stderr], [0, ''])
  assert.deepEqual(messages.map((m) => m.id), ['i', 2, 1])
  assert.equal(messages[2].result.content[0].text, 'late\n')
})

one('bridge: lines that are no messages, and one that is too long', async () => {
  const { status, messages } = await bridge([initialize, 'nonsense', '7', `"${'x'.repeat(17 << 20)}"`, JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'x'.repeat(9 << 20) }), '{"jsonrpc":"2.0","id":4,"method":"nothing"}', '{"jsonrpc":"2.0","id":5,"method":"ping"}'])
  const error = (id) => messages.find((m) => m.id === id)?.error
  assert.equal(status, 0)
  assert.deepEqual(messages.filter((m) => m.id === undefined).map((m) => m.error.code), [-32700, -32700, -32600])
  assert.match(error(3).message, /413/)
  assert.equal(error(4).code, -32601)
  assert.deepEqual(messages.find((m) => m.id === 5).result, {})
})

one('bridge: without a key, and without a server', async () => {
  const keyless = await bridge([initialize, runs(1, '1')], { env: {} })
  assert.equal(keyless.status, 2)
  assert.match(keyless.stderr, /^sandglass: no API key: .*\n$/)
  assert.deepEqual(keyless.messages.map((m) => [m.id, /no API key/.test(m.error.message)]), [['i', true], [1, true]])
  const lost = await bridge([initialize], { args: ['--url', 'http://127.0.0.1:1'] })
  assert.equal(lost.status, 0)
  assert.match(lost.stderr, /cannot reach the server at http:\/\/127\.0\.0\.1:1/)
  assert.match(lost.messages[0].error.message, /cannot reach the server/)
})

one('bridge: a signal ends it, and what it had', async () => {
  const child = spawn(SG, ['mcp', '--url', server.url], { env: { PATH: surroundings.PATH, E2B_API_KEY: key } })
  let out = ''
  child.stdout.on('data', (d) => { out += d })
  const ended = new Promise((resolve) => child.on('close', (status) => resolve(status)))
  child.stdin.write(`${initialize}\n${runs(1, 'import time\ntime.sleep(100)')}\n`)
  await eventually('it runs', async () => out.includes('"id":"i"') && (await v1.contexts()).some((c) => c.sandboxStatus === 'ready'))
  child.kill('SIGTERM')
  assert.equal(await ended, 143)
  await eventually('its context has ended', async () => (await v1.contexts()).length === 0)
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

await run()
