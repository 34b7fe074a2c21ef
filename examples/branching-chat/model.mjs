// A model that needs no network: it knows four kinds of sentences. It speaks as Anthropic's Messages API
// does, so the real thing fits in its place:
//
//   export const reply = (messages, tools) => anthropic.messages.create({ model, max_tokens, messages, tools })

const words = (text) => ({ content: [{ type: 'text', text }], stop_reason: 'end_turn' })
const number = () => Math.random().toString(36).slice(2)

function python(code) {
  return { content: [{ type: 'tool_use', id: `toolu_${number()}`, name: 'run_code', input: { code, language: 'python' } }], stop_reason: 'tool_use' }
}

const COSTS = /([a-z]+) (\d+)/gi
const LOAD = 'import json\ncosts = json.load(open("costs.json"))\n'
const SAVE = '\njson.dump(costs, open("costs.json", "w"))\n'

const SKILLS = [
  {
    when: /^remember\b/i,
    code: (text) => `import json\ncosts = ${JSON.stringify(Object.fromEntries([...text.matchAll(COSTS)].map(([, name, n]) => [name, Number(n)])))}${SAVE}print(len(costs), "costs")`,
    say: (output) => `I have written down ${output}.`,
  },
  {
    when: /^make the ([a-z]+) (\d+)/i,
    code: (text, [, name, n]) => `${LOAD}costs[${JSON.stringify(name)}] = ${Number(n)}${SAVE}print(costs[${JSON.stringify(name)}])`,
    say: (output, [, name]) => `The ${name} costs ${output} now.`,
  },
  {
    // It trusts that the variable is there. In a sandbox that was lost it is not: then it looks into the file.
    when: /\btotal\b/i,
    code: () => 'print(sum(costs.values()))',
    instead: () => `${LOAD}print(sum(costs.values()))`,
    say: (output) => `The total is ${output}.`,
  },
]

const textOf = (message) => message.content.find((part) => part.type === 'text')?.text ?? ''
const resultOf = (message) => message.content.find((part) => part.type === 'tool_result')

export async function reply(messages) {
  const asked = messages.findLastIndex((m) => m.role === 'user' && textOf(m))
  const text = textOf(messages[asked])
  const skill = SKILLS.find((s) => s.when.test(text))
  if (!skill) return words('I only know about costs. Try: Remember the costs: train 120, hotel 300')

  const match = text.match(skill.when)
  const results = messages.slice(asked + 1).map(resultOf).filter(Boolean)
  const last = results.at(-1)
  if (!last) return python(skill.code(text, match))
  if (!last.is_error) return words(skill.say(last.content.trim(), match))
  if (skill.instead && results.length === 1) return python(skill.instead(text, match))
  return words(`That did not work: ${last.content}`)
}
