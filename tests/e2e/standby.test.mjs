// Sandboxes of templates with a start command wait ready: which are handed out, and which never are.
import fs from 'node:fs'
import { assert, e2b, eventually, run, same, Sandbox, sh, test, unique } from './lib.mjs'
import { killFront, start, stop } from './server.mjs'

const { Template, waitForFile, waitForProcess } = e2b
const server = await start(undefined, undefined, ['--tenant-sandboxes', '5'])
const { as } = server

async function build(command, ready, name = `t-${unique()}`, more = (t) => t) {
  await Template.build(more(Template().fromTemplate('base')).setStartCmd(command, ready), name, as)
  return name
}

const create = (name, opts = {}) => Sandbox.create(name, { ...as, ...opts })

// Programs of all sandboxes, as this machine sees them, by a word of their command line.
const pids = (word) => fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n)).filter((pid) => {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[0] === word
  } catch {
    return false
  }
})

// A template whose program goes by a name of its own, and says when it began.
async function marked(name) {
  const word = `mark-${unique()}`
  return { word, name: await build(`date +%s.%N > /tmp/began; exec -a ${word} sleep 100000`, `pgrep -f ^${word}`, name) }
}

// One whose program began before it was asked for: as long as none is ready, each create makes its own.
async function handedOut(name, opts) {
  for (const end = Date.now() + 30_000; ;) {
    const before = Date.now() / 1000
    const sandbox = await create(name, opts)
    if (Number(await sh(sandbox, 'cat /tmp/began')) < before) return { before, sandbox }
    await sandbox.kill()
    assert.ok(Date.now() < end, 'none that waited was handed out')
  }
}

const waits = (word, n = 1) => eventually(`${n} of ${word} run`, () => pids(word).length === n, 30)
const ends = async (...all) => { for (const sandbox of all) await sandbox.kill() }

test('who comes later gets one that waits, with its program running', async () => {
  const { word, name } = await marked()
  const first = await create(name)
  await waits(word, 2)
  const { before, sandbox: second } = await handedOut(name, { metadata: { whose: 'second' }, timeoutMs: 120_000 })
  assert.notEqual(first.sandboxId, second.sandboxId)
  same(await sh(second, `echo $E2B_SANDBOX_ID; pgrep -f ^${word} > /dev/null && echo runs`), `${second.sandboxId}\nruns`)
  const info = await second.getInfo()
  assert.deepEqual(info.metadata, { whose: 'second' })
  assert.ok(info.startedAt.getTime() / 1000 > before - 1 && info.endAt - info.startedAt <= 121_000, JSON.stringify(info))
  await eventually('the next one waits', () => pids(word).length >= 3, 30)
  const third = await create(name)
  assert.ok(![first.sandboxId, second.sandboxId].includes(third.sandboxId), 'each gets one of its own')
  await ends(first, second, third)
})

test('those that wait are in no list, and in nobody’s way', async () => {
  const { word, name } = await marked()
  const all = [await create(name)]
  await waits(word, 2)
  const listed = await Sandbox.list({ ...as }).nextItems()
  assert.deepEqual(listed.map((s) => s.sandboxId), [all[0].sandboxId])
  while (all.length < 5) all.push(await create(name))
  await assert.rejects(create(name), /maximum number of concurrent sandboxes/)
  await ends(...all)
})

test('one whose program has failed is not handed out', async () => {
  const { word, name } = await marked()
  const first = await create(name)
  await waits(word, 2)
  await first.kill()
  const { length } = server.err
  // The build's own may still be there, and the one that waits may just begin.
  await eventually('the server notices', () => {
    for (const pid of pids(word)) try { process.kill(Number(pid), 'SIGKILL') } catch {}
    return /no sandbox of template \S+ waits: .*start command/.test(server.err.slice(length))
  })
  const second = await create(name)
  same(await sh(second, `pgrep -f ^${word} > /dev/null && echo runs`), 'runs')
  await second.kill()
})

test('variables of its own make it another sandbox, which is made then', async () => {
  const word = `mark-${unique()}`
  const name = await build(`echo "$WORD" > /tmp/word; exec -a ${word} sleep 100000`, waitForFile('/tmp/word'))
  const first = await create(name)
  await waits(word, 2)
  const second = await create(name, { envs: { WORD: 'mine' } })
  same(await sh(second, 'cat /tmp/word; echo $WORD'), 'mine\nmine')
  await ends(first, second)
})

test('after another build the old one is never handed out', async () => {
  const { word, name } = await marked()
  const first = await create(name)
  await waits(word, 2)
  const next = await marked(name)
  const second = await create(name)
  same(await sh(second, `pgrep -f ^${next.word} > /dev/null && echo new; pgrep -f ^${word} > /dev/null && echo old; true`), 'new')
  await ends(first, second)
}, { seconds: 60 })

test('a program that is never ready makes nobody wait twice', async () => {
  const name = await build('[ ! -e ~/ran ] && touch ~/ran && exec sleep 1000', waitForProcess('sleep'))
  await assert.rejects(create(name), /failed to run start command .*exit status 1/)
  await eventually('none waits', () => server.err.includes(`no sandbox of template`))
})

test('a new front ends those that wait, and keeps the others', async () => {
  const { word, name } = await marked()
  const first = await create(name)
  await waits(word, 2)
  await killFront(server)
  await waits(word, 1)
  same(await sh(first, `pgrep -f ^${word} > /dev/null && echo runs`), 'runs')
  await first.kill()
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0, server.err)
})

await run()
