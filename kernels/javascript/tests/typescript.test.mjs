import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Kernel } from './kernel.mjs';

let kernel;
let directory;

before(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'types-'));
    writeFileSync(path.join(directory, 'inner.ts'), 'export enum Size { S, M }');
    writeFileSync(
        path.join(directory, 'own.ts'),
        'import { Size } from "./inner"; export type T = string; export const m: Size = Size.M;',
    );
    writeFileSync(path.join(directory, 'broken.ts'), 'export const = 5');
    kernel = await Kernel.start('typescript', { cwd: directory });
});

after(() => {
    kernel.stop();
    rmSync(directory, { recursive: true });
});

const VALUES = [
    ['plain JavaScript', ['1 + 1'], '2'],
    ['annotations', ['let x: number = 5; x'], '5'],
    ['types are not checked', ['const y: number = "text" as any; y'], 'text'],
    ['an interface', ['interface P { name: string }', 'const p: P = { name: "n" }; p.name'], 'n'],
    ['a type', ['type A = { a: number } | null; let a: A = null; a'], 'null'],
    ['an enum', ['enum Color { Red, Green = "g" }', 'Color.Green'], 'g'],
    ['an enum, backwards', ['enum Up { A, B }; Up[1]'], 'B'],
    ['generics', ['function id<T>(v: T): T { return v }', 'id<string>("i")'], 'i'],
    [
        'a generic call is no comparison',
        ['const first = <T,>(l: T[]): T => l[0]; first<number>([7])'],
        '7',
    ],
    ['comparisons', ['const lo = 1, hi = 3; lo < 2 && hi > (2)'], 'true'],
    [
        'parameter properties',
        [
            'class Q { constructor(private readonly v: number) {} get() { return this.v } }',
            'new Q(4).get()',
        ],
        '4',
    ],
    [
        'an abstract class',
        [
            'abstract class B { abstract f(): number }',
            'class C extends B { f() { return 3 } }; new C().f()',
        ],
        '3',
    ],
    ['a namespace', ['namespace N { export const v = 3 }', 'N.v'], '3'],
    [
        'a decorator',
        [
            'function twice(t: any, k: string, d: PropertyDescriptor) { const f = d.value; d.value = function () { return 2 * f.call(this) } }',
            'class D { @twice m() { return 21 } }; new D().m()',
        ],
        '42',
    ],
    [
        'a type import',
        [
            'import type { Stats } from "node:fs"; import { existsSync, type PathLike } from "node:fs"',
            'existsSync("/" as PathLike)',
        ],
        'true',
    ],
    [
        'an import that is used later',
        ['import { join } from "node:path"; let unused: number', 'join("a", "b")'],
        'a/b',
    ],
    ['not null', ['let maybe: string | null = "m"; maybe!.length'], '1'],
    ['satisfies', ['const cfg = { a: 1 } satisfies Record<string, number>; cfg.a'], '1'],
    ['an object with a type', ['{ a: 1 } as object'], '{ a: 1 }'],
    [
        'overloads',
        [
            'function ov(a: string): string;\nfunction ov(a: number): number;\nfunction ov(a: any) { return a }\nov(3)',
        ],
        '3',
    ],
    ['await', ['const w: number = await Promise.resolve<number>(3); w'], '3'],
    ['const again', ['const again: number = 1', 'const again: string = "2"', 'again'], '2'],
    ['exported types', ['export interface E { e: 1 }; export const ev: E = { e: 1 }; ev.e'], '1'],
    ['a declared name', ['declare const ghost: number; typeof ghost'], 'undefined'],
    ['a file', ['import { m } from "./own.ts"; m'], '1'],
    ['a file without extension', ['(await import("./own")).m'], '1'],
    ['a type out of a file', ['import { m, T } from "./own.ts"; const t: T = "t"; t + m'], 't1'],
];

for (const [what, cells, expected] of VALUES) {
    test(`typescript: ${what}`, async () => {
        let last;
        for (const cell of cells) last = await kernel.run(cell);
        assert.equal(last.error, undefined);
        assert.equal(last.text, expected);
    });
}

test('typescript: places in a stack are those of the cell', async () => {
    const { error } = await kernel.run(
        'interface Gone {\n  a: number\n}\nfunction boom(g: Gone): never {\n' +
            '    // gone too\n    throw new Error("in ts")\n}\nboom({ a: 1 })',
    );
    assert.equal(error.value, 'in ts');
    assert.match(error.traceback, /at boom \(cell-\d+:6:11\)\n {4}at cell-\d+:8:1/);
    assert.match(error.traceback, /\n {4}throw new Error\("in ts"\)\n {10}\^\n/);
});

test('typescript: and of a stack that a cell prints', async () => {
    const { stdout } = await kernel.run(
        'type U = 1\n\ntry { null!.x } catch (e: any) { console.log(e.stack) }',
    );
    assert.match(stdout, /cell-\d+:3:/);
});

test('typescript: a syntax error', async () => {
    const { error } = await kernel.run('let ok: number = 1\nlet z: = 5');
    assert.equal(error.name, 'SyntaxError');
    assert.match(error.traceback, /\nlet z: = 5\n {7}\^\n/);
    assert.match(error.traceback, /cell-\d+:2:8/);
});

test('typescript: a file with a syntax error', async () => {
    const { error } = await kernel.run('import "./broken.ts"');
    assert.equal(error.name, 'SyntaxError');
    assert.match(error.value, /broken\.ts:1:\d+/);
});

test('typescript: nothing is left beside the files', () => {
    assert.deepEqual(readdirSync(directory).sort(), ['broken.ts', 'inner.ts', 'own.ts']);
});

test('typescript: without esbuild plain code runs, and the rest says what is missing', async () => {
    const bare = await Kernel.start('typescript', {
        env: { ...process.env, ESBUILD_BINARY_PATH: '/nowhere/esbuild' },
    });
    assert.equal((await bare.run('1 + 1')).text, '2');
    assert.match(
        (await bare.run('let x: number = 1')).error.value,
        /esbuild, which is not installed/,
    );
    assert.equal((await bare.run('2 + 2')).text, '4');
    bare.stop();
});
