// A name server for tests whose internet is on the loopback.
import dgram from 'node:dgram'

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
