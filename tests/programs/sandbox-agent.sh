#!/bin/bash
# Inside: Rivet's server with Claude Code as npm has it, and its own client, which begins a session and prompts. Prints what is said.
modules=/opt/agents/node_modules
launchers=~/.local/share/sandbox-agent/bin/agent_processes
export PATH=$modules/node-22/bin:$HOME/bin:$PATH
mkdir -p ~/bin "$launchers"
ln -s $modules/@anthropic-ai/claude-agent-sdk-linux-x64/claude ~/bin/claude
printf '#!/bin/sh\nexec node %s "$@"\n' $modules/@agentclientprotocol/claude-agent-acp/dist/index.js >"$launchers/claude-acp"
cp $modules/@sandbox-agent/cli-linux-x64/bin/sandbox-agent ~/bin
chmod +x "$launchers/claude-acp" ~/bin/sandbox-agent
sandbox-agent server --no-token --no-telemetry >~/log 2>&1 &
cd /opt/agents && exec node --input-type=module -e '
import { SandboxAgent } from "sandbox-agent"
const agent = await SandboxAgent.connect({ baseUrl: "http://127.0.0.1:2468" })
const session = await agent.createSession({ agent: "claude", cwd: "/home/user" })
let said = ""
session.onEvent(({ payload }) => { said += payload.params?.update?.content?.text ?? "" })
session.onPermissionRequest(({ id }) => session.respondPermission(id, "once"))
const { stopReason } = await session.prompt([{ type: "text", text: "Whose key is there?" }])
console.log(JSON.stringify({ stopReason, said }))
await agent.dispose()
process.exit()
'
