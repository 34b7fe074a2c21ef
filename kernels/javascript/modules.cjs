'use strict';
/*
 * What a cell can load: import, import() and require, all relative to the current directory, as if
 * the cell were a file there.
 */
const { createRequire, Module } = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { hideFrames } = require('./errors.cjs');

let directory = null;
let load = null;
let requireHere = null;
/* id of a cell -> the modules of its static imports */
const loaded = new Map();
/* id of a cell -> the value of its last expression */
const held = new Map();
/* What the own code of the cell that is being taken waits for. */
let beginning = null;
let compileModule = null;

/* What depends on the directory is made anew when a cell has changed it. */
function settle() {
    const here = process.cwd();
    if (here === directory) return;
    directory = here;
    const filename = path.join(here, 'cell');
    hideFrames(filename);
    load = makeLoad(filename);
    requireHere = createRequire(filename);
}

/* -> import() as a file of that name has it, though there is none: a CommonJS module that is compiled
 * under the name. vm.Script can do it too, by a constant that Node 18 does not have. */
function makeLoad(filename) {
    const module = new Module(filename);
    module._compile('module.exports = (specifier, options) => import(specifier, options)', filename);
    return module.exports;
}

async function importModule(specifier, options) {
    settle();
    const own = compileModule === null ? null : await compileModule(String(specifier));
    if (own === null) return load(specifier, options);
    try {
        return await load(own.url, options);
    } finally {
        own.done();
    }
}

/* A name that a CommonJS module has, but not where import sees it, is found as well. */
function pick(module, names, source, strict) {
    const missing = names.filter((name) => !(name in module));
    if (missing.length === 0) return module;
    const inner = module.default;
    const found = Object.assign(Object.create(null), module);
    for (const name of missing) {
        if (inner !== null && inner !== undefined && name in Object(inner)) {
            found[name] = inner[name];
        } else if (strict) {
            const what = `does not provide an export named '${name}'`;
            throw new SyntaxError(`The requested module '${source}' ${what}`);
        }
    }
    return found;
}

/* Loads a cell's static imports, to be fetched by $mport.module(id, index). `strict`: a name that
 * is not exported is an error; in TypeScript it may be a type. */
async function loadImports(id, imports, strict) {
    const modules = [];
    for (const { source, attributes, names, offset } of imports) {
        try {
            const module = await importModule(source, { with: attributes });
            modules.push(names.length === 0 ? module : pick(module, names, source, strict));
        } catch (error) {
            throw new ImportFailure(error, offset);
        }
    }
    loaded.set(id, modules);
}

/* An error, and which import of the cell it comes from. */
class ImportFailure {
    constructor(error, offset) {
        this.error = error;
        this.offset = offset;
    }
}

function dropImports(id) {
    loaded.delete(id);
}

/* -> what lets the own code of the next cell run, which comes after `await $mport.begin`. */
function makeBeginning() {
    let begin;
    beginning = new Promise((resolve) => {
        begin = resolve;
    });
    return begin;
}

/* -> { value } of a cell's last expression, or null if that was none. */
function takeHeld(id) {
    const found = held.get(id) ?? null;
    held.delete(id);
    return found;
}

function define(name, value) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
}

function makeRequire() {
    const require = (specifier) => {
        settle();
        return requireHere(specifier);
    };
    require.resolve = (...args) => {
        settle();
        return requireHere.resolve(...args);
    };
    require.cache = Module._cache;
    return require;
}

/* `compile` turns a TypeScript file into a module, if it is one (typescript.cjs), or is null. */
function offerModules(compile) {
    compileModule = compile;
    const mport = (specifier, options) => importModule(specifier, options);
    Object.defineProperty(mport, 'begin', { get: () => beginning });
    mport.hold = (id, value) => {
        held.set(id, { value });
    };
    mport.module = (id, index) => loaded.get(id)[index];
    Object.defineProperty(mport, 'meta', {
        get() {
            settle();
            const filename = path.join(directory, 'cell');
            const url = pathToFileURL(filename).href;
            const resolve = (specifier) => {
                settle();
                if (/^\.{0,2}\//.test(specifier)) return new URL(specifier, url).href;
                if (Module.isBuiltin(specifier)) return `node:${specifier.replace(/^node:/, '')}`;
                return pathToFileURL(requireHere.resolve(specifier)).href;
            };
            return { url, filename, dirname: directory, resolve };
        },
    });
    define('$mport', mport);
    const require = makeRequire();
    const module = { exports: {}, id: '.', children: [], loaded: false };
    require.main = module;
    define('require', require);
    define('module', module);
    define('exports', module.exports);
    for (const [name, get] of [
        ['__dirname', () => process.cwd()],
        ['__filename', () => path.join(process.cwd(), 'cell')],
    ]) {
        const set = (value) => define(name, value);
        Object.defineProperty(globalThis, name, { get, set, configurable: true });
    }
}

module.exports = {
    loadImports,
    ImportFailure,
    dropImports,
    makeBeginning,
    takeHeld,
    offerModules,
};
