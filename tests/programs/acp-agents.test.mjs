// Agents from npm that speak ACP, inside: `sandglass acp` as an editor starts them. The model is played, behind the guard, which
// alone has its key.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import readline from 'node:readline'
import { assert, modules, run, same, test, unique } from '../e2e/lib.mjs'
import { certificate, nameServer } from '../e2e/names.mjs'
import { scratch, SG } from '../e2e/server.mjs'
import { Model } from './model.mjs'

const KEY = `sk-${unique()}`
const names = await nameServer()
const made = certificate('api.test')
const AGENTS = path.join(modules, 'node_modules')
const INSIDE = '/opt/node_modules'
const POLICY = path.join(scratch, 'policy')
fs.writeFileSync(POLICY, `mount-root ${AGENTS}\n`)

// A client of the protocol, which allows whatever it is asked for.
class Client {
  said = ''
  #waiting = new Map()

  constructor(command, options) {
    const args = ['acp', '--approve', '--policy', POLICY, '--mount', `${AGENTS}:${INSIDE}`, '--memory', '4G', '--timeout', '60s', ...options, '--', `${INSIDE}/node-22/bin/node`, ...command]
    const surroundings = { SANDGLASS_EGRESS_DNS: `127.0.0.1:${names.address().port}`, SANDGLASS_EGRESS_INTERNAL: '127.0.0.1', SANDGLASS_EGRESS_ROOTS: made.ca }
    this.child = spawn(SG, args, { env: { ...process.env, ...surroundings, OUTSIDE: KEY }, stdio: ['pipe', 'pipe', 'pipe'] })
    this.err = ''
    this.child.stderr.on('data', (d) => { this.err += d })
    this.ended = new Promise((resolve) => this.child.on('close', resolve))
    readline.createInterface(this.child.stdout).on('line', (line) => this.#line(line))
    this.ended.then((status) => { for (const { reject } of this.#waiting.values()) reject(new Error(`ended with ${status}: ${this.err.slice(-2000)}`)) })
  }

  #line(line) {
    const message = JSON.parse(line)
    if (message.method && message.id !== undefined) this.#answer(message)
    else if (message.method === 'session/update' && message.params.update.sessionUpdate === 'agent_message_chunk') this.said += message.params.update.content.text ?? ''
    const waiting = !message.method && this.#waiting.get(message.id)
    if (waiting) message.error ? waiting.reject(new Error(`${JSON.stringify(message.error)} ${this.err.slice(-2000)}`)) : waiting.resolve(message.result)
  }

  #answer({ id, method, params }) {
    const allowed = params.options?.find((o) => o.kind.startsWith('allow'))
    const answer = method === 'session/request_permission'
      ? { result: { outcome: { outcome: 'selected', optionId: allowed.optionId } } } : { error: { code: -32601, message: 'not here' } }
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`)
  }

  ask(method, params) {
    const id = this.#waiting.size + 1
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  async meet(authenticate) {
    const hello = await this.ask('initialize', { protocolVersion: 1, clientCapabilities: {}, clientInfo: { name: 'test', version: '1' } })
    if (authenticate) await this.ask('authenticate', { methodId: authenticate })
    const { sessionId } = await this.ask('session/new', { cwd: '/home/user', mcpServers: [] })
    this.sessionId = sessionId
    return hello
  }

  prompt = (text) => this.ask('session/prompt', { sessionId: this.sessionId, prompt: [{ type: 'text', text }] })

  async end() {
    this.child.stdin.end()
    this.child.kill('SIGTERM')
    return this.ended
  }
}

// A prompt, for which the model has a command run inside, that tells whose key is there. Every request of the model has the key
// that the guard put there, and what is inside is a placeholder.
async function conversation(name, { variable, tool, command, options, agent, authenticate }) {
  const inside = `echo of-the-shell; printenv ${variable} | cut -c 1-5`
  const model = await Model.at(made, { call: tool, with: command(inside) }, (told) => `It has ${/of-the-shell\W+n?sgph_/.exec(told) ? 'a placeholder' : told}.`)
  const client = new Client(agent, ['--secret', `${variable}=OUTSIDE@api.test`, ...options(`https://api.test:${model.port}`)])
  try {
    const hello = await client.meet(authenticate)
    same(hello.agentInfo.name, name)
    same((await client.prompt('Whose key is there?')).stopReason, 'end_turn')
    assert.match(client.said, /It has a placeholder\./, JSON.stringify(model.returned))
    const asked = model.asked.filter(({ body }) => body).map(({ headers }) => headers['x-api-key'] ?? headers['x-goog-api-key'] ?? headers.authorization.replace('Bearer ', ''))
    assert.deepEqual([...new Set(asked)], [KEY])
  } catch (err) {
    throw new Error(`${err.message}\nthe model was asked: ${model.asked.map(({ path }) => path)}\n${client.err.slice(-1000)}`)
  } finally {
    await client.end()
    model.close()
  }
}

test('claude-agent-acp', () => conversation('@agentclientprotocol/claude-agent-acp', {
  agent: [`${INSIDE}/@agentclientprotocol/claude-agent-acp/dist/index.js`],
  variable: 'ANTHROPIC_API_KEY',
  options: (url) => ['--env', `ANTHROPIC_BASE_URL=${url}`],
  tool: 'Bash',
  command: (command) => ({ command, description: 'Looks' }),
}), { seconds: 100 })

// Codex's own confinement cannot be made in a sandbox: the sandbox is what confines it.
const config = (url) => ({ model: 'played', model_provider: 'played', model_providers: { played: { name: 'played', base_url: `${url}/v1`, env_key: 'CODEX_API_KEY', wire_api: 'responses' } } })
test('codex-acp', () => conversation('@agentclientprotocol/codex-acp', {
  agent: [`${INSIDE}/@agentclientprotocol/codex-acp/dist/index.js`],
  variable: 'CODEX_API_KEY',
  options: (url) => ['--env', 'INITIAL_AGENT_MODE=agent-full-access', '--env', `CODEX_CONFIG=${JSON.stringify(config(url))}`],
  tool: 'exec_command',
  command: (cmd) => ({ cmd }),
}), { seconds: 100 })

test('gemini-cli --acp', () => conversation('gemini-cli', {
  agent: [`${INSIDE}/@google/gemini-cli/bundle/gemini.js`, '--acp', '--model', 'gemini-2.5-flash'],
  authenticate: 'gemini-api-key',
  variable: 'GEMINI_API_KEY',
  options: (url) => ['--env', `GOOGLE_GEMINI_BASE_URL=${url}`],
  tool: 'run_shell_command',
  command: (command) => ({ command, description: 'Looks' }),
}), { seconds: 100 })

await run()
