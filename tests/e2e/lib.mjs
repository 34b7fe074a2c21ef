// What every test of the SDK is made of: E2B's package, a server's addresses from the environment, and
// `test`, which prints a line of TAP. A file states its tests and ends with `await run()`.
import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const TOP = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..')
const modules = process.env.E2E_MODULES ?? path.join(TOP, 'build/e2e')
export const require = createRequire(path.join(modules, 'package.json'))
export const e2b = require('e2b')
export const { Sandbox } = e2b
export { assert, modules }

// The addresses and the key are where every program that uses E2B looks for them.
if (!process.env.E2B_API_KEY || !(process.env.E2B_API_URL ?? process.env.E2B_DOMAIN)) {
  console.log('Bail out! E2B_API_KEY and E2B_API_URL are not set: tests/e2e/run starts a server and sets them')
  process.exit(1)
}
export const API = process.env.E2B_API_URL
export const KEY = process.env.E2B_API_KEY
// A key of another tenant of the same server.
export const OTHER_KEY = process.env.E2E_OTHER_KEY

// ---- stating ------------------------------------------------------------------------------------

const tests = []
let ran = false
let alive = []

export function test(name, body, { seconds = 40 } = {}) {
  if (ran) throw new Error(`'${name}' comes after run(): it would never run`)
  tests.push({ name, body, seconds })
}

function comment(text) {
  for (const line of String(text).split('\n').slice(0, 40)) console.log(`# ${line}`)
}

async function within(seconds, promise) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${seconds} s`)), seconds * 1000)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

// Ends the process: a test that hung must not keep the file from ending.
export async function run() {
  ran = true
  const only = process.argv[2] && new RegExp(process.argv[2])
  const chosen = tests.filter((t) => !only || only.test(t.name))
  let failed = 0
  for (const [i, { name, body, seconds }] of chosen.entries()) {
    try {
      await within(seconds, Promise.resolve().then(body))
      console.log(`ok ${i + 1} - ${name}`)
    } catch (err) {
      failed++
      console.log(`not ok ${i + 1} - ${name}`)
      comment(describe(err))
    }
    await endAll()
  }
  if (shared) alive.push(await shared.catch(() => undefined))
  await endAll()
  console.log(`1..${chosen.length}`)
  process.exit(failed ? 1 : 0)
}

function describe(err) {
  if (!(err instanceof Error)) return `thrown: ${err}`
  const more = err instanceof e2b.CommandExitError ? `\nstdout: ${err.stdout}\nstderr: ${err.stderr}` : ''
  const cause = err.cause ? `\ncause: ${err.cause}` : ''
  const where = (err.stack ?? '').split('\n').filter((l) => l.includes('/tests/') && !l.includes('lib.mjs'))
  return `${err.constructor.name}: ${err.message}${more}${cause}\n${where.slice(0, 3).join('\n')}`
}

// Ten thousand times the same byte is no message for a person.
export function same(actual, expected, what = '') {
  if (actual === expected) return
  const show = (v) => {
    const text = typeof v === 'string' ? JSON.stringify(v) : String(v)
    return text.length > 300 ? `${text.slice(0, 300)}… (${v.length} long)` : text
  }
  assert.fail(`${what || 'value'}: expected ${show(expected)}, got ${show(actual)}`)
}

// The promise fails with exactly this class, and a message that matches.
export async function rejects(promise, Class, message = /./) {
  let value
  try {
    value = await promise
  } catch (err) {
    const told = `${err?.constructor?.name}: ${err?.message}`
    assert.ok(err instanceof Error && err.constructor === Class, `expected ${Class.name}, got ${told}`)
    assert.match(err.message, message, `message of ${Class.name}`)
    return err
  }
  assert.fail(`expected ${Class.name}, got a value: ${JSON.stringify(value)?.slice(0, 200)}`)
}

// The server refused with this status, told as a SandboxError or as `Class`.
export async function refused(promise, status, message = /./, Class = e2b.SandboxError) {
  const err = await rejects(promise, Class, message)
  assert.match(err.message, new RegExp(`^${status}: `), 'status in the message')
  if (err instanceof e2b.SandboxError) same(err.statusCode, status, 'statusCode')
  return err
}

// Waits until `fn` gives something true; its last answer or error is told when it never does.
export async function eventually(what, fn, seconds = 15) {
  const deadline = Date.now() + seconds * 1000
  let last
  for (;;) {
    try {
      const value = await fn()
      if (value) return value
      last = `last value ${JSON.stringify(value)}`
    } catch (err) {
      last = `last error ${err?.constructor?.name}: ${err?.message}`
    }
    if (Date.now() > deadline) assert.fail(`${what}: not within ${seconds} s, ${last}`)
    await sleep(50)
  }
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
export const unique = () => crypto.randomBytes(8).toString('hex')
export const sha256 = (data) => crypto.createHash('sha256').update(data).digest('hex')

export function near(actual, expected, slack, what) {
  assert.ok(
    Math.abs(actual - expected) <= slack,
    `${what}: ${new Date(+actual).toISOString()} is not within ${slack} ms of ${new Date(+expected).toISOString()}`,
  )
}

// ---- sandboxes ----------------------------------------------------------------------------------

// A sandbox of the test's own; ended after it.
export async function fresh(template, opts) {
  if (typeof template !== 'string') {
    opts = template
    template = opts?.template ?? 'base'
  }
  const sandbox = await Sandbox.create(template, { timeoutMs: 120_000, ...opts })
  alive.push(sandbox)
  return sandbox
}

export function mine(sandbox) {
  alive.push(sandbox)
  return sandbox
}

// One sandbox for all tests of a file that do not mind each other.
let shared
export function common(Class = Sandbox) {
  shared ??= Class.create({ timeoutMs: 300_000 })
  return shared
}

async function endAll() {
  const sandboxes = alive
  alive = []
  await Promise.all(sandboxes.filter(Boolean).map((b) => within(20, b.kill()).catch(() => {})))
}

// A new directory in the home of `user`.
export async function folder(sandbox, name = unique()) {
  const dir = `/home/user/${name}`
  await sandbox.files.makeDir(dir)
  return dir
}

export async function sh(sandbox, command, opts) {
  const { stdout } = await sandbox.commands.run(command, opts)
  return stdout.trimEnd()
}

// Starts a server inside and waits until its port answers.
export async function serve(sandbox, program, port, opts) {
  const file = `/tmp/server-${port}.py`
  await sandbox.files.write(file, program)
  const handle = await sandbox.commands.run(`exec python3 ${file}`, { background: true, timeoutMs: 0, ...opts })
  handle.wait().catch(() => {})
  const open = `python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${port}), 1)'`
  await eventually(`port ${port} is open`, () => sandbox.commands.run(open))
  return handle
}

export const inside = (name) => fs.readFileSync(path.join(TOP, 'tests/e2e/inside', name), 'utf8')

// ---- plain HTTP ---------------------------------------------------------------------------------

// A request to the control plane as somebody without the SDK makes it.
export async function api(method, route, { body, key = KEY, headers = {} } = {}) {
  const res = await fetch(API + route, {
    method,
    headers: {
      ...(key ? { 'X-API-KEY': key } : {}),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await res.text()
  let json
  try {
    json = JSON.parse(text)
  } catch {}
  return { status: res.status, headers: res.headers, text, json }
}

// A request to a port of a sandbox, named by headers. fetch() would not let a test choose the host.
export function toPort(sandbox, port, { method = 'GET', path = '/', headers = {}, body, at = process.env.E2B_SANDBOX_URL } = {}) {
  const url = new URL(at)
  const chunked = Object.keys(headers).some((name) => name.toLowerCase() === 'transfer-encoding')
  const length = body === undefined || chunked ? {} : { 'Content-Length': Buffer.byteLength(body) }
  return new Promise((resolve, reject) => {
    const req = http.request(
      {
        host: url.hostname,
        port: url.port,
        method,
        path,
        headers: { 'E2b-Sandbox-Id': sandbox.sandboxId ?? sandbox, 'E2b-Sandbox-Port': String(port), ...length, ...headers },
      },
      (res) => {
        const parts = []
        res.on('data', (d) => parts.push(d))
        res.on('error', reject)
        res.on('end', () => {
          const data = Buffer.concat(parts)
          const text = data.toString()
          let json
          try {
            json = JSON.parse(text)
          } catch {}
          resolve({ status: res.statusCode, headers: res.headers, data, text, json })
        })
      },
    )
    req.on('error', reject)
    req.end(body)
  })
}
