// Vercel's AI SDK: a tool that runs Python in a sandbox, in a loop with the model.
import { openai } from '@ai-sdk/openai'
import { Sandbox } from '@e2b/code-interpreter'
import { generateText, stepCountIs, tool } from 'ai'
import { z } from 'zod'

const sandbox = await Sandbox.create()
const runPython = tool({
  description: 'Runs Python in a notebook; variables stay.',
  inputSchema: z.object({ code: z.string() }),
  execute: async ({ code }) => {
    const { text, logs, error } = await sandbox.runCode(code)
    return { text, stdout: logs.stdout.join(''), error: error?.traceback }
  },
})
const { text } = await generateText({
  model: openai('gpt-5-mini'),
  prompt: 'What is the sum of the squares of 1 to 100?',
  tools: { runPython },
  stopWhen: stepCountIs(5),
})
console.log(text)
await sandbox.kill()
