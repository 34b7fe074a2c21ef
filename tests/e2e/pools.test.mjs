// Numeric libraries and their threads: a kernel that has used them is copied all the same, because they rest while it is, and are
// back when they are needed. Each BLAS is loaded by its path before numpy asks for one, so the machine's own choice does not matter.
import { availableParallelism } from 'node:os'
import { existsSync, readdirSync } from 'node:fs'
import { assert, run, test } from './lib.mjs'
import { checkpoint, fork, http, inTheWay, make, py, rewind, says, states, warm } from './fork.mjs'
import { start, stop } from './server.mjs'
import { Client } from './v1.mjs'

const LIBS = readdirSync('/usr/lib').filter((name) => existsSync(`/usr/lib/${name}/blas/libblas.so.3`)).map((name) => `/usr/lib/${name}`)[0]
const CPUS = Math.min(2, availableParallelism()) // of a sandbox, by default
const server = await start(undefined, undefined, ['--warm-kernels', 'standard'])
const as = server.as
const threads = (sandbox) => py(sandbox, 'len(__import__("os").listdir("/proc/self/task"))')

const load = (blas) => `import ctypes\nctypes.CDLL("${LIBS}/${blas}/libblas.so.3", ctypes.RTLD_GLOBAL)\nctypes.CDLL("${LIBS}/${blas === 'blas' ? 'lapack' : blas}/liblapack.so.3", ctypes.RTLD_GLOBAL)\n`
const PRODUCT = 'import numpy as np\nm = np.random.default_rng(5).random((400, 400))\nfirst = m @ m\ndef use():\n    return bool((m @ m == first).all())\nuse();'

// A fork, a fork of that, a checkpoint and the way back: `use()` is true in each, with its threads.
async function everywhere(begin, threadsOfUse) {
  const sandbox = await warm(as)
  await says(sandbox, begin)
  const expected = threadsOfUse ?? (await threads(sandbox))
  assert.equal(await threads(sandbox), expected, 'threads, after use')
  await checkpoint(sandbox, { label: 'start' }, as)
  await says(sandbox, 'later = 1')
  const { sandbox: copy, kernels } = await fork(sandbox, {}, as)
  assert.deepEqual(states(kernels), { python: 'carried' }, JSON.stringify(kernels))
  const { sandbox: second } = await fork(copy, {}, as)
  for (const b of [second, copy, sandbox]) {
    assert.equal(await py(b, 'use()'), true)
    assert.equal(await threads(b), expected, 'threads, after a copy was made')
  }
  await rewind(sandbox, { label: 'start' }, as)
  assert.deepEqual(await py(sandbox, '[use(), "later" in globals()]'), [true, false])
  assert.equal(await threads(sandbox), expected)
  return sandbox
}

for (const [name, expected] of [['blas', 1], ['openblas-pthread', CPUS], ['openblas-openmp', CPUS]])
  test(`${name}: a product before and after; snapshots are warm`, async () => {
    const sandbox = await everywhere(load(name) + PRODUCT, expected)
    const made = await http(as).gives(201, 'POST', `/sandboxes/${sandbox.sandboxId}/snapshots`, {})
    assert.equal(made.state, 'warm', JSON.stringify(made))
    const again = await make(as, { template: made.snapshotID })
    assert.equal(await py(again, 'use()'), true)
    assert.equal(await threads(again), expected)
  })

test('OpenBLAS in a conversation: messages leave checkpoints, branches have the variables, explore works', async () => {
  const v1 = new Client(server)
  const talk = 'pools'
  await v1.code(talk, 'main', load('openblas-pthread') + PRODUCT)
  const answer = await v1.code(talk, 'main', 'm = None', { messageId: 'm1' })
  assert.equal(answer.checkpoint?.skipped, undefined, JSON.stringify(answer))
  await v1.gives(201, 'POST', '/v1/contexts/branch', { conversationId: talk, fromPathId: 'main', toPathId: 'b', inherit: 'state', atMessageId: 'm1' })
  assert.equal((await v1.code(talk, 'b', 'print(use())')).stdout, 'True\n')
  const [context] = await v1.contexts({ conversationId: talk, pathId: 'main' })
  await v1.gives(200, 'POST', `/v1/contexts/${context.id}/rewind`, { messageId: 'm1' })
  const tried = await v1.gives(200, 'POST', `/v1/contexts/${context.id}/explore`, { codes: ['print(use())', 'print(m.shape)'] })
  assert.match(JSON.stringify(tried), /True\\n.*\(400, 400\)\\n/)
  await v1.clear(talk)
})

// Beside a BLAS that has no threads to be counted.
test('numexpr', () =>
  everywhere(load('blas') + 'import numexpr, numpy as np\na = np.arange(1e6)\ndef use():\n    return float(numexpr.evaluate("a * 2 + 1").sum()) == 1e12\nuse();', CPUS > 1 ? 1 + CPUS : 1))

test('numba with OpenMP', () =>
  everywhere(load('blas') + 'import numba, numpy as np\n@numba.njit(parallel=True)\ndef total(a):\n    s = 0.0\n    for i in numba.prange(a.shape[0]):\n        s += a[i]\n    return s\na = np.arange(1000.0)\ndef use():\n    return total(a) == 499500.0\nuse()\nassert numba.threading_layer() == "omp";', CPUS))

test('numba with threads of its own, which nobody can end: refused', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'import numba, numpy as np\nnumba.config.THREADING_LAYER = "workqueue"\n@numba.njit(parallel=True)\ndef total(a):\n    s = 0.0\n    for i in numba.prange(a.shape[0]):\n        s += a[i]\n    return s\ntotal(np.arange(1000.0));')
  const [one] = await inTheWay(sandbox, { as })
  assert.equal(one.what, 'thread')
  assert.match(one.remedy, /rest by themselves/)
  assert.equal(await py(sandbox, 'total(np.arange(10.0))'), 45, 'it goes on')
})

test('scikit-learn, with OpenMP and a BLAS', () =>
  everywhere(load('openblas-openmp') + 'from sklearn.cluster import KMeans\nimport numpy as np\ndata = np.random.default_rng(1).random((2000, 4))\ndef fit():\n    return KMeans(4, n_init=1, random_state=0).fit(data).inertia_\nfirst = fit()\ndef use():\n    return abs(fit() - first) < 1e-9\nuse();'))

test('joblib: its processes end, and are new ones when they are needed', async () => {
  const sandbox = await warm(as)
  await says(sandbox, 'from joblib import Parallel, delayed\nimport math\ndef use():\n    return Parallel(n_jobs=2)(delayed(math.sqrt)(n) for n in (1, 4, 9))\nuse();')
  assert.ok((await threads(sandbox)) > 1)
  const { sandbox: copy } = await fork(sandbox, {}, as)
  for (const b of [copy, sandbox]) assert.deepEqual(await py(b, 'use()'), [1, 2, 3])
})

test('threads of Python beside those of OpenBLAS: refused, and both go on', async () => {
  const sandbox = await warm(as)
  await says(sandbox, load('openblas-pthread') + PRODUCT + '\nimport threading\nstop = threading.Event()\nthread = threading.Thread(target=stop.wait)\nthread.start()')
  const [one] = await inTheWay(sandbox, { as })
  assert.equal(one.what, 'thread')
  assert.equal(await py(sandbox, 'use()'), true)
  await says(sandbox, 'stop.set()\nthread.join()')
  await fork(sandbox, {}, as)
})

test('how many threads: the processors of the sandbox, unless its owner says otherwise', async () => {
  const sandbox = await warm(as)
  for (const name of ['OMP_NUM_THREADS', 'NUMBA_NUM_THREADS', 'LOKY_MAX_CPU_COUNT']) assert.equal(await py(sandbox, `__import__("os").environ["${name}"]`), String(CPUS))
  assert.equal((await sandbox.commands.run('echo $OMP_NUM_THREADS')).stdout, `${CPUS}\n`)
  const own = await warm(as, { envs: { OMP_NUM_THREADS: '1' } })
  await says(own, load('openblas-pthread') + PRODUCT)
  assert.equal(await threads(own), 1)
})

test('a warm kernel that has numpy already: its threads are the sandbox\'s, and it can be copied', async () => {
  const science = await start(undefined, undefined, ['--warm-kernels', 'science'])
  const sandbox = await warm(science.as)
  assert.equal(await py(sandbox, '"numpy" in __import__("sys").modules'), true, 'it was loaded before')
  await says(sandbox, PRODUCT)
  const { sandbox: copy } = await fork(sandbox, {}, science.as)
  for (const b of [copy, sandbox]) assert.equal(await py(b, 'use()'), true)
  const pthread = await py(sandbox, '"openblas-pthread" in open("/proc/self/maps").read()')
  const own = await warm(science.as, { envs: { OMP_NUM_THREADS: '1' } })
  await says(own, PRODUCT)
  if (pthread) assert.deepEqual([await py(sandbox, '__import__("ctypes").CDLL("libopenblas.so.0").openblas_get_num_threads()'), await py(own, '__import__("ctypes").CDLL("libopenblas.so.0").openblas_get_num_threads()')], [CPUS, 1])
  await stop(science)
})

test('the server ends in good order', async () => {
  assert.equal(await stop(server), 0)
})

await run()
