// Secrets: E2B's Secret of the SDK, `sandglass secret`, and what becomes of them on their way out of a sandbox. The
// internet is a few servers of this file on the loopback, which the server's operator lets be dialled.
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'
import { assert, e2b, eventually, mine, rejects, run, same, Sandbox, sh, test, unique } from './lib.mjs'
import { certificate, nameServer } from './names.mjs'
import { front, scratch, SG, start, stop } from './server.mjs'
import { surroundings, Terminal } from './terminal.mjs'

const { Secret, SecretError, SecretNotFoundError } = e2b

// ---- the internet -------------------------------------------------------------------------------

// What came, and an answer that gives all of it back: what a careless or hostile server does.
const seen = []
function echo(req, res) {
  seen.push({ host: req.headers.host.replace(/:.*/, ''), headers: req.headers })
  const text = JSON.stringify(req.headers)
  res.setHeader('x-echo', req.headers.authorization ?? 'none')
  res.end(`${text}\n${Buffer.from(req.headers.authorization ?? '').toString('base64')}\n`)
}
const listening = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)))

const names = await nameServer()
const made = certificate('api.test')
const PLAIN = await listening(http.createServer(echo))
const TLS = await listening(https.createServer({ key: made.key, cert: made.cert }, echo))
const server = await start(undefined, undefined, [
  '--egress-dns', `127.0.0.1:${names.address().port}`, '--egress-internal', '127.0.0.1', '--egress-roots', made.ca,
])
const as = server.as

// ---- helpers ------------------------------------------------------------------------------------

const name = () => `k-${unique()}`
const value = () => `value-${unique()}`
// With an allow-list of names the guard gives out addresses that stand for them: the loopback's would be the sandbox's own.
const reach = { allowOut: ['*.test'], denyOut: [e2b.ALL_TRAFFIC] }
const make = async (opts) => mine(await Sandbox.create('base', { ...as, network: reach, ...opts }))
const rule = (domain, headers) => ({ network: { ...reach, rules: { [domain]: [{ transform: { headers } }] } } })
const last = (host) => seen.filter((s) => s.host === host).at(-1)?.headers
const get = (sandbox, url, more = '') => sh(sandbox, `curl -sS -m 10 -D - ${more} ${url}`)
const hosts = (list) => ({ ...as, metadata: { 'sandglass.hosts': list } })

function sandglass(args, { input = '', env = {} } = {}) {
  const here = { ...surroundings, E2B_API_KEY: as.apiKey, E2B_API_URL: server.url, E2B_SANDBOX_URL: server.url, ...env }
  return new Promise((resolve) => {
    const child = execFile(SG, args, { env: here, timeout: 30_000 }, (err, stdout, stderr) =>
      resolve({ status: err ? (err.code ?? `signal ${err.signal}`) : 0, stdout, stderr }),
    )
    child.stdin.end(input)
  })
}

async function works(args, options) {
  const { status, stdout, stderr } = await sandglass(args, options)
  same(status, 0, `sandglass ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}

// Whether a text is in the memory of a process.
function inMemory(pid, text) {
  const fd = fs.openSync(`/proc/${pid}/mem`, 'r')
  try {
    for (const line of fs.readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
      const range = line.match(/^([0-9a-f]+)-([0-9a-f]+) r/)
      if (!range || /\[(vvar|vsyscall)/.test(line)) continue
      const from = parseInt(range[1], 16)
      const size = Math.min(parseInt(range[2], 16) - from, 1 << 28)
      const data = Buffer.alloc(size)
      try {
        if (data.subarray(0, fs.readSync(fd, data, 0, size, from)).includes(text)) return true
      } catch {}
    }
    return false
  } finally {
    fs.closeSync(fd)
  }
}

function onDisk(dir, text) {
  return fs.readdirSync(dir, { recursive: true, withFileTypes: true }).some((entry) => {
    const file = path.join(entry.path, entry.name)
    return entry.isFile() && fs.statSync(file).size < 1 << 28 && fs.readFileSync(file).includes(text)
  })
}

// ---- the SDK ------------------------------------------------------------------------------------

test('create, get, update, list, destroy', async () => {
  const n = name()
  const info = await Secret.create(n.toUpperCase(), value(), { ...as, metadata: { team: 'x' } })
  assert.deepEqual([info.name, info.version, info.metadata], [n, 1, { team: 'x' }])
  assert.match(info.secretId, /^sec_[a-z0-9]{20}$/)
  assert.ok(info.createdAt instanceof Date && +info.createdAt === +info.updatedAt)
  assert.deepEqual(await Secret.getInfo(info.secretId, as), info)
  const second = await Secret.update(n, value(), as)
  assert.deepEqual([second.secretId, second.version, second.metadata], [info.secretId, 2, { team: 'x' }])
  same((await Secret.update(info.secretId, value(), { ...as, metadata: {} })).version, 3)
  assert.deepEqual((await Secret.getInfo(n, as)).metadata, {})
  same(await Secret.exists(n, as), true)
  same(await Secret.destroy(n, as), true)
  same(await Secret.destroy(n, as), false)
  same(await Secret.exists(n, as), false)
})

test('the list, page by page', async () => {
  const made = []
  for (let i = 0; i < 5; i++) made.push((await Secret.create(name(), value(), as)).name)
  const pages = []
  for (const list = Secret.list({ ...as, limit: 2 }); list.hasNext;) pages.push(await list.nextItems())
  const all = pages.flat().map((s) => s.name)
  assert.deepEqual(all.slice(0, 5), made.reverse())
  assert.ok(pages.slice(0, -1).every((p) => p.length === 2))
  for (const n of made) await Secret.destroy(n, as)
})

test('what is refused', async () => {
  const n = name()
  await Secret.create(n, value(), as)
  await rejects(Secret.create(n, value(), as), SecretError, /^409: .*already exists/)
  await rejects(Secret.getInfo('nobody', as), SecretNotFoundError)
  await rejects(Secret.update('nobody', 'x', as), SecretNotFoundError)
  const err = await rejects(Secret.create(name(), 'two\nlines-hunter2', as), SecretError, /^400: /)
  assert.ok(!err.message.includes('hunter2'))
  await rejects(Secret.create('sec_x', 'x', as), SecretError, /^400: /)
  await rejects(Secret.create(name(), 'x', hosts('https://a.test')), SecretError, /^400: .*sandglass\.hosts/)
  await Secret.destroy(n, as)
})

test('a value is nowhere but sealed', async () => {
  const v = value()
  const n = name()
  await Secret.create(n, v, as)
  await Secret.update(n, v, as)
  same(onDisk(server.state, v), false, 'in the state directory')
  same(onDisk(server.state, n), true, 'the name is')
  assert.ok(!server.err.includes(v) && !server.out.includes(v), 'not in the log')
  same(inMemory(front(server), v), false, 'in the memory of the front')
  same(inMemory(front(server), n), true, '... where the name can be found')
  await Secret.destroy(n, as)
})

// ---- rules --------------------------------------------------------------------------------------

test('a rule puts a secret into a header, and what comes back is scrubbed', async () => {
  const [n, v] = [name(), value()]
  await Secret.create(n, v, as)
  const sandbox = await make(rule('api.test', { Authorization: `Bearer ${Secret.fill(n.toUpperCase())}` }))
  for (const url of [`http://api.test:${PLAIN}/`, `https://api.test:${TLS}/`]) {
    const answer = await get(sandbox, url)
    same(last('api.test')?.authorization, `Bearer ${v}`, url)
    assert.ok(!answer.includes(v), answer)
    assert.ok(!answer.includes(Buffer.from(`Bearer ${v}`).toString('base64')), answer)
  }
  await get(sandbox, `http://other.test:${PLAIN}/`)
  same(last('other.test').authorization, undefined, 'another host gets nothing')
  await Secret.destroy(n, as)
})

test('a new value counts at once in a sandbox that runs, and a removed one is gone', async () => {
  const [n, first, second] = [name(), value(), value()]
  await Secret.create(n, first, as)
  const sandbox = await make(rule('live.test', { 'X-Key': Secret.fill(n) }))
  await get(sandbox, `http://live.test:${PLAIN}/`)
  same(last('live.test')['x-key'], first)
  await Secret.update(n, second, as)
  await eventually('the new value', async () => {
    await get(sandbox, `http://live.test:${PLAIN}/`)
    return last('live.test')['x-key'] === second
  })
  await Secret.destroy(n, as)
  const before = seen.length
  await eventually('no value any more', async () => {
    const answer = await get(sandbox, `http://live.test:${PLAIN}/`)
    return /^HTTP\/1\.1 502/.test(answer) && seen.length >= before
  })
  assert.ok(!seen.slice(-1).some((s) => s.headers['x-key'] === ''))
})

test('a rule that names what is not there', async () => {
  const n = name()
  await rejects(make(rule('api.test', { 'X-Key': Secret.fill(n) })), e2b.SandboxError, new RegExp(`^400: .*'${n}'`))
  await Secret.create(n, value(), hosts('only.test'))
  await rejects(make(rule('api.test', { 'X-Key': Secret.fill(n) })), e2b.SandboxError, /^400: .*may not go to 'api\.test'/)
  const sandbox = await make({})
  const rules = rule('api.test', { 'X-Key': Secret.fill('nobody') }).network.rules
  await rejects(sandbox.updateNetwork({ rules }), e2b.SandboxError, /^400: .*'nobody'/)
  await Secret.destroy(n, as)
})

// ---- variables ----------------------------------------------------------------------------------

test('a variable has a placeholder, which is worth something toward its hosts alone', async () => {
  const [n, v] = [name(), value()]
  await Secret.create(n, v, hosts('api.test, *.wild.test'))
  const envs = { API_KEY: Secret.fill(n), PLAIN: 'plain' }
  const [sandbox, other] = [await make({ envs }), await make({ envs })]
  const inside = await sh(sandbox, 'echo $API_KEY')
  assert.match(inside, /^sgph_[0-9a-f]{32}$/)
  same(await sh(sandbox, 'echo $PLAIN'), 'plain')
  assert.notEqual(await sh(other, 'echo $API_KEY'), inside, 'one for each sandbox')
  const bearer = '-H "Authorization: Bearer $API_KEY"'
  for (const [url, host] of [[`https://api.test:${TLS}/`, 'api.test'], [`http://a.wild.test:${PLAIN}/`, 'a.wild.test']]) {
    const answer = await get(sandbox, url, bearer)
    same(last(host)?.authorization, `Bearer ${v}`, host)
    assert.ok(!answer.includes(v), answer)
  }
  await get(sandbox, `http://thief.test:${PLAIN}/`, bearer)
  same(last('thief.test').authorization, `Bearer ${inside}`, 'others get the placeholder')
  await get(sandbox, `http://api.test:${PLAIN}/?q=$API_KEY`, '-H "X-Other: $API_KEY"')
  same(last('api.test')['x-other'], inside, 'as do other headers')
  await get(sandbox, `http://api.test:${PLAIN}/`, '-u "user:$API_KEY"')
  same(last('api.test').authorization, `Basic ${Buffer.from(`user:${v}`).toString('base64')}`, 'inside Basic')
  same(await sh(sandbox, `grep -rl ${v} /proc/*/environ /etc /home /run /tmp 2>/dev/null | wc -l`, { user: 'root' }), '0')
  await Secret.destroy(n, as)
})

test('a secret without hosts is for rules alone', async () => {
  const n = name()
  await Secret.create(n, value(), as)
  await rejects(make({ envs: { K: Secret.fill(n) } }), e2b.SandboxError, /^400: .*sandglass\.hosts/)
  await rejects(make({ envs: { K: Secret.fill('nobody') } }), e2b.SandboxError, /^400: .*'nobody'/)
  await Secret.destroy(n, as)
})

test('a front that was killed knows them again', async () => {
  const [n, v] = [name(), value()]
  await Secret.create(n, v, hosts('api.test'))
  const sandbox = await make({ envs: { K: Secret.fill(n) } })
  const inside = await sh(sandbox, 'echo $K')
  process.kill(front(server), 'SIGKILL')
  await eventually('it answers', async () => (await fetch(`${server.url}/health`)).status === 204)
  same(await sh(sandbox, 'echo $K'), inside)
  await get(sandbox, `http://api.test:${PLAIN}/`, '-H "X-Api-Key: $K"')
  same(last('api.test')['x-api-key'], v)
  same((await Secret.getInfo(n, as)).version, 1)
  await Secret.destroy(n, as)
})

// ---- the command line ---------------------------------------------------------------------------

test('sandglass secret set, ls, show, rm', async () => {
  const [n, v] = [name(), value()]
  same(await works(['secret', 'set', n, '--host', 'api.test', '--host', '*.b.test'], { input: `${v}\n` }), `${n}: version 1\n`)
  const file = path.join(scratch, 'value')
  fs.writeFileSync(file, v)
  const answer = JSON.parse(await works(['secret', 'set', n, '--from-file', file, '--header', 'x-key', '--json']))
  assert.deepEqual([answer.name, answer.currentVersion], [n, 2])
  assert.deepEqual(answer.metadata, { 'sandglass.hosts': 'api.test,*.b.test', 'sandglass.headers': 'x-key' })
  assert.match(await works(['secret', 'ls', '-q']), new RegExp(`^${n}$`, 'm'))
  assert.match(await works(['secret', 'ls']), new RegExp(`^NAME .*\n(.*\n)*${n} +2 .*api\\.test,\\*\\.b\\.test`))
  const shown = await works(['secret', 'show', n])
  assert.match(shown, /^hosts +api\.test,\*\.b\.test$/m)
  assert.ok(JSON.parse(await works(['secret', 'ls', '--json'])).some((s) => s.secretID === answer.secretID))
  const sandbox = await make({ envs: { K: Secret.fill(n) } })
  await get(sandbox, `http://api.test:${PLAIN}/`, '-H "X-Key: $K"')
  same(last('api.test')['x-key'], v, 'the value is what was given')
  same(await works(['secret', 'rm', n]), `${n}\n`)
  const gone = await sandglass(['secret', 'show', n])
  assert.deepEqual([gone.status, gone.stdout], [1, ''])
  assert.match(gone.stderr, /doesn't exist/)
})

test('a value that cannot be, and one on the command line', async () => {
  const n = name()
  for (const [input, words] of [['', /empty/], ['a\nb\n', /several lines/], [Buffer.from([0x41, 0xff]), /UTF-8/]]) {
    const { status, stderr } = await sandglass(['secret', 'set', n], { input })
    same(status, 1, stderr)
    assert.match(stderr, words)
  }
  const { status, stderr } = await sandglass(['secret', 'set', n, 'hunter2'])
  same(status, 2)
  assert.ok(!stderr.includes('hunter2') && stderr.includes('--from-file'), stderr)
})

test('on a terminal it is asked for and not shown', async () => {
  const [n, v] = [name(), value()]
  const term = new Terminal()
  try {
    term.type(`export E2B_API_KEY=${as.apiKey} E2B_API_URL=${server.url}; ${SG} secret set ${n}`)
    await term.shows(/Value of .* \(it is not shown\): /)
    term.type(v)
    await term.shows(new RegExp(`${n}: version 1`))
    assert.ok(!term.screen().includes(v))
    term.type(`${SG} secret set ${n}`)
    await term.shows(/Value of [^]*Value of .* \(it is not shown\): /)
    term.press('C-c')
    term.type('echo shown again')
    await term.shows(/echo shown again\nshown again/)
    same((await Secret.getInfo(n, as)).version, 1)
  } finally {
    term.end()
  }
  await Secret.destroy(n, as)
})

test('the server ends in good order', async () => {
  same(await stop(server), 0)
})

await run()
