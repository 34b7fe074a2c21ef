'use strict';
/*
 * The process, as a cell finds it: its variables and directory, and what of it a cell cannot have
 * because it is the kernel's.
 */
const { existsSync, mkdirSync } = require('node:fs');
const { homedir } = require('node:os');
const { dirname } = require('node:path');
const { Readable } = require('node:stream');

const NO_INPUT = 'standard input cannot be read in a cell: put the data into the code or a file';

/* What process.exit() throws: the cell ends, the kernel goes on. */
class SystemExit extends Error {
    constructor(status) {
        super(String(status));
    }

    get name() {
        return 'SystemExit';
    }
}

/* `exited` learns of it first, since the cell may catch what is thrown. What ends the process all
 * the same ends it by `die`: exit() would wait for the thread that reads the control socket. */
function refuseExit(exited, die) {
    process.reallyExit = die;
    process.on('exit', die);
    process.exit = (status = process.exitCode ?? 0) => {
        const exit = new SystemExit(status);
        exited(exit);
        throw exit;
    };
}

/* A stream that can be had and asked, but not read. */
function refuseInput() {
    const refuse = () => {
        throw new Error(NO_INPUT);
    };
    const stream = new Readable({ read: refuse });
    const { on } = stream;
    stream.on = stream.addListener = function (event, listener) {
        if (event === 'data' || event === 'readable') refuse();
        return on.call(this, event, listener);
    };
    Object.assign(stream, { fd: 0, read: refuse, resume: refuse, pipe: refuse });
    stream[Symbol.asyncIterator] = refuse;
    stream.pause = () => stream;
    Object.defineProperty(process, 'stdin', {
        get: () => stream,
        configurable: true,
        enumerable: true,
    });
}

function changeDirectory(path) {
    try {
        process.chdir(path);
        return;
    } catch (error) {
        if (error.code !== 'ENOENT') return goHome();
    }
    try {
        makeDirectory(path);
        process.chdir(path);
    } catch {
        goHome();
    }
}

/* mkdirSync's own recursion never ends below /proc. */
function makeDirectory(path) {
    const parent = dirname(path);
    if (parent !== path && !existsSync(parent)) makeDirectory(parent);
    mkdirSync(path);
}

function goHome() {
    try {
        process.chdir(homedir());
    } catch {
        process.chdir('/');
    }
}

function setVariable(assignment) {
    const at = assignment.indexOf('=');
    if (at > 0) process.env[assignment.slice(0, at)] = assignment.slice(at + 1);
}

/* Sets variables for one cell. -> puts them back. */
function lendVariables(assignments) {
    const before = new Map();
    for (const assignment of assignments) {
        const key = assignment.slice(0, assignment.indexOf('='));
        if (!before.has(key)) before.set(key, process.env[key]);
        setVariable(assignment);
    }
    return () => {
        for (const [key, value] of before) {
            if (value === undefined) delete process.env[key];
            else process.env[key] = value;
        }
    };
}

module.exports = {
    SystemExit,
    refuseExit,
    refuseInput,
    changeDirectory,
    setVariable,
    lendVariables,
};
