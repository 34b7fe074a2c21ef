'use strict';
/*
 * Errors as the user of a cell is to see them.
 *
 * Every stack is made by Error.prepareStackTrace, so that what a cell prints itself (`err.stack`,
 * console.error) is as clean as what the kernel reports: no frames of the kernel, and positions in
 * the cell as it was written, not as it was rewritten or stripped of types.
 */
const { inspect } = require('node:util');

const KERNEL = `${__dirname}/`;
/* What lies between a cell's import and the error of a module that is not there: each version of Node has its own. */
const LOADER = /^node:(?:internal\/(?:modules\/|vm\/|errors$)|diagnostics_channel$)/;
/* The script that every call into a cell goes through (interrupt.cjs). */
const GUARD = `${KERNEL}guard`;

const CELLS_MAX = 500;
const SOURCES_MAX = 16 << 20;
const TEXT_MAX = 1 << 20;
const LINE_MAX = 160;
const POSITION = /\b(cell-\d+):(\d+):(\d+)/;

/* name -> { source, map }: map is null, or gives the position in the source for one in the text
 * that was run, both counted from 0. */
const cells = new Map();
let size = 0;
/* Files that only look like the user's. */
const hidden = new Set();

function remember(name, source, map) {
    forget(name);
    cells.set(name, { source, map });
    size += source.length;
    for (const old of cells.keys()) {
        if (cells.size <= CELLS_MAX && (size <= SOURCES_MAX || old === name)) break;
        forget(old);
    }
}

function forget(name) {
    const cell = cells.get(name);
    if (cell === undefined) return;
    size -= cell.source.length;
    cells.delete(name);
}

function hideFrames(file) {
    hidden.add(file);
}

/* The position in the cell as written; lines and columns from 1. */
function locate(name, line, column) {
    const mapped = cells.get(name)?.map?.(line - 1, column - 1);
    return mapped ? [mapped[0] + 1, mapped[1] + 1] : [line, column];
}

function fileOf(frame) {
    return frame.getFileName() || frame.getScriptNameOrSourceURL() || '';
}

/* The frames of the user: those above the call into the cell that are not the kernel's. */
function ofUser(frames) {
    let end = frames.findIndex((frame) => fileOf(frame) === GUARD);
    if (end < 0) end = frames.length;
    const kept = frames.slice(0, end).filter((frame) => {
        const file = fileOf(frame);
        return !file.startsWith(KERNEL) && !LOADER.test(file) && !hidden.has(file);
    });
    while (kept.length > 0 && fileOf(kept.at(-1)).startsWith('node:internal/process/task_queues'))
        kept.pop();
    return kept;
}

function describeFrame(frame) {
    const text = String(frame);
    return text.replace(POSITION, (whole, name, line, column) => {
        return `${name}:${locate(name, Number(line), Number(column)).join(':')}`;
    });
}

function head(error) {
    try {
        const { code } = error;
        if (error instanceof Error && typeof code === 'string' && code.startsWith('ERR_'))
            return `${error.name} [${code}]: ${error.message}`;
        return bounded(Error.prototype.toString.call(error));
    } catch {
        return '<error that cannot be described>';
    }
}

function cleanStacks() {
    Error.prepareStackTrace = (error, frames) => {
        const lines = ofUser(frames).map((frame) => `\n    at ${describeFrame(frame)}`);
        return head(error) + lines.join('');
    };
}

/* The line of the cell, with a caret under the place. */
function excerpt(place) {
    if (place === null) return '';
    const { name, line, column } = place;
    const text = cells.get(name)?.source.split(/\r?\n/)[line - 1];
    if (text === undefined) return '';
    const from = column > LINE_MAX ? column - LINE_MAX / 2 : 0;
    const shown = text.slice(from, from + LINE_MAX);
    const indent = shown.slice(0, Math.max(0, column - 1 - from)).replace(/[^\t]/g, ' ');
    return `${name}:${line}\n${shown}\n${indent}^\n\n`;
}

function bounded(text) {
    if (text.length <= TEXT_MAX) return text;
    return `${text.slice(0, TEXT_MAX)}\n<${text.length - TEXT_MAX} more characters left out>`;
}

function attempt(make, fallback) {
    try {
        const made = make();
        return typeof made === 'string' ? made : fallback;
    } catch {
        return fallback;
    }
}

/* -> { name, value, traceback } of whatever was thrown. `place`: { name, line, column } of what the
 * error is about, if the stack cannot tell. */
function describeError(thrown, place = null) {
    if (!(thrown instanceof Error) && Object.prototype.toString.call(thrown) !== '[object Error]') {
        const text = attempt(() => (typeof thrown === 'string' ? thrown : inspect(thrown)), '');
        return { name: 'Uncaught', value: bounded(text), traceback: bounded(`Uncaught ${text}`) };
    }
    const name = attempt(() => thrown.name, '') || 'Error';
    const value = attempt(() => thrown.message, '');
    const stack = attempt(() => thrown.stack, '');
    const body = attempt(() => inspect(thrown), stack || `${name}: ${value}`);
    const traceback = excerpt(place ?? placeOf(stack)) + body;
    return { name, value: bounded(value), traceback: bounded(traceback) };
}

/* The same for an error that V8 found before the cell ran: its stack is only the kernel's. */
function describeRefusal({ name, message }, place) {
    const at = `    at ${place.name}:${place.line}:${place.column}`;
    const traceback = `${excerpt(place)}${name}: ${message}\n${at}`;
    return { name, value: bounded(message), traceback: bounded(traceback) };
}

function placeOf(stack) {
    const found = POSITION.exec(stack);
    if (found === null) return null;
    return { name: found[1], line: Number(found[2]), column: Number(found[3]) };
}

module.exports = {
    GUARD,
    remember,
    hideFrames,
    locate,
    cleanStacks,
    describeError,
    describeRefusal,
};
