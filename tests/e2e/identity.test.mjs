// Identity tokens: iam.tokens of a create, as the SDK sends it, what a server outside gets of it through the guard, and
// how it checks that. The internet is a server of this file on the loopback.
import crypto from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { assert, e2b, eventually, mine, rejects, run, same, Sandbox, sh, test } from './lib.mjs'
import { nameServer } from './names.mjs'
import { Postgres } from './postgres.mjs'
import { freePort, front, start, stop } from './server.mjs'

const { Secret } = e2b

const seen = []
const web = http.createServer((req, res) => {
  seen.push(req.headers)
  res.setHeader('x-echo', req.headers.authorization ?? 'none')
  // All that it was ever given, in two forms: what a careless or hostile server does.
  const all = JSON.stringify(seen)
  res.end(`${all}\n${Buffer.from(all).toString('base64')}\n`)
})
const PORT = await new Promise((resolve) => web.listen(0, '127.0.0.1', () => resolve(web.address().port)))
const names = await nameServer()
const OPTIONS = ['--egress-dns', `127.0.0.1:${names.address().port}`, '--egress-internal', '127.0.0.1']
const server = await start(undefined, undefined, OPTIONS)
const as = server.as

const reach = { allowOut: ['*.test'], denyOut: [e2b.ALL_TRAFFIC] }
const iam = { tokens: { aws: Secret.iamToken({ audience: 'sts.amazonaws.com', tokenType: 'JWT-SVID' }), 'b.c-d e': { audience: 'https://b.test/x', tokenType: 'JWT-SVID' } } }
const rules = (headers, host = 'api.test') => ({ ...reach, rules: { [host]: [{ transform: ({ iam }) => ({ headers: headers(iam.tokens) }) }] } })
const bearer = (tokens) => ({ Authorization: `Bearer ${tokens.aws}` })
const make = async (opts = {}) => mine(await Sandbox.create('base', { ...as, iam, network: rules(bearer), ...opts }))
const get = (sandbox, host = 'api.test') => sh(sandbox, `curl -sS -m 10 -D - http://${host}:${PORT}/`)
const sent = () => seen.at(-1).authorization.replace(/^Bearer /, '')
const part = (token, i) => JSON.parse(Buffer.from(token.split('.')[i], 'base64url'))
const post = (body, key = as.apiKey) =>
  fetch(`${server.url}/v2/sandboxes`, { method: 'POST', headers: { 'X-API-Key': key, 'Content-Type': 'application/json' }, body: JSON.stringify({ templateID: 'base', ...body }) })

// As a server outside does it: from the issuer's address to the keys to the signature.
async function verify(token, audience, at = server.url) {
  const about = await (await fetch(`${at}/.well-known/openid-configuration`)).json()
  const { keys } = await (await fetch(at === server.url ? about.jwks_uri : `${at}/.well-known/jwks.json`)).json()
  const [head, claims] = [part(token, 0), part(token, 1)]
  const jwk = keys.find((k) => k.kid === head.kid)
  assert.ok(jwk, `a key ${head.kid} among ${JSON.stringify(keys)}`)
  assert.deepEqual([head.alg, head.typ, jwk.alg, jwk.use], ['ES256', 'JWT', 'ES256', 'sig'])
  const [signed, signature] = [token.slice(0, token.lastIndexOf('.')), Buffer.from(token.split('.')[2], 'base64url')]
  const key = { key: crypto.createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' }
  const now = Date.now() / 1000
  return crypto.verify('sha256', Buffer.from(signed), key, signature) && claims.iss === about.issuer &&
    claims.aud === audience && claims.exp > now && claims.nbf <= now + 5
}

test('the well-known addresses need no key', async () => {
  const about = await (await fetch(`${server.url}/.well-known/openid-configuration`)).json()
  assert.deepEqual([about.issuer, about.jwks_uri], [server.url, `${server.url}/.well-known/jwks.json`])
  assert.deepEqual(about.id_token_signing_alg_values_supported, ['ES256'])
  const { keys } = await (await fetch(about.jwks_uri)).json()
  assert.ok(keys.length >= 2, 'the present key and the next')
  for (const k of keys) assert.deepEqual(Object.keys(k).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
  same((await fetch(`${server.url}/.well-known/other`)).status, 404)
  const { status, headers } = await fetch(about.jwks_uri, { method: 'POST' })
  assert.deepEqual([status, headers.get('allow')], [405, 'GET'])
})

test('a rule puts a token into a header, and whoever gets it can check it', async () => {
  const sandbox = await make()
  const answer = await get(sandbox)
  const token = sent()
  same(await verify(token, 'sts.amazonaws.com'), true)
  const claims = part(token, 1)
  same(claims.sub, `spiffe://127.0.0.1/tenant/default/template/base/sandbox/${sandbox.sandboxId}`)
  assert.deepEqual([claims.sandbox_id, claims.tenant, claims.template], [sandbox.sandboxId, 'default', 'base'])
  assert.ok(claims.exp - claims.iat <= 600 && claims.jti.length >= 16, JSON.stringify(claims))
  // Nothing of it comes back, and nothing of it is inside.
  const half = token.slice(0, token.length / 2)
  for (const text of [token, half, Buffer.from(token).toString('base64').slice(4, -8)]) assert.ok(!answer.includes(text), answer)
  same(await sh(sandbox, `grep -rl '${token.slice(-40)}' /proc/*/environ /etc /home /run /tmp 2>/dev/null | wc -l`, { user: 'root' }), '0')
  // Another host has no rule.
  await get(sandbox, 'other.test')
  same(seen.at(-1).authorization, undefined)
})

test('audience, name and sandbox are those that were asked for', async () => {
  const network = rules((tokens) => ({ Authorization: `Bearer ${tokens['b.c-d e']}`, 'X-Two': `${tokens.aws},${tokens.aws}`, 'X-Typo': '${e2b.identity.tokens.nobody}' }))
  const [one, two] = [await make({ network }), await make()]
  await get(one)
  const first = sent()
  same(part(first, 1).aud, 'https://b.test/x')
  same(await verify(first, 'sts.amazonaws.com'), false, 'for another audience')
  const [a, b] = seen.at(-1)['x-two'].split(',')
  same(await verify(a, 'sts.amazonaws.com'), true)
  same(a, b)
  same(seen.at(-1)['x-typo'], '${e2b.identity.tokens.nobody}', 'as at E2B')
  await get(two)
  assert.notEqual(part(sent(), 1).sub, part(first, 1).sub)
  assert.notEqual(part(sent(), 1).jti, part(a, 1).jti)
})

test('a token cannot be forged', async () => {
  const sandbox = await make()
  await get(sandbox)
  const [head, body, signature] = sent().split('.')
  const claims = { ...part(sent(), 1), sub: 'spiffe://127.0.0.1/tenant/other/template/base/sandbox/x' }
  const b64 = (o) => Buffer.from(JSON.stringify(o)).toString('base64url')
  same(await verify(`${head}.${b64(claims)}.${signature}`, claims.aud), false, 'other claims')
  const { privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const own = crypto.sign('sha256', Buffer.from(`${head}.${body}`), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')
  same(await verify(`${head}.${body}.${own}`, claims.aud), false, 'another key')
})

test('a new network, a fork and a resume keep the tokens', async () => {
  const sandbox = await make({ network: reach })
  await get(sandbox)
  same(seen.at(-1).authorization, undefined)
  const { allowOut, denyOut } = reach
  await sandbox.updateNetwork({ allowOut, denyOut, rules: { 'api.test': [{ transform: ({ iam }) => ({ headers: bearer(iam.tokens) }) }] } })
  await get(sandbox)
  same(await verify(sent(), 'sts.amazonaws.com'), true)
  const [copy] = await sandbox.fork()
  mine(copy)
  await get(copy)
  same(part(sent(), 1).sandbox_id, copy.sandboxId)
  await sandbox.pause({ keepMemory: false })
  await sandbox.connect()
  await get(sandbox)
  same(part(sent(), 1).sandbox_id, sandbox.sandboxId)
})

test('what is refused', async () => {
  const token = { audience: 'a', tokenType: 'JWT-SVID' }
  for (const [tokens, words] of [
    [{ '': token }, /^iam\.tokens: token name must not be empty/],
    [{ t: { ...token, audience: '' } }, /^iam\.tokens\.t\.audience: audience is required/],
    [{ t: { ...token, tokenType: 'OIDC' } }, /^iam\.tokens\.t\.tokenType: only "JWT-SVID" is supported/],
    [{ 'a}b': token }, /braces/],
    [{ t: 7 }, /iam\.tokens\.t|object/],
    [Object.fromEntries([1, 2, 3, 4, 5, 6].map((i) => [`t${i}`, token])), /^iam\.tokens: too many tokens: 6 \(max 5\)/],
  ]) {
    const answer = await post({ iam: { tokens } })
    const { message } = await answer.json()
    same(answer.status, 400, message)
    assert.match(message, words)
  }
  await rejects(make({ network: rules((tokens) => ({ A: tokens.nobody })) }), e2b.InvalidArgumentError)
  for (const tokens of [{}, undefined]) same((await post({ iam: { tokens }, timeout: 1 })).status, 201)
})

test('tokens are in no log, on no disk, and not in the record', async () => {
  const tokens = seen.map((h) => h.authorization?.replace(/^Bearer /, '')).filter(Boolean)
  assert.ok(tokens.length > 3)
  const files = fs.readdirSync(server.state, { recursive: true, withFileTypes: true }).filter((f) => f.isFile())
  const texts = [server.out, server.err, ...files.map((f) => fs.readFileSync(path.join(f.path, f.name), 'latin1'))]
  for (const token of tokens) assert.ok(!texts.some((text) => text.includes(token.slice(-40))), 'found')
  await eventually('its use is on record', async () => {
    const answer = await fetch(`${server.url}/v1/audit?kind=token`, { headers: { 'X-API-Key': as.apiKey } })
    return (await answer.json()).records.some((r) => r.name === 'api.test')
  })
})

test('a front that was killed knows them again', async () => {
  const sandbox = await make()
  process.kill(front(server), 'SIGKILL')
  await eventually('the keys are there again', async () => (await fetch(`${server.url}/.well-known/jwks.json`)).status === 200)
  await get(sandbox)
  same(await verify(sent(), 'sts.amazonaws.com'), true)
})

test('servers that share a database know each other\'s keys, under one issuer', async () => {
  const pg = new Postgres()
  const issuer = `http://127.0.0.1:${await freePort()}`
  const more = [...OPTIONS, '--store', pg.url, '--identity-issuer', issuer]
  const both = await Promise.all([start(undefined, undefined, more), start(undefined, undefined, more)])
  const sandbox = mine(await Sandbox.create('base', { ...both[0].as, iam, network: rules(bearer) }))
  await get(sandbox)
  same(part(sent(), 1).iss, issuer)
  for (const { url } of both)
    await eventually('it has the key', async () => (await verify(sent(), 'sts.amazonaws.com', url).catch(() => false)), 30)
  await sandbox.kill()
  same(await stop(both[0]), 0)
  same(await stop(both[1]), 0)
  pg.stop()
}, { seconds: 60 })

test('the server ends in good order', async () => {
  same(await stop(server), 0)
})

await run()
