// LangChain: the same tool, for its agent.
import { Sandbox } from '@e2b/code-interpreter'
import { createAgent, tool } from 'langchain'
import { z } from 'zod'

const sandbox = await Sandbox.create()
const runPython = tool(
  async ({ code }) => {
    const { text, logs, error } = await sandbox.runCode(code)
    return error?.traceback ?? logs.stdout.join('') + (text ?? '')
  },
  { name: 'run_python', description: 'Runs Python in a notebook; variables stay.', schema: z.object({ code: z.string() }) },
)
const agent = createAgent({ model: 'openai:gpt-5-mini', tools: [runPython] })
const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'What is the sum of the squares of 1 to 100?' }] })
console.log(messages.at(-1).text)
await sandbox.kill()
