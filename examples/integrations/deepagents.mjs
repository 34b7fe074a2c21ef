// Deep Agents: a sandbox as the backend, where its agent has its files and runs its commands.
import { BaseSandbox, createDeepAgent } from 'deepagents'
import { CommandExitError, Sandbox } from 'e2b'

class E2BBackend extends BaseSandbox {
  constructor(sandbox) {
    super()
    Object.assign(this, { sandbox, id: sandbox.sandboxId })
  }
  async execute(command) {
    const ran = await this.sandbox.commands.run(command).catch((err) => { if (err instanceof CommandExitError) return err; throw err })
    return { output: ran.stdout + ran.stderr, exitCode: ran.exitCode, truncated: false }
  }
  uploadFiles = (files) => Promise.all(files.map(([path, data]) =>
    this.sandbox.files.write(path, data.slice().buffer).then(() => ({ path, error: null }), () => ({ path, error: 'permission_denied' }))))
  downloadFiles = (paths) => Promise.all(paths.map((path) =>
    this.sandbox.files.read(path, { format: 'bytes' }).then((content) => ({ path, content, error: null }), () => ({ path, content: null, error: 'file_not_found' }))))
}

const sandbox = await Sandbox.create()
const agent = createDeepAgent({ model: 'openai:gpt-5-mini', backend: new E2BBackend(sandbox) })
const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'Write a program that prints 42, and run it.' }] })
console.log(messages.at(-1).text)
await sandbox.kill()
