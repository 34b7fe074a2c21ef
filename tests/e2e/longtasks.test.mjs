// Work that takes longer than anybody waits for it: commands that outlive requests, connections and the time that their
// sandbox was first given; builds and installations. Hours are seconds here.
import { assert, e2b, eventually, mine, rejects, run, same, Sandbox, sh, sleep, test, toPort } from './lib.mjs'
import { nameServer } from './names.mjs'
import { PACKAGES, registry } from './registry.mjs'
import { killFront, start, stop } from './server.mjs'

const { NotFoundError, TimeoutError } = e2b
const names = await nameServer()
const npm = await registry('registry.test')
const server = await start(undefined, undefined, [
  '--egress-dns', `127.0.0.1:${names.address().port}`, '--egress-internal', '127.0.0.1', '--sandbox-memory', '1G', '--sandbox-disk', '512M', '--sandbox-cpus', '2',
])
const as = server.as
const make = async (opts) => mine(await Sandbox.create('base', { ...as, ...opts }))

// A line each tenth of a second, numbered, until it is told to stop.
const TICK = 'i=0; until [ -e /tmp/stop ]; do echo $i; i=$((i + 1)); sleep 0.1; done; echo stopped at $i'
const until = (what, fn) => eventually(what, fn, 10)

async function background(sandbox, command, opts) {
  const handle = await sandbox.commands.run(command, { background: true, timeoutMs: 0, ...opts })
  handle.wait().catch(() => {})
  return handle
}

// ---- time ---------------------------------------------------------------------------------------

test('a deadline is extended while a command runs, and kept when it is not', async () => {
  const sandbox = await make({ timeoutMs: 2_000 })
  const began = Date.now()
  let told = ''
  const handle = await background(sandbox, TICK, { onStdout: (d) => { told += d } })
  for (let i = 0; i < 6; i++) {
    await sleep(500)
    await sandbox.setTimeout(2_000)
  }
  assert.ok(Date.now() - began > 2_900, 'it has outlived its first deadline')
  await sandbox.commands.run('touch /tmp/stop')
  const { exitCode } = await handle.wait()
  const lines = told.trim().split('\n')
  same(exitCode, 0)
  assert.match(lines.at(-1), /^stopped at \d+$/)
  assert.deepEqual(lines.slice(0, -1), lines.slice(0, -1).map((_, i) => String(i)), 'no line is missing, none came twice')
  assert.ok(lines.length > 20, `${lines.length} lines`)
  // Nobody extends it any more.
  const cut = await sandbox.commands.run(`rm /tmp/stop; ${TICK}`, { timeoutMs: 0 }).then(() => 'ended', (err) => err)
  assert.ok(cut instanceof TimeoutError || cut instanceof e2b.SandboxNotFoundError, `${cut?.constructor?.name}: ${cut?.message}`)
  assert.ok(Date.now() - began > 4_500, 'not before the last deadline')
  same(await sandbox.isRunning(), false)
})

test('the time of a command is its own, and the sandbox lives on', async () => {
  const sandbox = await make()
  await rejects(sandbox.commands.run('sleep 60', { timeoutMs: 700 }), TimeoutError)
  same(await sh(sandbox, 'echo here'), 'here')
})

// ---- connections --------------------------------------------------------------------------------

test('heartbeat: a silent command is heard of as often as its client asked', async () => {
  const sandbox = await make()
  const body = Buffer.from(JSON.stringify({ process: { cmd: '/bin/bash', args: ['-c', 'sleep 2.3; echo late'] }, stdin: false }))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.length, 1)
  const { data } = await toPort(sandbox, 49983, {
    method: 'POST',
    path: '/process.Process/Start',
    headers: { 'Content-Type': 'application/connect+json', 'Connect-Protocol-Version': '1', 'Keepalive-Ping-Interval': '1', 'X-Access-Token': await tokenOf(sandbox) },
    body: Buffer.concat([head, body]),
    at: server.url,
  })
  const kinds = []
  for (let at = 0; at < data.length; ) {
    const size = data.readUInt32BE(at + 1)
    const message = JSON.parse(data.subarray(at + 5, at + 5 + size))
    if (message.event) kinds.push(Object.keys(message.event)[0])
    at += 5 + size
  }
  const beats = kinds.filter((kind) => kind === 'keepalive').length
  assert.ok(beats >= 1 && beats <= 3, `${kinds}`)
  assert.deepEqual(kinds.filter((kind) => kind !== 'keepalive'), ['start', 'data', 'end'])
})

// The SDK keeps the token of a sandbox to itself.
async function tokenOf(sandbox) {
  const res = await fetch(`${server.url}/sandboxes/${sandbox.sandboxId}/connect`, {
    method: 'POST',
    headers: { 'X-API-Key': as.apiKey, 'Content-Type': 'application/json' },
    body: JSON.stringify({ timeout: 120 }),
  })
  return (await res.json()).envdAccessToken
}

test('left and found again: by its pid, by another client, after the front was killed', async () => {
  const sandbox = await make()
  let first = ''
  const handle = await background(sandbox, TICK, { onStdout: (d) => { first += d } })
  await until('it says something', () => first.includes('3\n'))
  await handle.disconnect()
  const other = await Sandbox.connect(sandbox.sandboxId, as)
  same((await other.commands.list()).some((p) => p.pid === handle.pid), true)
  let second = ''
  const again = await other.commands.connect(handle.pid, { onStdout: (d) => { second += d } })
  again.wait().catch(() => {})
  await until('it goes on', () => second.split('\n').length > 4)
  await killFront(server)
  let third = ''
  const last = await (await Sandbox.connect(sandbox.sandboxId, as)).commands.connect(handle.pid, { timeoutMs: 0, onStdout: (d) => { third += d } })
  await until('it still goes on', () => third.split('\n').length > 4)
  await sandbox.commands.run('touch /tmp/stop')
  const { exitCode } = await last.wait()
  same(exitCode, 0)
  const [from, to] = [Number(second.split('\n')[0]), Number(third.match(/stopped at (\d+)/)[1])]
  assert.ok(from > 3 && to >= from + 7, `went on at ${from}, ended at ${to}`)
  const seen = third.trim().split('\n').slice(0, -1).map(Number)
  assert.deepEqual(seen, seen.map((_, i) => seen[0] + i), 'and as it was')
})

test('a command that has ended while nobody looked: how, and then that it is gone', async () => {
  const sandbox = await make()
  const handle = await background(sandbox, 'sleep 0.3; exit 9')
  await handle.disconnect()
  await until('it has ended', async () => !(await sandbox.commands.list()).some((p) => p.pid === handle.pid))
  const err = await rejects((await sandbox.commands.connect(handle.pid)).wait(), e2b.CommandExitError)
  same(err.exitCode, 9)
  await rejects(sandbox.commands.connect(4_000_000), NotFoundError)
})

// ---- much work ----------------------------------------------------------------------------------

test('a large build: 200 files of C, 4,000 functions, make -j2', async () => {
  const sandbox = await make({ timeoutMs: 3_000 })
  // Whoever waits for it has its sandbox live on.
  const keep = setInterval(() => sandbox.setTimeout(5_000).catch(() => {}), 500)
  try {
    await sandbox.files.write('/home/user/make.py', `
import os
os.makedirs('src')
N, F = 200, 20
for n in range(N):
    with open(f'src/m{n}.c', 'w') as file:
        file.write('#include "all.h"\\n')
        for f in range(F):
            file.write(f'''int m{n}_{f}(int x)
{{
    int sum = {n * F + f};
    for (int i = 0; i < x; i++)
        sum += i % {f + 2} ? i : -i;
    return sum;
}}
''')
with open('src/all.h', 'w') as file:
    file.writelines(f'int m{n}_{f}(int x);\\n' for n in range(N) for f in range(F))
with open('src/main.c', 'w') as file:
    file.write('#include <stdio.h>\\n#include "all.h"\\nint main(void)\\n{\\n    long sum = 0;\\n')
    file.writelines(f'    sum += m{n}_{f}(0);\\n' for n in range(N) for f in range(F))
    file.write('    printf("%ld\\\\n", sum);\\n}\\n')
with open('Makefile', 'w') as file:
    file.write('O := $(patsubst src/%.c,o/%.o,$(wildcard src/*.c))\\nprogram: $(O)\\n\\tgcc -o $@ $^\\no/%.o: src/%.c src/all.h | o\\n\\tgcc -O0 -c -o $@ $<\\no:\\n\\tmkdir o\\n')
`)
    await sh(sandbox, 'cd /home/user && python3 make.py')
    let told = ''
    const { exitCode } = await sandbox.commands.run('cd /home/user && make -j2', { timeoutMs: 0, onStdout: (d) => { told += d } })
    same(exitCode, 0)
    same(told.match(/^gcc .* -c /gm).length, 201, 'files')
    same(await sh(sandbox, '/home/user/program'), String((4000 * 3999) / 2))
    assert.match(await sh(sandbox, 'cd /home/user && make'), /up to date/)
  } finally {
    clearInterval(keep)
  }
}, { seconds: 90 })

test(`npm install of ${PACKAGES} packages through the guard, whole and in the right versions`, async () => {
  const sandbox = await make({ network: { allowOut: ['registry.test'], denyOut: [e2b.ALL_TRAFFIC] } })
  const run = (command) => sandbox.commands.run(`cd /home/user/app && ${command}`, { timeoutMs: 0 })
  await sandbox.files.write('/home/user/app/.npmrc', `registry=${npm.url}\naudit=false\nfund=false\nupdate-notifier=false\n`)
  await sandbox.files.write('/home/user/app/package.json', JSON.stringify({ name: 'app', version: '1.0.0', dependencies: { [npm.first]: '^1.0.0' } }))
  const { stdout } = await run('npm install 2>&1')
  assert.ok(Number(stdout.match(/added (\d+) packages/)?.[1]) >= PACKAGES, stdout)
  assert.deepEqual(npm.served.missing, [])
  // Everything is there, and each has what it asked for.
  await sandbox.files.write('/home/user/app/check.js', `
const seen = new Set()
let wrong = 0
function walk(p) {
  if (seen.has(p)) return
  seen.add(p)
  p.needs.forEach((needed, i) => {
    if (p.ranges[i] === '~1.0.0' && !needed.id.endsWith('@1.0.0')) wrong++
    walk(needed)
  })
}
walk(require('${npm.first}'))
console.log(JSON.stringify([seen.size, wrong, Math.min(...[...seen].map((p) => p.size))]))
`)
  const [all, wrong, size] = JSON.parse((await run('node check.js')).stdout)
  assert.ok(all > PACKAGES, `${all} packages: some are there in both versions`)
  same(wrong, 0, 'of the wrong version')
  same(size, 12 * 3000, 'each file of each of them')
  same((await run('npx --no-install made-tool says')).stdout, 'says @made/p0@1.2.0\n')
  same((await run('cat node_modules/@made/p0/made.txt')).stdout, 'installed @made/p0@1.2.0\n', 'its script was run')
  same((await run('npm ls --all >/dev/null && echo well')).stdout, 'well\n')
}, { seconds: 120 })

test('the server ends in good order', async () => {
  same(await stop(server), 0)
})

await run()
