// The routes under /v1 of a server, as an application without any SDK calls them.
import { execFileSync } from 'node:child_process'
import { assert } from './lib.mjs'
import { SG } from './server.mjs'

// A key of this tenant, which is made if it is not there.
export function keyOf(server, tenant) {
  return execFileSync(SG, ['key', 'create', '--tenant', tenant, '--state', server.state], { encoding: 'utf8' }).trim()
}

export class Client {
  constructor(server, key = server.as.apiKey) {
    Object.assign(this, { url: server.url, key })
  }

  async ask(method, route, body, { headers = {}, ...rest } = {}) {
    const json = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const res = await fetch(this.url + route, { method, headers: { 'X-API-Key': this.key, ...type, ...headers }, body: json, ...rest })
    return answer(res)
  }

  // The body of an answer that must have this status.
  async gives(status, method, route, body, more) {
    const a = await this.ask(method, route, body, more)
    assert.equal(a.status, status, `${method} ${route}: ${a.text.slice(0, 600)}`)
    return a.json
  }

  // The server says no, in the documented shape.
  async refuses(status, message, method, route, body, more) {
    const a = await this.ask(method, route, body, more)
    assert.equal(a.status, status, `${method} ${route}: ${a.text.slice(0, 600)}`)
    assert.equal(a.json?.code, status, a.text)
    assert.match(a.json.message, message)
    if (status === 503) assert.match(a.headers.get('retry-after') ?? '', /^\d+$/, 'Retry-After')
    return a.json
  }

  async obtain(conversationId, pathId, more) {
    const a = await this.ask('PUT', '/v1/contexts', { conversationId, pathId, ...more })
    assert.ok(a.status === 200 || a.status === 201, `${a.status} ${a.text.slice(0, 600)}`)
    assert.equal(a.json.wasCreated, a.status === 201, a.text)
    assert.equal(a.json.context.sandboxId, a.json.sandbox.sandboxID)
    return a.json
  }

  context(id) {
    return this.gives(200, 'GET', `/v1/contexts/${id}`)
  }

  // All that match, page by page.
  async contexts(filters = {}) {
    const all = []
    for (let cursor; cursor !== null; ) {
      const query = new URLSearchParams({ ...filters, ...(cursor ? { cursor } : {}) })
      const page = await this.gives(200, 'GET', `/v1/contexts?${query}`)
      all.push(...page.contexts)
      cursor = page.nextCursor
    }
    return all
  }

  async paths(conversationId) {
    return (await this.gives(200, 'GET', `/v1/paths?${new URLSearchParams({ conversationId })}`)).paths
  }

  async sandboxes() {
    return this.gives(200, 'GET', '/v2/sandboxes')
  }

  end(id) {
    return this.gives(200, 'DELETE', `/v1/contexts/${id}`)
  }

  // Ends all of a conversation, so that the next test has the places.
  async clear(conversationId) {
    return this.gives(200, 'POST', '/v1/contexts/cleanup', { conversationId })
  }

  code(conversationId, pathId, code, more) {
    return this.gives(200, 'POST', '/v1/tools/run_code', { conversationId, pathId, code, ...more })
  }

  analysis(conversationId, pathId, analysisType, parameters, more) {
    return this.gives(200, 'POST', '/v1/tools/run_analysis', { conversationId, pathId, analysisType, parameters, ...more })
  }
}

async function answer(res) {
  const text = await res.text()
  let json
  try {
    json = JSON.parse(text)
  } catch {}
  return { status: res.status, headers: res.headers, text, json }
}

// The events of a stream: [{ event, data }], and how many comments there were.
export function events(text) {
  const found = []
  for (const block of text.split('\n\n').filter((b) => b.trim())) {
    const lines = block.split('\n')
    const event = lines.find((l) => l.startsWith('event: '))?.slice(7)
    const data = lines.filter((l) => l.startsWith('data: ')).map((l) => l.slice(6)).join('\n')
    if (event) found.push({ event, data: JSON.parse(data) })
  }
  return found
}
