// Libraries that people use, in a kernel that is forked, goes back, and is forked again: each goes on on both sides, or is
// refused with what helps. In the test bed of tests/egress, because some of them talk to servers.
import { assert, run, test } from './lib.mjs'
import { enter, now, root, world } from './bed.mjs'
import { checkpoint, fork, inTheWay, py, rewind, says, states, warm } from './fork.mjs'
import { start, stop } from './server.mjs'

enter()
const server = await start(undefined, undefined, ['--egress-dns', world.DNS, '--egress-roots', root])
const as = server.as

// The code that is to work in a copy, in the source, and after going back; its value each time.
async function everywhere(begin, use, expected) {
  const sandbox = await warm(as)
  await says(sandbox, begin)
  await checkpoint(sandbox, { label: 'start' }, as)
  const { sandbox: copy, kernels } = await fork(sandbox, {}, as)
  const { sandbox: second, kernels: again } = await fork(copy, {}, as)
  for (const k of [kernels, again]) assert.deepEqual(states(k), { python: 'carried' }, JSON.stringify(k))
  for (const b of [second, copy, sandbox]) assert.deepEqual(await py(b, use), expected)
  await rewind(sandbox, { label: 'start' }, as)
  assert.deepEqual(await py(sandbox, use), expected)
  return { sandbox, copy }
}

test('numpy: arrays and views of them, the shared generator anew, a generator of its own goes on', async () => {
  const { sandbox, copy } = await everywhere(
    'import numpy as np\na = np.arange(1_000_000)\nview = a[::2]\nown = np.random.default_rng(7)\nown.random()\nnp.random.seed(5)\ndef use():\n    view[0] += 5\n    return [int(a.sum()), int(a[0]), float(own.random()), float((a[:100].reshape(10, 10) @ np.ones((10, 10))).sum())]',
    'use()',
    [499999500005, 5, 0.8972138009695755, 49550],
  )
  assert.notEqual(await py(sandbox, 'float(np.random.random())'), await py(copy, 'float(np.random.random())'), 'the library\'s own generator is not shared')
})

test('pandas and matplotlib: frames, a figure in the making', async () => {
  await everywhere(
    'import matplotlib\nmatplotlib.use("agg")\nimport matplotlib.pyplot as plt, pandas as pd, io\ndf = pd.DataFrame({"k": list("abab"), "v": [1, 2, 3, 4]})\ngroups = df.groupby("k")\nfigure, axes = plt.subplots()\naxes.plot(df["v"])\ndef use():\n    axes.plot([4, 3])\n    f = io.BytesIO()\n    figure.savefig(f, format="png")\n    plt.close("all")\n    return [groups["v"].sum().to_dict(), len(axes.lines), f.getvalue()[:4].hex()]',
    'use()',
    [{ a: 4, b: 6 }, 2, '89504e47'],
  )
})

test('sqlite3: a connection that is open over two checkpoints, with writes between, on both sides', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'import sqlite3\ndb = sqlite3.connect("/home/user/data.db")\ndb.execute("create table t (n integer)")\ndb.execute("insert into t values (1)")\ndb.commit()\ndef put(n):\n    db.execute("insert into t values (?)", (n,))\n    db.commit()\n    return [row[0] for row in db.execute("select n from t order by rowid")]')
  await checkpoint(sandbox, { label: 'one' }, as)
  assert.deepEqual(await py(sandbox, 'put(2)'), [1, 2])
  await checkpoint(sandbox, { label: 'two' }, as)
  assert.deepEqual(await py(sandbox, 'put(3)'), [1, 2, 3])
  const { sandbox: copy } = await fork(sandbox, {}, as)
  assert.deepEqual([await py(copy, 'put(4)'), await py(sandbox, 'put(5)')], [[1, 2, 3, 4], [1, 2, 3, 5]])
  const { sandbox: second } = await fork(copy, {}, as)
  assert.deepEqual([await py(second, 'put(6)'), await py(copy, 'put(7)')], [[1, 2, 3, 4, 6], [1, 2, 3, 4, 7]])
  await rewind(sandbox, { label: 'two' }, as)
  assert.deepEqual(await py(sandbox, 'put(8)'), [1, 2, 8])
  for (const b of [sandbox, copy, second]) assert.equal(await py(b, 'db.execute("pragma integrity_check").fetchone()[0]'), 'ok')
  await says(sandbox, 'db.execute("begin immediate")')
  const [one] = await inTheWay(sandbox, { as })
  assert.equal(one.what, 'lock', 'in a transaction it holds a lock')
  await says(sandbox, 'db.rollback()')
  await fork(sandbox, {}, as)
})

test('requests: a session with its connections; the branch makes its own', async () => {
  await everywhere(
    `import requests\nsession = requests.Session()\nsession.headers["X-Mark"] = "kept"\nsession.get("http://${world.A}/").raise_for_status()\ndef use():\n    a = session.get("http://${world.A}/")\n    return [a.status_code, a.request.headers["X-Mark"], a.json()["who"]]`,
    'use()',
    [200, 'kept', 'a'],
  )
})

test('http.client: a connection has hung up in a branch, as when a server closes it; closed and asked again it works', async () => {
  await everywhere(
    `import http.client, json\nc = http.client.HTTPConnection("${world.A}", timeout=10)\nc.request("GET", "/")\nc.getresponse().read()\ndef ask():\n    c.request("GET", "/")\n    return json.loads(c.getresponse().read())["who"]\ndef use():\n    try:\n        return ask()\n    except (OSError, http.client.HTTPException):\n        c.close()\n        return ask()`,
    'use()',
    'a',
  )
})

test('asyncio: a task that sleeps between cells, queues, locks', async () => {
  await everywhere(
    'import asyncio\nqueue = asyncio.Queue()\nlock = asyncio.Lock()\nasync def work():\n    total = 0\n    while True:\n        n = await queue.get()\n        if n is None:\n            return total\n        async with lock:\n            await asyncio.sleep(0.01)\n            total += n\ntask = asyncio.ensure_future(work())\nqueue.put_nowait(1)\nawait asyncio.sleep(0.05)\nqueue.put_nowait(2)\nqueue.put_nowait(None)',
    'await task',
    3,
  )
})

test('generators, iterators, closures, decimals, regular expressions in the middle of things', async () => {
  await everywhere(
    'import csv, decimal, itertools, re, zipfile\ndef count():\n    n = 0\n    while True:\n        n += (yield n) or 1\ng = count()\nnext(g), g.send(5)\nit = itertools.islice(itertools.count(10), 1, None, 3)\nnext(it)\nwith open("/home/user/r.csv", "w", newline="") as f:\n    csv.writer(f).writerows([[i, i * i] for i in range(5)])\nrows = csv.reader(open("/home/user/r.csv", newline=""))\nnext(rows), next(rows)\nm = re.finditer(r"\\d+", "1 22 333")\nnext(m)\nz = zipfile.ZipFile("/home/user/z.zip", "w")\nz.writestr("a", "x")\nz.close()\nz = zipfile.ZipFile("/home/user/z.zip")\ndef use():\n    return [g.send(2), next(it), next(rows), next(m)[0], z.read("a").decode(), str(decimal.Decimal(1) / 3)]',
    'use()',
    [7, 14, ['2', '4'], '22', 'x', '0.3333333333333333333333333333'],
  )
})

test('a pool of threads is refused with what helps', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'import numpy as np, os\nm = np.random.random((400, 400))\nm @ m;')
  await fork(sandbox, {}, as)
  await says(sandbox, 'from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\npool.submit(m.sum).result();')
  const [one] = await inTheWay(sandbox, { as })
  assert.equal(one.what, 'thread')
  assert.match(one.remedy, /OpenBLAS.*rest by themselves/)
  await says(sandbox, 'pool.shutdown()')
  const { sandbox: copy } = await fork(sandbox, {}, as)
  assert.equal(await py(copy, 'm.shape[0]'), 400)
})

test('subprocess and multiprocessing work in a branch', async () => {
  await everywhere(
    'import subprocess, multiprocessing as mp\ndef square(n):\n    return n * n\ndef use():\n    with mp.get_context("fork").Pool(2) as p:\n        squares = p.map(square, [1, 2, 3])\n    return [squares, subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout]',
    'use()',
    [[1, 4, 9], 'hi\n'],
  )
})

test('replay reaches nothing: what a cell asked of a server it is not asked again', async () => {
  const sandbox = await warm(as)
  const js = { language: 'javascript' }
  await says(sandbox, `console.log((await (await fetch("http://${world.A}/first")).json()).who)`, js)
  const seen = now()
  const { sandbox: copy, kernels } = await fork(sandbox, { inherit: 'replay' }, as)
  assert.equal(states(kernels).javascript, 'replayed', JSON.stringify(kernels))
  const [{ diverged }] = kernels.filter((k) => k.language === 'javascript')
  assert.equal(diverged?.length, 1, JSON.stringify(kernels))
  assert.match(diverged[0].expected, /^a$/m)
  assert.deepEqual(seen.requests(world.A), [])
  // Afterwards the branch has the network that its source has.
  assert.equal(await says(copy, `console.log((await (await fetch("http://${world.A}/then")).json()).who)`, js), 'a')
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

await run()
