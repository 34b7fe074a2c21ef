// sandglass template: Dockerfiles become templates, and what the command line says about them.
import { execFile, spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { api, assert, eventually, fresh, run, same, Sandbox, sh, test, TOP, unique } from './lib.mjs'
import { surroundings, Terminal } from './terminal.mjs'

const SG = process.env.SANDGLASS ?? path.join(TOP, 'build/bin/sandglass')
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'sandglass-e2e-dockerfiles.'))
process.on('exit', () => fs.rmSync(scratch, { recursive: true, force: true }))

function template(...args) {
  return new Promise((resolve) =>
    execFile(SG, ['template', ...args], { env: surroundings, timeout: 90_000 }, (err, stdout, stderr) =>
      resolve({ status: err ? (err.code ?? `signal ${err.signal}`) : 0, stdout, stderr }),
    ),
  )
}

async function works(...args) {
  const result = await template(...args)
  same(result.status, 0, `template ${args.join(' ')}: ${result.stderr}${result.stdout}`)
  return result
}

// A folder with a Dockerfile and other files: {path: text}.
function folder(dockerfile, files = {}) {
  const dir = fs.mkdtempSync(path.join(scratch, 'f-'))
  for (const [name, text] of Object.entries({ Dockerfile: dockerfile, ...files })) {
    fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true })
    fs.writeFileSync(path.join(dir, name), text)
  }
  return dir
}

const name = () => `d-${unique()}`

// The lines of the parts, without their times: '#4 CACHED', '#5 DONE'.
const ends = (text) => [...text.matchAll(/^#(\d+) (CACHED|DONE|ERROR)/gm)].map((m) => m[2])

const FIFTEEN = `# 15 steps
ARG BASE=base
FROM e2bdev/$BASE AS all
ARG GREETING
ENV COLOUR=blue \\
    SIZE="very big"
WORKDIR /srv/app
RUN echo "$GREETING" > greeting && \\
    # a comment in the middle
    id -un > who
RUN ["sh", "-c", "printf '%s\\n' \\"$1\\" > exec", "sh", "it's"]
COPY src/ ./src/
COPY --chown=user:user --chmod=750 tool.sh other.sh /opt/tools/
ADD *.txt texts/
COPY <<END /etc/motto
colour $COLOUR
END
RUN <<'END'
for i in 1 2 3; do
  echo line $i
done > lines
END
ENV PATH=/opt/tools:$PATH
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN ! (false | true) && touch piped
USER user
WORKDIR work
RUN pwd > here; id -un >> here
EXPOSE 80
`
const files = {
  'src/main.py': 'print("hello")',
  'src/main.pyc': 'x',
  'src/deep/keep.o': 'x',
  'src/deep/drop.o': 'x',
  'tool.sh': 'echo tool',
  'other.sh': 'echo other',
  'a.txt': 'a',
  'b.txt': 'b',
  '.dockerignore': '# no objects\n**/*.o\n*/*.pyc\n!src/deep/keep.o\n',
}

test('a Dockerfile of 15 steps, built twice: the second time all is CACHED', async () => {
  const dir = folder(FIFTEEN, files)
  fs.symlinkSync('main.py', path.join(dir, 'src/link.py'))
  const n = name()
  const args = ['build', dir, '--name', n, '--tag', 'v1', '--tag', 'v2', '--build-arg', 'GREETING=good day']
  const first = await works(...args)
  same(first.stdout, `${n}:v1\n`)
  assert.match(first.stderr, /^#1 \[1\/15\] FROM e2bdev\/base$/m)
  assert.match(first.stderr, /EXPOSE has no meaning here/)
  same(ends(first.stderr).join(' '), Array(16).fill('DONE').join(' '), first.stderr)

  // Another time of a file is no other file.
  fs.utimesSync(path.join(dir, 'a.txt'), 1000, 1000)
  const second = await works(...args, '--json')
  same(ends(second.stderr).join(' '), ['DONE', ...Array(14).fill('CACHED'), 'DONE'].join(' '), second.stderr)
  const answer = JSON.parse(second.stdout)
  assert.deepEqual([answer.steps, answer.cached, answer.tags], [15, 14, ['v1', 'v2']])

  const sandbox = await fresh(`${n}:v2`)
  same(await sh(sandbox, 'pwd; cat here; cd /srv/app; cat greeting who exec lines; ls piped'), '/srv/app/work\n/srv/app/work\nuser\ngood day\nroot\nit\'s\nline 1\nline 2\nline 3\npiped')
  same(await sh(sandbox, 'cd /srv/app; find src texts | sort; readlink src/link.py; stat -c %U src/main.py'), 'src\nsrc/deep\nsrc/deep/keep.o\nsrc/link.py\nsrc/main.py\ntexts\ntexts/a.txt\ntexts/b.txt\nmain.py\nroot')
  same(await sh(sandbox, 'stat -c "%U %a" /opt/tools/tool.sh /opt/tools/other.sh; cat /etc/motto; echo $SIZE; tool.sh; echo [$GREETING]'), 'user 750\nuser 750\ncolour blue\nvery big\ntool\n[]')

  fs.writeFileSync(path.join(dir, 'a.txt'), 'A')
  const third = await works(...args)
  const kinds = ends(third.stderr)
  same(kinds.slice(0, 7).join(' '), 'DONE CACHED CACHED CACHED CACHED CACHED CACHED', third.stderr)
  assert.ok(!kinds.slice(7).includes('CACHED'), third.stderr)
  same(ends((await works(...args, '--no-cache')).stderr).includes('CACHED'), false)
})

test('a step that fails: its output, and its line', async () => {
  const dir = folder('FROM e2bdev/base\n\nRUN true\nRUN echo before; \\\n  exit 7\nRUN true\n')
  const { status, stdout, stderr } = await template('build', dir)
  same([status, stdout].join(), '1,')
  assert.match(stderr, /^#3 [\d.]+ before$/m)
  same(ends(stderr).join(' '), 'DONE DONE ERROR')
  assert.match(stderr, /^sandglass: \S+\/Dockerfile: line 4: failed to run command .*exit status 7$/m)
})

test('what cannot be built is told before anything is', async () => {
  const before = (await works('ls', '-q')).stdout
  for (const [text, message] of [
    ['FROM e2bdev/base\nCOPY none /x\n', /line 2: there is no 'none'/],
    ['FROM e2bdev/base\nCOPY ../x /x\n', /line 2: '..\/x' leads out/],
    ['FROM e2bdev/base\nCOPY out /x\n', /line 2: 'out' cannot be read, or leads out/],
    ['FROM e2bdev/base\nCOPY --from=other a /x\n', /line 2: COPY --from=other is not supported/],
    ['FROM e2bdev/base\nADD a.tar /x\n', /line 2: ADD of the archive 'a.tar'/],
    ['FROM e2bdev/base\nFROM e2bdev/base\n', /line 2: a second FROM/],
  ]) {
    const dir = folder(text, { 'a.tar': '\x1f\x8b' })
    fs.writeFileSync(path.join(dir, 'a.tar'), Buffer.from([0x1f, 0x8b, 8, 0]))
    fs.symlinkSync('/etc/passwd', path.join(dir, 'out'))
    const { status, stderr } = await template('build', dir)
    same(status, 1)
    assert.match(stderr, message)
    same(stderr.split('\n').length, 2, stderr)
  }
  same((await works('ls', '-q')).stdout, before)
})

test('CMD runs in each sandbox, when it is ready', async () => {
  const dir = folder('FROM e2bdev/base\nWORKDIR /srv\nCMD ["python3", "-m", "http.server", "8080"]\n')
  const n = name()
  await works('build', dir, '--name', n, '--ready', 'curl -sf localhost:8080', '-q', '--cpus', '1', '-m', '256M')
  const sandbox = await fresh(n)
  same(await sh(sandbox, 'curl -s localhost:8080 | grep -c Directory; pwd'), '2\n/srv')
  const row = JSON.parse((await works('ls', '--json')).stdout).find((t) => t.aliases[0] === n)
  assert.deepEqual([row.cpuCount, row.memoryMB], [1, 256])
})

test('ls, tag, rm and logs', async () => {
  const n = name()
  await works('build', folder('FROM e2bdev/base\nRUN echo in the log\n'), '--name', n)
  assert.match((await works('ls')).stdout, new RegExp(`^${n} +ready `, 'm'))
  same((await works('tag', n, 'a', 'b')).stdout, `${n}:a\n${n}:b\n`)
  await fresh(`${n}:a`)
  same((await works('rm', `${n}:a`)).stdout, `${n}:a\n`)
  await assert.rejects(Sandbox.create(`${n}:a`), /tag 'a'/)
  await fresh(`${n}:b`)
  assert.match((await works('logs', n)).stdout, /info +\[builder 3\/\d\] \[stdout\]: in the log\n/)
  assert.match((await works('logs', n, '--json')).stdout, /"message": ".*in the log"/)
  const sandbox = await fresh(n)
  await sh(sandbox, 'echo kept > ~/kept')
  const { snapshotId } = await sandbox.createSnapshot()
  const m = name()
  same((await works('tag', snapshotId, `${m}:v1`, `${m}:v2`)).stdout, `${m}:v1\n${m}:v2\n`)
  await Sandbox.deleteSnapshot(snapshotId)
  same(await sh(await fresh(`${m}:v2`), 'cat ~/kept'), 'kept')
  assert.match((await works('ls')).stdout, new RegExp(`^${m} +ready `, 'm'))
  assert.match((await works('logs', m)).stdout, /FROM snapshot \S+ \(\S+\): its files as they are/)
  same((await works('rm', m)).stdout, `${m}\n`)
  same((await works('rm', n)).stdout, `${n}\n`)
  const gone = await template('rm', n)
  same(gone.status, 1)
  assert.match(gone.stderr, /^sandglass: .*not found\n$/)
})

test('on a terminal the step that runs is drawn, and one line stays', async () => {
  const terminal = new Terminal()
  try {
    const dir = folder('FROM e2bdev/base\nRUN for i in $(seq 30); do echo output $i; sleep 0.1; done\nRUN true\n')
    terminal.type(`${SG} template build ${dir} --name ${name()}; echo "ov""er $?"`)
    await terminal.shows(/=> => output \d+/)
    await terminal.shows(/over 0/)
    const screen = terminal.screen()
    assert.match(screen, /=> +[\d.]+s \[2\/3\] RUN for i/)
    assert.ok(!/output 3/.test(screen), screen)
  } finally {
    terminal.end()
  }
})

test('interrupted: the server stops too', async () => {
  const n = name()
  const child = spawn(SG, ['template', 'build', folder('FROM e2bdev/base\nRUN echo begun; sleep 100\n'), '--name', n], { env: surroundings })
  let text = ''
  child.stderr.on('data', (d) => (text += d))
  await eventually('the step runs', () => /[\d.]+ begun/.test(text))
  child.kill('SIGINT')
  const status = await new Promise((resolve) => child.on('exit', resolve))
  same(status, 130)
  same((await api('GET', `/templates/${n}`)).json.builds[0].status, 'error')
})

run()
