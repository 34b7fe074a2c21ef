// Signed addresses of files, and the access tokens of sandboxes.
import { api, assert, common, e2b, folder, fresh, mine, rejects, run, same, Sandbox, sh, test, toPort } from './lib.mjs'

const { AuthenticationError, getSignature, InvalidArgumentError } = e2b

const get = async (url) => {
  const res = await fetch(url)
  return { status: res.status, text: await res.text() }
}

const put = async (url, content, name = 'file.txt') => {
  const form = new FormData()
  form.append('file', new Blob([content]), name)
  const res = await fetch(url, { method: 'POST', body: form })
  return { status: res.status, text: await res.text() }
}

function changed(url, name, value) {
  const other = new URL(url)
  if (value === undefined) other.searchParams.delete(name)
  else other.searchParams.set(name, value)
  return other.toString()
}

async function refused(answer, message) {
  const { status, text } = await answer
  same(status, 401, `status (${text})`)
  const body = JSON.parse(text)
  assert.equal(body.code, 401)
  assert.match(body.message, message)
}

test('downloadUrl: anybody who has it reads that file', async () => {
  const sandbox = await common()
  await sandbox.files.write('/home/user/note', 'signed')
  for (const opts of [undefined, { useSignatureExpiration: 60 }, { user: 'user' }, { user: 'root', useSignatureExpiration: 60 }]) {
    const { status, text } = await get(await sandbox.downloadUrl('/home/user/note', opts))
    assert.deepEqual([status, text], [200, 'signed'], JSON.stringify(opts))
  }
})

test('uploadUrl: anybody who has it writes that file', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  for (const opts of [undefined, { useSignatureExpiration: 60 }]) {
    const { status, text } = await put(await sandbox.uploadUrl(`${dir}/up`, opts), `written ${JSON.stringify(opts)}`)
    same(status, 200, text)
    assert.equal(await sandbox.files.read(`${dir}/up`), `written ${JSON.stringify(opts)}`)
  }
  await put(await sandbox.uploadUrl(`${dir}/roots`, { user: 'root' }), 'x')
  assert.equal((await sandbox.files.getInfo(`${dir}/roots`)).owner, 'root')
})

test('uploadUrl without a path: the name of the part is the path', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const { status, text } = await put(await sandbox.uploadUrl(), 'named by the form', `${dir}/by form ü`)
  same(status, 200, text)
  assert.equal(await sandbox.files.read(`${dir}/by form ü`), 'named by the form')
})

test('paths with characters that mean something in an address', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  for (const name of ['a b', 'ü€', 'a+b', 'per%20cent', 'a&b=c', 'x#y?z', "it's"]) {
    const path = `${dir}/${name}`
    same((await put(await sandbox.uploadUrl(path), name)).status, 200, `upload ${name}`)
    assert.deepEqual(await get(await sandbox.downloadUrl(path)), { status: 200, text: name })
  }
  await sandbox.files.write('~/in-home', 'x')
  assert.equal((await get(await sandbox.downloadUrl('~/in-home'))).status, 200)
  assert.equal((await get(await sandbox.downloadUrl('in-home'))).status, 200)
})

test('a changed address is refused', async () => {
  const sandbox = await common()
  await sandbox.files.write('/home/user/note', 'signed')
  await sandbox.files.write('/home/user/other', 'not signed')
  const plain = await sandbox.downloadUrl('/home/user/note')
  const timed = await sandbox.downloadUrl('/home/user/note', { useSignatureExpiration: 60 })
  const expiry = Number(new URL(timed).searchParams.get('signature_expiration'))
  const signature = new URL(plain).searchParams.get('signature')
  const flipped = signature.slice(0, -1) + (signature.endsWith('A') ? 'B' : 'A')
  const bad = /invalid signature/
  await refused(get(changed(plain, 'path', '/home/user/other')), bad)
  await refused(get(changed(plain, 'username', 'root')), bad)
  await refused(get(changed(plain, 'signature', flipped)), bad)
  await refused(get(changed(plain, 'signature', 'v1_')), bad)
  await refused(get(changed(plain, 'signature', '')), /signature/)
  await refused(get(changed(timed, 'signature_expiration', String(expiry + 1000))), bad)
  await refused(get(changed(timed, 'signature_expiration', undefined)), bad)
  await refused(get(changed(plain, 'signature_expiration', String(expiry))), bad)
  await refused(put(plain, 'a reader writes'), bad)
  await refused(get(await sandbox.uploadUrl('/home/user/note')), bad)
  assert.equal(await sandbox.files.read('/home/user/note'), 'signed')
})

test('an address that has expired is refused', async () => {
  const sandbox = await common()
  await sandbox.files.write('/home/user/note', 'signed')
  await refused(get(await sandbox.downloadUrl('/home/user/note', { useSignatureExpiration: -5 })), /signature is already expired/)
  await refused(put(await sandbox.uploadUrl('/home/user/note', { useSignatureExpiration: -5 }), 'x'), /signature is already expired/)
})

test('no signature at all', async () => {
  const sandbox = await common()
  const unsigned = changed(await sandbox.downloadUrl('/home/user/note'), 'signature', undefined)
  assert.equal((await get(unsigned)).status, 401)
  const { status, json } = await toPort(sandbox, 49983, { path: '/files?path=/home/user/note' })
  assert.equal(status, 401)
  assert.match(json.message, /missing signature query parameter/)
})

test('each sandbox has its own, and it ends with it', async () => {
  const a = await fresh()
  const b = await fresh()
  await a.files.write('/home/user/note', 'of a')
  await b.files.write('/home/user/note', 'of b')
  const urls = await Promise.all([a, b].map((sandbox) => sandbox.downloadUrl('/home/user/note')))
  assert.deepEqual((await Promise.all(urls.map(get))).map((r) => r.text), ['of a', 'of b'])
  await a.kill()
  same((await get(urls[0])).status, 401, 'of a sandbox that is gone')
  assert.equal((await get(urls[1])).text, 'of b')
})

test('what is not there, and a directory, through a signed address', async () => {
  const sandbox = await common()
  assert.equal((await get(await sandbox.downloadUrl('/home/user/no-such'))).status, 404)
  assert.equal((await get(await sandbox.downloadUrl('/home/user'))).status, 400)
  assert.equal((await get(await sandbox.downloadUrl('/home/user/note', { user: 'nobody-here' }))).status, 401)
})

test('a part of a file can be asked for', async () => {
  const sandbox = await common()
  await sandbox.files.write('/home/user/range', '0123456789')
  const url = await sandbox.downloadUrl('/home/user/range')
  const res = await fetch(url, { headers: { Range: 'bytes=2-5' } })
  assert.deepEqual([res.status, await res.text(), res.headers.get('content-range')], [206, '2345', 'bytes 2-5/10'])
  const tail = await fetch(url, { headers: { Range: 'bytes=-3' } })
  assert.deepEqual([tail.status, await tail.text()], [206, '789'])
  const beyond = await fetch(url, { headers: { Range: 'bytes=50-60' } })
  assert.equal(beyond.status, 416)
})

test('the signature is the one that the SDK documents', async () => {
  const sandbox = await common()
  await sandbox.files.write('/home/user/note', 'signed')
  const token = sandbox.envdAccessToken
  const { signature } = await getSignature({ path: '/home/user/note', operation: 'read', user: 'user', envdAccessToken: token })
  const url = `${process.env.E2B_SANDBOX_URL}/files?path=/home/user/note&username=user&signature=${encodeURIComponent(signature)}`
  assert.equal((await get(url)).text, 'signed')
})

// ---- tokens -------------------------------------------------------------------------------------

// A handle as a program would have it that was given no token, or another one.
const handle = (id, envdAccessToken) => new Sandbox({ sandboxId: id, envdVersion: '0.6.13', envdAccessToken })

async function locked(sandbox) {
  await rejects(sandbox.commands.run('true'), AuthenticationError)
  await rejects(sandbox.commands.list(), AuthenticationError)
  await rejects(sandbox.files.list('/'), AuthenticationError)
  await rejects(sandbox.files.read('/etc/hostname'), AuthenticationError)
  await rejects(sandbox.files.write('/tmp/x', 'x'), AuthenticationError)
  await rejects(sandbox.files.watchDir('/tmp', () => {}), AuthenticationError)
  assert.equal(await sandbox.isRunning(), true, 'health needs no token')
}

test('v2: always secured; no token, a wrong one, one of another sandbox', async () => {
  const sandbox = await fresh()
  const other = await fresh()
  assert.ok(sandbox.envdAccessToken, 'a token came with it')
  assert.notEqual(sandbox.envdAccessToken, other.envdAccessToken)
  await locked(handle(sandbox.sandboxId))
  await locked(handle(sandbox.sandboxId, 'wrong'))
  await locked(handle(sandbox.sandboxId, other.envdAccessToken))
  assert.equal(await sh(handle(sandbox.sandboxId, sandbox.envdAccessToken), 'echo open'), 'open')
})

test('the token is the same after connect and after a pause', async () => {
  const sandbox = await fresh()
  assert.equal((await Sandbox.connect(sandbox.sandboxId)).envdAccessToken, sandbox.envdAccessToken)
  await sandbox.pause()
  assert.equal((await Sandbox.connect(sandbox.sandboxId)).envdAccessToken, sandbox.envdAccessToken)
})

test('v1: secured only if asked', async () => {
  const make = async (body) => {
    const { status, json } = await api('POST', '/sandboxes', { body: { templateID: 'base', timeout: 60, ...body } })
    assert.equal(status, 201)
    mine(handle(json.sandboxID))
    return json
  }
  for (const body of [{}, { secure: false }]) {
    const open = await make(body)
    assert.equal(open.envdAccessToken ?? null, null)
    const sandbox = handle(open.sandboxID)
    assert.equal(await sh(sandbox, 'echo open'), 'open')
    await sandbox.files.write('/tmp/x', 'x')
    assert.equal(await sandbox.files.read('/tmp/x'), 'x')
    await rejects(sandbox.downloadUrl('/tmp/x', { useSignatureExpiration: 10 }), InvalidArgumentError)
    assert.ok(!(await sandbox.downloadUrl('/tmp/x')).includes('signature'))
    const { status } = await toPort(sandbox, 49983, { path: '/files?path=/tmp/x' })
    assert.equal(status, 200, 'no signature is needed')
  }
  const closed = await make({ secure: true })
  assert.ok(closed.envdAccessToken)
  await locked(handle(closed.sandboxID))
  assert.equal(await sh(handle(closed.sandboxID, closed.envdAccessToken), 'echo open'), 'open')
})

await run()
