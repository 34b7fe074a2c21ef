// What this chat needs of Sandglass: the sandbox of a path, and the tools that run in it.
//
// The conversation and the path are given by this program with every call, never by the model: a
// model can neither name a path that is not its own nor reach another conversation.

// Code that a model wrote has no business on the network, unless you give it one.
const NETWORK = { denyOut: ['0.0.0.0/0'] }
const PATIENCE_MS = 120_000

export class Refusal extends Error {
  constructor(status, { message, unavailable }) {
    super(message ?? `status ${status}`)
    Object.assign(this, { status, unavailable: unavailable === true })
  }
}

export class Sandglass {
  #url
  #key

  constructor(url, key) {
    this.#url = url.replace(/\/+$/, '')
    this.#key = key
  }

  async #ask(method, route, body) {
    const res = await fetch(this.#url + route, {
      method,
      headers: { 'X-API-Key': this.#key, 'Content-Type': 'application/json' },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    const answer = await res.json().catch(() => ({}))
    if (!res.ok) throw new Refusal(res.status, answer)
    return answer
  }

  // The tools in the form that the model wants. Bound to a path, they do not ask for one.
  tools(conversationId, pathId) {
    return this.#ask('GET', `/v1/tools?${new URLSearchParams({ format: 'anthropic', conversationId, pathId })}`)
  }

  // Runs a tool on a path. The path gets its sandbox with the first call, and keeps it. A sandbox that
  // cannot be had, or input that the tool does not take, is an answer too: the conversation goes on.
  async call(tool, conversationId, pathId, input) {
    try {
      const obtained = await this.#ask('PUT', '/v1/contexts', { conversationId, pathId, network: NETWORK })
      const place = new URLSearchParams({ conversationId, pathId })
      const { conversationId: _, pathId: __, ...rest } = input
      const answer = await this.#ask('POST', `/v1/tools/${encodeURIComponent(tool)}?${place}`, rest)
      return { ...answer, wasCreated: obtained.wasCreated || answer.wasCreated, replaced: obtained.replaced || answer.replaced }
    } catch (err) {
      if (!(err instanceof Refusal)) throw err
      const why = err.unavailable || err.status === 429 || err.status === 503 ? 'the tool is not available now' : 'the call was refused'
      return { success: false, stdout: '', stderr: '', results: [], error: { name: 'ToolError', value: `${why}: ${err.message}` } }
    }
  }

  // A new path that begins with the files that its parent has now.
  branch(conversationId, fromPathId, toPathId) {
    return this.#ask('POST', '/v1/contexts/branch', { conversationId, fromPathId, toPathId, inherit: 'files', network: NETWORK })
  }

  merge(conversationId, sourcePathId, targetPathId) {
    return this.#ask('POST', '/v1/contexts/merge', { conversationId, sourcePathId, targetPathId })
  }

  async paths(conversationId) {
    return (await this.#ask('GET', `/v1/paths?${new URLSearchParams({ conversationId })}`)).paths
  }

  // Ends all sandboxes of the conversation.
  end(conversationId) {
    return this.#ask('POST', '/v1/contexts/cleanup', { conversationId })
  }
}
