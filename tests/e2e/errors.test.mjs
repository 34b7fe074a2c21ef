// Every class of error that the SDK can raise, raised by this server. Those that belong to one module
// are tested there; here is what is left: keys, limits, a full disk, and what does not exist yet.
import { api, assert, common, e2b, fresh, refused, rejects, run, same, Sandbox, sh, test, unique } from './lib.mjs'

const { AuthenticationError, BuildError, NotEnoughSpaceError, RateLimitError, SandboxError, Secret, SecretError, SecretNotFoundError, Template, TemplateError, TimeoutError, Volume, VolumeError, VolumeNotFoundError } = e2b

test('AuthenticationError: no key, a wrong key, on every part of the API', async () => {
  const key = process.env.E2B_API_KEY
  delete process.env.E2B_API_KEY
  try {
    await rejects(Sandbox.create(), AuthenticationError, /API key is required/)
  } finally {
    process.env.E2B_API_KEY = key
  }
  const as = { apiKey: 'e2b_' + 'f'.repeat(40) }
  const id = (await common()).sandboxId
  await rejects(Sandbox.create(as), AuthenticationError)
  await rejects(Sandbox.connect(id, as), AuthenticationError)
  await rejects(Sandbox.getInfo(id, as), AuthenticationError)
  await rejects(Sandbox.kill(id, as), AuthenticationError)
  await rejects(Sandbox.list(as).nextItems(), AuthenticationError)
  await rejects(Sandbox.listSnapshots(as).nextItems(), AuthenticationError)
  await rejects(Template.exists('base', as), AuthenticationError)
  await rejects(Volume.list(as), AuthenticationError)
})

test('RateLimitError: a tenant has as many sandboxes as it may have', async () => {
  // A tenant that no other test uses.
  const as = { apiKey: process.env.E2E_CROWD_KEY, timeoutMs: 60_000, retries: 0 }
  const limit = Number(process.env.E2E_TENANT_SANDBOXES)
  const answers = await Promise.allSettled(Array.from({ length: limit + 10 }, () => fresh(as)))
  const made = answers.filter((a) => a.status === 'fulfilled')
  same(made.length, limit, 'how many were made')
  for (const { reason } of answers.filter((a) => a.status === 'rejected')) {
    assert.ok(reason instanceof RateLimitError, `${reason.constructor.name}: ${reason.message}`)
    assert.match(reason.message, new RegExp(String(limit)), 'the message names the limit')
  }
  await fresh()
  await made[0].value.kill()
  await fresh(as)
}, { seconds: 60 })

test('NotEnoughSpaceError: a full disk; nothing of the file stays', async () => {
  const sandbox = await fresh()
  await assert.rejects(sandbox.commands.run('cat /dev/zero > /home/user/fill'), e2b.CommandExitError)
  const data = new Uint8Array(4_000_000).buffer
  for (const way of [{}, { useOctetStream: true }, { gzip: true }]) {
    await rejects(sandbox.files.write('/home/user/late', data, way), NotEnoughSpaceError)
    assert.equal(await sandbox.files.exists('/home/user/late'), false)
  }
  await sandbox.files.remove('/home/user/fill')
  await sandbox.files.write('/home/user/late', data)
  assert.equal(await sh(sandbox, 'stat -c %s late'), '4000000')
})

test('TimeoutError: a request that takes longer than it may', async () => {
  const sandbox = await common()
  const handle = await sandbox.commands.run('sleep 1000', { background: true })
  handle.wait().catch(() => {})
  await rejects(sandbox.commands.run('sleep 60', { timeoutMs: 300 }), TimeoutError)
  await handle.kill()
})

test('SandboxError: the message and the status are the server’s', async () => {
  const err = await refused(fresh({ timeoutMs: 0 }), 400)
  assert.ok(err instanceof SandboxError)
})

// ---- what there is not yet: 501, and never a made-up success ------------------------------------

test('BuildError: an image that cannot be fetched', async () => {
  await rejects(Template.build(Template().fromImage('127.0.0.1:1/none:1').runCmd('true'), `image-${unique()}`), BuildError, /the image '127.0.0.1:1\/none:1' cannot be used: .*loopback/)
  await refused(Template.getBuildStatus({ templateId: 'base', buildId: 'x' }), 403, /belongs to the server/, BuildError)
})

test('TemplateError: the server’s own templates have no other tags', async () => {
  await refused(Template.assignTags('base', ['new']), 403, /./, TemplateError)
  await refused(Template.removeTags('base', ['new']), 403, /./, TemplateError)
})

test('VolumeError, VolumeNotFoundError', async () => {
  await refused(Volume.create('not a name'), 400, /name/, VolumeError)
  await rejects(Volume.getInfo('vol'), VolumeNotFoundError)
  await refused(fresh({ volumeMounts: { '/mnt/x': 'nobodys' } }), 404)
})

test('SecretError, SecretNotFoundError', async () => {
  await refused(Secret.create('sec_name', 'value'), 400, /name/, SecretError)
  await rejects(Secret.getInfo('nobody'), SecretNotFoundError)
  await rejects(Secret.update('nobody', 'value'), SecretNotFoundError)
})

test('templates that come with the server', async () => {
  assert.equal(await Template.exists('base'), true)
  assert.equal(await Template.exists('code-interpreter-v1'), true)
  assert.equal(await Template.exists('no-such-template'), false)
  const { status, json } = await api('GET', '/templates')
  assert.equal(status, 200)
  assert.deepEqual(json.flatMap((t) => t.aliases ?? []).filter((a) => ['base', 'code-interpreter-v1'].includes(a)).sort(), ['base', 'code-interpreter-v1'])
})

await run()
