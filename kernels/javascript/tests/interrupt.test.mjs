import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Kernel } from './kernel.mjs';

let kernel;

before(async () => {
    kernel = await Kernel.start();
});

after(() => kernel.stop());

/* Each prints `on` when it is where it is to be interrupted. */
const TABLE = [
    ['a loop', 'console.log("on"); while (true);'],
    ['a loop that prints', 'console.log("on"); while (true) console.log("x")'],
    ['a loop that displays', 'console.log("on"); while (true) display(1)'],
    [
        'a loop that catches everything',
        'console.log("on"); for (;;) try { while (true); } catch {} finally {}',
    ],
    ['a loop in a promise', 'await null; console.log("on"); while (true);'],
    ['a loop that awaits what is there', 'console.log("on"); while (true) await null'],
    ['a regular expression', 'console.log("on"); /(a+)+$/.test("a".repeat(40) + "b")'],
    [
        'a program',
        'require("child_process").execSync("echo on; exec sleep 60", { stdio: "inherit" })',
    ],
    [
        'a program that is awaited',
        'await new Promise((done) => require("child_process").spawn("sh", ["-c", "echo on; exec sleep 60"], { stdio: "inherit" }).on("exit", done))',
    ],
    [
        'a pause of the thread',
        'console.log("on"); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
    ],
    [
        'a description that does not end',
        '({ [Symbol.for("nodejs.util.inspect.custom")]() { console.log("on"); while (true); } })',
    ],
    [
        'an error whose stack does not end',
        'throw Object.defineProperty(new Error("x"), "stack", { get() { console.log("on"); while (true); } })',
    ],
    [
        'an error whose stack does not end, after waiting',
        'await new Promise((r) => setTimeout(r, 20)); throw Object.defineProperty(new Error("x"), "stack", { get() { console.log("on"); while (true); } })',
    ],
    ['a promise that is never kept', 'console.log("on"); await new Promise(() => {})'],
    ['the last value, never kept', 'console.log("on"); new Promise(() => {})'],
    [
        'a loop after waiting',
        'await new Promise((r) => setTimeout(r, 20)); console.log("on"); while (true);',
    ],
    [
        'a loop in a timer',
        'setTimeout(() => { console.log("on"); while (true); }, 20); await new Promise(() => {})',
    ],
    [
        'a loop after reading a file',
        'await require("fs").promises.readFile("/etc/passwd"); console.log("on"); while (true);',
    ],
    [
        'a loop of awaits after waiting',
        'await new Promise((r) => setTimeout(r, 20)); console.log("on"); while (true) await null',
    ],
    [
        'a loop with a stored context',
        'const als = new (require("async_hooks").AsyncLocalStorage)(); await als.run(1, async () => { await new Promise((r) => setTimeout(r, 20)); console.log("on"); while (true); })',
    ],
    [
        'a server',
        'const server = require("http").createServer().listen(0, "127.0.0.1", () => console.log("on")); await require("events").once(server, "close")',
    ],
    [
        'a cell that listens to the signal',
        'process.on("SIGINT", () => {}); console.log("on"); while (true);',
    ],
    [
        'an import that waits',
        'import "data:text/javascript,console.log(`on`); await new Promise(() => {})"',
    ],
];

for (const [what, cell] of TABLE) {
    test(`interrupt: ${what}`, async () => {
        kernel.begin(cell);
        await kernel.until(() => kernel.stdout.startsWith('on\n'));
        await new Promise((resolve) => setTimeout(resolve, 50));
        kernel.interrupt();
        const { error } = await kernel.end();
        assert.equal(error.name, 'KeyboardInterrupt');
        assert.equal(error.value, 'the cell was interrupted');
        const next = await kernel.run(
            'await new Promise((r) => setTimeout(r, 5)); console.log("next"); 2',
        );
        assert.equal(next.text, '2');
        assert.equal(next.error, undefined);
    });
}

// A program dies of the signal at once, while the kernel waits for its turn: Node's thread that hears of the signal, or the one that runs the handler.
for (const late of ['hearer', 'handler']) {
    test(`interrupt: a program, and the signal's ${late} is late`, async () => {
        kernel.begin('require("child_process").execSync("echo on; exec sleep 60", { stdio: "inherit" })');
        await kernel.until(() => kernel.stdout === 'on\n');
        kernel.hold(late);
        kernel.interrupt();
        await new Promise((resolve) => setTimeout(resolve, 200));
        kernel.release();
        const { error } = await kernel.end();
        assert.equal(error.name, 'KeyboardInterrupt');
        assert.equal((await kernel.run('1 + 1')).text, '2');
    });
}

// The cell fails with the program in the same moment as V8 is told to end it. The inspector, which ran the cell, must not meet that: it ends the process.
test('interrupt: a program, many times', async () => {
    for (let i = 0; i < 200; i++) {
        kernel.begin('require("child_process").execSync("echo on; exec sleep 60", { stdio: "inherit" })');
        await kernel.until(() => kernel.stdout === 'on\n');
        kernel.interrupt();
        const { error } = await kernel.end();
        assert.equal(error.name, 'KeyboardInterrupt');
    }
    assert.equal((await kernel.run('1 + 1')).text, '2');
});

// Sorting is one call that V8 cannot end, and when it is over, the event loop is late with everything.
test('interrupt: a call that cannot be ended, while the cell waits', async () => {
    await kernel.run(`
        const many = new Float64Array(4e6).map(Math.random);
        await new Promise((r) => setTimeout(r, 5));
    `);
    kernel.begin(`
        console.log("on");
        require("fs").access("/", Float64Array.prototype.sort.bind(many, undefined));
        await new Promise(() => {});
    `);
    await kernel.until(() => kernel.stdout === 'on\n');
    await new Promise((resolve) => setTimeout(resolve, 20));
    kernel.interrupt();
    const { error } = await kernel.end();
    assert.equal(error.name, 'KeyboardInterrupt');
    assert.equal((await kernel.run('1 + 1')).text, '2');
});

test('interrupt: a loop that sleeps is over afterwards', async () => {
    kernel.begin(
        'while (true) { await new Promise((r) => setTimeout(r, 5)); console.log("tick") }',
    );
    await kernel.until(() => kernel.stdout.includes('tick'));
    kernel.interrupt();
    await kernel.end();
    const { stdout } = await kernel.run('await new Promise((r) => setTimeout(r, 100))');
    assert.equal(stdout, '');
});

test('interrupt: one that sleeps by node:timers/promises too', async () => {
    kernel.begin(
        'import { setTimeout as nap } from "timers/promises"; while (true) { await nap(5); console.log("tock") }',
    );
    await kernel.until(() => kernel.stdout.includes('tock'));
    kernel.interrupt();
    await kernel.end();
    const { stdout } = await kernel.run('await new Promise((r) => setTimeout(r, 100))');
    assert.equal(stdout, '');
});

test('interrupt: names of before are there', async () => {
    await kernel.run('const kept = 42');
    kernel.begin('console.log("on"); while (true);');
    await kernel.until(() => kernel.stdout === 'on\n');
    kernel.interrupt();
    await kernel.end();
    assert.equal((await kernel.run('kept')).text, '42');
});

test('interrupt: between cells it does nothing', async () => {
    const cell = 'await new Promise((r) => setTimeout(r, 40)); "fine"';
    for (let i = 0; i < 10; i++) {
        kernel.interrupt();
        const { text, error } = await kernel.run(i % 2 ? cell : '"fine"');
        assert.equal(error, undefined);
        assert.match(text, /fine/);
    }
});

test('interrupt: at any time, many times', async () => {
    const cells = [
        'for (let i = 0; i < 1e7; i++); "done"',
        'await new Promise((r) => setTimeout(r, 20)); "done"',
        'console.log("x".repeat(1e5)); [1, 2, 3]',
    ];
    for (let i = 0; i < 60; i++) {
        kernel.begin(cells[i % cells.length]);
        await new Promise((resolve) => setTimeout(resolve, i % 20));
        kernel.interrupt();
        const { error } = await kernel.end();
        if (error !== undefined) assert.equal(error.name, 'KeyboardInterrupt');
    }
    assert.equal((await kernel.run('1 + 1')).text, '2');
});
