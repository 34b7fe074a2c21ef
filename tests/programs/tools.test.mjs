// A tool or a backend of some twenty lines for each framework, as docs/integrations.md shows it; the model is played.
import { assert, run, same, test } from '../e2e/lib.mjs'
import { Model } from './model.mjs'
import { recipe } from './recipe.mjs'

const CODE = 'total = sum(n * n for n in range(1, 101))\nprint("added")\ntotal'

async function played(file, ...turns) {
  const model = await Model.play(...turns)
  const ran = await recipe(file, { env: { OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'sk-of-nobody', LANGSMITH_TRACING: 'false' } })
  model.close()
  same(ran.status, 0, ran.err)
  return { ...ran, ...model }
}

for (const [framework, tool] of [['vercel-ai', 'runPython'], ['langchain', 'run_python'], ['llamaindex', 'run_python']])
  test(`${framework}: the model calls the tool, and is told what came of it`, async () => {
    const said = await played(`${framework}.mjs`, { call: tool, with: { code: CODE } }, (result) => `It is ${/338350/.exec(result)?.[0]}.`)
    same(said.out, 'It is 338350.\n')
    assert.match(said.returned[0], /added/)
  }, { seconds: 60 })

test('deepagents: files and commands of its agent are those of the sandbox', async () => {
  const said = await played('deepagents.mjs',
    { call: 'write_file', with: { file_path: '/home/user/answer.py', content: 'print(6 * 7)\n' } },
    { call: 'ls', with: { path: '/home/user' } },
    { call: 'edit_file', with: { file_path: '/home/user/answer.py', old_string: '6 * 7', new_string: '"it is", 6 * 7' } },
    { call: 'read_file', with: { file_path: '/home/user/answer.py' } },
    { call: 'grep', with: { pattern: 'it is', path: '/home/user' } },
    { call: 'execute', with: { command: 'python3 /home/user/answer.py; exit 3' } },
    (result) => `It printed ${/it is 42/.exec(result)?.[0]}.`)
  same(said.out, 'It printed it is 42.\n')
  const [, listed, , read, found, ran] = said.returned
  assert.match(listed, /answer\.py/)
  assert.match(read, /print\(\\*"it is\\*", 6 \* 7\)/)
  assert.match(found, /answer\.py/)
  assert.match(ran, /exit code 3/)
}, { seconds: 60 })

await run()
