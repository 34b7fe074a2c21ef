// Rivet's sandbox-agent: its server in a sandbox, its client outside. Its agents come from the internet; those of npm are tried in
// agents.test.mjs.
import { assert, run, same, test } from '../e2e/lib.mjs'
import { recipe } from './recipe.mjs'

test('the client reaches the server inside', async () => {
  const ran = await recipe('sandbox-agent.mjs')
  same(ran.status, 0, ran.err)
  assert.match(ran.out, /^claude,codex,.* 0 user\n$/)
}, { seconds: 60 })

await run()
