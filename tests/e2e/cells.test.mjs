// The cells of tests/cells, through the SDK: what comes of each of them, and nothing besides.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { err, out, main, shared, shown } from './code.mjs'
import { assert, run, test, TOP } from './lib.mjs'

const FOLDER = path.join(TOP, 'tests/cells')
const JSON_FIELDS = ['json', 'data', 'chart', 'extra']
const STREAMS = ['stdout', 'stderr', 'error', 'traceback', 'displayed']
const ONCE = ['once', 'status', 'sdk']

const trimmed = (text) => text.replace(/\n+$/, '')
const show = (value) => {
  const text = typeof value === 'string' ? JSON.stringify(value) : JSON.stringify(value) ?? String(value)
  return text.length > 600 ? `${text.slice(0, 600)}…` : text
}

// Whether `whole` has all that `part` has. Arrays have their elements by number.
function contains(whole, part) {
  if (part === null || typeof part !== 'object') return whole === part
  if (whole === null || typeof whole !== 'object') return false
  return Object.keys(part).every((key) => contains(whole[key], part[key]))
}

function deepEqual(a, b) {
  try {
    assert.deepEqual(a, b)
    return true
  } catch {
    return false
  }
}

// One statement about one thing that came of a cell.
function judge(what, how, actual, wanted, isJson) {
  if (isJson) {
    const right = how === 'is' ? deepEqual(actual, wanted) : contains(actual, wanted)
    assert.ok(right, `${what}: ${show(actual)} is not ${show(wanted)}`)
    return
  }
  assert.equal(typeof actual, 'string', `there is no ${what}`)
  if (how === 'is') assert.ok(trimmed(actual) === wanted, `${what}: ${show(actual)} is not ${show(wanted)}`)
  if (how === 'has') for (const line of wanted) assert.ok(actual.includes(line), `${what} has no ${show(line)}: ${show(actual)}`)
  if (how === 'lacks') for (const line of wanted) assert.ok(!actual.includes(line), `${what} has ${show(line)}: ${show(actual)}`)
}

function judgeField(result, field, w) {
  assert.ok(result, `no result with ${field}`)
  const actual = result.raw[field]
  judge(field, w.how, actual, w.value, JSON_FIELDS.includes(field))
}

function judgeCell(cell, execution) {
  const { error } = execution
  const displays = shown(execution)
  const texts = {
    stdout: out(execution),
    stderr: err(execution),
    error: error && `${error.name}: ${error.value}`,
    traceback: error?.traceback,
  }
  const named = new Set(cell.wants.map((w) => w.name))
  const fields = cell.wants.filter((w) => !STREAMS.includes(w.name) && !ONCE.includes(w.name))
  if (!named.has('error')) assert.equal(texts.error, undefined, error?.traceback)
  for (const name of ['stdout', 'stderr'])
    if (!named.has(name)) assert.equal(texts[name], '', `nothing on ${name} was expected`)
  if (!named.has('displayed')) assert.equal(displays.length, 0, `displayed: ${show(displays)}`)
  if (!fields.length) assert.equal(main(execution), undefined, `no value was expected, but ${show(main(execution))}`)
  assert.ok(execution.results.filter((r) => r.isMainResult).length <= 1, 'at most one value')
  assert.ok(execution.executionCount >= 1, `executionCount ${execution.executionCount}`)
  assert.ok(!error || !error.traceback.includes('\u001b'), 'no colour codes in the traceback')
  for (const w of cell.wants) {
    if (ONCE.includes(w.name)) continue
    if (w.name === 'displayed' && w.field) {
      assert.equal(displays.length, 1, 'displayed things')
      judgeField(displays[0], w.field, w)
    } else if (w.name === 'displayed') {
      judge('displayed', w.how, displays.map((r) => r.text).join('\n'), w.value)
    } else if (STREAMS.includes(w.name)) {
      judge(w.name, w.how, texts[w.name], w.value)
    } else {
      judgeField(main(execution), w.name, w)
    }
  }
}

function state(language) {
  const table = JSON.parse(execFileSync('/usr/bin/python3', ['-B', path.join(FOLDER, 'table.py'), language]))
  let place
  for (const cell of table.cells)
    test(`${language}: ${cell.name}`, async () => {
      const sandbox = await shared()
      if (!cell.goesOn && !(table.oneKernel && place)) {
        if (place) await sandbox.removeCodeContext(place)
        place = await sandbox.createCodeContext({ language })
      }
      judgeCell(cell, await sandbox.runCode(cell.code, { context: place }))
    })
}

for (const file of fs.readdirSync(FOLDER).sort()) if (file.endsWith('.cells')) state(path.basename(file, '.cells'))
await run()
