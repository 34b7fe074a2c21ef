// E2B's network options through its SDK, against a server in the test bed of tests/egress: what its users expect of them is
// what the hosts of that internet see.
import { assert, e2b, eventually, mine, rejects, refused, run, same, Sandbox, test } from './lib.mjs'
import { enter, now, proxied, root, world } from './bed.mjs'
import { start, stop } from './server.mjs'
import { Client } from './v1.mjs'

enter()
const { ALL_TRAFFIC, SandboxNotFoundError } = e2b
const { A, B, EVIL, TALK } = world
const server = await start(undefined, undefined, ['--egress-dns', world.DNS, '--egress-roots', root, '--prices', 'egress=1/M'])
const as = server.as

const make = async (opts) => mine(await Sandbox.create('base', { ...as, ...opts }))
// Who answers at a URL; null if nobody does.
async function who(sandbox, url, options = '') {
  const { stdout } = await sandbox.commands.run(`curl -ksS -m 8 ${options} '${url}' 2>/dev/null || true`)
  try {
    return JSON.parse(stdout).who
  } catch {
    return null
  }
}
const headers = (request, name) => request.headers.filter(([n]) => n.toLowerCase() === name.toLowerCase()).map(([, v]) => v)

// ---- who may be reached -------------------------------------------------------------------------

test('without options the internet is there, and nothing of the inside', async () => {
  const sandbox = await make()
  same(await who(sandbox, 'https://a.test/'), 'a')
  same(await who(sandbox, `http://${B}/`), 'b')
  const seen = now()
  for (const url of ['http://169.254.169.254/', 'http://10.9.9.9/', `http://${world.EDGE4}/`, 'http://metadata.rebind.test/']) same(await who(sandbox, url), null, url)
  assert.deepEqual(seen.arrived(), [])
})

test('allowInternetAccess: false', async () => {
  const sandbox = await make({ allowInternetAccess: false })
  const seen = now()
  for (const url of ['http://a.test/', `http://${A}/`, `https://${EVIL}/`]) same(await who(sandbox, url), null, url)
  assert.deepEqual([seen.arrived(), seen.queries()], [[], []])
  same((await sandbox.getInfo()).allowInternetAccess, false)
})

test('denyOut: an address, a network, all traffic', async () => {
  const one = await make({ network: { denyOut: [EVIL] } })
  assert.deepEqual([await who(one, `http://${A}/`), await who(one, `http://${EVIL}/`)], ['a', null])
  const some = await make({ network: { denyOut: ['93.184.216.0/24'] } })
  assert.deepEqual([await who(some, `http://${A}/`), await who(some, 'http://a.test/'), await who(some, `http://${EVIL}/`)], [null, null, 'evil'])
  const all = await make({ network: { denyOut: ({ allTraffic }) => [allTraffic] } })
  const seen = now()
  assert.deepEqual([await who(all, `http://${A}/`), await who(all, 'http://[2606:2800::1]/')], [null, null])
  assert.deepEqual(seen.arrived(), [])
})

test('allowOut is stronger than denyOut', async () => {
  const address = await make({ network: { allowOut: [A], denyOut: [ALL_TRAFFIC] } })
  assert.deepEqual([await who(address, `http://${A}/`), await who(address, `http://${B}/`), await who(address, `http://${EVIL}/`)], ['a', null, null])
  const network = await make({ network: { allowOut: ['93.184.216.34/31'], denyOut: ['93.184.216.0/24'] } })
  assert.deepEqual([await who(network, `http://${A}/`), await who(network, `http://${B}/`), await who(network, `http://${TALK}/`), await who(network, `http://${EVIL}/`)], ['a', 'b', null, 'evil'])
  const wins = await make({ allowInternetAccess: false, network: { allowOut: [A] } })
  assert.deepEqual([await who(wins, `http://${A}/`), await who(wins, `http://${B}/`)], ['a', null])
  const all = await make({ network: { allowOut: [ALL_TRAFFIC], denyOut: [ALL_TRAFFIC] } })
  same(await who(all, `http://${EVIL}/`), 'evil')
})

test('allowOut: names and wildcards', async () => {
  const sandbox = await make({ network: { allowOut: ['a.test', '*.b.test'], denyOut: ({ allTraffic }) => [allTraffic] } })
  const seen = now()
  for (const [url, name] of [['https://a.test/', 'a'], ['http://a.test/', 'a'], ['https://x.b.test/', 'b'], ['http://x.y.b.test:8080/', 'b'], ['http://b.test/', null], ['http://www.a.test/', null], ['https://evil.test/', null], [`https://${A}/`, null]])
    same(await who(sandbox, url), name, url)
  same(await who(sandbox, `https://a.test/`, `--resolve a.test:443:${EVIL}`), 'a', 'to where the name is, whatever the sandbox says')
  assert.deepEqual(seen.arrived(), [A, B])
  assert.deepEqual(seen.queries().filter((name) => !['a.test', 'x.b.test', 'x.y.b.test'].includes(name)), [], 'others are not even asked about')
})

// ---- rules --------------------------------------------------------------------------------------

const rule = (headers) => [{ transform: { headers } }]

test('rules set headers, and replace those that were given', async () => {
  const rules = { 'a.test': rule({ Authorization: 'Bearer of-the-rule', 'X-New': 'yes' }) }
  const sandbox = await make({ network: { rules } })
  for (const scheme of ['https', 'http']) {
    const seen = now()
    const { stdout } = await sandbox.commands.run(`curl -sS -m 8 -H 'authorization: mine' ${scheme}://a.test/who`)
    same(JSON.parse(stdout).who, 'a')
    const [request] = seen.requests(A)
    assert.deepEqual([headers(request, 'authorization'), headers(request, 'x-new')], [['Bearer of-the-rule'], ['yes']], scheme)
  }
  const seen = now()
  same(await who(sandbox, 'https://x.b.test/', "-H 'authorization: mine'"), 'b', 'others are left alone')
  assert.deepEqual(headers(seen.requests(B)[0], 'authorization'), ['mine'])
})

test('a rule does not allow its domain; allowOut may be made of the rules', async () => {
  const rules = { 'a.test': rule({ 'X-Rule': '1' }) }
  const closed = await make({ network: { rules, denyOut: [ALL_TRAFFIC] } })
  same(await who(closed, 'http://a.test/'), null)
  const open = await make({ network: { rules, allowOut: (context) => [...context.rules.keys()], denyOut: [ALL_TRAFFIC] } })
  assert.deepEqual([await who(open, 'https://a.test/'), await who(open, 'https://x.b.test/')], ['a', null])
})

test('rules for wildcards: the exact one first, then the longest', async () => {
  const rules = { '*.B.test': rule({ 'X-Rule': 'wide' }), '*.y.b.test': rule({ 'X-Rule': 'narrow' }), 'z.y.b.test': rule({ 'X-Rule': 'exact' }) }
  const sandbox = await make({ network: { rules, allowOut: ['*.b.test', 'b.test'], denyOut: [ALL_TRAFFIC] } })
  assert.deepEqual(Object.keys((await sandbox.getInfo()).network.rules).sort(), ['*.b.test', '*.y.b.test', 'z.y.b.test'])
  for (const [name, value] of [['x.b.test', ['wide']], ['q.r.b.test', ['wide']], ['x.y.b.test', ['narrow']], ['z.y.b.test', ['exact']], ['b.test', []]]) {
    const seen = now()
    same(await who(sandbox, `http://${name}/`), 'b', name)
    assert.deepEqual(headers(seen.requests(B)[0], 'x-rule'), value, name)
  }
})

test('what rules may be, in words of E2B', async () => {
  const refuse = (rules, words) => refused(Sandbox.create('base', { ...as, network: { rules } }), 400, words)
  const many = (n, make) => Object.fromEntries(Array.from({ length: n }, (_, i) => make(i)))
  await refuse(many(11, (i) => [`h${i}.test`, rule({ A: 'b' })]), /Network rules can have at most 10 domains\./)
  await refuse({ 'a.test': [...rule({ A: 'b' }), ...rule({ C: 'd' })] }, /Domain "a\.test" can have at most 1 transform rule\./)
  await refuse({ 'a.test': rule(many(21, (i) => [`X-${i}`, 'v'])) }, /Domain "a\.test" can have at most 20 headers per rule\./)
  await refuse({ 'a.test': rule({ 'bad name': 'v' }) }, /must contain only valid HTTP token characters\./)
  await refuse({ 'a.test': rule({ ['N'.repeat(65)]: 'v' }) }, /exceeds maximum length of 64/)
  await refuse({ 'a.test': rule({ A: 'v'.repeat(2049) }) }, /exceeds maximum length of 2048/)
  await refuse({ 'a.test': rule({ A: 'x\r\nInjected: y' }) }, /contains invalid/)
  await refuse({ '*': rule({ A: 'b' }) }, /Rule domain "\*" is not a valid domain name\./)
  await refuse({ 'a..test': rule({ A: 'b' }) }, /is not a valid domain name\./)
  await refuse({ [`${'x'.repeat(130)}.test`]: rule({ A: 'b' }) }, /exceeds maximum length of 128 characters\./)
})

// ---- changes ------------------------------------------------------------------------------------

test('updateNetwork replaces all of it, at once', async () => {
  const sandbox = await make({ network: { allowOut: ['a.test'], denyOut: [ALL_TRAFFIC], rules: { 'a.test': rule({ 'X-Rule': '1' }) } } })
  same(await who(sandbox, 'https://a.test/'), 'a')
  await sandbox.updateNetwork({ allowOut: ['*.b.test'], denyOut: ({ allTraffic }) => [allTraffic] })
  assert.deepEqual([await who(sandbox, 'http://a.test/'), await who(sandbox, 'https://x.b.test/')], [null, 'b'])
  const { network } = await sandbox.getInfo()
  assert.deepEqual([network.allowOut, network.denyOut, network.rules ?? {}], [['*.b.test'], [ALL_TRAFFIC], {}])
  await sandbox.updateNetwork({})
  same(await who(sandbox, `http://${EVIL}/`), 'evil', 'what is left out is cleared')
  await Sandbox.updateNetwork(sandbox.sandboxId, { allowInternetAccess: false }, as)
  const seen = now()
  assert.deepEqual([await who(sandbox, `http://${EVIL}/`), await who(sandbox, 'http://a.test/')], [null, null])
  assert.deepEqual([seen.arrived(), seen.queries()], [[], []])
})

test('updateNetwork cuts what it forbids', async () => {
  const sandbox = await make()
  const seen = now()
  const download = sandbox.commands.run(`curl -s -m 60 -o /dev/null http://${A}/forever`, { timeoutMs: 0 })
  download.catch(() => {}) // it may fail before it is waited for below
  while (seen.requests(A).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  const began = Date.now()
  await sandbox.updateNetwork({ denyOut: [A] })
  await assert.rejects(download, e2b.CommandExitError)
  assert.ok(Date.now() - began < 20_000, 'long before its time')
})

test('updateNetwork: what cannot be', async () => {
  const sandbox = await make({ network: { denyOut: [EVIL] } })
  await refused(sandbox.updateNetwork({ allowOut: ['a.test'] }), 400, /When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic\./)
  await refused(sandbox.updateNetwork({ denyOut: ['300.0.0.1/8'] }), 400, /invalid denied CIDR 300\.0\.0\.1\/8/)
  await refused(sandbox.updateNetwork({ denyOut: ['a.test'] }), 400, /invalid denied CIDR a\.test/)
  assert.deepEqual([await who(sandbox, `http://${A}/`), await who(sandbox, `http://${EVIL}/`)], ['a', null], 'all stays as it was')
  await rejects(Sandbox.updateNetwork('i' + '0'.repeat(19), {}, as), SandboxNotFoundError)
  await sandbox.pause()
  await refused(sandbox.updateNetwork({}), 409)
  await sandbox.connect()
  assert.deepEqual([await who(sandbox, `http://${A}/`), await who(sandbox, `http://${EVIL}/`)], ['a', null], 'after a pause too')
})

test('forks and pauses keep it', async () => {
  const sandbox = await make({ network: { allowOut: ['a.test'], denyOut: [ALL_TRAFFIC] } })
  await sandbox.pause()
  await sandbox.connect()
  for (const one of [sandbox, ...(await sandbox.fork({ count: 2 })).map(mine)])
    assert.deepEqual([await who(one, 'http://a.test/'), await who(one, `http://${EVIL}/`)], ['a', null])
})

// ---- the proxy ----------------------------------------------------------------------------------

const proxy = { address: `proxy.test:${world.PROXY_PORT}`, username: world.PROXY_USER, password: world.PROXY_PASSWORD }

test('egressProxy: filtered first, then through the proxy, by name', async () => {
  const sandbox = await make({ network: { allowOut: ['a.test'], denyOut: [ALL_TRAFFIC], egressProxy: proxy, rules: { 'a.test': rule({ 'X-Rule': '1' }) } } })
  const seen = now()
  same(await who(sandbox, 'https://a.test/'), 'a')
  assert.ok(proxied().includes('a.test:443'), 'it was given the name')
  assert.deepEqual(headers(seen.requests(A)[0], 'x-rule'), ['1'], 'rules count all the same')
  same(await who(sandbox, `http://${EVIL}/`), null)
  assert.deepEqual(seen.arrived(), [world.PROXY])
  assert.ok(!JSON.stringify(await sandbox.getInfo()).includes(world.PROXY_PASSWORD), 'the password is not told back')
})

test('egressProxy: an address without a list; a change', async () => {
  const sandbox = await make({ network: { egressProxy: { ...proxy, address: `${world.PROXY}:${world.PROXY_PORT}` } } })
  const seen = now()
  same(await who(sandbox, `http://${B}/`), 'b')
  assert.deepEqual(seen.arrived(), [world.PROXY])
  await sandbox.updateNetwork({})
  same(await who(sandbox, `http://${B}/`), 'b')
  assert.deepEqual(seen.arrived(), [world.PROXY, B].sort())
})

test('egressProxy: what cannot be, and one that does not work', async () => {
  const refuse = (egressProxy, words) => refused(Sandbox.create('base', { ...as, network: { egressProxy } }), 400, words)
  await refuse({ address: '' }, /egress proxy address must not be empty/)
  await refuse({ address: 'proxy.test' }, /egress proxy address must be in host:port/)
  await refuse({ address: 'proxy.test:0' }, /egress proxy port/)
  await refuse({ address: 'proxy.test:1080', password: 'x' }, /egress proxy password must be empty/)
  const sandbox = await make({ network: { egressProxy: { ...proxy, password: 'wrong' } } })
  const seen = now()
  same(await who(sandbox, `http://${A}/`), null)
  assert.deepEqual(seen.arrived(), [world.PROXY], 'not past it')
})

// ---- what it comes to ---------------------------------------------------------------------------

test('bytes that went out and came in are use of the conversation, and cost', async () => {
  const v1 = new Client(server), talk = `egress-${Date.now()}`
  const { context } = await v1.obtain(talk, 'main', { template: 'base', network: { allowOut: [ALL_TRAFFIC] } })
  const sandbox = await Sandbox.connect(context.sandboxId, as)
  await sandbox.commands.run(`head -c 200000 /dev/zero | curl -sS --data-binary @- http://${A}/upload -o /dev/null; curl -sS http://${A}/download/700000 -o /dev/null`)
  await v1.gives(200, 'DELETE', `/v1/contexts/${context.id}`)
  const row = await eventually('it is counted', async () => {
    const [one] = (await v1.gives(200, 'GET', `/v1/usage?by=conversation&conversationId=${talk}`)).conversations
    return one?.egressBytes > 900_000 && one
  })
  assert.ok(row.egressBytesOut >= 200_000 && row.egressBytesOut < 210_000, JSON.stringify(row))
  assert.ok(row.egressBytesIn >= 700_000 && row.egressBytesIn < 710_000, JSON.stringify(row))
  same(row.egressBytes, row.egressBytesOut + row.egressBytesIn)
  same(row.cost.amount, row.cost.parts.egress)
  assert.ok(Math.abs(Number(row.cost.amount) - row.egressBytes / 2 ** 20) < 1e-9, JSON.stringify(row.cost))
})

test('a connection that was refused is an event', async () => {
  const v1 = new Client(server), sandbox = await make({ network: { denyOut: [EVIL] } })
  await who(sandbox, `http://${EVIL}/`)
  const [event] = await eventually('it is told', async () => {
    const { events } = await v1.gives(200, 'GET', `/v1/events?limit=10&types=egress.blocked&sandboxId=${sandbox.sandboxId}`)
    return events.length > 0 && events
  })
  assert.match(event.detail, new RegExp(`^${EVIL.replaceAll('.', '\\.')}:80: `))
})

test('the server ends in good order', async () => {
  same(await stop(server), 0)
})

await run()
