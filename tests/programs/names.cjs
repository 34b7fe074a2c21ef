// Loaded before a program (`node --require`): names below that of E2B_DOMAIN, which are in no DNS, are the loopback address.
const dns = require('node:dns')

const name = process.env.E2B_DOMAIN?.replace(/:\d+$/, '')
const { lookup } = dns
if (name)
  dns.lookup = (host, options, callback) => {
    if (!host.endsWith(`.${name}`)) return lookup(host, options, callback)
    if (typeof options === 'function') [callback, options] = [options, {}]
    const found = { address: '127.0.0.1', family: 4 }
    process.nextTick(() => (options?.all ? callback(null, [found]) : callback(null, found.address, found.family)))
  }
