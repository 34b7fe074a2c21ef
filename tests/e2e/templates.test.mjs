// Templates built with the SDK and the command line: every step, the cache, errors with their lines, tags, start commands.
import { execFile } from 'node:child_process'
import crypto from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import zlib from 'node:zlib'
import { API, api, assert, e2b, eventually, fresh, KEY, modules, OTHER_KEY, refused, rejects, run, same, Sandbox, sh, test, unique } from './lib.mjs'
import { killFront, start, stop } from './server.mjs'
import { surroundings } from './terminal.mjs'

const { BuildError, FileUploadError, Template, TemplateError, waitForPort, waitForFile, waitForProcess } = e2b
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'sandglass-e2e-templates.'))
process.on('exit', () => fs.rmSync(scratch, { recursive: true, force: true }))

const from = (opts) => Template(opts).fromTemplate('base')

// Builds, and keeps what was logged.
async function build(template, name = `t-${unique()}`, opts = {}) {
  const logs = []
  try {
    const info = await Template.build(template, name, { onBuildLogs: (l) => logs.push(l.message), ...opts })
    return { ...info, name, logs, text: logs.join('\n') }
  } catch (err) {
    err.logs = logs
    throw err
  }
}

// A folder of files: {path: text}.
function folder(files) {
  const dir = fs.mkdtempSync(path.join(scratch, 'context.'))
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true })
    fs.writeFileSync(path.join(dir, name), text)
  }
  return dir
}

test('one command, and a sandbox that has what it made', async () => {
  const { name, text } = await build(from().runCmd('echo made > ~/made; echo out; echo err >&2'))
  assert.match(text, /\[base\] FROM template base/)
  assert.match(text, /\[builder 1\/1\] RUN echo made/)
  assert.match(text, /\[stdout\]: out$/m)
  assert.match(text, /\[stderr\]: err$/m)
  same(await sh(await fresh(name), 'cat ~/made'), 'made')
})

test('the default base of the builder', async () => {
  const { name } = await build(Template().runCmd('echo hi > ~/hi'))
  same(await sh(await fresh(name), 'cat ~/hi'), 'hi')
})

test('every method of the builder', async () => {
  const context = folder({ 'app/main.py': 'print("hello")', 'app/lib/tool.sh': '#!/bin/sh\necho tool', 'a.txt': 'a', 'b.txt': 'b' })
  fs.symlinkSync('main.py', path.join(context, 'app/link.py'))
  const template = from({ fileContextPath: context })
    .setEnvs({ COLOUR: 'blue', BOTH: '$COLOUR-$HOME' })
    .setWorkdir('/srv/work')
    .copy('app', 'app')
    .copy('app/lib/tool.sh', '/opt/tools/', { user: 'root', mode: 0o755 })
    .copy('*.txt', '/opt/texts/', { user: 'root' })
    .runCmd(['pwd > pwd.txt', 'echo "$BOTH" > env.txt'])
    .setUser('root')
    .runCmd('id -un > /opt/who')
    .makeDir('/opt/dir/deep', { mode: 0o700 })
    .makeSymlink('/opt/dir', '/opt/link')
    .rename('/opt/who', '/opt/whoami')
    .runCmd('touch /opt/gone')
    .remove('/opt/gone', { force: true })
    .setUser('user')
  const { name, text } = await build(template)
  assert.ok(!text.includes('CACHED [builder 3'), text)
  const sandbox = await fresh(name)
  same(await sh(sandbox, 'pwd; id -un; echo $COLOUR $BOTH'), '/srv/work\nuser\nblue blue-/home/user')
  same(await sh(sandbox, 'cat pwd.txt env.txt; stat -c %U . app app/lib'), '/srv/work\nblue-/home/user\nuser\nuser\nuser')
  same(await sh(sandbox, 'python3 app/main.py; readlink app/link.py; /opt/tools/tool.sh; ls /opt/texts; stat -c "%U %a" /opt/tools/tool.sh'), 'hello\nmain.py\ntool\na.txt\nb.txt\nroot 755')
  same(await sh(sandbox, 'cat /opt/whoami; readlink /opt/link; ls /opt', { user: 'root' }), 'root\n/opt/dir\ndir\nlink\ntexts\ntools\nwhoami')
  same(await sh(sandbox, 'cd /; pwd; echo $COLOUR', { envs: { COLOUR: 'red' }, cwd: '/tmp' }), '/\nred')
  const other = await Sandbox.create(name, { envs: { COLOUR: 'green' } })
  same(await sh(other, 'echo $COLOUR $BOTH'), 'green blue-/home/user')
  await other.kill()
}, { seconds: 90 })

test('the interpreter has the template’s variables too', async () => {
  const { name } = await build(Template().fromTemplate('code-interpreter-v1').setEnvs({ ANSWER: '42' }).runCmd('echo x > ~/x'))
  const sandbox = await fresh(name)
  const { json, text } = await interpreter(sandbox, 'import os; print(os.environ["ANSWER"], open("x").read())')
  assert.ok(text.includes('42 x'), text ?? json)
})

async function interpreter(sandbox, code) {
  const res = await fetch(process.env.E2B_SANDBOX_URL + '/execute', {
    method: 'POST',
    headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49999', 'X-Access-Token': sandbox.envdAccessToken ?? '', 'Content-Type': 'application/json' },
    body: JSON.stringify({ code }),
  })
  return { text: await res.text() }
}

test('what was built before is not built again', async () => {
  const context = folder({ f: unique() })
  const make = (last) => from({ fileContextPath: context }).copy('f', '/opt/f', { user: 'root' }).runCmd(`date +%s%N > ~/when; echo ${path.basename(context)}`).runCmd(last)
  const name = `cache-${unique()}`
  const first = await build(make('echo one'), name)
  assert.ok(!first.text.includes('CACHED'), first.text)
  const when = await sh(await fresh(name), 'cat ~/when')
  const began = Date.now()
  const second = await build(make('echo one'), name)
  same(second.logs.filter((l) => l.startsWith('CACHED')).length, 3, second.text)
  assert.ok(Date.now() - began < 3000, `${Date.now() - began} ms for nothing`)
  const third = await build(make('echo two'), name)
  same(third.logs.filter((l) => l.startsWith('CACHED')).length, 2, third.text)
  same(await sh(await fresh(name), 'cat ~/when'), when)
  fs.writeFileSync(path.join(context, 'f'), 'changed')
  const fourth = await build(make('echo two'), name)
  same(fourth.logs.filter((l) => l.startsWith('CACHED')).length, 0, fourth.text)
  same(await sh(await fresh(name), 'cat /opt/f'), 'changed')
  const forced = await build(make('echo two'), name, { skipCache: true })
  same(forced.logs.filter((l) => l.startsWith('CACHED')).length, 0, forced.text)
  const partly = await build(from({ fileContextPath: context }).copy('f', '/opt/f', { user: 'root' }).skipCache().runCmd(`date +%s%N > ~/when; echo ${path.basename(context)}`), name)
  same(partly.logs.filter((l) => l.startsWith('CACHED')).length, 1, partly.text)
}, { seconds: 90 })

test('a step that fails names itself and its line', async () => {
  const template = from()
  template.runCmd('true')
  const line = Number(new Error().stack.split('\n')[1].match(/:(\d+):\d+\)?$/)[1]) + 1
  template.runCmd('echo before; exit 7')
  template.runCmd('true')
  const err = await rejects(build(template), BuildError, /failed to run command 'echo before; exit 7': exit status 7/)
  assert.ok(err.stack.includes(`templates.test.mjs:${line}`), `line ${line} in ${err.stack}`)
  assert.ok(err.logs.some((l) => l.endsWith('[stdout]: before')))
  await rejects(build(from().runCmd('rm /etc/passwd && mkdir /etc/passwd', { user: 'root' }).setUser('nobody-here')), BuildError,
    /failed to use user 'nobody-here': the sandbox has no user 'nobody-here', and making it failed: exit status \d+: make it in a step before this one/)
  await rejects(build(Template().fromTemplate('no-such-template')), BuildError, /not found/)
  await rejects(build(from().runCmd('kill -9 $$')), BuildError, /SIGKILL/)
})

test('users of the template: made by a step, and then of steps, files, commands and cells', async () => {
  const context = folder({ f: 'content' })
  const made = await build(from({ fileContextPath: context })
    .runCmd('useradd -m -U -s /bin/bash alice && groupadd crew', { user: 'root' })
    .setUser('alice').setEnvs({ WHERE: '$HOME/x' }).setWorkdir('work')
    .runCmd('id -un > who; pwd > where')
    .copy('f', 'mine').copy('f', 'crews', { user: 'alice:crew' }).copy('f', '~/numbers', { user: '33:4711' }))
  const sandbox = await fresh(made.name)
  same(await sh(sandbox, 'id -un; pwd; cat who where; echo $WHERE $HOME; stat -c "%U:%G" mine crews ~/numbers'),
    'alice\n/home/alice/work\nalice\n/home/alice/work\n/home/alice/x /home/alice\nalice:alice\nalice:crew\nwww-data:UNKNOWN')
  const again = await build(Template().fromTemplate(made.name).runCmd('echo more >> ~/work/who').setWorkdir('~'))
  same(await sh(await fresh(again.name), 'pwd; cat work/who'), '/home/alice\nalice\nmore')
  const second = await build(from({ fileContextPath: context })
    .runCmd('useradd -m -U -s /bin/bash alice && groupadd crew', { user: 'root' })
    .setUser('alice').setEnvs({ WHERE: '$HOME/x' }).setWorkdir('work'))
  same(second.logs.filter((l) => l.startsWith('CACHED')).length, 4, second.text)
  await rejects(build(from({ fileContextPath: context }).copy('f', 'x', { user: 'user:no-crew' })), BuildError, /no group 'no-crew'/)
}, { seconds: 90 })

test('a user that the template has not is made, as at E2B', async () => {
  const made = () => from().setUser('app').setWorkdir('work').runCmd('id -un > who; pwd >> who; sudo -n true || echo no sudo >> who')
  const first = await build(made())
  assert.ok(!first.text.includes('CACHED'), first.text)
  const told = 'app\n/home/app/work\nno sudo'
  const sandbox = await fresh(first.name)
  same(await sh(sandbox, 'cat who; id -un; id -gn; pwd; echo $HOME; stat -c %U:%G ~ .'), `${told}\napp\napp\n/home/app/work\n/home/app\napp:app\napp:app`)
  same(await sh(sandbox, 'grep ^app: /etc/passwd | cut -d: -f1,3,6,7', { user: 'root' }), 'app:1001:/home/app:/bin/bash')
  const second = await build(made())
  same(second.logs.filter((l) => l.startsWith('CACHED')).length, 3, second.text)
  same(await sh(await fresh(second.name), 'cat who; id -un'), `${told}\napp`)
  const third = await build(made().setUser('app').runCmd('groupadd crew', { user: 'root' }).setUser('crew').runCmd('id -gn > ~/group'))
  same(third.logs.filter((l) => l.startsWith('CACHED')).length, 4, third.text)
  same(await sh(await fresh(third.name), 'cat ~/group; id -un'), 'crew\ncrew')
}, { seconds: 90 })

test('a snapshot with a tag is a template, and stays when the snapshot goes', async () => {
  const base = await build(from().setEnvs({ A: '1' }).setWorkdir('/srv/x').runCmd('echo base > f'))
  const sandbox = await fresh(base.name)
  await sh(sandbox, 'echo more > g')
  const { snapshotId } = await sandbox.createSnapshot()
  await sh(sandbox, 'echo after > g')
  const id = snapshotId.replace(/:.*/, ''), shop = `shop-${unique()}`
  const assigned = await Template.assignTags(snapshotId, ['prod', 'latest'])
  assert.deepEqual(assigned.tags, ['prod', 'latest'])
  await Template.assignTags(snapshotId, [`${shop}:v1`])
  assert.deepEqual((await Template.getTags(id)).map((t) => t.tag).sort(), ['default', 'latest', 'prod'])
  assert.ok((await Template.getTags(id)).some((t) => t.tag === 'prod' && t.buildId === assigned.buildId))
  const { json } = await api('GET', `/templates/${id}`)
  const log = (await api('GET', `/templates/${json.templateID}/builds/${assigned.buildId}/status`)).json
  same(log.status, 'ready')
  assert.match(log.logs.join('\n'), new RegExp(`FROM snapshot ${snapshotId}`))
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), true)
  await assert.rejects(fresh(snapshotId), /does not exist|not found/)
  for (const name of [`${id}:prod`, `${shop}:v1`]) same(await sh(await fresh(name), 'pwd; cat f g; echo $A'), '/srv/x\nbase\nmore\n1', name)
  const child = await build(Template().fromTemplate(`${shop}:v1`).runCmd('cat g > h'))
  await api('DELETE', `/templates/${shop}`)
  await api('DELETE', `/templates/${id}`)
  await assert.rejects(fresh(`${id}:prod`), /not found/)
  same(await sh(await fresh(child.name), 'cat h'), 'more')
}, { seconds: 90 })

test('a named snapshot and a template of its name', async () => {
  const name = `nightly-${unique()}`
  const sandbox = await fresh()
  const version = async (ref) => sh(await fresh(ref), 'cat ~/v')
  await sh(sandbox, 'echo 1 > ~/v')
  const first = await sandbox.createSnapshot({ name })
  await Template.assignTags(name, 'prod')
  await sh(sandbox, 'echo 2 > ~/v')
  await sandbox.createSnapshot({ name })
  assert.deepEqual([await version(name), await version(`${name}:prod`)], ['2', '1'])
  await Template.assignTags(name, 'prod')
  same(await version(`${name}:prod`), '2')
  assert.equal(await Sandbox.deleteSnapshot(first.snapshotId), true)
  same(await version(`${name}:prod`), '2')
  await refused(Template.assignTags(`${name}:none`, ['x']), 404, /./, TemplateError)
  same((await api('POST', '/templates/tags', { key: OTHER_KEY, body: { target: name, tags: ['x'] } })).status, 404)
  same((await api('DELETE', `/templates/${name}`)).status, 204)
  await assert.rejects(fresh(`${name}:prod`), /not found/)
}, { seconds: 90 })

test('templates of templates, and of snapshots', async () => {
  const base = await build(from().setEnvs({ A: '1' }).setWorkdir('/srv/x').runCmd('echo base > f'))
  const child = await build(Template().fromTemplate(base.name).setEnvs({ B: '$A-2' }).runCmd('cat f > g'))
  const sandbox = await fresh(child.name)
  same(await sh(sandbox, 'pwd; cat g; echo $A $B'), '/srv/x\nbase\n1 1-2')
  const { snapshotId } = await sandbox.createSnapshot()
  same(await sh(await fresh(snapshotId), 'pwd; echo $B'), '/srv/x\n1-2')
  const third = await build(Template().fromTemplate(snapshotId))
  await Sandbox.deleteSnapshot(snapshotId)
  await api('DELETE', `/templates/${base.name}`)
  same(await sh(await fresh(third.name), 'pwd; cat g; echo $B'), '/srv/x\nbase\n1-2')
}, { seconds: 90 })

test('tags move; names, ids and aliases', async () => {
  const name = `tags-${unique()}`
  assert.equal(await Template.exists(name), false)
  const one = await build(from().runCmd('echo 1 > ~/v'), `${name}:v1`)
  assert.equal(await Template.exists(name), true)
  await build(from().runCmd('echo 2 > ~/v'), `${name}:v2`, { tags: ['latest'] })
  const version = async (ref) => sh(await fresh(ref), 'cat ~/v')
  same(await version(`${name}:v1`), '1')
  same(await version(`${name}:latest`), '2')
  same(await version(`${one.templateId}:v2`), '2')
  await assert.rejects(fresh(name), /tag 'default' does not exist/)
  assert.deepEqual((await Template.assignTags(`${name}:v1`, ['latest', 'prod'])).tags, ['latest', 'prod'])
  same(await version(`${name}:latest`), '1')
  const tags = Object.fromEntries((await Template.getTags(name)).map((t) => [t.tag, t.buildId]))
  assert.deepEqual(Object.keys(tags).sort(), ['latest', 'prod', 'v1', 'v2'])
  same(tags.prod, one.buildId)
  await Template.removeTags(name, ['prod', 'latest'])
  await assert.rejects(fresh(`${name}:prod`), /does not exist/)
  await refused(Template.assignTags(`${name}:none`, ['x']), 404, /./, TemplateError)
  const { json } = await api('GET', '/templates')
  const listed = json.find((t) => t.templateID === one.templateId)
  assert.ok(listed.aliases.includes(name) && listed.buildStatus === 'ready' && listed.buildCount === 2, JSON.stringify(listed))
  same((await api('DELETE', `/templates/${name}`)).status, 204)
  assert.equal(await Template.exists(name), false)
  await assert.rejects(fresh(`${name}:v1`), /not found/)
}, { seconds: 90 })

test('the processors and the memory that were asked for', async () => {
  const { name } = await build(from().runCmd('true'), undefined, { cpuCount: 1, memoryMB: 256 })
  const info = await (await fresh(name)).getInfo()
  assert.deepEqual([info.cpuCount, info.memoryMB], [1, 256])
})

test('builds beside each other', async () => {
  const names = await Promise.all([1, 2, 3, 4, 5, 6].map((i) => build(from().runCmd(`sleep 1; echo ${i} > ~/n`)).then((b) => b.name)))
  const seen = await Promise.all(names.map(async (n) => sh(await fresh(n), 'cat ~/n')))
  assert.deepEqual(seen, ['1', '2', '3', '4', '5', '6'])
}, { seconds: 90 })

test('a build that is cancelled, and one whose template is deleted', async () => {
  for (const what of ['build', 'template']) {
    const info = await Template.buildInBackground(from().runCmd('sleep 1000'), `cancel-${unique()}`)
    const status = () => api('GET', `/templates/${info.templateId}/builds/${info.buildId}/status`)
    await eventually('it runs', async () => (await status()).json.logs.some((l) => l.includes('sleep 1000')))
    same((await api('DELETE', `/templates/${info.templateId}${what === 'build' ? `/builds/${info.buildId}` : ''}`)).status, 204)
    const after = await status()
    if (what === 'build') assert.deepEqual([after.json.status, after.json.reason.message], ['error', 'the build was cancelled'])
    else same(after.status, 404)
  }
})

test('a start command runs in every sandbox, which waits for it', async () => {
  const { name, text } = await build(from().setWorkdir('/srv/www').runCmd('echo served > index.html').setStartCmd('python3 -m http.server 8080', waitForPort(8080)))
  assert.match(text, /Running start command: python3 -m http.server 8080/)
  for (const sandbox of await Promise.all([fresh(name), fresh(name)]))
    same(await sh(sandbox, 'curl -s http://localhost:8080/index.html; pgrep -u user -f http.server > /dev/null && echo runs'), 'served\nruns')
  const child = await build(Template().fromTemplate(name).runCmd('echo again > index.html'))
  same(await sh(await fresh(child.name), 'curl -s http://localhost:8080/index.html'), 'again')
}, { seconds: 90 })

test('start and ready commands that fail', async () => {
  await rejects(build(from().setStartCmd('echo gone >&2; exit 3', waitForFile('/never'))), BuildError, /failed to run start command 'echo gone >&2; exit 3': exit status 3/)
  const { name } = await build(from().setStartCmd('touch /tmp/ready', '[ -f /tmp/ready ]'))
  same(await sh(await fresh(name), 'ls /tmp/ready'), '/tmp/ready')
})

test('a sandbox whose start command fails is not handed out', async () => {
  const { name } = await build(from().setStartCmd('[ ! -e ~/ran ] && touch ~/ran && exec sleep 1000', waitForProcess('sleep')))
  await assert.rejects(fresh(name), /failed to run start command .*exit status 1/)
  const { json } = await api('GET', `/v2/sandboxes?template=${name}`)
  assert.deepEqual(json, [])
})

// ---- command line --------------------------------------------------------------------------------

test('e2b template create with a Dockerfile, list, delete', async () => {
  const dir = folder({
    Dockerfile: 'FROM e2bdev/base\nARG WHO=world\nENV GREETING=hello-$WHO\nWORKDIR /srv/app\nCOPY app /srv/app\nRUN cat f && echo "$GREETING" > /srv/app/greeting\n',
    'app/f': 'file',
  })
  const name = `cli-${unique()}`
  const cli = (...args) =>
    new Promise((resolve) => {
      execFile(path.join(modules, 'node_modules/.bin/e2b'), ['template', ...args], { cwd: dir, env: surroundings, timeout: 60_000 }, (err, stdout, stderr) =>
        resolve({ status: err ? (err.code ?? -1) : 0, text: stdout + stderr }))
    })
  const made = await cli('create', name)
  same(made.status, 0, made.text)
  const sandbox = await fresh(name)
  same(await sh(sandbox, 'cat /srv/app/f /srv/app/greeting'), 'filehello-world')
  const listed = await cli('list')
  assert.ok(listed.status === 0 && listed.text.includes(name), listed.text)
  const deleted = await cli('delete', '-y', name)
  same(deleted.status, 0, deleted.text)
  assert.equal(await Template.exists(name), false)
}, { seconds: 90 })

// ---- attacks -------------------------------------------------------------------------------------

function tarEntry(type, name, data = '', link = '') {
  const h = Buffer.alloc(512)
  h.write(name, 0, 100)
  h.write('0000644\0', 100)
  h.write('0000000\0', 108)
  h.write('0000000\0', 116)
  const body = Buffer.from(data)
  h.write(body.length.toString(8).padStart(11, '0') + '\0', 124)
  h.write('00000000000\0', 136)
  h.write('        ', 148)
  h.write(type, 156)
  h.write(link, 157, 100)
  h.write('ustar\0' + '00', 257)
  h.write(h.reduce((a, b) => a + b, 0).toString(8).padStart(6, '0') + '\0 ', 148)
  return Buffer.concat([h, body, Buffer.alloc((512 - (body.length % 512)) % 512)])
}

// Builds by hand, with an archive of our own.
async function buildArchive(archive, steps) {
  const hash = crypto.randomBytes(32).toString('hex')
  const made = (await api('POST', '/v3/templates', { body: { name: `attack-${unique()}` } })).json
  const { json } = await api('GET', `/templates/${made.templateID}/files/${hash}`)
  const put = await fetch(json.url, { method: 'PUT', body: archive })
  same(put.status, 200)
  same((await api('POST', `/v2/templates/${made.templateID}/builds/${made.buildID}`, { body: { fromTemplate: 'base', steps: steps(hash) } })).status, 202)
  const status = () => api('GET', `/templates/${made.templateID}/builds/${made.buildID}/status`)
  await eventually('an end', async () => ['ready', 'error'].includes((await status()).json.status), 30)
  return { ...made, ...(await status()).json }
}

const copyTo = (dest, src = 's') => (hash) => [{ type: 'COPY', args: [src, dest, 'root', ''], filesHash: hash }]

test('archives that lead out of their place', async () => {
  for (const [entry, words] of [
    [tarEntry('0', '/etc/evil', 'x'), /absolute/],
    [tarEntry('0', 's/../../etc/evil', 'x'), /leads out/],
    [tarEntry('1', 's/hard', '', '../../etc/shadow'), /leads out/],
    [tarEntry('3', 's/null'), /no file, directory or link/],
  ]) {
    const b = await buildArchive(entry, copyTo('/opt/d/'))
    same(b.status, 'error')
    assert.match(b.reason.message, words)
  }
  // Links lead nowhere but into the sandbox itself.
  const b = await buildArchive(Buffer.concat([tarEntry('2', 's/out', '', '/etc'), tarEntry('0', 's/out/inside', 'x'), Buffer.alloc(1024)]), copyTo('/opt/d/'))
  same(b.status, 'ready', JSON.stringify(b.reason))
  same(await sh(await fresh(b.templateID), 'cat /etc/inside; readlink /opt/d/out'), 'x/etc')
  assert.ok(!fs.existsSync('/etc/inside') && !fs.existsSync('/etc/evil'))
}, { seconds: 90 })

test('bombs: what unpacks to too much', async () => {
  const zeros = zlib.gzipSync(Buffer.concat([tarEntry('0', 's/zeros', Buffer.alloc(200 << 20)), Buffer.alloc(1024)]))
  const full = await buildArchive(zeros, copyTo('/opt/zeros', 's/zeros'))
  same(full.status, 'error')
  assert.match(full.reason.message, /disk is full|more than/)
  const padding = zlib.gzipSync(Buffer.alloc(700 << 20))
  const padded = await buildArchive(padding, copyTo('/opt/d/'))
  same(padded.status, 'error')
  assert.match(padded.reason.message, /unpacks to more than/)
  const broken = await buildArchive(zeros.subarray(0, zeros.length / 2), copyTo('/opt/zeros', 's/zeros'))
  same(broken.status, 'error')
}, { seconds: 120 })

test('another tenant’s templates, builds and files', async () => {
  const { templateId, buildId, name } = await build(from().runCmd('echo mine > ~/f'))
  const theirs = (method, route, body) => api(method, route, { key: OTHER_KEY, body })
  same((await theirs('GET', `/templates/${templateId}/builds/${buildId}/status`)).status, 404)
  same((await theirs('POST', `/v2/templates/${templateId}/builds/${buildId}`, {})).status, 404)
  same((await theirs('DELETE', `/templates/${templateId}`)).status, 404)
  same((await theirs('POST', '/templates/tags', { target: name, tags: ['x'] })).status, 404)
  const as = { apiKey: OTHER_KEY }
  await assert.rejects(Sandbox.create(templateId, as), /not found/)
  await rejects(build(Template().fromTemplate(templateId), undefined, as), BuildError, /not found/)
})

// ---- limits --------------------------------------------------------------------------------------

test('builds that take too long, and files that are too large', async () => {
  const server = await start(undefined, undefined, ['--sandbox-memory', '512M', '--build-timeout', '2s', '--build-upload-max', '1M'])
  try {
    await rejects(build(from().runCmd('sleep 100'), undefined, server.as), BuildError, /took longer than 2 s/)
    const context = folder({ small: 'x' })
    fs.writeFileSync(path.join(context, 'large'), crypto.randomBytes(3 << 20))
    await rejects(build(from({ fileContextPath: context }).copy('large', '/tmp/'), undefined, server.as), FileUploadError)
    const { name } = await build(from({ fileContextPath: context }).copy('small', '/tmp/'), undefined, server.as)
    assert.ok(name)
  } finally {
    same(await stop(server), 0)
  }
})

// ---- a server that dies --------------------------------------------------------------------------

test('the front is killed in the middle of a build', async () => {
  const server = await start(undefined, undefined, ['--sandbox-memory', '512M', '--tenant-builds', '1'])
  try {
    const name = `dies-${unique()}`
    const kept = await build(from().runCmd('echo kept > ~/f'), `${name}:kept`, server.as)
    const running = await Template.buildInBackground(from().runCmd('echo one > ~/f').runCmd('sleep 1000'), `${name}:new`, server.as)
    const queued = await Template.buildInBackground(from().runCmd('true'), `${name}:later`, server.as)
    const status = (b) => Template.getBuildStatus(b, server.as)
    await eventually('the second step runs', async () => (await status(running)).logEntries.some((l) => l.message.includes('sleep 1000')))
    same((await status(queued)).status, 'waiting')
    const before = (await status(running)).logEntries
    await killFront(server)
    const after = await eventually('the next front', () => status(running))
    same(after.status, 'error')
    assert.match(after.reason.message, /server was restarted/)
    assert.deepEqual(after.logEntries.slice(0, before.length).map((l) => l.message), before.map((l) => l.message))
    same((await status(queued)).status, 'error')
    const figures = await eventually('its sandbox has ended', async () => {
      const sandbox = await Sandbox.create(`${name}:kept`, server.as)
      const text = await sh(sandbox, 'cat ~/f')
      await sandbox.kill()
      return text
    })
    same(figures, 'kept')
    const again = await build(from().runCmd('echo one > ~/f').runCmd('cat ~/f'), `${name}:new`, server.as)
    assert.ok(again.logs.some((l) => l.startsWith('CACHED') && l.includes('echo one')), again.text)
    assert.ok(kept.buildId)
  } finally {
    same(await stop(server), 0)
  }
}, { seconds: 90 })

await run()
