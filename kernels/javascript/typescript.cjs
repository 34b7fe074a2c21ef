'use strict';
/*
 * TypeScript, without its types: esbuild takes them away, and nobody checks them.
 *
 * esbuild is started for a cell, which takes some 7 ms: less than it is worth to keep 10 MiB in a
 * process that waits for the next one. Most cells do not come here at all: one that is JavaScript
 * as it stands is run as that, unless it could mean something else in TypeScript. That is so only
 * for `f<T>(x)`, which JavaScript reads as two comparisons.
 */
const { spawnSync } = require('node:child_process');
const { existsSync, rmSync } = require('node:fs');
const { SourceMap } = require('node:module');
const path = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');

const ESBUILD = process.env.ESBUILD_BINARY_PATH || 'esbuild';
const OUTPUT_MAX = 256 << 20;
/* What is imported is kept though the cell does not use it: the next one may. */
const OPTIONS = JSON.stringify({
    compilerOptions: { experimentalDecorators: true, preserveValueImports: true },
});
const MAP = /\n?\/\/# sourceMappingURL=data:application\/json;base64,([A-Za-z0-9+/=]+)\s*$/;
const MESSAGE = /\[ERROR\] (.*)\n\n\s+[^\n]*?:(\d+):(\d+):/;
const EXTENSIONS = ['.ts', '.mts', '.cts', '.tsx'];

function esbuild(args, input) {
    const run = spawnSync(
        ESBUILD,
        ['--log-level=error', '--color=false', '--log-limit=1', ...args],
        {
            input,
            encoding: 'utf8',
            maxBuffer: OUTPUT_MAX,
            stdio: ['pipe', 'pipe', 'pipe'],
        },
    );
    if (run.error?.code === 'ENOENT')
        throw new Error('TypeScript needs esbuild, which is not installed here');
    if (run.error) throw run.error;
    return run;
}

function failure({ stderr, signal }) {
    const found = MESSAGE.exec(stderr);
    const text = found?.[1] ?? (stderr.trim() || `esbuild ended by ${signal}`);
    const error = new SyntaxError(text);
    return { error, line: Number(found?.[2] ?? 1), column: Number(found?.[3] ?? 0) + 1 };
}

/* Whether the code has to be stripped, though it may be JavaScript as well. */
function surely(code) {
    return code.includes('<') && /(?<!=)>/.test(code);
}

/* -> { text, map } or { error, line, column } */
function strip(code) {
    const args = ['--loader=ts', '--sourcemap=inline', '--sources-content=false', '--charset=utf8'];
    const run = esbuild([...args, `--tsconfig-raw=${OPTIONS}`], code);
    if (run.status !== 0) return failure(run);
    const found = MAP.exec(run.stdout);
    if (found === null) return { text: run.stdout, map: (line, column) => [line, column] };
    let source = null;
    const map = (line, column) => {
        source ??= new SourceMap(JSON.parse(Buffer.from(found[1], 'base64').toString()));
        const { originalLine, originalColumn } = source.findEntry(line, column);
        return originalLine === undefined ? [line, column] : [originalLine, originalColumn];
    };
    return { text: run.stdout.slice(0, found.index), map };
}

function fileOf(specifier) {
    if (!/^(?:\.{0,2}\/|file:)/.test(specifier)) return null;
    const file = specifier.startsWith('file:')
        ? fileURLToPath(specifier)
        : path.resolve(process.cwd(), specifier);
    if (EXTENSIONS.includes(path.extname(file))) return existsSync(file) ? file : null;
    if (existsSync(file)) return null;
    /* `./x` and `./x.js` mean x.ts where there is only that. */
    const stem = file.replace(/\.[cm]?js$/, '');
    const found = EXTENSIONS.map((extension) => stem + extension).find((name) => existsSync(name));
    return found ?? null;
}

/* A TypeScript file as a module, with those it imports; packages stay outside, so it is put beside
 * the file until it is loaded. -> { url, done() }, or null if the specifier is no such file. */
function compileModule(specifier) {
    const file = fileOf(specifier);
    if (file === null) return null;
    const name = `.${path.basename(file)}.${process.pid}.${Date.now().toString(36)}.mjs`;
    const out = path.join(path.dirname(file), name);
    const run = esbuild([
        file,
        '--bundle',
        '--platform=node',
        '--format=esm',
        '--packages=external',
        '--sourcemap=inline',
        `--outfile=${out}`,
    ]);
    if (run.status !== 0) {
        const { error, line, column } = failure(run);
        error.message += ` (${file}:${line}:${column})`;
        throw error;
    }
    return { url: pathToFileURL(out).href, done: () => rmSync(out, { force: true }) };
}

module.exports = { surely, strip, compileModule };
