// Public templates: other tenants make sandboxes of them, by their owner's name or by id, and of files of their own.
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { assert, e2b, modules, rejects, run, same, Sandbox, sh, test } from './lib.mjs'
import { killFront, start, stop } from './server.mjs'
import { surroundings } from './terminal.mjs'
import { keyOf } from './v1.mjs'

const { BuildError, Template, waitForFile } = e2b
const server = await start(undefined, undefined, ['--sandbox-memory', '512M', '--tenant-build-size', '64M'])
const owner = server.as
const guest = { ...owner, apiKey: keyOf(server, 'guest') }

const from = (name = 'base') => Template().fromTemplate(name)
const make = (template, name, as = owner) => Template.build(template, name, as)

async function call(method, route, { body, as = owner } = {}) {
  const headers = { 'X-API-Key': as.apiKey, 'Content-Type': 'application/json' }
  const res = await fetch(server.url + route, { method, headers, body: body && JSON.stringify(body) })
  const text = await res.text()
  return { status: res.status, body: text ? JSON.parse(text) : undefined }
}

// With E2B's own command line.
function cli(...args) {
  const env = { ...surroundings, E2B_API_URL: server.url, E2B_API_KEY: owner.apiKey }
  return new Promise((resolve, reject) => {
    const child = execFile(path.join(modules, 'node_modules/.bin/e2b'), args, { env, timeout: 30_000 }, (err, stdout, stderr) => (err ? reject(new Error(stdout + stderr)) : resolve(stdout)))
    child.stdin.end()
  })
}

async function use(name, as, body, opts = {}) {
  const sandbox = await Sandbox.create(name, { ...as, ...opts })
  try {
    return await body(sandbox)
  } finally {
    await sandbox.kill()
  }
}

// Files of layers on disk with that name: "inode links".
function onDisk(name) {
  const found = []
  const walk = (dir) => {
    for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
      const at = path.join(dir, entry.name)
      if (entry.isDirectory()) walk(at)
      else if (entry.name === name) found.push(fs.statSync(at))
    }
  }
  walk(path.join(server.state, 'layers'))
  return found
}
const inodes = (name) => new Set(onDisk(name).map((s) => s.ino))

test('what is not public is there for nobody else', async () => {
  const { templateId } = await make(from().setEnvs({ GREETING: 'hello' }).setWorkdir('/srv').runCmd('echo theirs > shared-file; ln shared-file linked; mkdir -p d && rm -f /etc/issue', { user: 'root' }), 'shop')
  for (const name of ['default/shop', templateId, 'shop']) await assert.rejects(Sandbox.create(name, guest), /404.*not found/)
  same((await call('GET', `/templates/${templateId}`, { as: guest })).status, 404)
  same((await call('PATCH', `/v2/templates/${templateId}`, { as: guest, body: { public: true } })).status, 404)
  await rejects(make(from('default/shop'), 'mine', guest), BuildError, /not found/)
})

test('published, by E2B’s command line', async () => {
  await cli('template', 'publish', 'shop', '-y')
  const listed = (await call('GET', '/templates')).body.find((t) => t.aliases[0] === 'shop')
  same(listed.public, true)
  same((await call('GET', `/templates/${listed.templateID}`)).body.public, true)
  same((await call('GET', '/templates/aliases/shop')).body.public, true)
  const answer = await call('PATCH', '/v2/templates/shop', { body: {} }) // nothing is changed
  assert.deepEqual([answer.status, answer.body.names], [200, ['default/shop']])
})

test('others make sandboxes of it, with what the template has, and of files of their own', async () => {
  const { templateID } = (await call('GET', '/templates/shop')).body
  same(onDisk('shared-file').length, 1)
  const first = await Promise.all(['default/shop', templateID, 'default/shop:default'].map((name) => use(name, guest, (b) => sh(b, 'pwd; echo $GREETING; cat shared-file; test shared-file -ef linked && echo linked; ls /etc/issue 2>&1 | grep -c "No such"'))))
  for (const text of first) same(text, '/srv\nhello\ntheirs\nlinked\n1')
  const all = onDisk('shared-file')
  same(all.length, 2, 'one copy for the tenant')
  same(new Set(all.map((s) => s.ino)).size, 2)
  assert.ok(all.every((s) => s.nlink === 2), 'no inode is the name of both')
  await use('default/shop', guest, (b) => sh(b, 'echo mine > shared-file', { user: 'root' }))
  same(await use('shop', owner, (b) => sh(b, 'cat shared-file')), 'theirs')
  same(onDisk('shared-file').length, 2, 'kept for the next one')
})

test('what others may not do with it', async () => {
  const { templateID } = (await call('GET', '/templates/shop')).body
  const theirs = (method, route, body) => call(method, route, { as: guest, body }).then((r) => r.status)
  same(await theirs('PATCH', `/v2/templates/${templateID}`, { public: false }), 404)
  same(await theirs('DELETE', `/templates/${templateID}`), 404)
  same(await theirs('POST', '/templates/tags', { target: templateID, tags: ['x'] }), 403)
  same(await theirs('POST', '/templates/tags', { target: 'default/shop', tags: ['other:x'] }), 403)
  same(await theirs('DELETE', '/templates/tags', { name: templateID, tags: ['default'] }), 404)
  assert.ok((await theirs('POST', '/v3/templates', { name: 'default/shop' })) >= 400)
  const seen = (await call('GET', `/templates/${templateID}`, { as: guest })).body
  assert.deepEqual([seen.public, seen.names, seen.builds.length], [true, ['default/shop'], 1])
  same((await call('GET', `/templates/${templateID}/builds/${seen.builds[0].buildID}/logs`, { as: guest })).status, 404)
  assert.ok(!(await call('GET', '/templates', { as: guest })).body.some((t) => t.templateID === templateID))
  await assert.rejects(Sandbox.create('default/shop:none', guest), /404/)
})

test('templates of others are built from it, and stay when it goes', async () => {
  await make(from('default/shop').runCmd('cat shared-file > ~/built'), 'mine', guest)
  await make(from('default/shop').setEnvs({ MORE: '1' }), 'plain', guest) // without a step that changes files
  same(await use('mine', guest, (b) => sh(b, 'cat ~/built; echo $GREETING')), 'theirs\nhello')
  same(await use('plain', guest, (b) => sh(b, 'cat shared-file; echo $MORE')), 'theirs\n1')
  const shared = [...inodes('shared-file')]
  same(shared.length, 2, 'what the tenant has built shares with its copy, and not with the owner')
})

test('start commands run for others too', async () => {
  await make(from().setStartCmd('touch /tmp/started; sleep infinity', waitForFile('/tmp/started')), 'daemon')
  await call('PATCH', '/v2/templates/daemon', { body: { public: true } })
  same(await use('default/daemon', guest, (b) => sh(b, 'ls /tmp/started')), '/tmp/started')
})

test('a template that is built anew has another copy', async () => {
  await make(from().runCmd('echo newer > /srv/shared-file', { user: 'root' }), 'shop')
  same(await use('default/shop', guest, (b) => sh(b, 'cat /srv/shared-file')), 'newer')
  await killFront(server)
  same(await use('default/shop', guest, (b) => sh(b, 'cat /srv/shared-file')), 'newer')
})

test('copies are counted, and those used longest ago make room', async () => {
  for (const name of ['big1', 'big2']) {
    await make(from().runCmd(`head -c 30M /dev/urandom > /srv/${name}-file`, { user: 'root' }), name)
    await call('PATCH', `/v2/templates/${name}`, { body: { public: true } })
    same(await use(`default/${name}`, guest, (b) => sh(b, `ls /srv`)), `${name}-file`)
  }
  await make(from().runCmd('head -c 40M /dev/urandom > ~/own'), 'own', guest)
  await assert.rejects(use('default/big1', guest, (b) => sh(b, 'true')), /tenant_build_size/)
})

test('unpublished: nobody else gets another one, and those that run go on', async () => {
  await use('default/shop', guest, async (sandbox) => {
    const before = onDisk('shared-file').length
    same((await call('PATCH', '/v2/templates/shop', { body: { public: false } })).status, 200)
    await assert.rejects(Sandbox.create('default/shop', guest), /404.*not found/)
    same(await sh(sandbox, 'cat /srv/shared-file'), 'newer')
    assert.ok(before > 0)
  })
  same(await use('mine', guest, (b) => sh(b, 'cat ~/built')), 'theirs')
}, { seconds: 60 })

test('the server stops', async () => {
  same(await stop(server), 0)
})

await run()
