'use strict';
/*
 * process.stdout and process.stderr of a cell: each write is done when it returns, so that what a
 * cell prints, what programs print that it starts, and the packets on the control socket come in
 * order. Node's own streams would also make the pipe non-blocking, for those programs too.
 *
 * Between the two pipes, and from a result to what is written after it, only the agent's reading
 * makes an order, and Node cannot ask how much of a pipe is unread. A short pause at each change
 * lets the agent come by.
 */
const { writeSync } = require('node:fs');
const { Writable } = require('node:stream');
const { types } = require('node:util');

const CHANGE_MS = 0.2;
const FULL_MS = 1;
const RESULT = -1;

/* The cell may change its own. */
const { from: bufferFrom } = Buffer;

const clock = new Int32Array(new SharedArrayBuffer(4));
let last = 0;

function pause(ms) {
    Atomics.wait(clock, 0, 0, ms);
}

function writeAll(fd, chunk) {
    if (last !== 0 && last !== fd) pause(CHANGE_MS);
    last = fd;
    for (let at = 0; at < chunk.length;) {
        try {
            at += writeSync(fd, chunk, at);
        } catch (error) {
            if (error.code === 'EAGAIN') pause(FULL_MS);
            else if (error.code !== 'EINTR') throw error;
        }
    }
}

/* `write` itself is replaced: a Writable that is interrupted in the middle of one never writes
 * again. */
function makeStream(fd) {
    const put = (chunk, encoding) => {
        try {
            writeAll(fd, bytesOf(chunk, encoding));
            return null;
        } catch (error) {
            if (error.syscall !== 'write') throw error;
            /* A pipe that the cell has closed takes nothing more; that is no reason to end. */
            return error;
        }
    };
    const stream = new Writable({
        write(chunk, encoding, done) {
            put(chunk);
            done();
        },
        /* As with Node's own, nothing closes the standard streams. */
        destroy(error, done) {
            done(error);
            this._undestroy();
        },
    });
    stream.write = (chunk, encoding, done) => {
        const callback = typeof encoding === 'function' ? encoding : done;
        const failure = put(chunk, encoding);
        if (typeof callback === 'function') process.nextTick(callback, failure);
        return true;
    };
    stream.fd = fd;
    stream._type = 'pipe';
    return stream;
}

function bytesOf(chunk, encoding) {
    if (typeof chunk === 'string')
        return bufferFrom(chunk, typeof encoding === 'string' ? encoding : 'utf8');
    if (types.isUint8Array(chunk)) return chunk;
    const error = new TypeError('The "chunk" argument must be of type string or Uint8Array');
    throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
}

/* A cell begins: nothing of it is unread. */
function startOutput() {
    last = 0;
}

/* A result has been sent: what is written next comes after it. */
function passResult() {
    last = RESULT;
}

function takeOutput() {
    for (const [name, fd] of [
        ['stdout', 1],
        ['stderr', 2],
    ]) {
        const stream = makeStream(fd);
        Object.defineProperty(process, name, {
            get: () => stream,
            configurable: true,
            enumerable: true,
        });
    }
    takeConsole();
}

/* Node's console tells the inspector too, which keeps the last thousand messages with all their
 * values. This one only writes. */
function takeConsole() {
    Object.assign(console, new console.Console(process.stdout, process.stderr));
}

module.exports = { passResult, startOutput, takeConsole, takeOutput };
