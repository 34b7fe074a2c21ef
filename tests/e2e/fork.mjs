// What the tests of forks share: copies with their kernels, what is in the way, checkpoints, and cells in words.
import { err, Interpreter, out } from './code.mjs'
import { API, assert, eventually, KEY, mine } from './lib.mjs'
import { Client } from './v1.mjs'

// The longer loops, which CI has no time for.
export const LONG = process.env.E2E_LONG === '1'

// A server and a key, as E2B's packages take them.
export const here = { apiKey: KEY, apiUrl: API, sandboxUrl: process.env.E2B_SANDBOX_URL }
export const http = (as = here) => new Client({ url: as.apiUrl }, as.apiKey)

// A sandbox of the test's own; ended after it.
export const make = async (as = here, opts = {}) => mine(await Interpreter.create({ timeoutMs: 120_000, ...as, ...opts }))
export const connect = async (id, as = here) => mine(await Interpreter.connect(id, { ...as, timeoutMs: 120_000 }))

// Copies, each with what is said of its kernels: the package's own fork() does not tell that.
export async function forks(sandbox, body = {}, as = here) {
  const made = await http(as).gives(201, 'POST', `/sandboxes/${sandbox.sandboxId}/fork`, { timeout: 120, ...body })
  return Promise.all(made.map(async ({ sandbox, kernels }) => ({ sandbox: await connect(sandbox.sandboxID, as), kernels })))
}

export async function fork(sandbox, body = {}, as = here) {
  const [only, ...more] = await forks(sandbox, body, as)
  assert.equal(more.length, 0)
  return only
}

// It is refused in the documented shape: the list of what is in the way.
export async function inTheWay(sandbox, { body = {}, to = 'fork', as = here } = {}) {
  const answer = await http(as).refuses(409, /\S/, 'POST', `/sandboxes/${sandbox.sandboxId}/${to}`, body)
  assert.ok(answer.inTheWay?.length > 0, JSON.stringify(answer))
  for (const one of answer.inTheWay) {
    assert.deepEqual(Object.keys(one).sort(), ['command', 'holds', 'pid', 'remedy', 'what'])
    for (const key of ['what', 'remedy']) assert.match(one[key], /\S/, `${key} of ${JSON.stringify(one)}`)
  }
  return answer.inTheWay
}

// ---- checkpoints --------------------------------------------------------------------------------

export const checkpoint = (sandbox, body = {}, as = here) => http(as).gives(201, 'POST', `/sandboxes/${sandbox.sandboxId}/checkpoints`, body)
export const checkpoints = async (sandbox, as = here) => (await http(as).gives(200, 'GET', `/sandboxes/${sandbox.sandboxId}/checkpoints`)).checkpoints
export const rewind = (sandbox, body, as = here) => http(as).gives(200, 'POST', `/sandboxes/${sandbox.sandboxId}/rewind`, body)

// ---- cells --------------------------------------------------------------------------------------

// What a cell printed. One that failed, or said something on standard error, fails the test.
export async function says(sandbox, code, opts) {
  const cell = await sandbox.runCode(code, opts)
  assert.equal(cell.error, undefined, `${code}: ${cell.error?.name}: ${cell.error?.value}`)
  assert.equal(err(cell), '', `standard error of ${code}`)
  return out(cell).trimEnd()
}

// The value of a Python expression.
export const py = async (sandbox, expression, opts) => JSON.parse(await says(sandbox, `print(__import__("json").dumps(${expression}))`, opts))

// A sandbox whose Python kernel is a copy of a warm one, since any other cannot be copied: the first of a server may not be.
export async function warm(as = here, opts = {}) {
  return eventually('a kernel is a copy of a warm one', async () => {
    const sandbox = await make(as, opts)
    if ((await py(sandbox, '__import__("os").getppid()')) === 0) return sandbox
    await sandbox.kill()
    return undefined
  })
}

export const states = (kernels) => Object.fromEntries(kernels.map((k) => [k.language, k.state]))
