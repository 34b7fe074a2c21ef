// An orchestrator: starts an agent in a sandbox, gives it a task, prints what it says, and stops it.
//   npm install @agentclientprotocol/sdk ws
//   E2B_API_URL=http://127.0.0.1:3000 E2B_API_KEY=e2b_... node orchestrator.mjs agent.tar 'the task' node agent.mjs
import fs from 'node:fs'
import { client, methods, PROTOCOL_VERSION } from '@agentclientprotocol/sdk'
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client'
import WebSocket from 'ws'

const { E2B_API_URL: url, E2B_API_KEY: key } = process.env
const [tar, task, ...command] = process.argv.slice(2)
const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' }
async function call(method, path, body) {
  const res = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) })
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`)
  return res.status === 204 ? undefined : res.json()
}
const source = { type: 'tar', data: fs.readFileSync(tar, 'base64') }
const agent = await call('POST', '/v1/agents', { command, source, timeout: 3600, serveFs: true })
try {
  const stream = createWebSocketStream(url.replace(/^http/, 'ws') + `/v1/agents/${agent.agentId}/acp`, { WebSocket, headers })
  const allow = ({ params: { options } }) => ({ outcome: { outcome: 'selected', optionId: options[0].optionId } })
  await client().onRequest(methods.client.session.requestPermission, allow).connectWith(stream, async (ctx) => {
    await ctx.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION })
    const session = await ctx.buildSession('/home/user/project').start()
    session.prompt(task).catch(() => {})
    for (let m; (m = await session.nextUpdate()).kind !== 'stop'; ) process.stdout.write(m.update.content?.text ?? '')
  })
} finally {
  await call('DELETE', `/v1/agents/${agent.agentId}`)
}
