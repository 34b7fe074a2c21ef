// Listing sandboxes: filters, order, pages.
import { assert, fresh, near, OTHER_KEY, refused, rejects, run, Sandbox, test, unique } from './lib.mjs'

async function all(opts) {
  const pages = Sandbox.list(opts)
  const items = []
  while (pages.hasNext) items.push(...(await pages.nextItems()))
  return items
}

const ids = (items) => items.map((i) => i.sandboxId)
const idsOf = async (opts) => ids(await all(opts))

test('a new sandbox is listed, with what getInfo says', async () => {
  const metadata = { run: unique(), note: 'ünï' }
  const sandbox = await fresh({ metadata })
  const [item, ...more] = await all({ query: { metadata } })
  assert.equal(more.length, 0)
  const info = await sandbox.getInfo()
  for (const key of ['sandboxId', 'templateId', 'name', 'metadata', 'state', 'cpuCount', 'memoryMB', 'envdVersion', 'startedAt', 'endAt'])
    assert.deepEqual(item[key], info[key], key)
  assert.ok((await idsOf()).includes(sandbox.sandboxId))
})

test('a sandbox that ended is not', async () => {
  const metadata = { run: unique() }
  const sandbox = await fresh({ metadata })
  assert.equal((await all({ query: { metadata } })).length, 1)
  await sandbox.kill()
  assert.equal((await all({ query: { metadata } })).length, 0)
})

test('metadata with characters that mean something in a query', async () => {
  const odd = { 'a b': 'c&d', 'k=v': '1+1=2', 'ünï💥': 'per%cent%20', 'plus+': 'a+b c', slash: '/?#[]@', quote: '"\'`', empty: '' }
  for (const [key, value] of Object.entries(odd)) {
    const metadata = { run: unique(), [key]: value }
    const sandbox = await fresh({ metadata })
    assert.deepEqual(await idsOf({ query: { metadata } }), [sandbox.sandboxId], `filter ${key}`)
    assert.deepEqual(await idsOf({ query: { metadata: { ...metadata, [key]: `${value}x` } } }), [], `other value of ${key}`)
  }
})

test('metadata: all pairs must match', async () => {
  const run = unique()
  const a = await fresh({ metadata: { run, side: 'left' } })
  const b = await fresh({ metadata: { run, side: 'right' } })
  assert.deepEqual((await idsOf({ query: { metadata: { run } } })).sort(), [a.sandboxId, b.sandboxId].sort())
  assert.deepEqual(await idsOf({ query: { metadata: { run, side: 'left' } } }), [a.sandboxId])
  assert.deepEqual(await idsOf({ query: { metadata: { run, side: 'up' } } }), [])
})

test('state: running, paused, both, and both when none is named', async () => {
  const metadata = { run: unique() }
  const runs = await fresh({ metadata })
  const sleeps = await fresh({ metadata })
  await sleeps.pause()
  const by = async (state) => (await idsOf({ query: { metadata, state } })).sort()
  assert.deepEqual(await by(['running']), [runs.sandboxId])
  assert.deepEqual(await by(['paused']), [sleeps.sandboxId])
  const both = [runs.sandboxId, sleeps.sandboxId].sort()
  assert.deepEqual(await by(['running', 'paused']), both)
  assert.deepEqual(await by(undefined), both)
  assert.equal((await all({ query: { metadata, state: ['paused'] } }))[0].state, 'paused')
})

test('order, and everything started after a moment', async () => {
  const metadata = { run: unique() }
  const made = []
  for (let i = 0; i < 3; i++) made.push((await fresh({ metadata })).sandboxId)
  assert.deepEqual(await idsOf({ query: { metadata } }), [...made].reverse(), 'the newest first')
  assert.deepEqual(await idsOf({ query: { metadata }, order: 'desc' }), [...made].reverse())
  assert.deepEqual(await idsOf({ query: { metadata }, order: 'asc' }), made)
  const items = await all({ query: { metadata }, order: 'asc' })
  const later = (ms) => idsOf({ query: { metadata, startedAfter: new Date(ms) } })
  assert.deepEqual((await later(+items[0].startedAt)).length, 3, 'the moment itself is included')
  assert.deepEqual(await later(+items[2].startedAt + 1000), [])
})

test('template: by name and by id, a tag is refused', async () => {
  const metadata = { run: unique() }
  const sandbox = await fresh('base', { metadata })
  const { templateId } = await sandbox.getInfo()
  assert.deepEqual(await idsOf({ query: { metadata, template: 'base' } }), [sandbox.sandboxId])
  assert.deepEqual(await idsOf({ query: { metadata, template: templateId } }), [sandbox.sandboxId])
  assert.deepEqual(await idsOf({ query: { metadata, template: 'code-interpreter-v1' } }), [])
  await refused(Sandbox.list({ query: { template: 'base:latest' } }).nextItems(), 400)
})

test('pages: all of them, each once, and from a token', async () => {
  const metadata = { run: unique() }
  const made = []
  for (let i = 0; i < 5; i++) made.push((await fresh({ metadata })).sandboxId)
  const pages = Sandbox.list({ query: { metadata }, limit: 2 })
  const first = await pages.nextItems()
  assert.equal(first.length, 2)
  assert.equal(pages.hasNext, true)
  const rest = Sandbox.list({ query: { metadata }, limit: 2, nextToken: pages.nextToken })
  const second = await pages.nextItems()
  const third = await pages.nextItems()
  assert.deepEqual([second.length, third.length], [2, 1])
  assert.equal(pages.hasNext, false)
  assert.equal(pages.nextToken, undefined)
  assert.deepEqual(ids([...first, ...second, ...third]), [...made].reverse())
  assert.deepEqual(ids(await rest.nextItems()), ids(second), 'a token is good for another paginator')
  await rejects(pages.nextItems(), Error, /No more items/)
})

test('pages: exactly full ones end too', async () => {
  const metadata = { run: unique() }
  for (let i = 0; i < 2; i++) await fresh({ metadata })
  const items = await all({ query: { metadata }, limit: 1 })
  assert.equal(items.length, 2)
  assert.equal((await all({ query: { metadata }, limit: 2 })).length, 2)
})

test('a sandbox made between two pages shifts nothing', async () => {
  const metadata = { run: unique() }
  const made = []
  for (let i = 0; i < 4; i++) made.push((await fresh({ metadata })).sandboxId)
  const pages = Sandbox.list({ query: { metadata }, limit: 2 })
  const seen = ids(await pages.nextItems())
  await fresh({ metadata })
  while (pages.hasNext) seen.push(...ids(await pages.nextItems()))
  assert.deepEqual(seen, [...made].reverse())
})

test('a bad token, a bad limit, a bad state', async () => {
  await refused(Sandbox.list({ nextToken: 'not-a-token' }).nextItems(), 400, /Invalid next token/)
  await refused(Sandbox.list({ limit: 101 }).nextItems(), 400)
  await refused(Sandbox.list({ limit: -1 }).nextItems(), 400)
  await refused(Sandbox.list({ query: { state: ['asleep'] } }).nextItems(), 400)
})

test('another tenant sees nothing of it', async () => {
  const metadata = { run: unique() }
  const sandbox = await fresh({ metadata })
  assert.deepEqual(await idsOf({ query: { metadata }, apiKey: OTHER_KEY }), [])
  assert.ok(!(await idsOf({ apiKey: OTHER_KEY })).includes(sandbox.sandboxId))
})

test('endAt follows setTimeout', async () => {
  const metadata = { run: unique() }
  const sandbox = await fresh({ metadata })
  await sandbox.setTimeout(500_000)
  near((await all({ query: { metadata } }))[0].endAt, Date.now() + 500_000, 3000, 'endAt')
})

await run()
