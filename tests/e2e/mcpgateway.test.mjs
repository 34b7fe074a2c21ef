// The template mcp-gateway: `mcp` of a create, as the SDK does it, and the servers behind one address. npm's registry and
// GitHub are a server of this file on the loopback.
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { assert, e2b, mine, rejects, require, run, same, Sandbox, sh, test } from './lib.mjs'
import { nameServer } from './names.mjs'
import { scratch, start, stop } from './server.mjs'

const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js')
const { Template } = e2b

// A server as its author writes it, without a package of MCP's.
const SERVER = `#!/usr/bin/env node
const extra = process.env.EXTRA ?? ''
const results = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {}, prompts: {}, resources: {} }, serverInfo: { name: 'made', version: '1' } }),
  'tools/list': ({ cursor }) => cursor ? { tools: [tool('who')] } : { tools: [tool('echo'), tool('die')], nextCursor: 'more' },
  'prompts/list': () => ({ prompts: [{ name: 'greet' }] }),
  'prompts/get': ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: 'hello from ' + name } }] }),
  'resources/list': () => ({ resources: [{ uri: 'made://' + extra, name: 'one' }] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'of ' + extra }] }),
  'tools/call': ({ name, arguments: args }) => {
    if (name === 'die') process.exit(3)
    const text = name === 'who' ? [process.getuid(), process.env.HOME, extra, process.argv.slice(2), process.env.GATEWAY_ACCESS_TOKEN ?? 'none'].join(' ') : args.text
    return { content: [{ type: 'text', text }] }
  },
}
const tool = (name) => ({ name, inputSchema: { type: 'object' } })
console.log('not JSON')
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const m = JSON.parse(line)
  if (m.id === undefined) return
  const result = results[m.method]?.(m.params ?? {})
  console.log(JSON.stringify({ jsonrpc: '2.0', id: m.id, ...(result ? { result } : { error: { code: -32601, message: 'no ' + m.method } }) }))
})
`

// ---- npm and GitHub -----------------------------------------------------------------------------

const web = path.join(scratch, 'web')
const git = (cwd, ...args) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-C', cwd, ...args], { stdio: 'pipe' })
function makePackage() {
  const folder = path.join(scratch, 'npm/package')
  fs.mkdirSync(folder, { recursive: true })
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: '@made/tools', version: '1.0.0', bin: { tools: 'server.js' } }))
  fs.writeFileSync(path.join(folder, 'server.js'), SERVER, { mode: 0o755 })
  return execFileSync('tar', ['cz', '-C', path.dirname(folder), 'package'])
}
function makeRepository() {
  const work = path.join(scratch, 'work')
  fs.mkdirSync(work, { recursive: true })
  fs.writeFileSync(path.join(work, 'server.js'), SERVER)
  git(work, 'init', '-q')
  git(work, 'add', '.')
  git(work, 'commit', '-qm', 'server')
  git(scratch, 'clone', '-q', '--bare', work, path.join(web, 'acme/my.tools'))
}
// As GitHub does it: git's own program for CGI.
function serveGit(req, res, at, query) {
  const env = { ...process.env, GIT_PROJECT_ROOT: web, GIT_HTTP_EXPORT_ALL: '1', PATH_INFO: at, QUERY_STRING: query, REQUEST_METHOD: req.method, CONTENT_TYPE: req.headers['content-type'] ?? '', HTTP_CONTENT_ENCODING: req.headers['content-encoding'] ?? '', GIT_PROTOCOL: req.headers['git-protocol'] ?? '' }
  const child = spawn('git', ['http-backend'], { env, stdio: ['pipe', 'pipe', 'ignore'] })
  const parts = []
  req.pipe(child.stdin)
  child.stdout.on('data', (d) => parts.push(d)).on('end', () => {
    const all = Buffer.concat(parts)
    const end = all.indexOf('\r\n\r\n')
    const head = Object.fromEntries(all.subarray(0, end).toString().split('\r\n').map((line) => line.split(': ')))
    res.writeHead(parseInt(head.Status ?? '200', 10), head).end(all.subarray(end + 4))
  })
}
const archive = makePackage()
makeRepository()
const site = http.createServer((req, res) => {
  const [at, query = ''] = decodeURIComponent(req.url).split('?')
  if (at === '/@made/tools') {
    const version = { name: '@made/tools', version: '1.0.0', bin: { tools: 'server.js' }, dist: { tarball: `http://site.test:${PORT}/made.tgz` } }
    res.end(JSON.stringify({ name: '@made/tools', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }))
  } else if (at === '/made.tgz') res.end(archive)
  else if (at.startsWith('/acme/')) serveGit(req, res, at, query)
  else res.writeHead(404).end()
})
const PORT = await new Promise((resolve) => site.listen(0, '127.0.0.1', () => resolve(site.address().port)))
const names = await nameServer()
const server = await start(undefined, undefined, ['--egress-dns', `127.0.0.1:${names.address().port}`, '--egress-internal', '127.0.0.1', '--sandbox-memory', '1G', '--sandbox-disk', '256M'])
const as = server.as
const envs = { npm_config_registry: `http://site.test:${PORT}/`, GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: `url.http://site.test:${PORT}/.insteadOf`, GIT_CONFIG_VALUE_0: 'https://github.com/' }

const NPM = { 'npm/@made/tools': { args: ['a', 'b'], envs: { EXTRA: 'npm' } } }
const GITHUB = { 'github/acme/my.tools': { installCmd: 'echo "$EXTRA" >installed', runCmd: 'test -s installed && exec node server.js', envs: { EXTRA: 'git' } } }
const create = (opts) => Sandbox.create({ ...as, envs, network: { allowOut: ['*.test'], denyOut: [e2b.ALL_TRAFFIC] }, ...opts })
const make = async (opts) => mine(await create(opts))

// ---- clients ------------------------------------------------------------------------------------

const to = (sandbox) => ({ 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '50005' })
async function connect(sandbox) {
  const headers = { ...to(sandbox), Authorization: `Bearer ${await sandbox.getMcpToken()}` }
  const client = new Client({ name: 'e2e', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }))
  return client
}
const text = async (client, name, args = {}) => (await client.callTool({ name, arguments: args })).content[0].text
const post = (sandbox, body, headers = {}, at = '/mcp', method = 'POST') => fetch(`${server.url}${at}`, { method, headers: { ...to(sandbox), ...headers }, body })

let one // of the first test, for those behind it
test('create with mcp: servers of npm and of a repository, as one', async () => {
  one = await create({ mcp: { ...NPM, ...GITHUB } })
  assert.match(one.getMcpUrl(), new RegExp(`^https://50005-${one.sandboxId}\\..*/mcp$`))
  const client = await connect(one)
  assert.deepEqual((await client.listTools()).tools.map((t) => t.name).sort(), ['my_tools__die', 'my_tools__echo', 'my_tools__who', 'tools__die', 'tools__echo', 'tools__who'])
  same(await text(client, 'tools__who'), '1000 /home/user npm a,b none')
  same(await text(client, 'my_tools__who'), '1000 /home/user git  none')
  same(await text(client, 'tools__echo', { text: 'ä\n' }), 'ä\n')
  await assert.rejects(client.callTool({ name: 'echo', arguments: {} }), /several times: tools__echo, my_tools__echo/)
  await assert.rejects(client.callTool({ name: 'nobody', arguments: {} }), /there is no 'nobody'/)
  same((await client.getPrompt({ name: 'tools__greet' })).messages[0].content.text, 'hello from greet')
  assert.deepEqual((await client.listResources()).resources.map((r) => r.uri), ['made://npm', 'made://git'])
  same((await client.readResource({ uri: 'made://git' })).contents[0].text, 'of git')
  await client.close()
}, { seconds: 90 })

test('a server that ends is started again', async () => {
  const client = await connect(one)
  await assert.rejects(client.callTool({ name: 'tools__die', arguments: {} }), /is gone: it ended with status 3/)
  same(await text(client, 'tools__echo', { text: 'again' }), 'again')
  await client.close()
})

test('the token is the sandbox\'s own, and nothing goes without it', async () => {
  same(await one.getMcpToken(), await one.files.read('/etc/mcp-gateway/.token', { user: 'root' }))
  same((await Sandbox.connect(one.sandboxId, as).then((s) => s.getMcpToken())), await one.getMcpToken())
  same(await sh(one, 'cat /etc/mcp-gateway/.token /var/log/mcp-gateway/gateway.log 2>&1 | grep -c "Permission denied"'), '2')
  same(await sh(one, 'for f in /proc/[0-9]*; do tr "\\0" "\\n" <$f/environ; done 2>/dev/null | grep -c GATEWAY_ACCESS_TOKEN', { user: 'root' }).catch((err) => err.stdout?.trim() ?? err.message), '1')
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const token = { Authorization: `Bearer ${await one.getMcpToken()}` }
  for (const headers of [{}, { Authorization: 'Bearer wrong' }, { Authorization: token.Authorization.slice(0, -1) }]) same((await post(one, body, headers)).status, 401)
  assert.deepEqual(await (await post(one, body, token)).json(), { jsonrpc: '2.0', id: 1, result: {} })
  same((await post(one, '{', token)).status, 400)
  same((await post(one, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), token)).status, 202)
  same((await post(one, undefined, token, '/mcp', 'GET')).status, 405)
  same((await post(one, body, token, '/other')).status, 404)
  same((await (await post(one, JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'no/such' }), token)).json()).error.code, -32601)
  same((await post(one, 'x'.repeat(5 << 20), token).catch(() => ({ status: 413 }))).status, 413)
})

test('what cannot be started says why, and its sandbox ends', async () => {
  const failed = (mcp, words, opts) => rejects(make({ mcp, ...opts }), e2b.SandboxError, words)
  await failed({ invalid_server: {} }, /Failed to start MCP gateway: mcp-gateway: unknown server 'invalid_server': known are .*exa.*npm\/PACKAGE.*github/)
  await failed({ 'npm/@made/none': {} }, /'npm\/@made\/none' cannot be installed: npm ended with status 1[^]*404/)
  await failed({ 'github/acme/my.tools': { runCmd: 'echo broken >&2; exit 7' } }, /does not start: .*status 7[^]*broken/)
  await failed({ 'github/acme/my.tools': {} }, /needs a runCmd/)
  await failed({ time: {} }, /unknown server 'time'/)
  await failed({ exa: {} }, /Failed to start MCP gateway/, { template: 'base' })
  const left = await Sandbox.list({ ...as }).nextItems()
  assert.deepEqual(left.map((s) => s.sandboxId).filter((id) => id !== one.sandboxId), [])
}, { seconds: 90 })

test('no servers at all, and the template by its name', async () => {
  const sandbox = await make({ mcp: {} })
  const client = await connect(sandbox)
  assert.deepEqual((await client.listTools()).tools, [])
  await client.close()
  same((await sandbox.getInfo()).name, 'mcp-gateway')
  same(await Template.exists('mcp-gateway', as), true)
})

// What addMcpServer() runs, with a registry beside it: builds have an open network, where this file's cannot be reached.
const REGISTRY = `
  const base = 'http://127.0.0.1:4873/'
  require('http').createServer((req, res) => res.end(req.url.endsWith('tgz')
    ? Buffer.from('${archive.toString('base64')}', 'base64')
    : JSON.stringify({ name: '@made/tools', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { name: '@made/tools', version: '1.0.0', bin: { tools: 'server.js' }, dist: { tarball: base + 'made.tgz' } } } })
  )).listen(4873)`

test('a template with servers that are there already', async () => {
  const template = Template().fromTemplate('mcp-gateway').setEnvs({ npm_config_registry: 'http://127.0.0.1:4873/' })
    .runCmd(`echo ${Buffer.from(REGISTRY).toString('base64')} | base64 -d >/tmp/registry.js; node /tmp/registry.js & until ss -Htln sport = :4873 | grep -q .; do sleep 0.1; done; mcp-gateway pull npm/@made/tools; s=$?; kill $!; exit $s`, { user: 'root' })
  const { templateId } = await Template.build(template, 'with-tools', { ...as })
  const sandbox = await make({ template: templateId, mcp: NPM, network: { denyOut: [e2b.ALL_TRAFFIC] } })
  const client = await connect(sandbox)
  same(await text(client, 'who'), '1000 /home/user npm a,b none', 'a name that one server has')
  await client.close()
}, { seconds: 120 })

test('the server ends in good order', async () => {
  await one.kill()
  same(await stop(server), 0)
})

await run()
