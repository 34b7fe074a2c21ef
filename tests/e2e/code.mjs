// What the tests of the code interpreter share: E2B's package for it, and words for what a cell gave.
import { assert, common, eventually, mine, require, toPort } from './lib.mjs'

export const { Sandbox: Interpreter } = require('@e2b/code-interpreter')
export const PORT = 49999

// A sandbox of the test's own; ended after it.
export const fresh = async (opts) => mine(await Interpreter.create({ timeoutMs: 120_000, ...opts }))

// One for all tests of a file that do not mind each other.
export const shared = () => common(Interpreter)

// A new context, so that a cell finds no names of others.
export async function context(sandbox, opts = {}) {
  return { context: await sandbox.createCodeContext(opts) }
}

export const out = (execution) => execution.logs.stdout.join('')
export const err = (execution) => execution.logs.stderr.join('')
export const main = (execution) => execution.results.find((r) => r.isMainResult)
export const shown = (execution) => execution.results.filter((r) => !r.isMainResult)

// The text of the cell's value. A cell that failed, or said something on standard error, fails the test.
export async function value(sandbox, code, opts) {
  const execution = await sandbox.runCode(code, opts)
  assert.equal(execution.error, undefined, `${code}: ${execution.error?.name}: ${execution.error?.value}`)
  assert.equal(err(execution), '', `standard error of ${code}`)
  return execution.text
}

// The cell fails with an error of this name.
export async function fails(sandbox, code, name, message = /./, opts = undefined) {
  const execution = await sandbox.runCode(code, opts)
  assert.ok(execution.error, `${code}: no error, result ${execution.text}`)
  assert.equal(execution.error.name, name, `${execution.error.value}`)
  assert.match(execution.error.value, message)
  return execution
}

// A cell that has begun: it has said something. In an object, because a promise would be waited for.
export async function began(sandbox, code, opts) {
  let heard
  const cell = sandbox.runCode(code, { ...opts, onStdout: (m) => { heard = m } })
  cell.catch(() => {})
  await eventually('the cell runs', () => heard)
  return { cell }
}

// A request to the interpreter of a sandbox, as somebody without the SDK makes it.
export function ask(sandbox, method, path, body) {
  const headers = { 'Content-Type': 'application/json' }
  if (sandbox.envdAccessToken) headers['X-Access-Token'] = sandbox.envdAccessToken
  return toPort(sandbox, PORT, { method, path, headers, body: body === undefined ? undefined : JSON.stringify(body) })
}
