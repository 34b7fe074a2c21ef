// OpenAI's Agents SDK: an agent that has a sandbox, with a shell, terminals and an editor.
import { run } from '@openai/agents'
import { E2BSandboxClient } from '@openai/agents-extensions/sandbox/e2b'
import { SandboxAgent } from '@openai/agents/sandbox'

const agent = new SandboxAgent({ name: 'Engineer', model: 'gpt-5-mini', instructions: 'Work in the sandbox, and say what came of it.' })
const result = await run(agent, 'Write a program that prints 42, and run it.', { sandbox: { client: new E2BSandboxClient() } })
console.log(result.finalOutput)
