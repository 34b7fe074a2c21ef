// Code that wrecks its own sandbox: files, processes and limits as nobody should leave them. Whatever is asked of the sandbox then,
// it is no error of the server's: a success, or a 4xx, 503 or 507 of one line that says what is wrong. And the sandbox still answers.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { assert, eventually, run, same, test, toPort } from './lib.mjs'
import { start, stop } from './server.mjs'
import { Client } from './v1.mjs'

const ENVD = 49983
const INTERPRETER = 49999
const ROOT = { Authorization: `Basic ${Buffer.from('root:').toString('base64')}` }
const FINE = [200, 201, 204]
const REFUSED = [400, 401, 403, 404, 409, 413, 429, 503, 507]

const server = await start(undefined, undefined, ['--sandbox-disk', '64M', '--sandbox-pids', '64'])
const api = new Client(server)
process.env.E2B_SANDBOX_URL = server.url

// ---- asking -------------------------------------------------------------------------------------

// Every answer goes through here.
function judge(what, a) {
  assert.ok([...FINE, ...REFUSED].includes(a.status), `${what}: ${a.status} ${a.text.slice(0, 300)}`)
  if (FINE.includes(a.status)) return a
  const message = a.json?.message ?? a.text
  assert.match(message, /^[^\n]{5,}$/, `the message of ${what}: ${a.text.slice(0, 300)}`)
  assert.doesNotMatch(message, /internal error/i, what)
  if (a.json?.code && Number.isInteger(a.json.code)) same(a.json.code, a.status, `code of ${what}`)
  return a
}

const control = async (method, route, body) => judge(`${method} ${route}`, await api.ask(method, route, body))

async function make(from = 'base') {
  const a = await control('POST', '/v2/sandboxes', { templateID: from, timeout: 300 })
  return a.status === 201 ? { sandboxId: a.json.sandboxID, token: a.json.envdAccessToken } : a
}

const toSandbox = (sandbox, port, method, path, headers, body) => toPort(sandbox, port, { method, path, headers: { 'X-Access-Token': sandbox.token, ...headers }, body })

async function rpc(sandbox, method, body, user = ROOT) {
  return judge(method, await toSandbox(sandbox, ENVD, 'POST', `/${method}`, { 'Content-Type': 'application/json', ...user }, JSON.stringify(body)))
}

// A program: { out, error }. A stream's error is in its last frame.
async function program(sandbox, cmd, args, user = ROOT) {
  const message = Buffer.from(JSON.stringify({ process: { cmd, args } }))
  const length = Buffer.alloc(5)
  length.writeUInt32BE(message.length, 1)
  const a = judge(cmd, await toSandbox(sandbox, ENVD, 'POST', '/process.Process/Start', { 'Content-Type': 'application/connect+json', ...user }, Buffer.concat([length, message])))
  const frames = []
  for (let at = 0; at + 5 <= a.data.length; at += 5 + a.data.readUInt32BE(at + 1)) frames.push(JSON.parse(a.data.subarray(at + 5, at + 5 + a.data.readUInt32BE(at + 1))))
  const out = frames.map((f) => Buffer.from(f.event?.data?.stdout ?? f.event?.data?.stderr ?? '', 'base64').toString('latin1')).join('')
  const error = frames.at(-1)?.error
  if (error) {
    assert.ok(!['internal', 'unknown', 'data_loss'].includes(error.code), `${cmd}: ${JSON.stringify(error)}`)
    assert.match(error.message, /^[^\n]{5,}$/)
  }
  return { out, error }
}

const bash = async (sandbox, code) => (await program(sandbox, '/bin/bash', ['-c', code])).out

// ---- what is asked of each ----------------------------------------------------------------------

const PATHS = ['/', '/home/user', '/home/user/w', '/home/user/w/f', '/tmp', '/dev/shm', '/proc/1/mem', '/etc/passwd']

async function useFiles(sandbox) {
  for (const path of PATHS)
    for (const user of [ROOT, {}]) {
      await rpc(sandbox, 'filesystem.Filesystem/Stat', { path }, user)
      await rpc(sandbox, 'filesystem.Filesystem/ListDir', { path, depth: 1 }, user)
      await rpc(sandbox, 'filesystem.Filesystem/CreateWatcher', { path }, user)
      judge(`GET ${path}`, await toSandbox(sandbox, ENVD, 'GET', `/files?path=${encodeURIComponent(path)}&username=${user === ROOT ? 'root' : 'user'}`))
    }
  const form = '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nhello\r\n--b--\r\n'
  for (const path of ['/home/user/w/up', '/proc/self/up', '/tmp/up'])
    judge(`POST ${path}`, await toSandbox(sandbox, ENVD, 'POST', `/files?path=${path}&username=root`, { 'Content-Type': 'multipart/form-data; boundary=b' }, form))
  await rpc(sandbox, 'filesystem.Filesystem/MakeDir', { path: '/home/user/made/a' })
  await rpc(sandbox, 'filesystem.Filesystem/Move', { source: '/home/user/made', destination: '/tmp/made' })
  await rpc(sandbox, 'filesystem.Filesystem/Remove', { path: '/tmp/made' })
}

async function useProcesses(sandbox) {
  await rpc(sandbox, 'process.Process/List', {})
  for (const user of [ROOT, {}]) await program(sandbox, '/bin/bash', ['-l', '-c', 'true'], user)
  await program(sandbox, '/nothing/here', [])
  for (const request of [{ code: '1 + 1' }, { code: 'true', language: 'bash' }])
    judge(`cell ${request.code}`, await toSandbox(sandbox, INTERPRETER, 'POST', '/execute', { 'Content-Type': 'application/json' }, JSON.stringify({ timeout: 5, ...request })))
  judge('context', await toSandbox(sandbox, INTERPRETER, 'POST', '/contexts', { 'Content-Type': 'application/json' }, '{"language":"python"}'))
}

async function useAsSource(sandbox) {
  const at = `/sandboxes/${sandbox.sandboxId}`
  const kept = await control('POST', `${at}/checkpoints`, { label: 'here' })
  for (const inherit of ['state', 'files']) {
    const made = await control('POST', `${at}/fork`, { inherit, timeout: 60 })
    if (made.status === 201) await control('DELETE', `/sandboxes/${made.json[0].sandbox.sandboxID}`)
  }
  const snapshot = await control('POST', `${at}/snapshots`, {})
  if (snapshot.status === 201) {
    const copy = await make(snapshot.json.snapshotID)
    if (copy.sandboxId) await control('DELETE', `/sandboxes/${copy.sandboxId}`)
    await control('DELETE', `/templates/${snapshot.json.snapshotID}`)
  }
  if (kept.status === 201) await control('POST', `${at}/rewind`, { label: 'here' })
}

// Pauses and goes on, by files alone and with its memory. What cannot be stored runs on.
async function restart(sandbox) {
  const at = `/sandboxes/${sandbox.sandboxId}`
  const answers = {}
  for (const memory of [true, false]) {
    const paused = await control('POST', `${at}/pause`, { memory })
    answers[memory ? 'memory' : 'files'] = paused
    same((await control('GET', at)).json.state, paused.status === 204 ? 'paused' : 'running', `after ${paused.text}`)
    if (paused.status === 204) same((await control('POST', `${at}/connect`, { timeout: 300 })).status, 201, 'it goes on')
  }
  return answers
}

async function look(sandbox) {
  await control('GET', `/sandboxes/${sandbox.sandboxId}/metrics`)
  await control('GET', `/v2/sandboxes/${sandbox.sandboxId}/logs`)
}

const answers = async (sandbox) => same((await program(sandbox, '/usr/bin/echo', ['here'])).out, 'here\n', 'a program')

async function all(sandbox) {
  await useFiles(sandbox)
  await useProcesses(sandbox)
  await look(sandbox)
  await useAsSource(sandbox)
  return restart(sandbox)
}

// ---- files --------------------------------------------------------------------------------------

function wrecked(name, code, { after, alive = answers } = {}) {
  test(name, async () => {
    const sandbox = await make()
    await bash(sandbox, code)
    const told = await all(sandbox)
    await alive(sandbox)
    await after?.(sandbox, told)
    await control('DELETE', `/sandboxes/${sandbox.sandboxId}`)
  }, { seconds: 90 })
}

const py = (code) => `exec /usr/bin/python3 - <<'END'\nimport os\nos.makedirs('/home/user/w', exist_ok=True)\n${code}\nEND`

// The server's disk may take them, as xfs does, or not, as ext4: then it says of which file they are.
const xattrs = (sandbox, { files }) => {
  if (files.status !== 204) {
    same(files.status, 409, files.text)
    assert.match(files.json.message, /attributes of '.+' are too large .*: remove some/)
  }
}

wrecked('attributes of 64 KiB on files and directories', py(`
for path in ('/home/user/w/f', '/home/user/w', '/home/user', '/etc', '/'):
    if path.endswith('/f'):
        open(path, 'w').close()
    for i in range(8):
        os.setxattr(path, f'user.k{i}', os.urandom(65536))`), { after: xattrs })

wrecked('attributes with so many names that nobody can list them', py(`
open('/home/user/w/f', 'w').close()
for i in range(400):
    os.setxattr('/home/user/w/f', 'user.' + 'n' * 200 + str(i), b'')`), { after: xattrs })

wrecked("attributes that mean something to an overlay, to a host, or to nobody", py(`
open('/home/user/w/f', 'w').close()
for name in ('overlay.opaque', 'overlay.redirect', 'overlay.metacopy', 'overlay.origin', 'overlay.whiteout', 'overlay.impure', 'capability', 'a'):
    for kind in ('user', 'trusted', 'security', 'system'):
        for path in ('/home/user/w/f', '/home/user/w', '/'):
            for value in (b'y', b'/etc', bytes(100)):
                try:
                    os.setxattr(path, f'{kind}.{name}', value)
                except OSError:
                    pass`))

wrecked('directories 1,000 deep', py(`
os.chdir('/home/user/w')
for i in range(1000):
    os.mkdir('d')
    os.chdir('d')`))

wrecked('directories deeper than a snapshot can be', py(`
os.chdir('/home/user/w')
for i in range(2100):
    os.mkdir('d')
    os.chdir('d')`), {
  after: (sandbox, { files }) => {
    same(files.status, 409, files.text)
    assert.match(files.json.message, /directories deep/)
  },
})

wrecked('names of 255 bytes, of control characters, of no characters', py(`
os.chdir(b'/home/user/w')
for name in (b'x' * 255, b'\\xff\\xfe', b'a\\nb', b'\\x1b[31m', b' ', b'-rf', b'"', b'\\\\', b'\\xf0\\x9f\\x98\\x80' * 63):
    os.mkdir(name)
    open(name + b'/' + name, 'w').close()
    os.symlink(name, b'to-' + name[:200])`))

wrecked('sockets, pipes, devices, flags', `${py(`
import socket, stat
os.chdir('/home/user/w')
socket.socket(socket.AF_UNIX).bind('socket')
os.mkfifo('f')
for path in ('/home/user/w/whiteout', '/etc/whiteout', '/whiteout', '/dev/whiteout'):
    for kind, number in ((stat.S_IFCHR, (0, 0)), (stat.S_IFCHR, (1, 3)), (stat.S_IFBLK, (8, 0))):
        try:
            os.mknod(path, kind | 0o666, os.makedev(*number))
        except OSError:
            pass`).replace('exec ', '')}
chattr +i /home/user/w/f /etc/passwd /; chattr +a /home/user; true`)

wrecked('files as long as can be, of nothing', 'mkdir /home/user/w; cd /home/user/w; for size in 8T 16T 9223372036854775807; do truncate -s $size $size; done; truncate -s 500M f; echo x >>f')

wrecked('nothing may be read by anybody', 'mkdir /home/user/w; echo x >/home/user/w/f; chmod 000 /home/user/w/f /home/user/w /home/user /home /tmp /run/shm /run /etc /root /usr/local /')

wrecked('a full disk', 'mkdir /home/user/w; dd if=/dev/zero of=/home/user/w/f bs=1M; dd if=/dev/zero of=/home/user/w/g bs=1')

wrecked('no inode left', py(`
for i in range(1000000):
    try:
        os.close(os.open(f'/home/user/w/{i}', os.O_CREAT | os.O_WRONLY))
    except OSError:
        break`))

wrecked('home is a file, /tmp leads nowhere, and nobody knows any user', 'cd /; mv /home /home.was; echo >/home; mv /tmp /tmp.was; ln -s /nowhere /tmp; rm -rf /etc/passwd /etc/group; mkdir /etc/passwd')

wrecked('no shell, no libraries, no kernels', 'rm -rf /usr/local/* /bin /sbin /lib /lib64; true', {
  // What is left cannot run a program: that is said, and files are still to be had.
  alive: async (sandbox) => {
    assert.match((await program(sandbox, '/usr/bin/echo', ['here'])).error?.message ?? '', /no such file inside the sandbox/)
    assert.match((await rpc(sandbox, 'filesystem.Filesystem/ListDir', { path: '/home' })).text, /"user"/)
  },
})

// ---- what a sandbox is built upon ---------------------------------------------------------------

const shm = async (sandbox) => {
  await answers(sandbox)
  same(await bash(sandbox, 'stat -c %a /run/shm; echo x >/dev/shm/x; cat /run/shm/x; ls /dev/shm'), '1777\nx\nx\n', '/dev/shm is /run/shm, and nothing else')
}

wrecked('/run/shm is removed', 'rmdir /run/shm', { alive: shm })
wrecked('/run is removed', 'rm -rf /run', { alive: shm })
wrecked('/run/shm is a file', 'rmdir /run/shm; echo kept >/run/shm', {
  alive: async (sandbox) => {
    await shm(sandbox)
    same(await bash(sandbox, 'cat /run/shm.1'), 'kept\n', 'what was there')
  },
})
// Such a link leads, while a sandbox is built, to the /proc of whoever builds it, which shows all its neighbours.
wrecked('/run/shm leads to /proc', 'rmdir /run/shm; ln -s /proc /run/shm', { alive: shm })
wrecked('/run leads elsewhere', 'mv /run /run.was; mkdir -p /etc/shm; ln -s /etc /run', { alive: shm })

test('what cannot be begun with stays paused, says why, and can be ended', async () => {
  const sandbox = await make()
  const at = `/sandboxes/${sandbox.sandboxId}`
  await bash(sandbox, 'rm -f /run/.boot_id; mkdir -p /run/.boot_id/x')
  same((await control('POST', `${at}/pause`, { memory: false })).status, 204, 'pause')
  for (let i = 0; i < 2; i++) {
    const a = await control('POST', `${at}/connect`, { timeout: 60 })
    same(a.status, 409, a.text)
    assert.match(a.json.message, /boot_id is a directory/)
    same((await control('GET', at)).json.state, 'paused', 'state')
  }
  same((await control('DELETE', at)).status, 204, 'its end')
})

// ---- processes ----------------------------------------------------------------------------------

// Programs that go on until the sandbox is stored.
const daemon = (code) => `cat >/home/user/daemon.py <<'END'\nimport os, time\n${code}\nEND\nsetsid python3 /home/user/daemon.py >/dev/null 2>&1 </dev/null & sleep 2`

wrecked('all processes are used up', daemon(`
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError:
        time.sleep(1000)`))

wrecked('all descriptors are used up', daemon(`
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
for i in range(20):
    if os.fork() == 0:
        try:
            while True:
                os.open('/etc/hostname', os.O_RDONLY)
        except OSError:
            time.sleep(1000)
time.sleep(1000)`))

wrecked('everything that can be stopped is', 'python3 -c "import time; time.sleep(1000)" >/dev/null 2>&1 & sleep 0.2; kill -STOP $! 1; kill -KILL 1; kill -STOP -$!; true')

// ---- the server's own limit ---------------------------------------------------------------------

const descriptors = (pid) => fs.readdirSync(`/proc/${pid}/fd`).length
const limit = (pid, n) => execFileSync('prlimit', ['--pid', String(pid), `--nofile=${n}:`])

test('pause when the server has no descriptor left: 503 or done, and it goes on when there are some', async () => {
  const { pid } = server.child
  const [, before] = fs.readFileSync(`/proc/${pid}/limits`, 'utf8').match(/^Max open files +(\d+)/m)
  for (const room of [0, 1, 2, 5, 12])
    for (const memory of [true, false]) {
      const sandbox = await make()
      const at = `/sandboxes/${sandbox.sandboxId}`
      await bash(sandbox, 'echo kept >/home/user/f')
      limit(pid, descriptors(pid) + room)
      let paused
      try {
        paused = await control('POST', `${at}/pause`, { memory })
        assert.ok([204, 503].includes(paused.status), paused.text)
        const resumed = await control('POST', `${at}/connect`, { timeout: 60 })
        assert.ok([200, 201, 503].includes(resumed.status), resumed.text)
        await look(sandbox)
        assert.ok([201, 409, 503].includes((await control('POST', `${at}/snapshots`, {})).status))
        assert.ok([201, 409, 503].includes((await control('POST', `${at}/fork`, {})).status))
      } finally {
        limit(pid, before)
      }
      await eventually('it goes on', async () => FINE.includes((await control('POST', `${at}/connect`, { timeout: 60 })).status))
      same(await bash(sandbox, 'cat /home/user/f'), 'kept\n', `${paused.status} with room for ${room}`)
      await control('DELETE', at)
    }
}, { seconds: 90 })

test('of all this the server knows no error of its own, and ends as it should', async () => {
  const own = server.err.split('\n').filter((l) => /"status":500/.test(l))
  assert.deepEqual(own, [])
  same(await stop(server), 0, 'its status')
})

await run()
