// Charts: what was plotted by matplotlib comes back as numbers.
import { context, shared, shown, main } from './code.mjs'
import { assert, run, test } from './lib.mjs'

const PLOT = 'import matplotlib.pyplot as plt, numpy as np\n'

// The chart of the only figure that the code shows.
async function chart(code) {
  const sandbox = await shared()
  const execution = await sandbox.runCode(`${PLOT}${code}\nplt.show()`)
  assert.equal(execution.error, undefined, execution.error?.traceback)
  const results = shown(execution)
  assert.equal(results.length, 1, 'one figure')
  assert.ok(results[0].png, 'a picture too')
  return results[0].chart
}

// Numbers that went through floats of a drawing.
function close(actual, expected, what = 'value') {
  if (Array.isArray(expected)) {
    assert.equal(actual.length, expected.length, `${what}: length of ${JSON.stringify(actual)}`)
    expected.forEach((e, i) => close(actual[i], e, `${what}[${i}]`))
  } else if (typeof expected === 'number') {
    assert.ok(Math.abs(actual - expected) <= 1e-6 * Math.max(1, Math.abs(expected)), `${what}: ${actual} is not ${expected}`)
  } else {
    assert.deepEqual(actual, expected, what)
  }
}

const points = (c) => c.elements.map((e) => e.points)
const labels = (c) => c.elements.map((e) => e.label)

// ---- lines --------------------------------------------------------------------------------------

test('line: two series with labels, title, units, ticks', async () => {
  const c = await chart(`
x = [0, 1, 2, 3]
plt.plot(x, [0, 1, 4, 9], label="squares")
plt.plot(x, [0.5, 1.5, 2.5, 3.5], label="halves")
plt.xticks([0, 2], ["none", "two"])
plt.xlabel("time (s)"); plt.ylabel("way [m]"); plt.title("movement"); plt.legend()`)
  assert.equal(c.type, 'line')
  assert.equal(c.title, 'movement')
  assert.deepEqual([c.x_label, c.x_unit, c.y_label, c.y_unit], ['time (s)', 's', 'way [m]', 'm'])
  assert.deepEqual([c.x_scale, c.y_scale], ['linear', 'linear'])
  assert.deepEqual([c.x_ticks, c.x_tick_labels], [[0, 2], ['none', 'two']])
  assert.equal(c.y_ticks.length, c.y_tick_labels.length)
  assert.deepEqual(labels(c), ['squares', 'halves'])
  close(points(c), [[[0, 0], [1, 1], [2, 4], [3, 9]], [[0, 0.5], [1, 1.5], [2, 2.5], [3, 3.5]]])
})

test('line: computed by numpy, all points', async () => {
  const c = await chart('x = np.linspace(0, 2 * np.pi, 100)\nplt.plot(x, np.sin(x))')
  assert.equal(c.elements[0].points.length, 100)
  c.elements[0].points.forEach(([x, y], i) => {
    close(x, (2 * Math.PI * i) / 99, 'x')
    close(y, Math.sin((2 * Math.PI * i) / 99), 'y')
  })
})

test('line: one list is y over its index', async () => {
  close(points(await chart('plt.plot([5, 6, 7])')), [[[0, 5], [1, 6], [2, 7]]])
})

test('line: logarithmic axes', async () => {
  const c = await chart('plt.loglog([1, 10, 100], [1, 100, 10000])')
  assert.deepEqual([c.x_scale, c.y_scale], ['log', 'log'])
  close(points(c), [[[1, 1], [10, 100], [100, 10000]]])
  assert.equal((await chart('plt.semilogy([1, 2], [1, 10])')).y_scale, 'log')
  assert.equal((await chart('plt.plot([-1, 1], [1, 2]); plt.xscale("symlog")')).x_scale, 'symlog')
})

test('line: dates', async () => {
  const c = await chart('import datetime\nplt.plot([datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)], [1, 2])')
  assert.equal(c.x_scale, 'datetime')
  const got = c.elements[0].points
  assert.deepEqual(got.map(([x]) => x.slice(0, 10)), ['2024-01-01', '2024-02-01'])
  close(got.map(([, y]) => y), [1, 2])
})

test('line: a pandas series of times', async () => {
  const c = await chart('import pandas as pd\npd.Series([3, 4, 5], index=pd.date_range("2024-03-01", periods=3)).plot()')
  assert.equal(c.x_scale, 'datetime')
  assert.deepEqual(c.elements[0].points.map(([x, y]) => [x.slice(0, 10), y]), [['2024-03-01', 3], ['2024-03-02', 4], ['2024-03-03', 5]])
})

test('line: categories', async () => {
  const c = await chart('plt.plot(["mon", "tue", "wed"], [3, 1, 2])')
  assert.equal(c.x_scale, 'categorical')
  assert.deepEqual(c.elements[0].points, [['mon', 3], ['tue', 1], ['wed', 2]])
})

test('line: missing values', async () => {
  const c = await chart('plt.plot([1, 2, 3], [1, float("nan"), 3])')
  assert.deepEqual(c.elements[0].points, [[1, 1], [2, null], [3, 3]])
})

// ---- scatter ------------------------------------------------------------------------------------

test('scatter: two clouds with labels', async () => {
  const c = await chart('plt.scatter([1, 2, 3], [4, 5, 6], label="a")\nplt.scatter([1.5], [2.5], label="b")\nplt.legend()')
  assert.equal(c.type, 'scatter')
  assert.deepEqual(labels(c), ['a', 'b'])
  close(points(c), [[[1, 4], [2, 5], [3, 6]], [[1.5, 2.5]]])
})

test('scatter: logarithmic', async () => {
  const c = await chart('plt.scatter([1, 1000], [2, 3])\nplt.xscale("log")')
  assert.equal(c.x_scale, 'log')
  close(points(c), [[[1, 2], [1000, 3]]])
})

// ---- bars ---------------------------------------------------------------------------------------

const bars = (c) => c.elements.map((e) => [e.label, e.value, e.group])

test('bar: names and heights', async () => {
  const c = await chart('plt.bar(["ann", "bob"], [3, 4.5], label="age")\nplt.ylabel("age (years)"); plt.title("ages"); plt.legend()')
  assert.equal(c.type, 'bar')
  assert.deepEqual([c.title, c.y_label, c.y_unit], ['ages', 'age (years)', 'years'])
  assert.deepEqual(bars(c), [['ann', 3, 'age'], ['bob', 4.5, 'age']])
})

test('bar: groups side by side', async () => {
  const c = await chart(`
x = np.arange(2)
plt.bar(x - 0.2, [1, 2], 0.4, label="men")
plt.bar(x + 0.2, [3, 4], 0.4, label="women")
plt.xticks(x, ["north", "south"])
plt.legend()`)
  assert.deepEqual(bars(c), [['north', 1, 'men'], ['south', 2, 'men'], ['north', 3, 'women'], ['south', 4, 'women']])
})

test('bar: stacked', async () => {
  const c = await chart('plt.bar(["a", "b"], [1, 2], label="low")\nplt.bar(["a", "b"], [3, 4], bottom=[1, 2], label="high")\nplt.legend()')
  assert.deepEqual(bars(c), [['a', 1, 'low'], ['b', 2, 'low'], ['a', 3, 'high'], ['b', 4, 'high']])
})

test('bar: lying', async () => {
  assert.deepEqual(bars(await chart('plt.barh(["x", "y"], [7, -2], label="g")\nplt.legend()')), [['x', 7, 'g'], ['y', -2, 'g']])
})

test('bar: a pandas frame', async () => {
  const c = await chart('import pandas as pd\npd.DataFrame({"q1": [1, 2], "q2": [3, 4]}, index=["north", "south"]).plot.bar()')
  assert.deepEqual(bars(c), [['north', 1, 'q1'], ['south', 2, 'q1'], ['north', 3, 'q2'], ['south', 4, 'q2']])
})

test('bar: a histogram', async () => {
  const c = await chart('plt.hist([1, 1, 2, 3, 3, 3], bins=[0.5, 1.5, 2.5, 3.5])')
  assert.equal(c.type, 'bar')
  assert.deepEqual(c.elements.map((e) => e.value), [2, 1, 3])
})

// ---- pies and boxes -----------------------------------------------------------------------------

test('pie: angles and radius', async () => {
  const c = await chart('plt.pie([1, 2, 5], labels=["a", "b", "c"], radius=1.5)\nplt.title("shares")')
  assert.deepEqual([c.type, c.title], ['pie', 'shares'])
  assert.deepEqual(c.elements.map((e) => e.label), ['a', 'b', 'c'])
  c.elements.forEach((e, i) => {
    assert.ok(Math.abs(e.angle - [45, 90, 225][i]) < 1e-3, `angle ${e.angle}`)
    close(e.radius, 1.5)
  })
})

test('box: quartiles, whiskers and outliers', async () => {
  const c = await chart('plt.boxplot([[1, 2, 3, 4, 5, 6, 7, 8, 9, 100], [10, 20, 30]], labels=["a", "b"])')
  assert.equal(c.type, 'box_and_whisker')
  assert.deepEqual(c.elements.map((e) => e.label), ['a', 'b'])
  const numbers = c.elements.map((e) => [e.min, e.first_quartile, e.median, e.third_quartile, e.max])
  close(numbers, [[1, 3.25, 5.5, 7.75, 9], [10, 15, 20, 25, 30]])
  assert.deepEqual(c.elements.map((e) => e.outliers), [[100], []])
})

// ---- figures ------------------------------------------------------------------------------------

test('superchart: several axes in one figure', async () => {
  const c = await chart(`
fig, (left, right) = plt.subplots(1, 2)
left.plot([1, 2], [3, 4]); left.set_title("l")
right.bar(["a"], [5]); right.set_title("r")
fig.suptitle("both")`)
  assert.deepEqual([c.type, c.title], ['superchart', 'both'])
  assert.deepEqual(c.elements.map((e) => [e.type, e.title]), [['line', 'l'], ['bar', 'r']])
  close(points(c.elements[0]), [[[1, 3], [2, 4]]])
  assert.equal(c.elements[1].elements[0].value, 5)
})

test('superchart: all types at once', async () => {
  const c = await chart(`
fig, axes = plt.subplots(2, 3)
axes[0][0].plot([1, 2]); axes[0][1].scatter([1], [2]); axes[0][2].bar(["a"], [1])
axes[1][0].pie([1, 1]); axes[1][1].boxplot([1, 2, 3]); axes[1][2].imshow([[1, 2]])`)
  assert.deepEqual(c.elements.map((e) => e.type), ['line', 'scatter', 'bar', 'pie', 'box_and_whisker', 'unknown'])
})

test('two figures are two results', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode(`${PLOT}plt.figure(); plt.plot([1]); plt.figure(); plt.bar(["a"], [2]); plt.show()`)
  assert.deepEqual(shown(execution).map((r) => r.chart.type), ['line', 'bar'])
})

test('a figure as the value of the cell is shown once', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode(`${PLOT}fig, ax = plt.subplots()\nax.plot([1, 2])\nfig`)
  assert.equal(execution.results.length, 1)
  assert.equal(main(execution).chart.type, 'line')
})

test('a figure that is not shown appears at the end of its cell, and not in the next', async () => {
  const sandbox = await shared()
  const opts = await context(sandbox)
  const execution = await sandbox.runCode(`${PLOT}plt.plot([1, 2]);`, opts)
  assert.deepEqual(shown(execution).map((r) => r.chart.type), ['line'])
  assert.deepEqual((await sandbox.runCode('1', opts)).results.map((r) => r.text), ['1'])
})

test('a blank figure, and what is no chart', async () => {
  assert.deepEqual(await chart('plt.subplots()'), {})
  assert.equal((await chart('plt.imshow([[1, 2], [3, 4]])')).type, 'unknown')
})

test('a chart of too many points is left out, and said to be', async () => {
  const sandbox = await shared()
  const execution = await sandbox.runCode(`${PLOT}plt.plot(np.zeros(200_000))\nplt.show()`)
  const [result] = shown(execution)
  assert.ok(result.png)
  assert.equal(result.chart, undefined)
  assert.match(result.text, /chart left out/)
})

await run()
