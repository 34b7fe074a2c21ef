// What this chat needs of Sandglass: the sandbox of a path, and the tools that run in it.
//
// The conversation, the path and the message are given by this program with every call, never by the
// model: it can neither name a path that is not its own nor reach another conversation.

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

  // The path's context; its sandbox is made if it has none.
  #obtain(conversationId, pathId) {
    return this.#ask('PUT', '/v1/contexts', { conversationId, pathId, network: NETWORK })
  }

  // Runs a tool on a path. The path gets its sandbox with the first call, and keeps it. With the id of a
  // message, a checkpoint is left before the first call of it: what branch() and rewind() go to. A sandbox
  // that cannot be had, or input that the tool does not take, is an answer too: the conversation goes on.
  async call(tool, conversationId, pathId, input, messageId) {
    try {
      const obtained = await this.#obtain(conversationId, pathId)
      const place = new URLSearchParams({ conversationId, pathId, ...(messageId ? { messageId } : {}) })
      const { conversationId: _, pathId: __, messageId: ___, ...rest } = input
      const answer = await this.#ask('POST', `/v1/tools/${encodeURIComponent(tool)}?${place}`, rest)
      return { ...answer, wasCreated: obtained.wasCreated || answer.wasCreated, replaced: obtained.replaced || answer.replaced }
    } catch (err) {
      if (!(err instanceof Refusal)) throw err
      const why = err.unavailable || err.status === 429 || err.status === 503 ? 'the tool is not available now' : 'the call was refused'
      return { success: false, stdout: '', stderr: '', results: [], error: { name: 'ToolError', value: `${why}: ${err.message}` } }
    }
  }

  // A new path with the variables and files that its parent had before a message; without one, that it has now.
  branch(conversationId, fromPathId, toPathId, atMessageId) {
    return this.#ask('POST', '/v1/contexts/branch', { conversationId, fromPathId, toPathId, inherit: 'state', atMessageId, network: NETWORK })
  }

  // Variables and files of a path as they were before a message.
  async rewind(conversationId, pathId, messageId) {
    const { context } = await this.#obtain(conversationId, pathId)
    return this.#ask('POST', `/v1/contexts/${context.id}/rewind`, { messageId })
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
