// Accounts and administration as E2B has them: teams and their metrics, keys, access tokens, nodes, and
// what whoever runs the server may do to a team. The attacks are here too: whose token opens what.
import { execFileSync } from 'node:child_process'
import { assert, e2b, eventually, rejects, run, Sandbox, test, unique } from './lib.mjs'
import { killFront, SG, start, stop } from './server.mjs'

const server = await start()
const key = (...args) => execFileSync(SG, ['key', ...args, '--state', server.state], { encoding: 'utf8' }).trim()
const listed = () => JSON.parse(key('list', '--json'))
const admin = key('create', '--admin', '--name', 'ops')
const acme = key('create', '--tenant', 'acme')
const beta = key('create', '--tenant', 'beta')
const id = Object.fromEntries(['acme', 'beta'].map((name) => [name, undefined]))

async function call(method, path, headers, body) {
  const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const a = await fetch(server.url + path, { method, headers: { 'Content-Type': 'application/json', ...headers }, ...sent })
  const text = await a.text()
  let json
  try { json = JSON.parse(text) } catch {}
  return { status: a.status, json, text, headers: a.headers }
}
const operator = { 'X-Admin-Token': admin }
const of = (team) => ({ ...operator, 'X-Team-ID': team })
const as = (k) => ({ 'X-API-Key': k })
const sdk = (k) => ({ ...server.as, apiKey: k })
// Errors have E2B's shape, and no more.
function refused(a, status, message = /./) {
  assert.equal(a.status, status, a.text)
  assert.deepEqual(Object.keys(a.json), ['code', 'message'])
  assert.equal(a.json.code, status)
  assert.match(a.json.message, message)
}

test('the first start says how to make more keys, here too', async () => {
  assert.ok(server.out.includes(`More keys: sandglass key create --state ${server.state}\n`), server.out)
})

test('teams: the operator sees all, and no key is made for that', async () => {
  const before = listed().length
  const { status, json } = await call('GET', '/teams', operator)
  assert.equal(status, 200)
  assert.deepEqual(json.map((t) => [t.name, t.isDefault, t.apiKey]), [['acme', false, ''], ['beta', false, ''], ['default', true, '']])
  for (const team of json) if (team.name in id) id[team.name] = team.teamID
  assert.equal(listed().length, before)
})

test('a team’s key opens nothing of this, nor does a wrong token, nor the token in another place', async () => {
  const routes = [
    ['GET', '/teams'], ['GET', '/api-keys'], ['POST', '/api-keys', { name: 'x' }], ['PATCH', '/api-keys/x', { name: 'x' }],
    ['DELETE', '/api-keys/x'], ['POST', '/access-tokens', { name: 'x' }], ['DELETE', '/access-tokens/x'], ['GET', '/nodes'],
    ['GET', '/nodes/x'], ['POST', '/nodes/x', { status: 'draining' }], ['GET', '/admin/sandboxes/running-counts'],
    ['POST', `/admin/teams/${id.beta}/sandboxes/kill`], ['POST', `/admin/teams/${id.beta}/builds/cancel`],
    ['GET', `/admin/teams/${id.beta}/api-keys`], ['POST', `/admin/teams/${id.beta}/api-keys`, { name: 'x' }],
    ['DELETE', `/admin/teams/${id.beta}/api-keys/x`],
  ]
  const wrong = `admin_e2b_${'0'.repeat(40)}`
  const tries = [
    {}, as(acme), { Authorization: `Bearer ${acme}` }, { 'X-Admin-Token': acme, 'X-Team-ID': id.acme }, { 'X-Admin-Token': wrong, 'X-Team-ID': id.acme },
    { 'X-Admin-Token': `admin_${acme}`, 'X-Team-ID': id.acme }, { 'X-Admin-Token': '', ...as(acme) }, { ...as(admin), 'X-Team-ID': id.acme },
    { Authorization: `Bearer ${admin}`, 'X-Team-ID': id.acme }, { 'X-Team-ID': id.acme },
  ]
  for (const [method, path, body] of routes)
    for (const headers of tries) refused(await call(method, path, headers, body), 401)
  assert.equal(listed().filter((k) => k.name === 'x').length, 0)
})

test('the operator’s token is no tenant: it opens no route of theirs', async () => {
  const sandbox = await Sandbox.create(sdk(acme))
  const routes = [['GET', '/sandboxes'], ['GET', '/v2/sandboxes'], ['POST', '/sandboxes', { templateID: 'base' }], ['GET', `/sandboxes/${sandbox.sandboxId}`],
    ['DELETE', `/sandboxes/${sandbox.sandboxId}`], ['GET', '/templates'], ['GET', '/volumes'], ['GET', '/secrets'], ['GET', '/v1/contexts'], ['GET', '/v1/events'], ['GET', '/nowhere']]
  for (const [method, path, body] of routes)
    for (const headers of [operator, of(id.acme), as(admin), { Authorization: `Bearer ${admin}` }, { ...as(admin), ...of(id.acme) }])
      assert.equal((await call(method, path, headers, body)).status, 401, `${method} ${path}`)
  const inside = await call('POST', '/process.Process/List', { ...operator, 'E2b-Sandbox-Id': sandbox.sandboxId, 'X-Access-Token': admin }, {})
  assert.equal(inside.status, 401, 'inside a sandbox')
  await rejects(Sandbox.list(sdk(admin)).nextItems(), e2b.AuthenticationError)
  assert.equal(await sandbox.isRunning(), true)
  await sandbox.kill()
})

test('keys of a team: made, listed, renamed, deleted, and each change counts at once', async () => {
  const { status, json: made } = await call('POST', '/api-keys', of(id.acme), { name: 'for the CI' })
  assert.equal(status, 201)
  assert.match(made.key, /^e2b_[0-9a-f]{40}$/)
  assert.deepEqual([made.name, made.createdBy, made.lastUsed], ['for the CI', null, null])
  assert.deepEqual(made.mask, { prefix: 'e2b_', valueLength: 40, maskedValuePrefix: made.key.slice(4, 6), maskedValueSuffix: made.key.slice(-4) })
  assert.ok(Math.abs(Date.parse(made.createdAt) - Date.now()) < 60_000)
  assert.equal((await call('GET', '/v2/sandboxes', as(made.key))).status, 200)

  const list = async (path = '/api-keys', headers = of(id.acme)) => (await call('GET', path, headers)).json
  const found = (await list()).find((k) => k.id === made.id)
  assert.ok(!('key' in found) && !JSON.stringify(await list()).includes(made.key), 'shown once')
  assert.ok(Date.parse(found.lastUsed) > 0)
  assert.deepEqual((await list(`/admin/teams/${id.acme}/api-keys`, operator)).map((k) => k.id), (await list()).map((k) => k.id))
  assert.ok((await list('/api-keys', of(id.beta))).every((k) => k.id !== made.id), 'not among those of another team')
  assert.equal(listed().find((k) => k.id === made.id).tenant, 'acme', '`sandglass key list` has it')

  for (const [method, body] of [['PATCH', { name: 'x' }], ['DELETE']])
    refused(await call(method, `/api-keys/${made.id}`, of(id.beta), body), 404)
  refused(await call('DELETE', `/admin/teams/${id.beta}/api-keys/${made.id}`, operator), 404)
  assert.equal((await call('PATCH', `/api-keys/${made.id}`, of('acme'), { name: 'renamed' })).status, 200, 'a team by its name')
  assert.equal((await list()).find((k) => k.id === made.id).name, 'renamed')
  assert.equal((await call('DELETE', `/api-keys/${made.id}`, of(id.acme))).status, 204)
  assert.equal((await call('GET', '/v2/sandboxes', as(made.key))).status, 401, 'at once')
  assert.ok((await list()).every((k) => k.id !== made.id))
  refused(await call('DELETE', `/api-keys/${made.id}`, of(id.acme)), 404)
})

test('keys as admin; mistakes are told', async () => {
  const made = await call('POST', `/admin/teams/${id.beta}/api-keys`, operator, { name: 'by admin' })
  assert.equal(made.status, 201)
  assert.equal((await call('GET', '/v2/sandboxes', as(made.json.key))).status, 200)
  assert.equal((await call('DELETE', `/admin/teams/${id.beta}/api-keys/${made.json.id}`, operator)).status, 204)
  assert.equal((await call('GET', '/v2/sandboxes', as(made.json.key))).status, 401)
  for (const what of ['sandboxes/kill', 'builds/cancel', 'api-keys']) refused(await call('POST', `/admin/teams/nobody/${what}`, operator, { name: 'x' }), 404, /Team not found/)
  for (const body of [{}, { name: 7 }, { name: 'a\nb' }, { name: 'x'.repeat(65) }, '[]', '{'])
    for (const path of ['/api-keys', '/access-tokens']) refused(await call('POST', path, of(id.acme), body), 400)
  refused(await call('GET', '/api-keys', operator), 401, /X-Team-ID/)
  refused(await call('GET', '/api-keys', of('nobody')), 401, /X-Team-ID/)
  refused(await call('PUT', '/api-keys', of(id.acme)), 405)
})

test('access tokens: a team’s own, for GET /teams, which makes a key', async () => {
  const { status, json: made } = await call('POST', '/access-tokens', of(id.acme), { name: 'cli' })
  assert.equal(status, 201)
  assert.match(made.token, /^sk_e2b_[0-9a-f]{40}$/)
  assert.deepEqual([made.name, made.mask.prefix, made.mask.maskedValueSuffix], ['cli', 'sk_e2b_', made.token.slice(-4)])
  const bearer = { Authorization: `Bearer ${made.token}` }
  const teams = await call('GET', '/teams', bearer)
  assert.deepEqual(teams.json.map((t) => [t.teamID, t.name, t.isDefault]), [[id.acme, 'acme', false]])
  assert.equal((await call('GET', '/v2/sandboxes', as(teams.json[0].apiKey))).status, 200)
  for (const headers of [bearer, as(made.token), { ...bearer, ...of(id.acme), 'X-Admin-Token': made.token }])
    for (const path of ['/v2/sandboxes', '/api-keys', '/nodes']) assert.equal((await call('GET', path, headers)).status, 401, path)
  refused(await call('DELETE', `/access-tokens/${made.id}`, of(id.beta)), 404)
  refused(await call('DELETE', `/api-keys/${made.id}`, of(id.acme)), 404)
  assert.equal((await call('DELETE', `/access-tokens/${made.id}`, of(id.acme))).status, 204)
  refused(await call('GET', '/teams', bearer), 401)
})

test('metrics of a team: its own figures, and they outlive the front', async () => {
  const own = [await Sandbox.create(sdk(acme)), await Sandbox.create(sdk(acme))]
  const url = (more = '') => `/teams/${id.acme}/metrics${more}`
  const check = async (headers) => {
    const { status, json } = await call('GET', url(), headers)
    assert.equal(status, 200)
    for (const p of json) assert.equal(Date.parse(p.timestamp), p.timestampUnix * 1000)
    assert.ok(Math.max(...json.map((p) => p.concurrentSandboxes)) >= 2, JSON.stringify(json))
    assert.ok(json.some((p) => p.sandboxStartRate > 0))
    const max = await call('GET', url('/max?metric=concurrent_sandboxes'), headers)
    assert.ok(max.json.value >= 2 && Date.parse(max.json.timestamp) === max.json.timestampUnix * 1000)
    assert.ok((await call('GET', url('/max?metric=sandbox_start_rate'), headers)).json.value > 0)
  }
  await check(as(acme))
  await check(of(id.acme))
  refused(await call('GET', url(), as(beta)), 403, /not authorized/)
  refused(await call('GET', url(), of(id.beta)), 403)
  assert.ok((await call('GET', `/teams/${id.beta}/metrics`, as(beta))).json.length === 0, 'nothing of another team')
  assert.deepEqual((await call('GET', url('?start=1&end=100'), as(acme))).json, [])
  for (const query of ['?start=x', '?start=9&end=8', '?end=-1', '/max', '/max?metric=cpu']) refused(await call('GET', url(query), as(acme)), 400)
  await killFront(server)
  await check(as(acme))
  await Promise.all(own.map((s) => s.kill()))
})

test('running counts, and the end of all that a team runs', async () => {
  const counts = async () => (await call('GET', '/admin/sandboxes/running-counts', operator)).json
  const [a1, a2, b1] = await Promise.all([acme, acme, beta].map((k) => Sandbox.create(sdk(k))))
  assert.deepEqual(await counts(), { [id.acme]: 2, [id.beta]: 1 })
  const { status, json } = await call('POST', `/admin/teams/${id.acme}/sandboxes/kill`, operator)
  assert.deepEqual([status, json], [200, { killedCount: 2, failedCount: 0 }])
  assert.deepEqual(await counts(), { [id.beta]: 1 })
  assert.deepEqual([await a1.isRunning(), await a2.isRunning(), await b1.isRunning()], [false, false, true])
  assert.deepEqual((await call('POST', `/admin/teams/${id.acme}/sandboxes/kill`, operator)).json, { killedCount: 0, failedCount: 0 })
  await b1.kill()
})

test('builds of a team are cancelled', async () => {
  const name = `slow-${unique()}`
  const { json } = await call('POST', '/v3/templates', as(acme), { name, cpuCount: 1, memoryMB: 512 })
  const path = `/templates/${json.templateID}/builds/${json.buildID}`
  const started = await call('POST', `/v2${path}`, as(acme), { fromTemplate: 'base', steps: [{ type: 'RUN', args: ['sleep 600'] }] })
  assert.equal(started.status, 202, started.text)
  assert.deepEqual((await call('POST', `/admin/teams/${id.beta}/builds/cancel`, operator)).json, { cancelledCount: 0, failedCount: 0 })
  assert.deepEqual((await call('POST', `/admin/teams/${id.acme}/builds/cancel`, operator)).json, { cancelledCount: 1, failedCount: 0 })
  const { json: now } = await call('GET', `${path}/status`, as(acme))
  assert.equal(now.status, 'error')
  assert.match(now.reason.message, /cancelled by admin/)
})

test('nodes: this server, closed and opened again', async () => {
  // The sandbox of the build that was cancelled goes first.
  const [node, ...others] = await eventually('nothing starts or runs', async () => {
    const { json } = await call('GET', '/nodes', operator)
    return json.every((n) => n.sandboxStartingCount === 0 && n.sandboxCount === 0) && json
  })
  assert.deepEqual(others, [])
  const { sandboxStartingCount: _, ...rest } = node
  const get = async () => (await call('GET', `/nodes/${node.id}`, operator)).json
  assert.deepEqual(Object.keys(await get()).sort(), Object.keys(rest).sort())
  assert.equal(node.status, 'ready')
  assert.ok(Number.isInteger(node.createSuccesses) && node.createFails === 0 && node.sandboxCount === 0)
  assert.ok(node.metrics.cpuCount > 0 && node.metrics.memoryTotalBytes > node.metrics.memoryUsedBytes && node.metrics.memoryUsedBytes > 0)
  assert.ok(node.metrics.disks[0].totalBytes > 0 && node.metrics.disks[0].mountPoint.startsWith('/'))
  assert.ok(node.machineInfo.cpuArchitecture)
  const far = '?clusterID=11111111-1111-1111-1111-111111111111'
  assert.deepEqual((await call('GET', `/nodes${far}`, operator)).json, [])
  for (const path of ['/nodes/other', `/nodes/${node.id}${far}`]) refused(await call('GET', path, operator), 404)
  const change = (status, to = node.id) => call('POST', `/nodes/${to}`, operator, { status })
  refused(await change('draining', 'other'), 404)
  for (const wrong of ['unhealthy', 'connecting', '', 7]) refused(await change(wrong), 400)

  const sandbox = await Sandbox.create(sdk(acme))
  assert.equal((await get()).metrics.allocatedCPU, (await sandbox.getInfo()).cpuCount)
  assert.equal((await change('draining')).status, 204)
  await killFront(server)
  assert.equal((await get()).status, 'draining', 'another front knows it')
  const late = await call('POST', '/v2/sandboxes', as(acme), { templateID: 'base' })
  refused(late, 503, /takes no new sandboxes/)
  assert.match(late.headers.get('retry-after'), /^\d+$/)
  const ready = () => fetch(`${server.url}/health?ready`)
  assert.match((await (await ready()).json()).message, /operator has closed it/)
  assert.equal((await sandbox.commands.run('echo on')).stdout, 'on\n', 'what runs goes on')
  await sandbox.pause()
  await Sandbox.connect(sandbox.sandboxId, sdk(acme))
  assert.equal(await sandbox.isRunning(), true, 'and is woken')
  refused(await change('standby'), 409, /draining to standby/)
  assert.equal((await change('ready')).status, 204)
  await eventually('it is ready', async () => (await ready()).status === 204)
  const next = await Sandbox.create(sdk(acme))
  assert.equal((await change('standby')).status, 204)
  assert.equal((await get()).status, 'standby')
  assert.equal((await change('ready')).status, 204)
  await Promise.all([sandbox.kill(), next.kill()])
})

test('a token that is revoked opens nothing any more, at once', async () => {
  assert.equal((await call('GET', '/nodes', operator)).status, 200)
  key('revoke', admin)
  for (const path of ['/nodes', '/teams', '/admin/sandboxes/running-counts']) refused(await call('GET', path, operator), 401, /unknown or revoked/)
  refused(await call('GET', '/api-keys', of(id.acme)), 401)
  assert.equal(await stop(server), 0)
  assert.ok(!`${server.out}${server.err}`.includes(admin), 'it is in no log')
  const files = execFileSync('sh', ['-c', 'grep -rlaF -e "$1" "$2" || true', 'sh', admin.slice('admin_e2b_'.length), server.state], { encoding: 'utf8' })
  assert.equal(files, '', 'nor in any file: the store has a hash of it')
})

await run()
