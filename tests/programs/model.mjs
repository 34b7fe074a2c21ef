// The model behind a program, played by the test: OpenAI's two forms (chat completions, responses), Anthropic's messages and
// Gemini's contents, in one piece or as a stream. A play is a list of turns; each is given what the last tool call returned, and
// gives what the model says: a text, { call: name, with: arguments }, or for responses { item } as it is.
import http from 'node:http'
import https from 'node:https'

const stamp = () => Math.floor(Date.now() / 1000)
const id = (kind) => `${kind}_${Math.random().toString(36).slice(2)}`
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
const textOf = (content) => (typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join(''))

// ---- OpenAI: chat completions --------------------------------------------------------------------

function chat(request, turn) {
  const made = { id: id('chatcmpl'), created: stamp(), model: request.model }
  const call = turn.call && { id: id('call'), type: 'function', function: { name: turn.call, arguments: JSON.stringify(turn.with) } }
  const message = call ? { role: 'assistant', content: null, tool_calls: [call] } : { role: 'assistant', content: turn }
  const finish_reason = call ? 'tool_calls' : 'stop'
  if (!request.stream) return [{ ...made, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage }]
  const piece = (delta, finish_reason = null) => ({ ...made, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })
  return [piece(call ? { ...message, tool_calls: [{ index: 0, ...call }] } : message), piece({}, finish_reason), { ...made, object: 'chat.completion.chunk', choices: [], usage }]
}
const chatReturned = ({ messages }) => textOf(messages.findLast((m) => m.role === 'tool')?.content)

// ---- OpenAI: responses ---------------------------------------------------------------------------

function responses(request, turn) {
  const item = turn.item ? { id: id('item'), call_id: id('call'), status: 'completed', ...turn.item } : turn.call
    ? { id: id('fc'), type: 'function_call', status: 'completed', call_id: id('call'), name: turn.call, arguments: JSON.stringify(turn.with) }
    : { id: id('msg'), type: 'message', status: 'completed', role: 'assistant', content: [{ type: 'output_text', text: turn, annotations: [], logprobs: [] }] }
  const response = {
    id: id('resp'), object: 'response', created_at: stamp(), status: 'completed', model: request.model, output: [item], error: null, incomplete_details: null,
    instructions: null, metadata: {}, parallel_tool_calls: true, tool_choice: 'auto', tools: [], temperature: 1, top_p: 1,
    usage: { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 },
  }
  if (!request.stream) return [response]
  const at = { item_id: item.id, output_index: 0, content_index: 0 }
  const begun = { ...response, status: 'in_progress', output: [], usage: null }
  const inner = turn.item ? [] : turn.call
    ? [{ type: 'response.function_call_arguments.delta', item_id: item.id, output_index: 0, delta: item.arguments },
       { type: 'response.function_call_arguments.done', item_id: item.id, output_index: 0, name: item.name, arguments: item.arguments }]
    : [{ type: 'response.content_part.added', ...at, part: { type: 'output_text', text: '', annotations: [] } },
       { type: 'response.output_text.delta', ...at, delta: turn, logprobs: [] },
       { type: 'response.output_text.done', ...at, text: turn, logprobs: [] },
       { type: 'response.content_part.done', ...at, part: item.content[0] }]
  const empty = turn.item ? { ...item, status: 'in_progress' } : turn.call ? { ...item, status: 'in_progress', arguments: '' } : { ...item, status: 'in_progress', content: [] }
  return [{ type: 'response.created', response: begun }, { type: 'response.output_item.added', output_index: 0, item: empty }, ...inner,
    { type: 'response.output_item.done', output_index: 0, item }, { type: 'response.completed', response }].map((event, n) => ({ sequence_number: n, ...event }))
}
const responsesReturned = ({ input }) => (Array.isArray(input) ? textOf(input.findLast((i) => /_output$/.test(i.type))?.output) : '')

// ---- Anthropic -----------------------------------------------------------------------------------

function messages(request, turn) {
  const block = turn.call ? { type: 'tool_use', id: id('toolu'), name: turn.call, input: turn.with } : { type: 'text', text: turn }
  const stop_reason = turn.call ? 'tool_use' : 'end_turn'
  const tokens = { input_tokens: 1, output_tokens: 1 }
  const message = { id: id('msg'), type: 'message', role: 'assistant', model: request.model, content: [block], stop_reason, stop_sequence: null, usage: tokens }
  if (!request.stream) return [message]
  const delta = turn.call ? { type: 'input_json_delta', partial_json: JSON.stringify(turn.with) } : { type: 'text_delta', text: turn }
  return [{ type: 'message_start', message: { ...message, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: turn.call ? { ...block, input: {} } : { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta }, { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: tokens }, { type: 'message_stop' }]
}
const messagesReturned = (request) => textOf(request.messages.flatMap((m) => (Array.isArray(m.content) ? m.content : [])).findLast((c) => c.type === 'tool_result')?.content)

// ---- Gemini --------------------------------------------------------------------------------------

const contents = (request, turn) => [{
  candidates: [{ content: { role: 'model', parts: [turn.call ? { functionCall: { name: turn.call, args: turn.with } } : { text: turn }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 }, modelVersion: 'played',
}]
const contentsReturned = (request) => JSON.stringify(request.contents.flatMap((c) => c.parts).findLast((p) => p.functionResponse)?.functionResponse.response)

// ---- the server ----------------------------------------------------------------------------------

const FORMS = [
  [/\/chat\/completions$/, chat, chatReturned], [/\/responses$/, responses, responsesReturned],
  [/\/messages$/, messages, messagesReturned], [/:(streamGenerateContent|generateContent)$/, contents, contentsReturned],
]

function reply(res, pieces, asStream) {
  if (!asStream) return res.setHeader('Content-Type', 'application/json').end(JSON.stringify(pieces[0]))
  res.setHeader('Content-Type', 'text/event-stream')
  for (const piece of pieces) res.write(`${piece.type ? `event: ${piece.type}\n` : ''}data: ${JSON.stringify(piece)}\n\n`)
  res.end(pieces[0].object === 'chat.completion.chunk' ? 'data: [DONE]\n\n' : '')
}

// A model at `url`, which plays these turns. `asked`: each request's path, headers and body; `returned`: what the tools gave.
export class Model {
  static play = (...turns) => Model.at(undefined, ...turns)

  // The same with TLS, for `certificate`'s name.
  static async at(certificate, ...turns) {
    const model = Object.assign(new Model(), { turns, asked: [], returned: [] })
    const answer = (req, res) => model.#answer(req, res)
    model.server = certificate ? https.createServer(certificate, answer) : http.createServer(answer)
    await new Promise((resolve) => model.server.listen(0, '127.0.0.1', resolve))
    model.port = model.server.address().port
    model.url = `http://127.0.0.1:${model.port}`
    return model
  }

  async #answer(req, res) {
    let text = ''
    for await (const piece of req) text += piece
    const { pathname } = new URL(req.url, this.url)
    const [, make, returned] = FORMS.find(([form]) => form.test(pathname)) ?? []
    this.asked.push({ path: pathname, headers: req.headers, body: text && JSON.parse(text) })
    if (!make) return res.writeHead(404).end('{"error":{"message":"the play has no such route"}}')
    const request = JSON.parse(text)
    const last = returned(request)
    if (last) this.returned.push(last)
    // What is asked beside the play, as for a title, comes without tools.
    const next = request.tools?.length ? (this.turns.shift() ?? 'The play is over.') : 'Beside the play'
    reply(res, make(request, typeof next === 'function' ? next(last, request) : next), request.stream || pathname.endsWith(':streamGenerateContent'))
  }

  close() {
    this.server.closeAllConnections()
    this.server.close()
  }
}
