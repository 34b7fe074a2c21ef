// A chat that can branch. Each path of the conversation has a sandbox of its own, made by Sandglass when
// the model first runs code there. Type `/help`, or run the demo: `node chat.mjs < demo.txt`.
import crypto from 'node:crypto'
import readline from 'node:readline/promises'
import { Conversation } from './conversation.mjs'
import { reply } from './model.mjs'
import { Sandglass } from './sandglass.mjs'

const HELP = `Say something, or:
  /branch NAME [N]  a new path after turn N of this one, with variables and files as they were then
  /switch NAME      go to a path
  /edit N TEXT      say something else in turn N; what came of it and after it is undone
  /merge NAME       end that path, and take its last answer along to this one
  /run CODE         run Python on this path without asking the model
  /tree             the paths, and which of them have a sandbox
  /quit             end, and all sandboxes with it`

const ROUNDS_MAX = 8 // of tool calls for one turn: a model that never comes to an end does
const SHOWN_MAX = 2000

const url = process.env.SANDGLASS_URL ?? process.env.E2B_API_URL
const key = process.env.SANDGLASS_API_KEY ?? process.env.E2B_API_KEY
if (!url || !key) {
  console.error('Set E2B_API_URL and E2B_API_KEY: `sandglass serve` prints both when it starts.')
  process.exit(2)
}

const sandglass = new Sandglass(url, key)
const conversation = new Conversation(`chat-${crypto.randomUUID()}`)

// ---- showing ------------------------------------------------------------------------------------

// What a sandbox printed was written by nobody we know: it must not move the cursor, or worse.
function harmless(text) {
  const clean = text.replace(/[^\P{C}\n\t]/gu, '·').trimEnd()
  return clean.length > SHOWN_MAX ? `${clean.slice(0, SHOWN_MAX)}…` : clean
}

const indent = (text) => text.split('\n').map((line) => `    ${line}`).join('\n')
const say = (who, text) => console.log(`${who}: ${harmless(text)}`)

function showRun(name, run) {
  const sandbox = run.wasCreated ? 'new sandbox' : run.sandboxId ? 'same sandbox' : 'no sandbox'
  const lost = run.replaced ? ', its variables and files were lost' : ''
  const stuck = run.checkpoint?.skipped ? `, no way back: ${harmless(run.checkpoint.skipped)}` : ''
  console.log(`  [${name} on ${conversation.current}: ${sandbox}${lost}${stuck}]`)
  const output = textOf(run)
  if (output) console.log(indent(harmless(output)))
}

// ---- turns --------------------------------------------------------------------------------------

// What the model is told of a run.
function textOf(run) {
  const values = run.results.map((r) => r.text).filter(Boolean)
  const error = run.error ? [`${run.error.name}: ${run.error.value}`] : []
  return [run.stdout, run.stderr, ...values, ...error].filter(Boolean).join('\n')
}

async function callTool(tools, { id, name, input }) {
  // A model may ask for anything. Only what it was offered is called.
  const known = tools.some((t) => t.name === name)
  conversation.turn.ran ||= known
  const run = known
    ? await sandglass.call(name, conversation.id, conversation.current, input, conversation.turn.id)
    : { success: false, stdout: '', stderr: '', results: [], error: { name: 'ToolError', value: `there is no tool ${name}` } }
  showRun(name, run)
  return { type: 'tool_result', tool_use_id: id, content: textOf(run), is_error: !run.success }
}

async function turn(text) {
  const tools = await sandglass.tools(conversation.id, conversation.current)
  conversation.say(text)
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { content } = await reply(conversation.messages, tools)
    conversation.add('assistant', content)
    for (const part of content) if (part.type === 'text') say('assistant', part.text)
    const calls = content.filter((part) => part.type === 'tool_use')
    if (calls.length === 0) return
    const results = []
    for (const call of calls) results.push(await callTool(tools, call))
    conversation.add('user', results)
  }
  say('chat', 'enough tool calls for one turn')
}

// ---- commands -----------------------------------------------------------------------------------

class Mistake extends Error {}

function turnNumber(text) {
  const n = Number(text)
  if (!Number.isInteger(n) || n < 1 || n > conversation.turns.length) throw new Mistake(`there is no turn ${text} on ${conversation.current}`)
  return n
}

function other(name) {
  if (!conversation.has(name)) throw new Mistake(`there is no path ${name}`)
  if (name === conversation.current) throw new Mistake(`you are on ${name}`)
  return name
}

const COMMANDS = {
  async help() {
    console.log(HELP)
  },

  async branch(rest) {
    const [name, at = conversation.turns.length] = rest.split(/\s+/)
    if (!/^[\w-]{1,64}$/.test(name) || conversation.has(name)) throw new Mistake('/branch needs the name of a new path')
    const turns = Number(at) === 0 ? 0 : turnNumber(at)
    // What the next turn found. One that this path has from another was run there.
    const next = conversation.firstThatRan(turns + 1)
    const from = next?.path ?? conversation.current
    const { inherited } = await sandglass.branch(conversation.id, from, name, next?.id)
    conversation.branch(name, turns)
    say('chat', `${name} branches off ${from} after turn ${turns}, ${inherited === 'none' ? 'with nothing yet' : `as it ${next ? 'was then' : 'is now'}`}`)
  },

  async switch(name) {
    conversation.current = other(name)
    say('chat', `on ${name}, ${conversation.turns.length} turns`)
  },

  async edit(rest) {
    const [, n, text] = rest.match(/^(\S+)\s+(.+)$/) ?? []
    if (!text) throw new Mistake('/edit needs a turn and what to say instead')
    const next = conversation.firstThatRan(turnNumber(n))
    if (next && next.path !== conversation.current) throw new Mistake(`turn ${n} was said on ${next.path}: /switch ${next.path}, then /branch`)
    if (next) await sandglass.rewind(conversation.id, conversation.current, next.id)
    conversation.rewind(turnNumber(n))
    console.log(`you: ${harmless(text)}`)
    await turn(text)
  },

  async merge(name) {
    const source = conversation.paths.get(other(name))
    const { terminated } = await sandglass.merge(conversation.id, name, conversation.current)
    const answer = source.at(-1)?.messages.at(-1).content.find((part) => part.type === 'text')?.text ?? 'nothing was said there'
    conversation.say(`(from ${name})`)
    conversation.add('assistant', [{ type: 'text', text: answer }])
    conversation.drop(name)
    say('chat', `${name} is merged into ${conversation.current}${terminated ? ', its sandbox has ended' : ''}; it said: ${answer}`)
  },

  async run(code) {
    if (!code) throw new Mistake('/run needs code')
    showRun('run_code', await sandglass.call('run_code', conversation.id, conversation.current, { code }))
  },

  async tree() {
    const paths = await sandglass.paths(conversation.id)
    const show = (parent, depth) => {
      for (const path of paths.filter((p) => p.parentPathId === parent)) {
        const state = path.mergedInto ? `merged into ${path.mergedInto}` : path.contextId ? 'has a sandbox' : 'no sandbox'
        console.log(`${'  '.repeat(depth)}${path.pathId === conversation.current ? '*' : '-'} ${path.pathId} (${state})`)
        show(path.pathId, depth + 1)
      }
    }
    show(null, 1)
  },
}

async function obey(line) {
  const [, command, rest] = line.match(/^\/(\w+)\s*(.*)$/) ?? []
  if (!command) return turn(line)
  if (!Object.hasOwn(COMMANDS, command)) throw new Mistake(`there is no /${command}; /help says what there is`)
  return COMMANDS[command](rest.trim())
}

// ---- the loop -----------------------------------------------------------------------------------

// Sandboxes that nobody needs end with the chat, not half an hour later.
async function leave(status) {
  try {
    const { terminated } = await sandglass.end(conversation.id)
    console.log(`${terminated} sandbox${terminated === 1 ? '' : 'es'} ended`)
  } catch (err) {
    console.error(`The sandboxes end by themselves when nobody uses them: ${err.message}`)
  }
  process.exit(status)
}

const person = process.stdin.isTTY
const lines = readline.createInterface({ input: process.stdin, output: person ? process.stdout : undefined, prompt: 'you: ' })
lines.on('SIGINT', () => leave(130))
process.on('SIGTERM', () => leave(143))

let status = 0
if (person) console.log('/help says what there is')
lines.prompt()
for await (const line of lines) {
  const text = line.trim()
  if (text === '/quit') break
  if (text && !text.startsWith('#')) {
    if (!person) console.log(`you: ${text}`)
    try {
      await obey(text)
    } catch (err) {
      // The server says no, or is not there: the person decides what next, a script stops.
      console.error(`${err.message}${err.cause ? ` (${err.cause.message})` : ''}`)
      status = err instanceof Mistake ? status : 1
      if (!person && status) break
    }
  }
  lines.prompt()
}
await leave(status)
