// Agents and workers from npm, inside: the scripts of examples/integrations, as an editor or a person starts them. The model, and
// the API of a worker, are played behind the guard, which alone has the key.
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import https from 'node:https'
import path from 'node:path'
import readline from 'node:readline'
import { assert, eventually, modules, run, same, test, TOP, unique } from '../e2e/lib.mjs'
import { certificate, nameServer } from '../e2e/names.mjs'
import { scratch, SG } from '../e2e/server.mjs'
import { Model } from './model.mjs'

const KEY = `sk-${unique()}`
const HOSTS = ['api.anthropic.com', 'api.openai.com', 'generativelanguage.googleapis.com']
const names = await nameServer()
const made = certificate(...HOSTS)

const surroundings = { SANDGLASS_EGRESS_DNS: `127.0.0.1:${names.address().port}`, SANDGLASS_EGRESS_INTERNAL: '127.0.0.1', SANDGLASS_EGRESS_ROOTS: made.ca }

// Where the policy lets directories be shown from: /tmp is one of them.
const agents = path.join(scratch, 'agents')
fs.mkdirSync(agents)
execFileSync('sh', ['-c', 'cp -al "$0" "$1" 2>/dev/null || { rm -rf "$1"; cp -a "$0" "$1"; }', path.join(modules, 'node_modules'), path.join(agents, 'node_modules')])
const project = path.join(scratch, 'project')
fs.mkdirSync(project)
fs.chownSync(project, 12345, 12345) // root's would not be shown writable

// A script, and lines of JSON-RPC to and from it. What it asks its client for is allowed.
class Peer {
  said = ''
  notes = []
  #waiting = new Map()

  constructor(name, more) {
    const env = { ...process.env, PATH: `${path.dirname(SG)}:${process.env.PATH}`, ...surroundings, AGENTS: agents, ...more }
    this.child = spawn(path.join(TOP, 'examples/integrations', name), { cwd: project, env, stdio: ['pipe', 'pipe', 'pipe'] })
    this.err = ''
    this.child.stderr.on('data', (d) => { this.err += d })
    this.ended = new Promise((resolve) => this.child.on('close', resolve))
    readline.createInterface(this.child.stdout).on('line', (line) => this.#line(JSON.parse(line)))
    this.ended.then((status) => { for (const { reject } of this.#waiting.values()) reject(new Error(`ended with ${status}`)) })
  }

  #line(message) {
    if (!message.method) {
      const { resolve, reject } = this.#waiting.get(message.id)
      return message.error ? reject(new Error(JSON.stringify(message.error))) : resolve(message.result)
    }
    if (message.id !== undefined) this.#answer(message)
    else this.notes.push(message)
    if (message.params?.update?.sessionUpdate === 'agent_message_chunk') this.said += message.params.update.content.text ?? ''
  }

  #answer({ id, method, params }) {
    const optionId = params.options?.find((o) => o.kind.startsWith('allow'))?.optionId
    this.send({ id, ...(method === 'session/request_permission' ? { result: { outcome: { outcome: 'selected', optionId } } } : { error: { code: -32601, message: 'not here' } }) })
  }

  send = (message) => this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

  ask(method, params) {
    const id = this.#waiting.size + 1
    this.send({ id, method, params })
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  async end() {
    this.child.stdin.end()
    this.child.kill('SIGTERM')
    return this.ended
  }
}

// ---- agents --------------------------------------------------------------------------------------

// A prompt, for which the model has a command run inside that tells whose key is there. Every request of the model has the key
// that the guard put into it, and what is inside is a placeholder.
async function conversation(script, { host, variable, tool, command, env, authenticate }) {
  const inside = `echo of-the-shell; printenv ${variable} | cut -c 1-5`
  const model = await Model.at(made, { call: tool, with: command(inside) }, (told) => `It has ${/of-the-shell\W+n?sgph_/.exec(told) ? 'a placeholder' : told}.`)
  const agent = new Peer(script, { [variable]: KEY, ...env(`https://${host}:${model.port}`) })
  try {
    const { agentInfo } = await agent.ask('initialize', { protocolVersion: 1, clientCapabilities: {}, clientInfo: { name: 'test', version: '1' } })
    assert.ok(agentInfo.name)
    if (authenticate) await agent.ask('authenticate', { methodId: authenticate })
    const { sessionId } = await agent.ask('session/new', { cwd: project, mcpServers: [] })
    const { stopReason } = await agent.ask('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'Whose key is there?' }] })
    same(stopReason, 'end_turn')
    assert.match(agent.said, /It has a placeholder\./, JSON.stringify(model.returned))
    const asked = model.asked.filter(({ body }) => body).map(({ headers }) => headers['x-api-key'] ?? headers['x-goog-api-key'] ?? headers.authorization.replace('Bearer ', ''))
    assert.deepEqual([...new Set(asked)], [KEY])
  } catch (err) {
    throw new Error(`${err.message}\nthe model was asked: ${model.asked.map((a) => a.path)}\n${agent.err.slice(-1000)}`)
  } finally {
    await agent.end()
    model.close()
  }
}

test('claude-agent-acp', () => conversation('claude-agent-acp.sh', {
  host: HOSTS[0],
  variable: 'ANTHROPIC_API_KEY',
  env: (url) => ({ ANTHROPIC_BASE_URL: url }),
  tool: 'Bash',
  command: (command) => ({ command, description: 'Looks' }),
}), { seconds: 100 })

const provider = (url) => ({ name: 'played', base_url: `${url}/v1`, env_key: 'CODEX_API_KEY', wire_api: 'responses' })
test('codex-acp', () => conversation('codex-acp.sh', {
  host: HOSTS[1],
  variable: 'CODEX_API_KEY',
  env: (url) => ({ CODEX_CONFIG: JSON.stringify({ model: 'played', model_provider: 'played', model_providers: { played: provider(url) } }) }),
  tool: 'exec_command',
  command: (cmd) => ({ cmd }),
}), { seconds: 100 })

test('gemini-cli --acp', () => conversation('gemini-acp.sh', {
  host: HOSTS[2],
  variable: 'GEMINI_API_KEY',
  env: (url) => ({ GOOGLE_GEMINI_BASE_URL: url }),
  authenticate: 'gemini-api-key',
  tool: 'run_shell_command',
  command: (command) => ({ command, description: 'Looks' }),
}), { seconds: 100 })

// ---- a server of agents --------------------------------------------------------------------------

test('sandbox-agent: a session with Claude Code, a prompt', async () => {
  const command = { call: 'Bash', with: { command: 'echo of-the-shell; printenv ANTHROPIC_API_KEY | cut -c 1-5', description: 'Looks' } }
  const model = await Model.at(made, command, (told) => `It has ${/of-the-shell\W+sgph_/.exec(told) ? 'a placeholder' : told}.`)
  const script = fs.readFileSync(path.join(TOP, 'tests/programs/sandbox-agent.sh'), 'utf8')
  const args = ['acp', '--approve', '--memory', '4G', '--mount', `${agents}/node_modules:/opt/agents/node_modules`, '--secret', `ANTHROPIC_API_KEY@${HOSTS[0]}`,
    '--env', `ANTHROPIC_BASE_URL=https://${HOSTS[0]}:${model.port}`, '--', 'bash', '-c', script]
  const child = spawn(SG, args, { env: { ...process.env, ...surroundings, ANTHROPIC_API_KEY: KEY }, stdio: ['pipe', 'pipe', 'pipe'], timeout: 80_000 })
  let [out, err] = ['', '']
  child.stdout.on('data', (d) => { out += d })
  child.stderr.on('data', (d) => { err += d })
  await new Promise((resolve) => child.on('close', resolve))
  model.close()
  assert.match(out, /"stopReason":"end_turn","said":".*It has a placeholder\./, `${out}\n${err.slice(-1500)}\n${model.asked.map((a) => a.path)}`)
  assert.deepEqual([...new Set(model.asked.filter(({ body }) => body).map(({ headers }) => headers['x-api-key']))], [KEY])
}, { seconds: 100 })

// ---- workers -------------------------------------------------------------------------------------

test('codex exec-server: a command, and a file', async () => {
  const server = new Peer('codex-exec-server.sh')
  try {
    const { environmentInfo } = await server.ask('initialize', { clientName: 'test' })
    same(environmentInfo.cwd, 'file:///home/user')
    server.send({ method: 'initialized', params: {} })
    await server.ask('process/start', { processId: 'one', argv: ['sh', '-c', 'whoami; exit 3'], cwd: 'file:///tmp', env: { PATH: '/usr/bin:/bin' }, tty: false, pipeStdin: false, arg0: null })
    await eventually('it ends', () => server.notes.some((n) => n.method === 'process/closed'))
    const ran = await server.ask('process/read', { processId: 'one', afterSeq: null, maxBytes: 65536, waitMs: 0 })
    same(ran.exitCode, 3)
    same(Buffer.from(ran.chunks[0].chunk, 'base64').toString(), 'user\n')
    same(Buffer.from((await server.ask('fs/readFile', { path: 'file:///etc/hostname' })).dataBase64, 'base64').toString(), 'sandbox\n')
  } catch (err) {
    throw new Error(`${err.message}\n${server.err.slice(-1000)}`)
  } finally {
    await server.end()
  }
}, { seconds: 60 })

// Anthropic's API as a worker sees it: one session, which wants one command, and then ends.
async function environment(command) {
  const played = { keys: new Set(), results: [], stopped: false }
  const event = { id: 'sevt_1', type: 'agent.tool_use', name: 'bash', input: { command }, evaluated_permission: 'allow', processed_at: new Date().toISOString() }
  const work = { id: 'work_1', type: 'work', environment_id: 'env_1', state: 'queued', secret: null, data: { type: 'session', id: 'sesn_1' } }
  let stream
  const answers = {
    'GET /v1/environments/env_1/work/poll': () => (played.polled ? null : ((played.polled = true), work)),
    'POST /v1/environments/env_1/work/work_1/ack': () => work,
    'POST /v1/environments/env_1/work/work_1/heartbeat': () => ({ type: 'work_heartbeat', lease_extended: true, state: 'active', ttl_seconds: 60, last_heartbeat: new Date().toISOString() }),
    'POST /v1/environments/env_1/work/work_1/stop': () => { played.stopped = true; return work },
    'GET /v1/sessions/sesn_1': () => ({ id: 'sesn_1', type: 'session', status: 'running', resources: [], agent: { id: 'agent_1', skills: [] } }),
    'GET /v1/sessions/sesn_1/events': () => ({ data: [event], next_page: null }),
    'POST /v1/sessions/sesn_1/events': ({ events }) => {
      played.results.push(...events)
      stream?.end(`event: session.status_terminated\ndata: ${JSON.stringify({ id: 'sevt_2', type: 'session.status_terminated', processed_at: new Date().toISOString() })}\n\n`)
      return { data: events }
    },
  }
  const server = https.createServer(made, async (req, res) => {
    let text = ''
    for await (const piece of req) text += piece
    const { pathname } = new URL(req.url, 'https://played')
    played.keys.add(req.headers.authorization)
    if (pathname.endsWith('/events/stream')) {
      stream = res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      return res.flushHeaders()
    }
    const answer = answers[`${req.method} ${pathname}`]
    res.writeHead(answer ? 200 : 404, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer ? answer(text && JSON.parse(text)) : { error: { type: 'not_found_error', message: `${req.method} ${pathname}` } }))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(played, { server, url: `https://${HOSTS[0]}:${server.address().port}` })
}

test('EnvironmentWorker: a tool of a session runs inside', async () => {
  const played = await environment(`whoami; tr '\\0' '\\n' </proc/$PPID/environ | grep -o 'KEY=sgph_'`)
  const worker = new Peer('environment-worker.sh', { ANTHROPIC_ENVIRONMENT_KEY: KEY, ANTHROPIC_ENVIRONMENT_ID: 'env_1', ANTHROPIC_BASE_URL: played.url })
  try {
    await eventually('the work is done', () => played.stopped, 30)
    assert.match(JSON.stringify(played.results), /user\\nKEY=sgph_/)
    assert.deepEqual([...played.keys], [`Bearer ${KEY}`])
  } catch (err) {
    throw new Error(`${err.message}\n${JSON.stringify(played.results)} ${worker.err.slice(-1500)}`)
  } finally {
    await worker.end()
    played.server.closeAllConnections()
  }
}, { seconds: 60 })

await run()
