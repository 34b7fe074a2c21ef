import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cell } from '../rewrite.cjs';

/* The cell's own code comes after it. */
const SIGN = 'await $mport.begin;';

const TABLE = [
    ['a constant can be declared again', 'const x = 1', 'let   x = 1'],
    [
        'one that is assigned to stays one',
        'const x = 1; x = 2; 0;',
        'const x = 1; x = 2; $mport.hold(7,(0));',
    ],
    ['one without a value is left to V8', 'const x;', 'const x;'],
    ['inner constants stay', '{ const x = 1 }', '{ const x = 1 }'],
    ['constants of loops stay', 'for (const x of y) {}', 'for (const x of y) {}'],
    ['the last value is held', 'a\nb // c', 'a\n$mport.hold(7,(b)) // c'],
    ['a step on a new line begins a statement', 'a\n++b', 'a\n$mport.hold(7,(++b))'],
    ['an operator on a new line does not', 'a\n+ b', '$mport.hold(7,(a\n+ b))'],
    ['a class is not an expression', 'class A {}', 'class A {}'],
    ['an object after a block is none', 'if (a) {}\n[b]', 'if (a) {}\n$mport.hold(7,([b]))'],
    ['import() goes to the kernel', 'let m = import("x")', 'let m = $mport("x")'],
    ['a method import() does not', 'class A { import(x) {} }', 'class A { import(x) {} }'],
    ['a property import does not', 'let m = a.import("x")', 'let m = a.import("x")'],
    ['import.meta', 'let m = import.meta.url', 'let m = $mport.meta.url'],
    ['in a string nothing happens', 'let m = "import(x) const"', 'let m = "import(x) const"'],
    ['exported declarations', 'export const a = 1', '       let   a = 1'],
    [
        'exports of another module',
        'export { from, a as from } from "x"; 5;',
        '; $mport.hold(7,(5));',
    ],
    ['all of another module', 'export * as all from "x"', ';'],
    ['lists of exports', 'export { a, b as c };', ';'],
];

for (const [what, code, expected] of TABLE) {
    test(`rewrite: ${what}`, () => assert.equal(new Cell(code, new Set()).emit(7), SIGN + expected));
}

test('rewrite: imports become declarations, lines stay', () => {
    const cell = new Cell('import a, {\n  b as c\n} from "x";\nimport "y"\nlet z', new Set());
    assert.equal(cell.emit(7), SIGN + 'let {"default": a, "b": c} = $mport.module(7, 0);\n\n\n;\nlet z');
    assert.deepEqual(
        cell.imports.map(({ source, names }) => [source, names]),
        [
            ['x', ['default', 'b']],
            ['y', []],
        ],
    );
});

test('rewrite: attributes of imports', () => {
    const cell = new Cell("import j from './a.json' with { type: 'json' };", new Set());
    assert.deepEqual(cell.imports[0].attributes, { type: 'json' });
});

test('rewrite: a name that is taken is declared in another way', () => {
    const cell = new Cell('class A extends B {}\n(1);', new Set());
    assert.equal(cell.refused('A'), true);
    assert.equal(cell.emit(1), SIGN + 'var A = class A extends B {};\n$mport.hold(1,((1)));');
    assert.equal(cell.refused('unknown'), false);
});

test('rewrite: directives stay the first thing', () => {
    const emit = (code) => new Cell(code, new Set()).emit(7);
    assert.equal(emit('// c\n"use strict"\nlet a'), `// c\n"use strict"\n${SIGN}let a`);
    assert.equal(emit('"a"; \'b\'; let a'), `"a"; 'b'; ${SIGN}let a`);
    assert.equal(emit('"a".b; let a'), `${SIGN}"a".b; let a`);
    assert.equal(emit('"a"'), `${SIGN}$mport.hold(7,("a"))`);
});

test('rewrite: what cannot be read waits too', () => {
    const cell = new Cell('#!x\n)', new Set());
    assert.equal(cell.emit(7), `#!x\n${SIGN})`);
    assert.deepEqual(cell.locate(cell.emit(7), 1, SIGN.length), [1, 0]);
});

test('rewrite: places are found again', () => {
    const cell = new Cell('import a from "x"; a.b', new Set());
    const text = cell.emit(1);
    assert.deepEqual(cell.locate(text, 0, text.indexOf('a.b')), [0, 19]);
});
