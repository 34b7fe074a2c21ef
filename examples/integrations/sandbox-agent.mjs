// Rivet's sandbox-agent: its server inside, its client outside. The server is a file of npm's package; agents it fetches from the
// internet, with `agent.installAgent('claude')`, and sessions with them begin with `agent.createSession({ agent: 'claude' })`.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { Sandbox } from 'e2b'
import { SandboxAgent } from 'sandbox-agent'

const PORT = 2468
const program = createRequire(import.meta.url).resolve('@sandbox-agent/cli-linux-x64/bin/sandbox-agent')
const sandbox = await Sandbox.create()
await sandbox.files.write('/usr/local/bin/sandbox-agent', (await readFile(program)).buffer)
await sandbox.commands.run('chmod 755 /usr/local/bin/sandbox-agent', { user: 'root' })
await sandbox.commands.run(`sandbox-agent server --no-token --no-telemetry --host 0.0.0.0 --port ${PORT}`, { background: true, timeoutMs: 0 })

// Without a domain a port is named by headers; with one, `https://${sandbox.getHost(PORT)}` is its address.
const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': String(PORT) }
const agent = await SandboxAgent.connect({ baseUrl: process.env.E2B_SANDBOX_URL, headers })
const { agents } = await agent.listAgents()
const { exitCode, stdout } = await agent.runProcess({ command: 'whoami' })
console.log(agents.map((a) => a.id).join(), exitCode, stdout.trim())
await agent.dispose()
await sandbox.kill()
