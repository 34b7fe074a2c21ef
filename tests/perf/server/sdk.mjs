// The same measures through the SDK from npm, as its users get them. argv: directory of node_modules,
// rounds. Prints JSON lines.
import { createRequire } from 'node:module'

const [modules, rounds] = process.argv.slice(2)
const { Sandbox } = createRequire(`${modules}/`)('e2b')

const timed = async (name, action) => {
  const begin = process.hrtime.bigint()
  const result = await action()
  const us = Number(process.hrtime.bigint() - begin) / 1000
  console.log(JSON.stringify({ case: name, us }))
  return result
}

// The first rounds warm the connections and the compiler.
for (let i = 0; i < Number(rounds); i++) {
  let sandbox
  await timed('sdk: create to command finished', async () => {
    sandbox = await timed('sdk: create', () => Sandbox.create())
    await sandbox.commands.run('true')
  })
  await timed('sdk: second command', () => sandbox.commands.run('true'))
  await timed('sdk: kill', () => sandbox.kill())
}
