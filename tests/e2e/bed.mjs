// The test bed of tests/egress for tests of the SDK: an internet in network namespaces. A file that needs it calls
// `enter`, which starts the file again inside; everything that it starts is there as well.
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { TOP } from './lib.mjs'

const BED = path.join(TOP, 'tests/egress/bed')
const name = process.env.E2E_BED
const bed = (...args) => execFileSync(BED, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

export function enter() {
  if (name) return
  const mine = `e2e${process.pid}`
  bed('up', mine, String(process.pid))
  const args = [`--net=/run/netns/${mine}-edge`, process.execPath, ...process.argv.slice(1)]
  const { status } = spawnSync('nsenter', args, { stdio: 'inherit', env: { ...process.env, E2E_BED: mine } })
  bed('down', mine)
  process.exit(status ?? 1)
}

// What tests/egress/hosts/world.py says: who has which address.
export const world = JSON.parse(
  execFileSync('/usr/bin/python3', ['-B', '-c', 'import json, world; print(json.dumps({k: v for k, v in vars(world).items() if k.isupper()}))'], {
    cwd: path.join(TOP, 'tests/egress/hosts'),
    encoding: 'utf8',
  }),
)
export const directory = name && bed('directory', name).trim()
export const root = `${directory}/tls/root.pem`

function packets() {
  const counts = new Map()
  for (const { set } of JSON.parse(bed('seen', name)).nftables)
    for (const { elem } of set?.elem ?? []) counts.set(elem.val.concat.join(' '), elem.counter.packets)
  return counts
}

const logs = () => fs.readdirSync(`${directory}/logs`).map((file) => `${directory}/logs/${file}`)

// From here on: what the hosts have seen later.
export function now() {
  const offsets = new Map(logs().map((file) => [file, fs.statSync(file).size]))
  const before = packets()
  const lines = () =>
    logs().flatMap((file) => fs.readFileSync(file).subarray(offsets.get(file) ?? 0).toString().split('\n').filter(Boolean).map((line) => JSON.parse(line)))
  return {
    requests: (address) => lines().filter((l) => l.kind === 'request' && l.local === address),
    queries: () => lines().filter((l) => l.kind === 'query').map((l) => l.name),
    // Addresses that packets have come to, but for the DNS server's.
    arrived: () => [...new Set([...packets()].filter(([key, n]) => n > (before.get(key) ?? 0)).map(([key]) => key.split(' ')[0]))].filter((a) => a !== world.DNS).sort(),
  }
}

// What the SOCKS5 proxy has connected to: NAME:PORT.
export const proxied = () => [...fs.readFileSync(`${directory}/out/proxy`, 'latin1').matchAll(/connected to (\S+)/g)].map((m) => m[1])
