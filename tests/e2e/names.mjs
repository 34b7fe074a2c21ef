// A name server and certificates, for tests whose internet is on the loopback.
import { execFileSync } from 'node:child_process'
import dgram from 'node:dgram'
import fs from 'node:fs'
import path from 'node:path'
import { scratch } from './server.mjs'

// Answers every question for an A record with the loopback's address, all others with nothing.
export function nameServer() {
  const socket = dgram.createSocket('udp4')
  socket.on('message', (query, from) => {
    let end = 12
    while (query[end]) end += query[end] + 1
    const question = query.subarray(12, end + 5)
    const isA = query.readUInt16BE(end + 1) === 1
    const head = Buffer.from([query[0], query[1], 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0])
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1])
    socket.send(Buffer.concat([head, question, ...(isA ? [record] : [])]), from.port, from.address)
  })
  return new Promise((resolve) => socket.bind(0, '127.0.0.1', () => resolve(socket)))
}

// One for these names, and the file of the authority that signed it.
export function certificate(...names) {
  const file = (suffix) => path.join(scratch, `web.${suffix}`)
  const openssl = (...args) => execFileSync('openssl', args, { stdio: 'pipe' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  openssl('req', '-x509', ...key, '-days', '2', '-subj', '/CN=authority of a test', '-keyout', file('ca.key'), '-out', file('ca.pem'))
  openssl('req', ...key, '-subj', `/CN=${names[0]}`, '-keyout', file('key'), '-out', file('csr'))
  fs.writeFileSync(file('ext'), `subjectAltName=${names.map((name) => `DNS:${name}`)}`)
  openssl('x509', '-req', '-in', file('csr'), '-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '2', '-extfile', file('ext'), '-out', file('pem'))
  return { ca: file('ca.pem'), key: fs.readFileSync(file('key')), cert: fs.readFileSync(file('pem')) }
}
