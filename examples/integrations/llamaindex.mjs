// LlamaIndex: the same tool, for its agent.
import { Sandbox } from '@e2b/code-interpreter'
import { openai } from '@llamaindex/openai'
import { agent } from '@llamaindex/workflow'
import { tool } from 'llamaindex'
import { z } from 'zod'

const sandbox = await Sandbox.create()
const runPython = tool({
  name: 'run_python',
  description: 'Runs Python in a notebook; variables stay.',
  parameters: z.object({ code: z.string() }),
  execute: async ({ code }) => {
    const { text, logs, error } = await sandbox.runCode(code)
    return error?.traceback ?? logs.stdout.join('') + (text ?? '')
  },
})
const { data } = await agent({ tools: [runPython], llm: openai({ model: 'gpt-5-mini' }) }).run('What is the sum of the squares of 1 to 100?')
console.log(data.result)
await sandbox.kill()
