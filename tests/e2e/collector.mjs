// A collector of traces, which is what a server sends them to: OTLP over HTTP, as protobuf and as JSON, on
// /v1/traces, and on the path that Langfuse has. What comes is read with OpenTelemetry's own code, which
// knows its fields and refuses others.
import http from 'node:http'
import { assert, eventually, require } from './lib.mjs'

const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { ExportTraceServiceRequest: Request } = opentelemetry.proto.collector.trace.v1

const IDS = ['traceId', 'spanId', 'parentSpanId']
const hex = (bytes) => Buffer.from(bytes ?? []).toString('hex')

// The same message with other ids, in its spans.
const withIds = (message, change) => ({
  ...message,
  resourceSpans: message.resourceSpans.map((r) => ({
    ...r,
    scopeSpans: r.scopeSpans.map((s) => ({
      ...s,
      spans: s.spans.map((span) => ({ ...span, ...Object.fromEntries(IDS.filter((id) => id in span).map((id) => [id, change(span[id])])) })),
    })),
  })),
})

// As JSON has it: ids as hexadecimal digits, 64 bits as text.
const plain = (message) => withIds(Request.toObject(message, { longs: String, bytes: Array }), hex)

// Arrays that are empty are left out on the way through protobuf.
const filled = (value) => {
  if (Array.isArray(value)) return value.map(filled)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).filter(([, v]) => !(Array.isArray(v) && v.length === 0)).map(([k, v]) => [k, filled(v)]))
}

function decode(type, body) {
  if (type === 'application/x-protobuf') {
    const message = Request.decode(body)
    assert.deepEqual(Buffer.from(Request.encode(message).finish()).length, body.length, 'nothing in it was skipped')
    return plain(message)
  }
  assert.equal(type, 'application/json')
  const json = JSON.parse(body.toString())
  for (const r of json.resourceSpans)
    for (const span of r.scopeSpans.flatMap((s) => s.spans)) {
      assert.match(span.traceId, /^[0-9a-f]{32}$/)
      assert.match(span.spanId, /^[0-9a-f]{16}$/)
      for (const key of ['startTimeUnixNano', 'endTimeUnixNano']) assert.match(span[key], /^[0-9]+$/)
    }
  const message = Request.fromObject(withIds(json, (id) => Buffer.from(id, 'hex')))
  assert.deepEqual(filled(plain(message)), filled(json), 'every field is one that OpenTelemetry knows')
  return json
}

const valueOf = (v) => v.stringValue ?? v.boolValue ?? (v.intValue === undefined ? undefined : Number(v.intValue))
const attributesOf = (o) => {
  const names = (o.attributes ?? []).map((a) => a.key)
  assert.equal(new Set(names).size, names.length, `each attribute once: ${names}`)
  return Object.fromEntries((o.attributes ?? []).map((a) => [a.key, valueOf(a.value)]))
}

function spansOf(message) {
  return message.resourceSpans.flatMap((r) =>
    r.scopeSpans.flatMap((s) =>
      s.spans.map((span) => ({
        ...span,
        scope: s.scope.name,
        resource: attributesOf(r.resource),
        attributes: attributesOf(span),
        events: (span.events ?? []).map((e) => ({ name: e.name, at: BigInt(e.timeUnixNano), attributes: attributesOf(e) })),
        begin: BigInt(span.startTimeUnixNano),
        end: BigInt(span.endTimeUnixNano),
        failed: span.status?.code === 2,
      }))))
}

export class Collector {
  // What it does: ok, garbage, silent, or a status.
  mode = 'ok'
  posts = []
  wrong = []
  spans = []
  langfuse = []

  async open(port = 0) {
    this.server = http.createServer((req, res) => this.take(req, res))
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(port, '127.0.0.1', resolve))
    this.port = this.server.address().port
    this.url = `http://127.0.0.1:${this.port}`
    return this
  }

  // Nobody answers on its port any more.
  async close() {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }

  async take(req, res) {
    const chunks = []
    for await (const chunk of req) chunks.push(chunk)
    this.posts.push({ url: req.url, headers: req.headers, mode: this.mode })
    if (this.mode === 'silent') return
    if (this.mode === 'garbage') return void req.socket.end('\xff\xfe this is not the protocol\r\n\r\n')
    if (this.mode !== 'ok') return void res.writeHead(this.mode, this.mode === 503 ? { 'Retry-After': '1' } : {}).end('no')
    try {
      const spans = spansOf(decode(req.headers['content-type'], Buffer.concat(chunks)))
      if (req.url === '/v1/traces') this.spans.push(...spans)
      else if (req.url === '/api/public/otel/v1/traces') this.langfuse.push(...spans)
      else assert.fail(`posted to ${req.url}`)
    } catch (err) {
      this.wrong.push(err)
    }
    res.end(req.headers['content-type'] === 'application/json' ? '{}' : '')
  }

  // Waits for a span that this is true of.
  async one(what, test, { from = 'spans', seconds = 15 } = {}) {
    const found = await eventually(`a span: ${what}`, () => this[from].find(test), seconds).catch((err) => {
      const names = this[from].map((s) => `${s.name} ${s.traceId.slice(0, 8)}`)
      throw new Error(`${err.message}; there are ${names.slice(-30).join(', ')}`)
    })
    assert.deepEqual(this.wrong, [])
    return found
  }

  // The span of that name in a trace.
  in(traceId, name, more) {
    return this.one(`${name} in ${traceId}`, (s) => s.name === name && s.traceId === traceId, more)
  }
}
