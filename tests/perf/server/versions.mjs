// What the server takes from create to the end of `true`, asked by each version of E2B's SDK in turns. argv: directory of
// node_modules, rounds, versions. Prints JSON lines. A request's time is from its bytes on the wire to the end of its answer, as
// Node's HTTP client tells: what the SDK does by itself is not in it.
import diagnostics from 'node:diagnostics_channel'
import { createRequire } from 'node:module'

const [modules, rounds, ...versions] = process.argv.slice(2)
const require = createRequire(`${modules}/`)
const sent = new WeakMap()
let us = 0

diagnostics.subscribe('undici:client:sendHeaders', ({ request }) => sent.set(request, process.hrtime.bigint()))
diagnostics.subscribe('undici:request:trailers', ({ request }) => {
  if (sent.has(request)) us += Number(process.hrtime.bigint() - sent.get(request)) / 1000
})

for (let i = 0; i < Number(rounds); i++)
  for (const version of i % 2 ? versions : versions.toReversed()) {
    const { Sandbox } = require(`e2b-${version}`)
    us = 0
    const sandbox = await Sandbox.create()
    await sandbox.commands.run('true')
    console.log(JSON.stringify({ case: version, us }))
    await sandbox.kill()
    await new Promise((resolve) => setTimeout(resolve, 20)) // the pool fills up again
  }
process.exit()
