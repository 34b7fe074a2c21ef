// E2B's own command line, in a terminal where a person would use it.
import { execFile } from 'node:child_process'
import path from 'node:path'
import { assert, eventually, fresh, mine, modules, run, same, Sandbox, sh, test, unique } from './lib.mjs'
import { surroundings, Terminal } from './terminal.mjs'

const CLI = path.join(modules, 'node_modules/.bin/e2b')

// Without a terminal: what a script sees.
function e2b(args, { env = {}, input } = {}) {
  return new Promise((resolve) => {
    const child = execFile(CLI, args, { env: { ...surroundings, ...env }, timeout: 30_000 }, (err, stdout, stderr) =>
      resolve({ status: err ? (err.code ?? -1) : 0, stdout, stderr }),
    )
    child.stdin.end(input)
  })
}

async function works(args, opts) {
  const { status, stdout, stderr } = await e2b(args, opts)
  same(status, 0, `e2b ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}

async function inTerminal(body, size) {
  const terminal = new Terminal(size)
  try {
    await body(terminal)
  } finally {
    terminal.end()
  }
}

test('sandbox list: a table on a terminal, JSON for programs', async () => {
  const metadata = { run: unique() }
  const sandbox = await fresh({ metadata })
  await inTerminal(async (t) => {
    const { shown, status } = await t.run(`${CLI} sandbox list -m run=${metadata.run}`)
    assert.equal(status, 0)
    assert.ok(shown.includes(sandbox.sandboxId) && shown.includes('base'), shown)
  })
  const items = JSON.parse(await works(['sandbox', 'list', '--format', 'json', '-m', `run=${metadata.run}`]))
  assert.deepEqual(items.map((i) => i.sandboxId), [sandbox.sandboxId])
  await sandbox.pause()
  assert.deepEqual(JSON.parse(await works(['sandbox', 'list', '--format', 'json', '-m', `run=${metadata.run}`])), [])
  const paused = JSON.parse(await works(['sandbox', 'list', '--format', 'json', '--state', 'paused', '-m', `run=${metadata.run}`]))
  assert.equal(paused.length, 1)
})

test('sandbox connect: a shell in the terminal, of its size, until exit', async () => {
  const sandbox = await fresh()
  await inTerminal(async (t) => {
    t.type(`${CLI} sandbox connect ${sandbox.sandboxId}; echo "left with $?"`)
    await t.shows(/user@.*\$ *$/m)
    t.type('echo "it is $((6 * 7)) for $(id -un)"; stty size')
    await t.shows(/^it is 42 for user\n40 120$/m)
    t.resize(90, 30)
    await eventually('the new size', async () => {
      t.type('stty size')
      return /^30 90$/m.test(t.screen())
    })
    t.type('echo "wait""ing"; cat')
    await t.shows(/^waiting$/m)
    t.type('echoed')
    await t.shows(/^echoed\nechoed$/m)
    t.press('C-c')
    await t.shows(/\^C/)
    t.type('exit')
    await t.shows(/Closing terminal connection to sandbox[^]*left with 0/)
  }, { cols: 120, rows: 40 })
})

test('sandbox create: a shell in a new sandbox', async () => {
  await inTerminal(async (t) => {
    t.type(`${CLI} sandbox create base; echo "left with $?"`)
    await t.shows(/user@.*\$ *$/m)
    t.type('echo "in $E2B_SANDBOX_ID"')
    const [, id] = await t.shows(/^in ([a-z0-9]{20})$/m)
    t.type('exit')
    await t.shows(/left with 0/)
    await eventually('it ends soon after', async () => !(await Sandbox.kill(id)))
  })
})

test('sandbox create --detach, info, pause, resume, kill', async () => {
  const id = (await works(['sandbox', 'create', 'base', '--detach', '--timeout', '60'])).trim()
  assert.match(id, /^[a-z0-9]{20}$/)
  mine(await Sandbox.connect(id))
  const info = JSON.parse(await works(['sandbox', 'info', id, '--format', 'json']))
  assert.deepEqual([info.sandboxId, info.state], [id, 'running'])
  await works(['sandbox', 'pause', id])
  assert.equal((await Sandbox.getInfo(id)).state, 'paused')
  await works(['sandbox', 'resume', id])
  assert.equal((await Sandbox.getInfo(id)).state, 'running')
  await works(['sandbox', 'kill', id])
  assert.equal(await Sandbox.kill(id), false)
  const { stdout, stderr } = await e2b(['sandbox', 'kill', id])
  assert.match(stdout + stderr, /(wasn't|not) found/)
})

test('sandbox kill --all with metadata ends those and no others', async () => {
  const metadata = { run: unique() }
  const [a, b] = await Promise.all([fresh({ metadata }), fresh({ metadata })])
  const other = await fresh()
  await works(['sandbox', 'kill', '--all', '-m', `run=${metadata.run}`])
  assert.deepEqual(await Promise.all([a, b, other].map((sandbox) => sandbox.isRunning())), [false, false, true])
})

test('sandbox exec: output, status, user, input', async () => {
  const sandbox = await fresh()
  assert.equal(await works(['sandbox', 'exec', sandbox.sandboxId, 'echo', 'hello']), 'hello\n')
  assert.equal(await works(['sandbox', 'exec', '-u', 'root', '-c', '/tmp', '-e', 'A=b', sandbox.sandboxId, 'echo $(id -un) $PWD $A']), 'root /tmp b\n')
  assert.equal((await e2b(['sandbox', 'exec', sandbox.sandboxId, 'exit 3'])).status, 3)
  assert.equal(await works(['sandbox', 'exec', sandbox.sandboxId, 'tr', 'a-z', 'A-Z'], { input: 'from a pipe' }), 'FROM A PIPE')
})

test('sandbox logs: what was written inside', async () => {
  const sandbox = await fresh()
  const word = unique()
  await sh(sandbox, `echo said-${word}; echo complained-${word} >&2`)
  const shown = await eventually('the lines are in the log', async () => {
    const out = await works(['sandbox', 'logs', sandbox.sandboxId])
    return out.includes(`said-${word}`) && out.includes(`complained-${word}`) && out
  })
  assert.match(shown, new RegExp(`Logs for sandbox .*${sandbox.sandboxId}`))
  const lines = (await works(['sandbox', 'logs', sandbox.sandboxId, '--format', 'json', '--level', 'DEBUG'])).trim().split('\n').map((l) => JSON.parse(l))
  assert.ok(lines.every((l) => !Number.isNaN(Date.parse(l.timestamp)) && l.level), JSON.stringify(lines[0]))
})

test('sandbox logs --follow: until the sandbox ends', async () => {
  const sandbox = await fresh()
  await inTerminal(async (t) => {
    t.type(`${CLI} sandbox logs --follow ${sandbox.sandboxId}; echo "left with $?"`)
    await t.shows(/Logs for sandbox/)
    const word = unique()
    await sh(sandbox, `echo later-${word}`)
    await t.shows(new RegExp(`later-${word}`))
    await sandbox.kill()
    await t.shows(/Stopped printing logs[^]*left with 0/)
  })
})

test('sandbox metrics', async () => {
  const sandbox = await fresh()
  const line = await eventually('a line of metrics', async () => {
    const out = await works(['sandbox', 'metrics', sandbox.sandboxId, '--format', 'json'])
    return out.trim().split('\n').find((l) => l.startsWith('{'))
  }, 30)
  assert.ok(JSON.parse(line).memTotal > 0, line)
}, { seconds: 50 })

test('sandbox snapshot: create, list, delete', async () => {
  const sandbox = await fresh()
  const name = `cli-${unique()}`
  const made = await works(['sandbox', 'snapshot', 'create', sandbox.sandboxId, '--name', name])
  assert.match(made, new RegExp(name))
  const listed = JSON.parse(await works(['sandbox', 'snapshot', 'list', '--format', 'json', '--name', name]))
  assert.equal(listed.length, 1)
  await works(['sandbox', 'snapshot', 'delete', listed[0].snapshotId])
})

test('template list', async () => {
  const items = JSON.parse(await works(['template', 'list', '--format', 'json']))
  assert.ok(items.some((t) => t.aliases.includes('base')))
})

test('a wrong key, and a sandbox that is not there, are errors', async () => {
  const bad = await e2b(['sandbox', 'list'], { env: { E2B_API_KEY: 'e2b_' + '0'.repeat(40) } })
  assert.notEqual(bad.status, 0)
  assert.match(bad.stderr, /Unauthorized/)
  const none = await e2b(['sandbox', 'exec', 'i' + '0'.repeat(19), 'true'])
  assert.notEqual(none.status, 0)
})

await run()
