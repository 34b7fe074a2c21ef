/* The packets, and what a cell can do to its kernel. */
import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { Kernel } from './kernel.mjs';

async function withKernel(use) {
    const kernel = await Kernel.start();
    try {
        await use(kernel);
    } finally {
        kernel.stop();
    }
}

test('protocol: Q comes first and alone', () =>
    withKernel(async (kernel) => {
        assert.deepEqual(kernel.packets, [{ kind: 'Q', size: 1 }]);
        assert.equal(kernel.stdout + kernel.stderr, '');
    }));

test('protocol: F says the number of the cell', () =>
    withKernel(async (kernel) => {
        kernel.number = 4_000_000_000;
        await kernel.run('1');
        assert.equal(kernel.finished, 4_000_000_001);
    }));

test('protocol: code in pieces', () =>
    withKernel(async (kernel) => {
        const { text } = await kernel.run(`/* ${'ä'.repeat(300_000)} */ "whole"`);
        assert.equal(text, 'whole');
    }));

test('protocol: a variable for good', () =>
    withKernel(async (kernel) => {
        kernel.send('G', 'COLOUR=red=blue');
        assert.equal((await kernel.run('process.env.COLOUR')).text, 'red=blue');
        assert.equal((await kernel.run('process.env.COLOUR')).text, 'red=blue');
    }));

test('protocol: a variable for one cell', () =>
    withKernel(async (kernel) => {
        kernel.send('G', 'KEPT=before');
        const env = { KEPT: 'lent', NEW: 'x' };
        const { text } = await kernel.run('await null; process.env.KEPT + process.env.NEW', {
            env,
        });
        assert.equal(text, 'lentx');
        assert.equal(
            (await kernel.run('process.env.KEPT + ("NEW" in process.env)')).text,
            'beforefalse',
        );
    }));

test('protocol: programs get the variables', () =>
    withKernel(async (kernel) => {
        const code = 'require("child_process").execSync("echo $LENT").toString().trim()';
        assert.equal((await kernel.run(code, { env: { LENT: 'yes' } })).text, 'yes');
    }));

test('protocol: a variable is put back when the cell fails', () =>
    withKernel(async (kernel) => {
        await kernel.run('throw 1', { env: { GONE: 'x' } });
        assert.equal((await kernel.run('"GONE" in process.env')).text, 'false');
    }));

test('protocol: a directory', async () => {
    const directory = realpathSync(mkdtempSync(path.join(tmpdir(), 'cwd-')));
    await withKernel(async (kernel) => {
        kernel.send('D', directory);
        assert.equal((await kernel.run('process.cwd()')).text, directory);
        const fresh = path.join(directory, 'a', 'b');
        kernel.send('D', fresh);
        assert.equal((await kernel.run('process.cwd()')).text, fresh);
        kernel.send('D', '/proc/nowhere');
        assert.equal((await kernel.run('process.cwd() === require("os").homedir()')).text, 'true');
    });
    rmSync(directory, { recursive: true });
});

test('protocol: modules follow the directory', async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'cwd-'));
    await withKernel(async (kernel) => {
        kernel.send('D', directory);
        await kernel.run('require("fs").writeFileSync("here.mjs", "export default 11")');
        assert.equal((await kernel.run('import here from "./here.mjs"; here')).text, '11');
    });
    rmSync(directory, { recursive: true });
});

test('protocol: the socket is closed', async () => {
    const kernel = await Kernel.start();
    kernel.order({ close: true });
    assert.equal(await kernel.ended(), 0);
});

test('protocol: the socket is closed while a cell waits', async () => {
    const kernel = await Kernel.start();
    kernel.begin('console.log("on"); await new Promise(() => {})');
    await kernel.until(() => kernel.stdout === 'on\n');
    kernel.order({ close: true });
    assert.equal(await kernel.ended(), 0);
});

test('protocol: programs do not get the socket', () =>
    withKernel(async (kernel) => {
        const { text } = await kernel.run(
            'require("child_process").execSync("ls /proc/self/fd").toString()',
        );
        assert.ok(!text.split('\n').includes('3') || !text.includes('4'), text);
        const code = 'require("child_process").spawnSync("sh", ["-c", "echo x >&3"]).status !== 0';
        assert.equal((await kernel.run(code)).text, 'true');
    }));

test('protocol: output is never a packet', () =>
    withKernel(async (kernel) => {
        const { stdout, results } = await kernel.run(
            'console.log("Rm"); console.log("F\\0\\0\\0\\0"); undefined',
        );
        assert.equal(stdout, 'Rm\nF\0\0\0\0\n');
        assert.equal(results.length, 0);
    }));

test('protocol: a long text in pieces of 64 KiB at most', () =>
    withKernel(async (kernel) => {
        const { text } = await kernel.run('"äx😀".repeat(100000)');
        assert.equal(text, 'äx😀'.repeat(100_000));
        assert.ok(kernel.packets.every(({ size }) => size <= 65536));
        assert.ok(kernel.packets.length > 10);
    }));

test('limit: a text that is too large', () =>
    withKernel(async (kernel) => {
        const { text } = await kernel.run('"x".repeat(1e8)');
        assert.equal(text, '<text of 100000000 bytes left out: the limit is 33554432>');
        assert.equal((await kernel.run('"x".repeat(33e6)')).text.length, 33e6);
    }));

test('limit: a picture that is too large', () =>
    withKernel(async (kernel) => {
        const { results } = await kernel.run('display.png(Buffer.alloc(3e7))');
        assert.deepEqual(Object.keys(results[0]), ['kind', 'text']);
        assert.match(results[0].text, /^<png of 40000000 bytes left out/);
    }));

test('limit: JSON that is too large is left out, the text stays', () =>
    withKernel(async (kernel) => {
        const { main } = await kernel.run('({ a: "x".repeat(9e6) })');
        assert.equal(main.json, undefined);
        assert.match(main.text, /^\{\n {2}a: 'xxx/);
    }));

test('limit: the message of an error', () =>
    withKernel(async (kernel) => {
        const { error } = await kernel.run('throw new Error("y".repeat(5e6))');
        assert.equal(error.name, 'Error');
        assert.ok(error.value.length < 2e6);
        assert.ok(error.traceback.length < 3e6);
    }));

test('limit: much output', () =>
    withKernel(async (kernel) => {
        const { bytes } = await kernel.run(
            'const line = "x".repeat(99999); for (let i = 0; i < 500; i++) console.log(line)',
        );
        assert.equal(bytes, 5e7);
    }));

test('bad input: values whose traps throw', () =>
    withKernel(async (kernel) => {
        const cells = [
            'new Proxy({}, { get() { throw new Error("trap") } })',
            'throw new Proxy(new Error("x"), { get() { throw new Error("trap") } })',
            'throw Object.defineProperty(new Error("x"), "message", { get() { throw 1 } })',
            'throw Object.assign(new Error("x"), { stack: 5, name: {} })',
            'throw Object.create(null)',
            'Promise.reject(Object.create(null)); 0',
        ];
        for (const cell of cells) {
            const { results } = await kernel.run(cell);
            assert.equal(results.length, 1, cell);
        }
        assert.equal((await kernel.run('1 + 1')).text, '2');
    }));

test('bad input: changed prototypes', () =>
    withKernel(async (kernel) => {
        await kernel.run('Object.prototype.extra = 1; Array.prototype.more = 2');
        assert.equal((await kernel.run('[1, 2]')).text, '[ 1, 2 ]');
        await kernel.run(
            'Promise.prototype.then = null; Buffer.from = null; JSON.parse = JSON.stringify = null',
        );
        const { stdout, text } = await kernel.run('console.log("still"); 7');
        assert.equal(stdout, 'still\n');
        assert.equal(text, '7');
    }));

test('bad input: standard descriptors that are closed', () =>
    withKernel(async (kernel) => {
        const close =
            'for (const fd of [0, 1, 2]) require("fs").closeSync(fd); console.log(1); console.error(2); 5';
        assert.equal((await kernel.run(close)).text, '5');
        assert.equal((await kernel.run('1 + 1')).text, '2');
    }));

/* What ends the kernel: the agent sees it at once, and starts another. */
const DEADLY = [
    ['a closed control socket', 'require("fs").closeSync(3)'],
    [
        'another file in its place',
        'require("fs").closeSync(3); require("fs").openSync("/dev/null"); 5',
    ],
    ['a signal', 'process.kill(process.pid, "SIGKILL")'],
    ['abort', 'process.abort()'],
    ['the real exit', 'process.reallyExit(3)'],
    [
        'an error that nobody catches',
        'process.removeAllListeners("uncaughtException"); setTimeout(() => nope, 5); undefined',
    ],
];

for (const [what, cell] of DEADLY) {
    test(`bad input: ${what} ends the kernel`, async () => {
        const kernel = await Kernel.start();
        kernel.begin(cell);
        assert.notEqual(await kernel.ended(), 0);
    });
}
