import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { MAIN } from './kernel.mjs';

let directory;

before(() => {
    directory = mkdtempSync(path.join(tmpdir(), 'once-'));
});

after(() => rmSync(directory, { recursive: true }));

function once(code, { language = 'javascript', input = '', results = null } = {}) {
    const file = path.join(directory, 'code');
    writeFileSync(file, code);
    const more = results === null ? [] : ['--results', results];
    const args = [MAIN, language, '--once', file, ...more];
    const options = { input, encoding: 'utf8', cwd: directory, timeout: 30_000 };
    const { status, stdout, stderr } = spawnSync(process.execPath, args, options);
    return { status, stdout, stderr };
}

test('once: output and the value', () => {
    assert.deepEqual(once('console.log("a"); "b"'), { status: 0, stdout: 'a\nb\n', stderr: '' });
});

test('once: TypeScript', () => {
    const code = 'enum E { A = "a" }; const e: E = E.A; e';
    assert.deepEqual(once(code, { language: 'typescript' }), {
        status: 0,
        stdout: 'a\n',
        stderr: '',
    });
});

test('once: standard input can be read', () => {
    const code =
        'let all = ""; for await (const piece of process.stdin) all += piece; all.toUpperCase()';
    assert.equal(once(code, { input: 'hello' }).stdout, 'HELLO\n');
    assert.equal(once('require("fs").readFileSync(0, "utf8")', { input: 'sync' }).stdout, 'sync\n');
});

test('once: an error', () => {
    const { status, stdout, stderr } = once('console.log(1)\nnope()');
    assert.equal(status, 1);
    assert.equal(stdout, '1\n');
    assert.match(
        stderr,
        /cell-1:2\nnope\(\)\n\^\n\nReferenceError: nope is not defined\n {4}at cell-1:2:1\n$/,
    );
});

test('once: a syntax error', () => {
    const { status, stderr } = once('let = = 1');
    assert.equal(status, 1);
    assert.match(stderr, /SyntaxError/);
});

test('once: exit', () => {
    assert.equal(once('process.exit(3)').status, 3);
    assert.equal(once('process.exitCode = 4; undefined').status, 4);
    assert.equal(once('await 1; process.exit(0)').status, 0);
});

test('once: it is over when nothing is left to do', () => {
    const { stdout } = once('setTimeout(() => console.log("later"), 50); "first"');
    assert.equal(stdout, 'first\nlater\n');
});

test('once: an error in a timer', () => {
    const { status, stderr } = once('setTimeout(() => { throw new Error("late") }, 5); undefined');
    assert.notEqual(status, 0);
    assert.match(stderr, /Error: late/);
});

test('once: a promise that is never kept', () => {
    const { status, stderr } = once('await new Promise(() => {})');
    assert.equal(status, 13);
    assert.match(stderr, /never/);
});

test('once: imports are of the current directory', () => {
    writeFileSync(path.join(directory, 'near.mjs'), 'export default "near"');
    assert.equal(once('import near from "./near.mjs"; near').stdout, 'near\n');
});

test('once: results as lines of JSON', () => {
    const results = path.join(directory, 'results');
    const { stdout } = once('display.html("<b>"); display("d"); ({ a: 1 })', { results });
    assert.equal(stdout, 'd\n{ a: 1 }\n');
    const lines = readFileSync(results, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
    assert.deepEqual(lines, [
        { main: false, html: '<b>' },
        { main: false, text: 'd' },
        { main: true, text: '{ a: 1 }', json: { a: 1 } },
    ]);
});

test('once: wrong arguments', () => {
    for (const args of [[], ['cobol'], ['javascript', '--what']]) {
        const { status, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
            encoding: 'utf8',
        });
        assert.equal(status, 2);
        assert.match(stderr, /^usage: /);
    }
});
