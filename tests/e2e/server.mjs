// Servers that a test starts and ends itself.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { assert, eventually, TOP, unique } from './lib.mjs'

export const SG = process.env.SANDGLASS ?? path.join(TOP, 'build/bin/sandglass')
export const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'sandglass-e2e-server.'))
fs.chmodSync(scratch, 0o755) // the front is not root
const children = new Set()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  fs.rmSync(scratch, { recursive: true, force: true })
})

export const freePort = () =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })

// Starts a program that serves, without waiting for it.
export function launch(args) {
  const child = spawn(SG, ['serve', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const server = { child, out: '', err: '' }
  children.add(child)
  child.stdout.on('data', (d) => { server.out += d })
  child.stderr.on('data', (d) => { server.err += d })
  server.ended = new Promise((resolve) => child.on('exit', (code, signal) => {
    children.delete(child)
    resolve(code ?? signal)
  }))
  return server
}

// The server chooses its port and says it, and a new state's key, when it serves.
export async function start(state = path.join(scratch, `state-${unique()}`), key, options = []) {
  const server = launch(['--listen', '127.0.0.1:0', '--state', state, '--drain-timeout', '5s', ...options])
  const says = (what) => server.out.match(what)?.[1]
  const ready = async () => {
    server.url = says(/^Serving on (http:\S+)$/m)
    key ??= says(/^ *export E2B_API_KEY=(e2b_[0-9a-f]{40})$/m)
    return server.url && key && (await fetch(`${server.url}/health`)).status === 204
  }
  await eventually('the server answers', ready).catch((err) => assert.fail(`${err.message}\n${server.err}`))
  return Object.assign(server, { state, as: { apiKey: key, apiUrl: server.url, sandboxUrl: server.url, timeoutMs: 120_000 } })
}

export async function stop(server, signal = 'SIGTERM') {
  server.child.kill(signal)
  const timer = setTimeout(() => server.child.kill('SIGKILL'), 20_000)
  const status = await server.ended
  clearTimeout(timer)
  return status
}

// The pid of a child of a server, by its name.
function child(server, wanted) {
  for (const pid of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n)))
    try {
      const [, name, rest] = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').match(/\((.*)\) (.*)/s)
      if (Number(rest.split(' ')[1]) === server.child.pid && name === wanted.slice(0, 15)) return Number(pid)
    } catch {}
  return undefined
}

export const front = (server) => child(server, 'sandglass-front')
// The clerk or the herald, which work for the front.
export const worker = (server, name) => child(server, `sandglass-${name}`)

export async function killFront(server) {
  const old = front(server)
  assert.ok(old, 'there is a front')
  process.kill(old, 'SIGKILL')
  await eventually('there is a new front', () => ![undefined, old].includes(front(server)))
  await eventually('it answers', async () => (await fetch(`${server.url}/health`)).status === 204)
}
