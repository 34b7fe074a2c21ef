// A registry of npm packages that are made up: enough of them, each with files and dependencies, that installing the first
// is real work. What a package exports tells whether all that it needs was installed whole and in the right version.
import crypto from 'node:crypto'
import http from 'node:http'
import zlib from 'node:zlib'

export const PACKAGES = 250
const FILES = 12
const nameOf = (i) => (i % 5 === 0 ? `@made/p${i}` : `made-p${i}`)

const twice = (i) => i % 7 === 0
const versionsOf = (i) => (twice(i) ? ['1.0.0', '1.2.0'] : ['1.0.0'])

// Each depends on some behind it, so all are needed by the first. Every seventh exists twice, and who needs the older one
// has it to itself.
function needs(i) {
  const wanted = {}
  for (const step of [1, 2, 7, 31])
    if (i + step < PACKAGES) wanted[nameOf(i + step)] = twice(i + step) && i % 2 ? '~1.0.0' : '^1.0.0'
  return wanted
}

// Text of some kilobytes that does not pack to nothing, the same each time.
function text(seed, size) {
  return crypto.createHash('shake256', { outputLength: size / 2 }).update(seed).digest('hex')
}

function codeOf(i, version) {
  const wanted = Object.keys(needs(i))
  return `'use strict'
const parts = [${Array.from({ length: FILES }, (_, n) => `require('./lib/f${n}.js')`).join(', ')}]
exports.id = '${nameOf(i)}@${version}'
exports.size = parts.reduce((sum, part) => sum + part.length, 0)
exports.needs = [${wanted.map((name) => `require('${name}')`).join(', ')}]
exports.ranges = ${JSON.stringify(Object.values(needs(i)))}
`
}

function entry(name, data) {
  const head = Buffer.alloc(512)
  const put = (at, value) => head.write(value, at, 'latin1')
  put(0, `package/${name}`)
  put(100, '0000644\0')
  put(108, '0000000\0')
  put(116, '0000000\0')
  put(124, `${data.length.toString(8).padStart(11, '0')}\0`)
  put(136, '00000000000\0')
  put(148, '        ')
  put(156, '0')
  put(257, 'ustar\x0000')
  put(148, `${head.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `)
  return Buffer.concat([head, data, Buffer.alloc(-data.length & 511)])
}

function pack(i, version) {
  const manifest = { name: nameOf(i), version, main: 'index.js', dependencies: needs(i), license: 'MIT' }
  if (i === 0) Object.assign(manifest, { bin: { 'made-tool': 'tool.js' }, scripts: { postinstall: 'node tool.js installed > made.txt' } })
  const files = { 'package.json': JSON.stringify(manifest), 'index.js': codeOf(i, version), 'README.md': text(`${i} readme`, 4000) }
  if (i === 0) files['tool.js'] = '#!/usr/bin/env node\nconsole.log(process.argv[2], require("./index.js").id)\n'
  for (let n = 0; n < FILES; n++) files[`lib/f${n}.js`] = `module.exports = '${text(`${i} ${version} ${n}`, 3000)}'\n`
  const tar = Buffer.concat([...Object.entries(files).map(([name, data]) => entry(name, Buffer.from(data))), Buffer.alloc(1024)])
  return { manifest, tgz: zlib.gzipSync(tar, { level: 1 }) }
}

// Serves them at http://NAME:PORT/ on the loopback. `served` counts what was asked for.
export async function registry(host) {
  const documents = new Map()
  const tarballs = new Map()
  const served = { documents: 0, tarballs: 0, missing: [] }
  const server = http.createServer((req, res) => {
    const name = decodeURIComponent(req.url.slice(1))
    const body = documents.get(name) ?? tarballs.get(name)
    if (!body) {
      served.missing.push(`${req.method} ${req.url}`)
      res.writeHead(404).end('{}')
      return
    }
    served[documents.has(name) ? 'documents' : 'tarballs']++
    res.setHeader('Content-Type', documents.has(name) ? 'application/json' : 'application/octet-stream')
    res.end(body)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://${host}:${server.address().port}/`
  for (let i = 0; i < PACKAGES; i++) {
    const name = nameOf(i)
    const versions = {}
    for (const version of versionsOf(i)) {
      const { manifest, tgz } = pack(i, version)
      const file = `tarballs/${name.replace('/', '-')}-${version}.tgz`
      tarballs.set(file, tgz)
      versions[version] = {
        ...manifest,
        ...(manifest.scripts ? { hasInstallScript: true } : {}),
        dist: { tarball: url + file, integrity: `sha512-${crypto.createHash('sha512').update(tgz).digest('base64')}` },
      }
    }
    documents.set(name, JSON.stringify({ name, 'dist-tags': { latest: versionsOf(i).at(-1) }, versions }))
  }
  return { url, served, close: () => server.close(), first: nameOf(0), tarballs: tarballs.size }
}
