// Files: reading, writing, describing, moving, removing.
import { assert, common, e2b, folder, fresh, near, rejects, run, same, sh, sha256, test } from './lib.mjs'

const { AuthenticationError, FileNotFoundError, InvalidArgumentError } = e2b
const BIG = Buffer.alloc(20 * 1024 * 1024)
for (let i = 0; i < BIG.length; i += 4) BIG.writeUInt32LE((i * 2654435761) >>> 0, i)

const stream = (data, step = 65536) => {
  let at = 0
  return new ReadableStream({
    pull(c) {
      if (at >= data.length) return c.close()
      c.enqueue(new Uint8Array(data.subarray(at, at + step)))
      at += step
    },
  })
}

async function drain(readable) {
  const parts = []
  for await (const part of readable) parts.push(Buffer.from(part))
  return Buffer.concat(parts)
}

const buffer = (data) => data.buffer.slice(data.byteOffset, data.byteOffset + data.length)

test('write and read text', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const info = await sandbox.files.write(`${dir}/note.txt`, 'héllo\n')
  assert.deepEqual([info.name, info.path, info.type], ['note.txt', `${dir}/note.txt`, 'file'])
  assert.equal(await sandbox.files.read(`${dir}/note.txt`), 'héllo\n')
  assert.equal(await sh(sandbox, `cat ${dir}/note.txt`), 'héllo')
})

test('read: text, bytes, blob, stream', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const data = Buffer.from([0, 1, 2, 255, 254, 10, 195, 188])
  await sandbox.files.write(`${dir}/bin`, buffer(data))
  const bytes = await sandbox.files.read(`${dir}/bin`, { format: 'bytes' })
  assert.ok(bytes instanceof Uint8Array)
  assert.deepEqual(Buffer.from(bytes), data)
  const blob = await sandbox.files.read(`${dir}/bin`, { format: 'blob' })
  assert.deepEqual(Buffer.from(await blob.arrayBuffer()), data)
  assert.deepEqual(await drain(await sandbox.files.read(`${dir}/bin`, { format: 'stream' })), data)
  assert.equal(await sandbox.files.read(`${dir}/bin`, { format: 'text' }), data.toString())
})

test('write: ArrayBuffer, Blob, stream, each as form, as plain bytes and compressed', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const data = BIG.subarray(0, 300_001)
  const kinds = { text: () => data.toString('latin1'), array: () => buffer(data), blob: () => new Blob([data]), stream: () => stream(data) }
  const ways = [{}, { useOctetStream: true }, { useOctetStream: false }, { gzip: true }]
  for (const [kind, make] of Object.entries(kinds))
    for (const way of ways) {
      const path = `${dir}/${kind}`
      const info = await sandbox.files.write(path, make(), way)
      assert.equal(info.path, path)
      const wanted = kind === 'text' ? Buffer.from(data.toString('latin1')) : data
      same(sha256(await sandbox.files.read(path, { format: 'bytes' })), sha256(wanted), `${kind} ${JSON.stringify(way)}`)
    }
})

test('an empty file, in every format and way', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  for (const way of [{}, { useOctetStream: true }, { gzip: true }]) {
    await sandbox.files.write(`${dir}/empty`, '', way)
    assert.equal(await sandbox.files.read(`${dir}/empty`), '')
    assert.equal((await sandbox.files.read(`${dir}/empty`, { format: 'bytes' })).length, 0)
    assert.equal((await sandbox.files.read(`${dir}/empty`, { format: 'blob' })).size, 0)
    assert.equal((await drain(await sandbox.files.read(`${dir}/empty`, { format: 'stream' }))).length, 0)
    assert.equal((await sandbox.files.getInfo(`${dir}/empty`)).size, 0)
  }
})

test('20 MB in every way, and back', async () => {
  const sandbox = await fresh()
  const wanted = sha256(BIG)
  const ways = [
    ['form', () => buffer(BIG), {}],
    ['bytes', () => new Blob([BIG]), { useOctetStream: true }],
    ['stream', () => stream(BIG), {}],
    ['gzip', () => stream(BIG), { gzip: true }],
  ]
  for (const [name, make, way] of ways) {
    await sandbox.files.write('/home/user/big', make(), way)
    same((await sh(sandbox, 'sha256sum big')).split(' ')[0], wanted, name)
  }
  same(sha256(await sandbox.files.read('/home/user/big', { format: 'bytes' })), wanted, 'read')
  same(sha256(await drain(await sandbox.files.read('/home/user/big', { format: 'stream' }))), wanted, 'read as a stream')
  same(sha256(await sandbox.files.read('/home/user/big', { format: 'bytes', gzip: true })), wanted, 'read compressed')
  assert.equal((await sandbox.files.getInfo('/home/user/big')).size, BIG.length)
})

test('a stream that is given up does no harm', async () => {
  const sandbox = await common()
  await sandbox.files.write('/tmp/long', buffer(BIG))
  const reader = (await sandbox.files.read('/tmp/long', { format: 'stream' })).getReader()
  await reader.read()
  await reader.cancel()
  assert.equal(await sh(sandbox, 'echo fine'), 'fine')
  await sandbox.files.remove('/tmp/long')
})

test('write overwrites, and shorter is shorter', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/f`, 'a long first text')
  await sandbox.files.write(`${dir}/f`, 'short')
  assert.equal(await sandbox.files.read(`${dir}/f`), 'short')
})

test('write keeps the mode of a file that is there', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/script`, '#!/bin/sh\necho one\n')
  await sh(sandbox, `chmod 750 ${dir}/script`)
  await sandbox.files.write(`${dir}/script`, '#!/bin/sh\necho two\n')
  assert.equal(await sh(sandbox, `${dir}/script`), 'two')
})

test('write makes the directories above, owned by the user', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/a/b/c.txt`, 'deep')
  assert.equal(await sandbox.files.read(`${dir}/a/b/c.txt`), 'deep')
  assert.equal((await sandbox.files.getInfo(`${dir}/a/b`)).owner, 'user')
})

test('write many at once', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const files = [
    { path: `${dir}/text`, data: 'text' },
    { path: `${dir}/sub/with space ü.bin`, data: buffer(Buffer.from([1, 0, 2])) },
    { path: `${dir}/blob`, data: new Blob(['blob']) },
    { path: `${dir}/empty`, data: '' },
  ]
  const infos = await sandbox.files.write(files)
  assert.deepEqual(infos.map((i) => i.path), files.map((f) => f.path))
  assert.deepEqual(infos.map((i) => i.name), ['text', 'with space ü.bin', 'blob', 'empty'])
  assert.equal(await sandbox.files.read(`${dir}/text`), 'text')
  assert.deepEqual([...(await sandbox.files.read(`${dir}/sub/with space ü.bin`, { format: 'bytes' }))], [1, 0, 2])
  assert.equal(await sandbox.files.read(`${dir}/blob`), 'blob')
  assert.equal(await sandbox.files.read(`${dir}/empty`), '')
  const plain = await sandbox.files.writeFiles([{ path: `${dir}/one`, data: 'one' }, { path: `${dir}/two`, data: 'two' }], { useOctetStream: true })
  assert.equal(plain.length, 2)
  assert.deepEqual(await sandbox.files.write([]), [])
  assert.equal((await sandbox.files.write([{ path: `${dir}/single`, data: 'x' }])).length, 1)
})

test('write many: the same path twice is refused', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const twice = [{ path: `${dir}/f`, data: 'one' }, { path: `${dir}/f`, data: 'two' }]
  await rejects(sandbox.files.write(twice), InvalidArgumentError)
})

test('names that are hard to write down', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const names = ['with space', "it's", 'a"b', 'ünï💥', '-dash', 'per%cent%20', 'plus+plus', 'q?a#b&c=d', 'back\\slash', 'two\nlines', '..hidden', 'semi;colon']
  for (const name of names) {
    const path = `${dir}/${name}`
    for (const way of [{}, { useOctetStream: true }]) {
      const info = await sandbox.files.write(path, name, way)
      assert.deepEqual([info.name, info.path], [name, path])
    }
    assert.equal(await sandbox.files.read(path), name)
    assert.equal(await sandbox.files.exists(path), true)
    assert.equal((await sandbox.files.getInfo(path)).name, name)
  }
  assert.deepEqual((await sandbox.files.list(dir)).map((e) => e.name).sort(), [...names].sort())
  assert.equal(await sh(sandbox, `ls -1qA ${dir} | wc -l`), String(names.length))
  for (const name of names) await sandbox.files.remove(`${dir}/${name}`)
  assert.deepEqual(await sandbox.files.list(dir), [])
})

test('paths: relative and ~ mean the home, ~other means nothing', async () => {
  const sandbox = await common()
  await sandbox.files.write('relative.txt', 'one')
  assert.equal(await sandbox.files.read('/home/user/relative.txt'), 'one')
  assert.equal(await sandbox.files.read('~/relative.txt'), 'one')
  assert.equal((await sandbox.files.getInfo('~')).path, '/home/user')
  await sandbox.files.write('~/tilde.txt', 'two', { user: 'root' })
  assert.equal(await sandbox.files.read('/root/tilde.txt', { user: 'root' }), 'two')
  await rejects(sandbox.files.getInfo('~root/x'), InvalidArgumentError)
  await rejects(sandbox.files.read('~root/x'), InvalidArgumentError)
})

test('user: whose file it becomes, and what may be touched', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/mine`, 'x')
  await sandbox.files.write(`${dir}/roots`, 'x', { user: 'root' })
  const owner = async (path) => (await sandbox.files.getInfo(path)).owner
  assert.deepEqual([await owner(`${dir}/mine`), await owner(`${dir}/roots`)], ['user', 'root'])
  await rejects(sandbox.files.read(`${dir}/mine`, { user: 'nobody-here' }), AuthenticationError)
  await rejects(sandbox.files.write(`${dir}/mine`, 'y', { user: 'nobody-here' }), AuthenticationError)
  await rejects(sandbox.files.list(dir, { user: 'nobody-here' }), AuthenticationError)
})

test('files are worked on with the rights of root, and belong to the user then', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const look = (format, ...paths) => sh(sandbox, `sudo stat -c '${format}' ${paths.join(' ')}`)
  await sandbox.files.write('/workspace/app/main.py', 'print(1)')
  assert.equal(await look('%U %G %a', '/workspace', '/workspace/app', '/workspace/app/main.py'), 'user user 755\nuser user 755\nuser user 644')
  assert.equal(await sandbox.files.makeDir('/data/x'), true)
  assert.equal(await look('%U', '/data', '/data/x'), 'user\nuser')
  await sandbox.files.write('/root/secret', 'x', { user: 'root' })
  assert.equal(await look('%U', '/root/secret'), 'root')
  assert.equal(await sandbox.files.read('/root/secret'), 'x')
  assert.ok((await sandbox.files.list('/root')).some((e) => e.name === 'secret'))
  const handle = await sandbox.files.watchDir('/root', () => {})
  await handle.stop()
  await sandbox.files.rename('/root/secret', `${dir}/secret`)
  assert.equal(await look('%U', `${dir}/secret`), 'root')
  await sandbox.files.write(`${dir}/secret`, 'mine')
  assert.equal(await look('%U', `${dir}/secret`), 'user')
  for (const path of ['/workspace', '/data']) await sandbox.files.remove(path)
  assert.equal(await sandbox.files.exists('/workspace/app'), false)
  // and no further than that
  await assert.rejects(sandbox.files.read('/proc/1/environ'), Error)
  await assert.rejects(sandbox.files.write('/proc/sys/kernel/hostname', 'x'), Error)
})

test('a file that is written stays the same file', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sh(sandbox, `cd ${dir} && echo a longer text > f && chmod 751 f && ln f hard && ln -s f soft`)
  await sandbox.files.write(`${dir}/soft`, 'new')
  assert.equal(await sh(sandbox, `cd ${dir} && cat hard && stat -c ' %a %h' f && readlink soft`), 'new 751 2\nf')
})

test('getInfo: everything about a file and a directory', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/f`, '12345')
  await sh(sandbox, `chmod 640 ${dir}/f; chmod 1777 ${dir}; touch -d @1700000000.5 ${dir}/f`)
  const file = await sandbox.files.getInfo(`${dir}/f`)
  const { modifiedTime, ...rest } = file
  assert.deepEqual(rest, {
    name: 'f', type: 'file', path: `${dir}/f`, size: 5, mode: 0o640, permissions: '-rw-r-----',
    owner: 'user', group: 'user', symlinkTarget: undefined, metadata: undefined,
  })
  assert.equal(+modifiedTime, 1700000000500)
  const info = await sandbox.files.getInfo(dir)
  assert.deepEqual([info.type, info.mode & 0o777], ['dir', 0o777])
  assert.match(info.permissions, /^d.*rwxrwxrw[xt]$/)
  await sandbox.files.write(`${dir}/new`, '')
  near((await sandbox.files.getInfo(`${dir}/new`)).modifiedTime, Date.now(), 5000, 'modifiedTime')
})

test('symbolic links', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/target`, 'through')
  await sh(sandbox, `cd ${dir} && ln -s target link && ln -s nowhere dangling && mkdir d && ln -s d dlink && ln -s loop loop`)
  const link = await sandbox.files.getInfo(`${dir}/link`)
  assert.deepEqual([link.type, link.symlinkTarget, link.permissions], ['file', `${dir}/target`, 'Lrwxrwxrwx'])
  assert.equal((await sandbox.files.getInfo(`${dir}/dlink`)).type, 'dir')
  assert.equal((await sandbox.files.getInfo(`${dir}/dangling`)).type, undefined)
  assert.deepEqual((await sandbox.files.list(dir)).map((e) => e.name), ['d', 'dlink', 'link', 'target'])
  assert.equal(await sandbox.files.read(`${dir}/link`), 'through')
  await sandbox.files.write(`${dir}/link`, 'changed')
  assert.equal(await sandbox.files.read(`${dir}/target`), 'changed')
  assert.equal((await sandbox.files.getInfo(`${dir}/link`)).symlinkTarget, `${dir}/target`, 'still a link')
  await sandbox.files.write(`${dir}/d/inner`, 'x')
  assert.deepEqual((await sandbox.files.list(`${dir}/dlink`)).map((e) => e.path), [`${dir}/dlink/inner`])
  await sandbox.files.remove(`${dir}/link`)
  assert.equal(await sandbox.files.exists(`${dir}/target`), true)
  await sandbox.files.remove(`${dir}/dlink`)
  assert.equal(await sandbox.files.exists(`${dir}/d/inner`), true)
  await rejects(sandbox.files.read(`${dir}/dangling`), FileNotFoundError)
  await assert.rejects(sandbox.files.read(`${dir}/loop`), Error)
})

test('list: depth, order, and what it says', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write([
    { path: `${dir}/b/x/deep/deeper`, data: '1' },
    { path: `${dir}/b/a`, data: '22' },
    { path: `${dir}/a`, data: '' },
    { path: `${dir}/c`, data: '' },
  ])
  const names = async (depth) => (await sandbox.files.list(dir, { depth })).map((e) => e.path.slice(dir.length + 1))
  assert.deepEqual(await names(undefined), ['a', 'b', 'c'])
  assert.deepEqual(await names(1), ['a', 'b', 'c'])
  assert.deepEqual(await names(2), ['a', 'b', 'b/a', 'b/x', 'c'])
  assert.deepEqual(await names(9), ['a', 'b', 'b/a', 'b/x', 'b/x/deep', 'b/x/deep/deeper', 'c'])
  const entry = (await sandbox.files.list(dir, { depth: 2 })).find((e) => e.name === 'a' && e.size === 2)
  assert.deepEqual(entry, await sandbox.files.getInfo(`${dir}/b/a`))
  await rejects(sandbox.files.list(dir, { depth: 0 }), InvalidArgumentError)
})

test('list: an empty directory, two thousand files, a file, nothing', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  assert.deepEqual(await sandbox.files.list(dir), [])
  await sh(sandbox, `cd ${dir} && seq -f 'file-%04g' 1 2000 | xargs touch`)
  const names = (await sandbox.files.list(dir)).map((e) => e.name)
  assert.deepEqual(names, Array.from({ length: 2000 }, (_, i) => `file-${String(i + 1).padStart(4, '0')}`))
  await rejects(sandbox.files.list(`${dir}/file-0001`), InvalidArgumentError, /not a directory/)
  await rejects(sandbox.files.list(`${dir}/no`), FileNotFoundError)
})

test('makeDir: true, then false; parents too; not over a file', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  assert.equal(await sandbox.files.makeDir(`${dir}/a/b/c`), true)
  assert.equal(await sandbox.files.makeDir(`${dir}/a/b/c`), false)
  assert.equal((await sandbox.files.getInfo(`${dir}/a/b/c`)).owner, 'user')
  await sandbox.files.write(`${dir}/file`, '')
  await rejects(sandbox.files.makeDir(`${dir}/file`), InvalidArgumentError)
  assert.equal(await sandbox.files.makeDir(`${dir}/root`, { user: 'root' }), true)
  assert.equal((await sandbox.files.getInfo(`${dir}/root`)).owner, 'root')
})

test('rename: files, directories, into new directories, over another', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/one`, 'one')
  const entry = await sandbox.files.rename(`${dir}/one`, `${dir}/sub/new/two`)
  assert.deepEqual([entry.name, entry.path, entry.size, entry.type], ['two', `${dir}/sub/new/two`, 3, 'file'])
  assert.equal(await sandbox.files.exists(`${dir}/one`), false)
  await sandbox.files.rename(`${dir}/sub`, `${dir}/moved`)
  assert.equal(await sandbox.files.read(`${dir}/moved/new/two`), 'one')
  await sandbox.files.write(`${dir}/other`, 'other')
  await sandbox.files.rename(`${dir}/other`, `${dir}/moved/new/two`)
  assert.equal(await sandbox.files.read(`${dir}/moved/new/two`), 'other')
  await rejects(sandbox.files.rename(`${dir}/no`, `${dir}/there`), FileNotFoundError)
})

test('remove: files, whole trees, and what is not there', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/a/b/c`, 'x')
  await sandbox.files.remove(`${dir}/a/b/c`)
  assert.equal(await sandbox.files.exists(`${dir}/a/b/c`), false)
  await sandbox.files.write(`${dir}/a/b/c`, 'x')
  await sandbox.files.remove(`${dir}/a`)
  assert.equal(await sandbox.files.exists(`${dir}/a`), false)
  await sandbox.files.remove(`${dir}/a`)
})

test('exists: files, directories, links, nothing', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/f`, '')
  await sh(sandbox, `ln -s nowhere ${dir}/dangling`)
  const there = async (path) => sandbox.files.exists(path)
  assert.deepEqual(await Promise.all([dir, `${dir}/f`, `${dir}/dangling`, `${dir}/no`, `${dir}/f/below`].map(there)), [true, true, true, false, false])
})

test('errors: nothing there, a directory, a file where a directory should be', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/file`, '')
  await rejects(sandbox.files.read(`${dir}/no`), FileNotFoundError, /path '.*\/no' does not exist/)
  await rejects(sandbox.files.read(`${dir}/no`, { format: 'stream' }), FileNotFoundError)
  await rejects(sandbox.files.getInfo(`${dir}/no`), FileNotFoundError)
  await rejects(sandbox.files.read(dir), InvalidArgumentError)
  await rejects(sandbox.files.write(dir, 'x'), InvalidArgumentError)
  await rejects(sandbox.files.write(dir, 'x', { useOctetStream: true }), InvalidArgumentError)
  await assert.rejects(sandbox.files.write(`${dir}/file/below`, 'x'), Error)
})

test('special files: an answer, never a wait', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sh(sandbox, `mkfifo ${dir}/fifo; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("${dir}/socket")'`)
  for (const path of [`${dir}/fifo`, `${dir}/socket`, '/dev/tty', '/dev/zero']) {
    await assert.rejects(sandbox.files.read(path, { requestTimeoutMs: 5000 }), (err) => err.name !== 'AbortError' && !/timeout/i.test(err.message), path)
  }
  assert.equal(await sandbox.files.exists(`${dir}/fifo`), true)
})

test('what /proc has reads whole, though it says size 0', async () => {
  const sandbox = await common()
  assert.match(await sandbox.files.read('/proc/meminfo'), /^MemTotal:[^]*Hugepagesize/)
})

test('metadata: written, read, listed, kept by rename, replaced by the next write', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const metadata = { origin: 'e2e', Upper: 'Case Value', 'x-y_z.1': 'a=b; c "d"' }
  const stored = { origin: 'e2e', upper: 'Case Value', 'x-y_z.1': 'a=b; c "d"' }
  for (const way of [{}, { useOctetStream: true }]) {
    const info = await sandbox.files.write(`${dir}/f`, 'x', { metadata, ...way })
    assert.deepEqual(info.metadata, stored)
    assert.deepEqual((await sandbox.files.getInfo(`${dir}/f`)).metadata, stored)
  }
  assert.deepEqual((await sandbox.files.list(dir))[0].metadata, stored)
  const moved = await sandbox.files.rename(`${dir}/f`, `${dir}/g`)
  assert.deepEqual(moved.metadata, stored)
  await sandbox.files.write(`${dir}/g`, 'y', { metadata: { other: '1' } })
  assert.deepEqual((await sandbox.files.getInfo(`${dir}/g`)).metadata, { other: '1' })
  await sandbox.files.write(`${dir}/g`, 'z')
  assert.equal((await sandbox.files.getInfo(`${dir}/g`)).metadata, undefined)
})

test('metadata: the same as attributes inside, both ways', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await sandbox.files.write(`${dir}/f`, 'x', { metadata: { colour: 'blue' } })
  const get = `import os; print({n: os.getxattr("${dir}/f", n) for n in os.listxattr("${dir}/f")})`
  same(await sh(sandbox, `python3 -c '${get}'`), "{'user.e2b.colour': b'blue'}")
  await sh(sandbox, `python3 -c 'import os; os.setxattr("${dir}/f", "user.e2b.size", b"large"); os.setxattr("${dir}/f", "user.other", b"no")'`)
  assert.deepEqual((await sandbox.files.getInfo(`${dir}/f`)).metadata, { colour: 'blue', size: 'large' })
})

test('metadata: what cannot be one is refused', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  await rejects(sandbox.files.write(`${dir}/f`, 'x', { metadata: { 'a b': '1' } }), InvalidArgumentError)
  await rejects(sandbox.files.write(`${dir}/f`, 'x', { metadata: { a: 'ü' } }), InvalidArgumentError)
  await rejects(sandbox.files.write(`${dir}/f`, 'x', { metadata: { ['k'.repeat(300)]: '1' } }), InvalidArgumentError)
  await rejects(sandbox.files.write(`${dir}/f`, 'x', { metadata: { a: 'v'.repeat(5000) } }), InvalidArgumentError)
  assert.equal(await sandbox.files.exists(`${dir}/f`), false)
})

test('a hundred at once', async () => {
  const sandbox = await common()
  const dir = await folder(sandbox)
  const names = Array.from({ length: 100 }, (_, i) => `${dir}/${i}`)
  await Promise.all(names.map((n) => sandbox.files.write(n, `content of ${n}`)))
  const read = await Promise.all(names.map((n) => sandbox.files.read(n)))
  assert.deepEqual(read, names.map((n) => `content of ${n}`))
})

test('paths do not lead out', async () => {
  const sandbox = await common()
  const { readFile } = await import('node:fs/promises')
  const hostname = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
  assert.equal(await sandbox.files.read('/../../../../etc/passwd'), await sandbox.files.read('/etc/passwd'))
  assert.notEqual(await sandbox.files.read('/../proc/sys/kernel/random/boot_id'), hostname)
  await sh(sandbox, 'ln -sfn / /tmp/top; ln -sfn ../../../../../../../etc/passwd /tmp/up')
  assert.equal(await sandbox.files.read('/tmp/up'), await sandbox.files.read('/etc/passwd'))
  assert.equal(await sandbox.files.read('/tmp/top/../etc/passwd'), await sandbox.files.read('/etc/passwd'))
  await rejects(sandbox.files.read('/tmp/a\0b'), InvalidArgumentError)
})

await run()
