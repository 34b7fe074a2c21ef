import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lex } from '../lexer.cjs';

/* The tokens, one space between; regular expressions in angle brackets. */
function tokens(code) {
    const found = lex(code);
    if (found === null) return null;
    return found
        .map(({ kind, start, end }) => [kind, code.slice(start, end)])
        .map(([kind, text]) => (kind === 'regex' ? `<${text}>` : text))
        .join(' ');
}

const TABLE = [
    ['a division', 'a/b/c', 'a / b / c'],
    [
        'a regular expression after =',
        'x = /re[/]x/g.test(a) / 2',
        'x = </re[/]x/g> . test ( a ) / 2',
    ],
    ['one after a condition', 'if (x) /re/.test(y)', 'if ( x ) </re/> . test ( y )'],
    ['one after a block', '{} /x/g', '{ } </x/g>'],
    ['one after a function', 'function f(){} /x/g', 'function f ( ) { } </x/g>'],
    ['one after return', 'return /x/', 'return </x/>'],
    ['one after an arrow body', 'f = () => {}\n/x/', 'f = ( ) => { } </x/>'],
    ['one in a loop head', 'for (const a of /x/g) {}', 'for ( const a of </x/g> ) { }'],
    ['one in a case', 'switch(a){case 1: {} /x/;}', 'switch ( a ) { case 1 : { } </x/> ; }'],
    ['one after a label', 'l: {} /x/', 'l : { } </x/>'],
    ['a division of a function', 'x = function(){} / 2', 'x = function ( ) { } / 2'],
    ['a division of an object', 'x = {} / 2', 'x = { } / 2'],
    ['a division in a conditional', 'x ? {} / 2 : {} / 3', 'x ? { } / 2 : { } / 3'],
    ['a division of a property', 'a.return / 2 / b', 'a . return / 2 / b'],
    ['a division after a step', 'a++ / b / c', 'a ++ / b / c'],
    ['a division on a new line', 'x\n/y/z', 'x / y / z'],
    [
        'a template with templates',
        '`a${ {b:`${c}`}.b }d`+/x/',
        '`a${ { b : `${ c }` } . b }d` + </x/>',
    ],
    ['quotes in strings', '"a\\"b" + \'c\\\'d\'', '"a\\"b" + \'c\\\'d\''],
    ['comments', 'a /* / */ b // /x/\nc', 'a b c'],
    ['numbers', '1/2/.5/1n/0xffn/1e-3/1_000', '1 / 2 / .5 / 1n / 0xffn / 1e-3 / 1_000'],
    ['names of all kinds', '𝐀x + \\u0061 + $_ + #p', '𝐀x + \\u0061 + $_ + # p'],
    ['optional chaining and a conditional', 'a?.b ? .5 : c?.[1]', 'a ?. b ? .5 : c ?. [ 1 ]'],
    ['a first line for the shell', '#!/usr/bin/node\n1', '1'],
    ['a bracket too few', 'f(', null],
    ['a bracket too many', 'f)', null],
    ['a string without end', '"a', null],
    ['a comment without end', '/* a', null],
    ['a template without end', '`a${b', null],
];

for (const [what, code, expected] of TABLE) {
    test(`lexer: ${what}`, () => assert.equal(tokens(code), expected));
}

test('lexer: its own source', async () => {
    const { readFile } = await import('node:fs/promises');
    const code = await readFile(new URL('../lexer.cjs', import.meta.url), 'utf8');
    const found = lex(code);
    assert.notEqual(found, null);
    for (const { kind, start, end } of found) {
        if (kind !== 'regex') continue;
        const text = code.slice(start, end);
        const slash = text.lastIndexOf('/');
        new RegExp(text.slice(1, slash), text.slice(slash + 1));
    }
});
