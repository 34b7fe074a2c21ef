// /metrics as a Prometheus sees it: Debian's promtool reads every text without a complaint, and figures move with what is
// done. In the test bed of tests/egress, so that connections end well, are refused, and find nobody.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { Interpreter } from './code.mjs'
import { enter, world } from './bed.mjs'
import { assert, eventually, mine, run, same, Sandbox, test, TOP } from './lib.mjs'
import { freePort, killFront, start, stop } from './server.mjs'

enter()
const TOKEN = 'a token of the test'
const own = `http://127.0.0.1:${await freePort()}`
const server = await start(undefined, undefined, ['--egress-dns', world.DNS, '--sanitise-streams', 'enforce', '--metrics-listen', new URL(own).host, '--metrics-token', TOKEN])
const as = server.as

// A text of /metrics: numbers by their whole name, as the text has it.
async function scrape(url = own, headers = {}) {
  const res = await fetch(`${url}/metrics`, { headers })
  same(res.status, 200)
  same(res.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const text = await res.text()
  const figures = new Map(text.split('\n').filter((l) => l && !l.startsWith('#')).map((l) => [l.slice(0, l.lastIndexOf(' ')), Number(l.slice(l.lastIndexOf(' ') + 1))]))
  return { text, figures, of: (name) => figures.get(`sandglass_${name}`) ?? 0 }
}

// How much each has grown.
async function grown(work) {
  const before = await scrape()
  await work()
  return async (name) => (await scrape()).of(name) - before.of(name)
}

const grows = (what, grew, name, by = 1) => eventually(`${what}: ${name} grows by ${by}`, async () => (await grew(name)) >= by, 5)

function lint(text) {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
  assert.deepEqual([status, stdout, stderr], [0, '', ''])
}

test('a server that has done nothing: promtool has nothing to say', async () => {
  const { text, of } = await scrape()
  lint(text)
  for (const process of ['front', 'warden', 'guard']) {
    same(of(`up{process="${process}"}`), 1, process)
    assert.ok(of(`process_resident_memory_bytes{process="${process}"}`) > 100_000, process)
    assert.ok(of(`process_open_fds{process="${process}"}`) > 3, process)
    assert.ok(of(`process_cpu_seconds_total{process="${process}"}`) > 0, process)
    const started = of(`process_start_time_seconds{process="${process}"}`)
    assert.ok(Math.abs(Date.now() / 1000 - started) < 120, `${process}: ${started}`)
  }
  same(of('sandboxes{state="running"}'), 0)
  assert.match(text, /^sandglass_build_info\{version="[^"]+"\} 1$/m)
})

test('the life of a sandbox', async () => {
  let sandbox
  const made = await grown(async () => {
    sandbox = mine(await Interpreter.create(as))
    same((await sandbox.runCode('6 * 7')).text, '42')
    await sandbox.commands.run('true')
  })
  same(await made('warden_sandboxes_total{what="made"}'), 1)
  same(await made('sandboxes{state="running"}'), 1)
  await grows('create', made, 'http_requests_total{status="2xx"}', 3)
  await grows('create', made, 'events_total{kind="sandbox.created"}')
  const { figures } = await scrape()
  const sum = (name) => [...figures].filter(([key]) => key.startsWith(`sandglass_${name}_count`)).reduce((n, [, value]) => n + value, 0)
  assert.ok(sum('sandbox_create_seconds') >= 1 && sum('execute_seconds') >= 2 && sum('http_request_seconds') >= 3)

  const paused = await grown(() => sandbox.pause())
  same(await paused('sandboxes{state="paused"}'), 1)
  await grows('pause', paused, 'sandbox_pause_seconds_count{kind="memory"}')
  await sandbox.connect()
  const forked = await grown(async () => { mine((await sandbox.fork(as))[0]) })
  same(await forked('sandboxes{state="running"}'), 1)
  await grows('fork', forked, 'sandbox_fork_seconds_count{kind="fork"}')
  const ended = await grown(() => sandbox.kill())
  await grows('kill', ended, 'warden_sandboxes_total{what="ended"}')
  await grows('kill', ended, 'sandbox_ended_total{why="killed"}')
  lint((await scrape()).text)
})

test('connections: bytes, verdicts, targets', async () => {
  const sandbox = mine(await Sandbox.create('base', { ...as, network: { denyOut: [world.EVIL] } }))
  const curl = (url) => sandbox.commands.run(`curl -sS -m 5 -o /dev/null '${url}' || true`)
  const open = await grown(() => curl(`http://${world.A}/`))
  await grows('allowed', open, 'egress_flows_total{verdict="allowed"}')
  await grows('allowed', open, 'egress_flow_seconds_count')
  await grows('allowed', open, 'egress_bytes_total{direction="out"}', 40)
  await grows('allowed', open, 'egress_bytes_total{direction="in"}', 40)
  const closed = await grown(() => curl(`http://${world.EVIL}/`))
  await grows('refused', closed, 'egress_flows_total{verdict="blocked"}')
  same(await closed(`egress_blocked_total{target="${world.EVIL}"}`), 1)
  same(await closed('egress_flows_total{verdict="allowed"}'), 0)
  await grows('refused', closed, 'events_total{kind="egress.blocked"}')
  const nobody = await grown(() => curl(`http://${world.A}:9/`))
  await grows('nobody there', nobody, 'egress_flows_total{verdict="failed"}')
  const asked = await grown(() => curl('http://a.test/'))
  assert.ok((await asked('dns_questions_total{verdict="allowed"}')) >= 1)
  lint((await scrape()).text)
})

// The front counts what cells say, the guard what goes out.
test('what was taken out of texts, by kind', async () => {
  const rules = { 'a.test': [{ transform: { headers: { 'X-Rule': '1' } } }] }
  const sandbox = mine(await Interpreter.create({ ...as, network: { rules } }))
  const said = await grown(() => sandbox.runCode('print("write to somebody@example.org")'))
  await grows('said', said, 'sanitised_total{kind="email"}')
  const sent = await grown(() => sandbox.commands.run(`curl -sS -m 5 -o /dev/null -d 'one@example.org, two@example.org' http://a.test/`))
  await grows('sent', sent, 'sanitised_total{kind="email"}', 2)
})

test('on the server itself: with the token, and with nothing else', async () => {
  for (const headers of [{}, { Authorization: 'Bearer wrong' }, { Authorization: `Basic ${btoa(`x:${TOKEN}`)}` }, { 'X-API-Key': as.apiKey }, { Authorization: `Bearer ${TOKEN}x` }, { Authorization: 'Bearer ' }]) {
    const res = await fetch(`${server.url}/metrics`, { headers })
    assert.deepEqual([res.status, res.headers.get('www-authenticate')], [401, 'Bearer'], JSON.stringify(headers))
    assert.match((await res.json()).message, /metrics_token/)
  }
  const headers = { Authorization: `Bearer ${TOKEN}` }
  lint((await scrape(server.url, headers)).text)
  const [post, head] = await Promise.all(['POST', 'HEAD'].map((method) => fetch(`${server.url}/metrics`, { method, headers })))
  assert.deepEqual([post.status, post.headers.get('allow'), head.status], [405, 'GET, HEAD', 200])
})

test('its own address has nothing but metrics', async () => {
  for (const target of ['/health', '/sandboxes', '/v1/contexts', '/mcp', '/files', '/metrics/', '//metrics']) {
    const res = await fetch(own + target, { headers: { 'X-API-Key': as.apiKey } })
    same(res.status, 404, target)
  }
  const sandbox = mine(await Sandbox.create('base', as))
  same((await fetch(`${own}/health`, { headers: { 'E2b-Sandbox-Id': sandbox.sandboxId } })).status, 404, 'a port of a sandbox')
  same((await fetch(`${own}/sandboxes`, { method: 'POST', headers: { 'X-API-Key': as.apiKey } })).status, 404)
  const hint = await fetch(`${own}/`)
  assert.deepEqual([hint.status, /\/metrics/.test(await hint.text())], [200, true])
})

test('many at once', async () => {
  const texts = await Promise.all(Array.from({ length: 20 }, () => scrape()))
  for (const { text, of } of texts) {
    same(of('up{process="guard"}'), 1)
    same(text.match(/^# TYPE sandglass_up /gm).length, 1)
  }
})

// The guard is held by its pid, which its server has logged.
test('a guard that does not answer is told, and hides nothing', async () => {
  const pid = Number(server.err.match(/guard \d+ started, pid (\d+)/)[1])
  process.kill(pid, 'SIGSTOP')
  const began = Date.now()
  try {
    const [one, two] = await Promise.all([scrape(), scrape()])
    for (const { text, of, figures } of [one, two]) {
      lint(text)
      assert.deepEqual([of('up{process="guard"}'), of('up{process="warden"}'), of('up{process="front"}')], [0, 1, 1])
      assert.ok(!figures.has('sandglass_process_cpu_seconds_total{process="guard"}'))
    }
    assert.ok(Date.now() - began < 10_000)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await eventually('it is back', async () => (await scrape()).of('up{process="guard"}') === 1, 8)
})

test('a new front: what warden and guard count goes on', async () => {
  const before = await scrape()
  await killFront(server)
  const { text, of } = await eventually('it serves', () => scrape().catch(() => undefined))
  lint(text)
  for (const what of ['made', 'ended']) assert.ok(of(`warden_sandboxes_total{what="${what}"}`) >= before.of(`warden_sandboxes_total{what="${what}"}`), what)
})

test('without the settings there is nothing, and it says which', async () => {
  const plain = await start()
  const res = await fetch(`${plain.url}/metrics`)
  same(res.status, 404)
  assert.match((await res.json()).message, /metrics_token.*metrics_listen/)
  same(await stop(plain), 0)
})

test('the dashboard asks for nothing that is not there', () => {
  const known = new Map([...fs.readFileSync(path.join(TOP, 'src/front/telemetry/figures.h'), 'utf8').matchAll(/X\(\w+,\s*(\w+),\s*"(\w+)"/g)].map((m) => [`sandglass_${m[2]}`, m[1]]))
  assert.ok(known.size > 25, `${known.size} figures`)
  const dashboard = JSON.parse(fs.readFileSync(path.join(TOP, 'packaging/grafana/sandglass.json'), 'utf8'))
  const asked = new Set()
  for (const panel of dashboard.panels.flatMap((p) => [p, ...(p.panels ?? [])]))
    for (const { expr } of panel.targets ?? [])
      for (const [name] of expr.matchAll(/sandglass_\w+/g)) {
        const base = name.replace(/_(bucket|sum|count)$/, '')
        const found = known.has(name) ? name : known.get(base) === 'HISTOGRAM' ? base : undefined
        assert.ok(found, `${panel.title}: ${name}`)
        asked.add(found)
      }
  assert.deepEqual([...known.keys()].filter((name) => !asked.has(name)), [], 'figures that no panel shows')
})

await run()
