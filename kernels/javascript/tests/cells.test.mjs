/* What a user of the JavaScript kernel sees, cell by cell. */
import assert from 'node:assert/strict';
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Kernel } from './kernel.mjs';

let kernel;
let directory;

before(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'cells-'));
    writeFileSync(path.join(directory, 'own.mjs'), 'export const a = 1; export default "d";');
    writeFileSync(
        path.join(directory, 'own.cjs'),
        'module.exports = { b: 2, get c() { return 3 } };',
    );
    writeFileSync(path.join(directory, 'data.json'), '{"k": [1]}');
    writeFileSync(path.join(directory, 'throws.mjs'), '\nthrow new RangeError("at load");');
    const modules = path.join(directory, 'node_modules', 'pack');
    mkdirSync(modules, { recursive: true });
    writeFileSync(
        path.join(modules, 'package.json'),
        '{"name": "pack", "exports": {"import": "./i.mjs", "require": "./r.cjs"}}',
    );
    writeFileSync(path.join(modules, 'i.mjs'), 'export const how = "import";');
    writeFileSync(path.join(modules, 'r.cjs'), 'exports.how = "require";');
    kernel = await Kernel.start('javascript', { cwd: directory });
});

after(() => {
    kernel.stop();
    rmSync(directory, { recursive: true });
});

/* Cells that run one after the other, and the text of the last one's result. */
const VALUES = [
    ['an expression', ['1 + 1'], '2'],
    ['with a semicolon', ['1 + 2;'], '3'],
    ['with a comment', ['5 // five'], '5'],
    ['a string has no quotes', ['"a\\nb"'], 'a\nb'],
    ['a template', ['`a${1 + 1}`'], 'a2'],
    ['nothing for undefined', ['undefined'], undefined],
    ['nothing for a declaration', ['let declared = 5'], undefined],
    ['nothing for nothing', [''], undefined],
    ['null', ['null'], 'null'],
    ['minus zero', ['-0'], '-0'],
    ['a big integer', ['2n ** 64n'], '18446744073709551616n'],
    ['a symbol', ['Symbol("s")'], 'Symbol(s)'],
    ['a function', ['(function f() {})'], '[Function: f]'],
    ['an object literal', ['{ a: 1 }'], '{ a: 1 }'],
    ['an empty object', ['{}'], '{}'],
    ['a block is a block', ['{ let inner = 4; inner + 1 }'], '5'],
    ['a map', ['new Map([[1, 2]])'], 'Map(1) { 1 => 2 }'],
    ['a cycle', ['const cycle = {}; cycle.me = cycle; cycle'], '<ref *1> { me: [Circular *1] }'],
    ['an error that is not thrown', ['new RangeError("r").message'], 'r'],
    ['a conditional statement', ['if (true) { "yes" } else { "no" }'], 'yes'],
    ['a loop', ['for (let i = 0; i < 3; i++) i'], '2'],
    ['a comma', ['1, 2'], '2'],
    ['an arrow function', ['x => x'], '[Function (anonymous)]'],
    ['an awaited value', ['await Promise.resolve(6)'], '6'],
    ['a promise is waited for', ['Promise.resolve(7)'], '7'],
    ['a promise of a promise', ['(async () => new Promise((r) => setTimeout(r, 5, 8)))()'], '8'],
    ['await of a timer', ['await new Promise((r) => setTimeout(r, 20)); 9'], '9'],
    [
        'await in a loop',
        ['let sum = 0; for await (const n of [1, Promise.resolve(2)]) sum += n; sum'],
        '3',
    ],
    ['var persists', ['var v1 = 1', 'v1'], '1'],
    ['let persists', ['let l1 = 1', 'l1 += 1', 'l1'], '2'],
    ['const persists', ['const c1 = 1', 'c1'], '1'],
    ['a function persists', ['function f1() { return 1 }', 'f1()'], '1'],
    ['a class persists', ['class K1 { m() { return 1 } }', 'new K1().m()'], '1'],
    ['destructuring persists', ['const { d1, e: [d2 = 5] } = { d1: 4, e: [] }', 'd1 + d2'], '9'],
    ['what is not declared persists', ['undeclared = 3', 'undeclared'], '3'],
    ['const again', ['const c2 = 1', 'const c2 = 2', 'c2'], '2'],
    ['const, then let', ['const c3 = 1', 'let c3 = 2; c3++', 'c3'], '3'],
    ['let, then const', ['let l2 = 1', 'const l2 = 2', 'l2'], '2'],
    ['let without a value starts afresh', ['let l3 = 1', 'let l3', 'String(l3)'], 'undefined'],
    ['class again', ['class K2 { a = 1 }', 'class K2 { a = 2 }', 'new K2().a'], '2'],
    ['const, then class', ['const K3 = 1', 'class K3 {}', 'typeof K3'], 'function'],
    ['const, then function', ['const f2 = 1', 'function f2() { return 2 }', 'f2()'], '2'],
    ['function, then const', ['function f3() {}', 'const f3 = () => 3', 'f3()'], '3'],
    ['function, then class', ['function K4() {}', 'class K4 { a = 4 }', 'new K4().a'], '4'],
    ['let, then var', ['let v2 = 1', 'var v2 = 2', 'v2'], '2'],
    ['var, then let', ['var v3 = 1', 'let v3', 'String(v3)'], 'undefined'],
    [
        'all of it once more',
        ['var v4 = 1', 'let v4 = 2', 'const v4 = 3', 'class v4 {}', 'var v4 = 5', 'v4'],
        '5',
    ],
    [
        'a new function is seen by old ones',
        [
            'function g1() { return g2() }',
            'function g2() { return 1 }',
            'function g2() { return 2 }',
            'g1()',
        ],
        '2',
    ],
    ['a name whose value failed', ['let failing = nope()', 'let failing = 1', 'failing'], '1'],
    ['strict code', ['"use strict"; (function () { return this })() === undefined'], 'true'],
    ['this is the global object', ['this === globalThis'], 'true'],
    ['a static import', ['import fs from "node:fs"', 'fs.existsSync("/")'], 'true'],
    ['a named import', ['import { join as j, sep } from "path"; j("a", "b") + sep'], 'a/b/'],
    ['a whole import', ['import * as os from "os"; typeof os.cpus'], 'function'],
    ['imports in several lines', ['import {\n  join,\n} from "path"\njoin("x", "y")'], 'x/y'],
    ['an import again', ['import path from "path"', 'import path from "path"', 'path.sep'], '/'],
    [
        'an import over a function',
        ['function sep2() {}', 'import { sep as sep2 } from "path"', 'sep2'],
        '/',
    ],
    ['an import of a file', ['import d, { a } from "./own.mjs"; d + a'], 'd1'],
    ['an import of CommonJS', ['import { b, c } from "./own.cjs"; b + c'], '5'],
    ['an import of JSON', ['import data from "./data.json" with { type: "json" }; data.k[0]'], '1'],
    ['an import of a package', ['import { how } from "pack"; how'], 'import'],
    ['import() of a builtin', ['(await import("node:fs")).existsSync("/")'], 'true'],
    ['import() of a file', ['(await import("./own.mjs")).a'], '1'],
    [
        'import() in a function',
        ['const lazy = () => import("./own.mjs")', '(await lazy()).default'],
        'd',
    ],
    ['require of a builtin', ['require("fs").existsSync("/")'], 'true'],
    ['require of a file', ['require("./own.cjs").b'], '2'],
    ['require of a package', ['require("pack").how'], 'require'],
    ['a main program', ['require.main === module'], 'true'],
    ['__dirname', ['__dirname === process.cwd()'], 'true'],
    ['import.meta', ['import.meta.url.startsWith("file://")'], 'true'],
    ['an exported declaration', ['export const ex = 1', 'ex'], '1'],
    ['a main export', ['export default function def() { return 2 }', 'def()'], '2'],
    ['fetch is there', ['typeof fetch'], 'function'],
    ['a promisified timer', ['await require("util").promisify(setTimeout)(5, "x")'], 'x'],
    [
        'a sleep',
        ['import { setTimeout as sleep } from "node:timers/promises"; await sleep(5, "y")'],
        'y',
    ],
];

for (const [what, cells, expected] of VALUES) {
    test(`value: ${what}`, async () => {
        let last;
        for (const cell of cells) last = await kernel.run(cell);
        assert.equal(last.error, undefined);
        assert.equal(last.text, expected);
    });
}

/* A cell, the name and the value of its error, and what its traceback has. */
const ERRORS = [
    ['thrown', 'throw new TypeError("no")', 'TypeError', 'no', ['TypeError: no', /cell-\d+:1:7/]],
    [
        'its line is shown',
        'let q1\n  q1.x',
        'TypeError',
        /undefined/,
        ['\n  q1.x\n     ^\n', /cell-\d+:2:6/],
    ],
    [
        'in a function',
        'function fe() {\n  nope1()\n}\nfe()',
        'ReferenceError',
        'nope1 is not defined',
        [/at fe \(cell-\d+:2:3\)/, /at cell-\d+:4:1/],
    ],
    [
        'after await',
        'await 1\nawait new Promise(r => setTimeout(r, 5))\nnope2',
        'ReferenceError',
        /nope2/,
        [/cell-\d+:3:1/],
    ],
    [
        'a rejected promise',
        'await Promise.reject(new RangeError("r"))',
        'RangeError',
        'r',
        ['RangeError: r'],
    ],
    ['one that is the last value', 'Promise.reject(new Error("last"))', 'Error', 'last', []],
    ['a string', 'throw "text"', 'Uncaught', 'text', ['Uncaught text']],
    ['undefined', 'throw undefined', 'Uncaught', 'undefined', []],
    [
        'an own class',
        'class Mine extends Error { name = "Mine" }; throw new Mine("m")',
        'Mine',
        'm',
        [],
    ],
    [
        'its cause',
        'throw new Error("o", { cause: new Error("inner") })',
        'Error',
        'o',
        ['[cause]', 'inner'],
    ],
    ['its code', 'require("fs").readFileSync("/nope")', 'Error', /ENOENT/, ["code: 'ENOENT'"]],
    [
        'of Node',
        'Buffer.alloc("x")',
        'TypeError',
        /must be of type number/,
        ['[ERR_INVALID_ARG_TYPE]'],
    ],
    [
        'recursion',
        'function deep() { deep() } deep()',
        'RangeError',
        'Maximum call stack size exceeded',
        [],
    ],
    ['a constant', 'const k1 = 1; k1 = 2', 'TypeError', 'Assignment to constant variable.', []],
    [
        'a syntax error',
        'let a1 = 1\nlet b1 = = 2',
        'SyntaxError',
        "Unexpected token '='",
        ['\nlet b1 = = 2\n         ^\n', /cell-\d+:2:10/],
    ],
    [
        'a name twice in a cell',
        'let t1; let t1',
        'SyntaxError',
        "Identifier 't1' has already been declared",
        [],
    ],
    ['a bracket', 'foo(', 'SyntaxError', /Unexpected|missing/, []],
    ['a string without end', '"abc', 'SyntaxError', 'Invalid or unexpected token', []],
    ['return', 'return 1', 'SyntaxError', 'Illegal return statement', []],
    [
        'a package that is not there',
        'let z1\nimport x from "no-such-package"',
        'Error',
        /no-such-package/,
        [/cell-\d+:2:1/],
    ],
    [
        'an export that is not there',
        'import { nope } from "fs"',
        'SyntaxError',
        /does not provide an export named 'nope'/,
        [],
    ],
    ['in a module', 'import "./throws.mjs"', 'RangeError', 'at load', [/throws\.mjs:2/]],
    ['exit', 'process.exit(3)', 'SystemExit', '3', [/cell-\d+:1/]],
    [
        'exit later',
        'setTimeout(() => process.exit(4), 5); await new Promise(() => {})',
        'SystemExit',
        '4',
        [],
    ],
    ['exit that is caught', 'try { process.exit(5) } catch {}', 'SystemExit', '5', []],
    [
        'reading standard input',
        'process.stdin.on("data", () => {})',
        'Error',
        /standard input cannot be read/,
        [],
    ],
    [
        'reading it by line',
        'require("readline").createInterface({ input: process.stdin })',
        'Error',
        /standard input/,
        [],
    ],
    ['iterating it', 'for await (const x of process.stdin) {}', 'Error', /standard input/, []],
];

for (const [what, cell, name, value, parts] of ERRORS) {
    test(`error: ${what}`, async () => {
        const { error, results } = await kernel.run(cell);
        assert.equal(results.length, 1);
        assert.equal(error.name, name);
        if (value instanceof RegExp) assert.match(error.value, value);
        else assert.equal(error.value, value);
        for (const part of parts) {
            if (part instanceof RegExp) assert.match(error.traceback, part);
            else assert.ok(error.traceback.includes(part), error.traceback);
        }
        assert.doesNotMatch(error.traceback, /kernels\/javascript|node:inspector|node:vm|\x1b/);
        assert.equal((await kernel.run('1 + 1')).text, '2');
    });
}

test('error: a constant of an earlier cell', async () => {
    await kernel.run('const k2 = 1');
    assert.equal((await kernel.run('k2 = 2')).error.value, 'Assignment to constant variable.');
    assert.equal((await kernel.run('k2')).text, '1');
});

test('error: in a function of an earlier cell its line is shown', async () => {
    await kernel.run('// first\nfunction earlier() { null.x }');
    const { error } = await kernel.run('earlier()');
    assert.match(error.traceback, /function earlier\(\) \{ null\.x \}/);
});

test('error: the stack that a cell prints is clean', async () => {
    const { stdout } = await kernel.run('try { null.x } catch (e) { console.log(e.stack) }');
    assert.match(stdout, /^TypeError: .*\n    at cell-\d+:1:12\n$/);
});

test('output: console goes to the right streams', async () => {
    const code = ['log', 'info', 'debug', 'error', 'warn']
        .map((f) => `console.${f}("${f}")`)
        .join(';');
    const { stdout, stderr } = await kernel.run(code);
    assert.equal(stdout, 'log\ninfo\ndebug\n');
    assert.equal(stderr, 'error\nwarn\n');
});

test('output: dir, table, trace, count, group', async () => {
    const { stdout, stderr } = await kernel.run(
        'console.dir({ a: 1 }); console.group("g"); console.log("in"); console.groupEnd(); ' +
            'console.table([{ x: 1 }]); console.count(); console.trace("t")',
    );
    assert.match(stdout, /^\{ a: 1 \}\ng\n {2}in\n┌/);
    assert.match(stdout, /default: 1\n$/);
    assert.match(stderr, /^Trace: t\n {4}at cell-\d+:1:\d+\n$/);
});

test('output: from programs, in order with the cell', async () => {
    const { stdout } = await kernel.run(
        'const { execSync } = require("child_process");' +
            'for (const i of [1, 2]) { console.log("a" + i);' +
            'execSync("echo b" + ' +
            'i, { stdio: "inherit" }) } process.stdout.write("c")',
    );
    assert.equal(stdout, 'a1\nb1\na2\nb2\nc');
});

test('output: comes before the results that came after it', async () => {
    const { log } = await kernel.run('console.log("a"); display("b"); console.log("c"); "d"');
    let before = '';
    const seen = {};
    for (const [kind, what] of log) {
        if (kind === 'stdout') before += what;
        else seen[what.text] = before;
    }
    assert.ok(seen.b.startsWith('a\n'));
    assert.equal(seen.d, 'a\nc\n');
});

test('output: while the cell runs', async () => {
    kernel.begin('console.log("early"); await new Promise((r) => { globalThis.go = r })');
    await kernel.until(() => kernel.stdout === 'early\n');
    assert.equal(kernel.finished, null);
    kernel.interrupt();
    assert.equal((await kernel.end()).error.name, 'KeyboardInterrupt');
});

test('output: not UTF-8', async () => {
    const { stdout } = await kernel.run(
        'process.stdout.write(Buffer.from([0xff, 0x41])), undefined',
    );
    assert.equal(stdout, '\ufffdA');
});

test('output: a stream can be replaced and put back', async () => {
    await kernel.run(
        'const seen1 = []; const w1 = process.stdout.write; process.stdout.write = (x) => seen1.push(x)',
    );
    assert.equal((await kernel.run('console.log("caught")')).stdout, '');
    assert.equal(
        (await kernel.run('process.stdout.write = w1; console.log(seen1.length)')).stdout,
        '1\n',
    );
});

test('output: what was printed is not kept', async () => {
    await kernel.run(
        'for (let i = 0; i < 1000; i++) console.log({ big: new Array(10000).fill(i) })',
    );
    const { text } = await kernel.run(
        'require("v8").setFlagsFromString("--expose-gc"); require("vm").runInNewContext("gc")();' +
            'process.memoryUsage().heapUsed < 40e6',
    );
    assert.equal(text, 'true');
});

test('output: callbacks of write', async () => {
    const { text } = await kernel.run(
        'await new Promise((r) => process.stdout.write("x", () => r("called")))',
    );
    assert.equal(text, 'called');
});

test('background: an unhandled rejection is reported in its cell', async () => {
    const { stderr, text, error } = await kernel.run('Promise.reject(new Error("lost")); 5');
    assert.match(stderr, /^Uncaught \(in promise\) [^]*Error: lost\n/);
    assert.equal(text, '5');
    assert.equal(error, undefined);
});

test('background: an error in a timer after the cell does not end the kernel', async () => {
    await kernel.run('setTimeout(() => { throw new Error("late") }, 20); undefined');
    await kernel.until(() => kernel.stderr.includes('Error: late'));
    assert.match(kernel.stderr, /^Uncaught cell-/);
    assert.equal((await kernel.run('1')).text, '1');
});

test('background: timers go on between cells', async () => {
    await kernel.run(
        'let ticks = 0; const ticking = setInterval(() => { if (++ticks === 3) console.log("three") }, 5)',
    );
    await kernel.until(() => kernel.stdout.includes('three\n'));
    const { text } = await kernel.run('clearInterval(ticking); ticks > 2');
    assert.equal(text, 'true');
});

test('background: what it displays between cells is printed', async () => {
    await kernel.run('setTimeout(() => display("from behind"), 20); undefined');
    await kernel.until(() => kernel.stdout.includes('from behind\n'));
    assert.equal(kernel.results.length, 0);
});

const PNG =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';

/* A cell, and the fields of its first result. */
const RICH = [
    [
        'an object has JSON',
        '({ a: [1, "x", null, true], d: new Date(0) })',
        'm',
        { json: { a: [1, 'x', null, true], d: '1970-01-01T00:00:00.000Z' } },
    ],
    ['an array has JSON', '[1, 2]', 'm', { text: '[ 1, 2 ]', json: [1, 2] }],
    ['a class has none', 'new (class Z { a = 1 })()', 'm', { text: 'Z { a: 1 }', json: undefined }],
    ['nor has what JSON cannot say', '[1, () => 2]', 'm', { json: undefined }],
    ['nor not a number', '[NaN]', 'm', { text: '[ NaN ]', json: undefined }],
    ['nor a cycle', 'const cy = []; cy.push(cy); cy', 'm', { json: undefined }],
    ['nor half a surrogate', '["\\ud800"]', 'm', { json: undefined }],
    ['display', 'display({ z: 1 })', 'd', { text: '{ z: 1 }', json: { z: 1 } }],
    ['display.html', 'display.html("<b>x</b>")', 'd', { html: '<b>x</b>', text: undefined }],
    ['display.markdown', 'display.markdown("# x")', 'd', { markdown: '# x' }],
    ['display.svg', 'display.svg("<svg/>")', 'd', { svg: '<svg/>' }],
    ['display.latex', 'display.latex("$x$")', 'd', { latex: '$x$' }],
    ['display.javascript', 'display.javascript("1")', 'd', { javascript: '1' }],
    ['display.json', 'display.json({ a: 1 })', 'd', { json: { a: 1 } }],
    ['display.png of bytes', `display.png(Buffer.from("${PNG}", "base64"))`, 'd', { png: PNG }],
    ['display.png of base64', `display.png("${PNG}")`, 'd', { png: PNG }],
    ['display.jpeg', 'display.jpeg(new Uint8Array([1, 2]))', 'd', { jpeg: 'AQI=' }],
    ['display.chart', 'display.chart({ type: "line" })', 'd', { chart: { type: 'line' } }],
    [
        'display.bundle',
        'display.bundle({ "text/html": "h", "x/y": [1] })',
        'd',
        { html: 'h', extra: { 'x/y': [1] } },
    ],
    ['bytes that are a picture', `Buffer.from("${PNG}", "base64")`, 'm', { png: PNG }],
    ['bytes that are a JPEG', 'new Uint8Array([255, 216, 255, 1])', 'm', { jpeg: '/9j/AQ==' }],
    [
        'an object that shows itself',
        '({ [Symbol.for("Jupyter.display")]: () => ({ "text/html": "<i>", "text/plain": "i" }) })',
        'm',
        { html: '<i>', text: 'i' },
    ],
    [
        'one that takes its time',
        '({ [Symbol.for("Jupyter.display")]: async () => ({ "text/html": "<u>" }) })',
        'm',
        { html: '<u>' },
    ],
    [
        'one that cannot',
        '({ [Symbol.for("Jupyter.display")]() { throw new TypeError("cannot") } })',
        'e',
        { name: 'TypeError', value: 'cannot' },
    ],
    [
        'one that cannot be described',
        '({ [Symbol.for("nodejs.util.inspect.custom")]() { throw new Error("repr") } })',
        'm',
        { text: '<value that cannot be described: repr>' },
    ],
];

for (const [what, cell, kind, fields] of RICH) {
    test(`rich: ${what}`, async () => {
        const { results } = await kernel.run(cell);
        assert.equal(results.length, 1);
        assert.equal(results[0].kind, kind);
        for (const [name, value] of Object.entries(fields))
            assert.deepEqual(results[0][name], value, name);
    });
}
