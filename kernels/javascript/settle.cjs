'use strict';
/*
 * Waiting until all SIGINTs that were sent are known.
 *
 * The way of a signal: it is pending; a thread takes it and runs its handler, with all signals
 * blocked; the handler wakes Node's thread for SIGINT (interrupt.cjs), which sleeps otherwise, and
 * that one marks the signal. A thread that is woken does not sleep from that moment on, whether or
 * not it gets to run. So if Node's thread sleeps, every signal whose handler has run is known.
 *
 * Mostly the main thread takes the signal, and its handler has run when JavaScript goes on. But
 * while the main thread starts a program it blocks signals, and then any other thread may get the
 * signal, and may have to wait for its turn while the program dies of it and the cell fails. So for
 * a cell that has failed the whole way is looked at, from its beginning, for no signal to slip
 * through behind the look. That takes a millisecond on a busy machine.
 */
const { closeSync, openSync, readdirSync, readSync } = require('node:fs');
const { constants } = require('node:os');

const THREADS = '/proc/self/task';
const STATUS = '/proc/self/status';
const FILE_MAX = 4096;
const LOOK_MS = 0.1;
const SETTLE_MAX_MS = 1000;

const SIGINT = 1n << BigInt(constants.signals.SIGINT - 1);

const clock = new Int32Array(new SharedArrayBuffer(4));
const bytes = Buffer.alloc(FILE_MAX);
/* Node's thread; null if it is not known which that is. */
let watched = null;
/* Threads that always block SIGINT. */
const deaf = new Set();
/* The descriptor that is read from: V8 may end that without a `finally`. */
let open = -1;

function listThreads() {
    try {
        return readdirSync(THREADS);
    } catch {
        return [];
    }
}

/* `thread` is Node's thread for SIGINT. Threads that block the signal now always do. */
function watchThread(thread) {
    watched = thread;
    noteDeaf();
}

function noteDeaf() {
    for (const thread of listThreads()) if (blocks(thread)) deaf.add(thread);
}

/* Waits until Node's thread knows of all signals whose handler has run; `whole`: of all that were
 * sent. */
function settle(whole) {
    closeFile();
    const until = Date.now() + SETTLE_MAX_MS;
    while (!((!whole || arrived()) && sleeps())) {
        if (Date.now() > until) {
            /* A handler takes microseconds: who blocks the signal still does so for other reasons. */
            if (whole) noteDeaf();
            return;
        }
        Atomics.wait(clock, 0, 0, LOOK_MS);
    }
}

/* -> whether no signal is pending or has a handler that runs. */
function arrived() {
    return !has(read(STATUS), 'ShdPnd') && listThreads().every((t) => deaf.has(t) || !blocks(t));
}

function blocks(thread) {
    return has(read(`${THREADS}/${thread}/status`), 'SigBlk');
}

/* -> whether SIGINT is in this field of a status. */
function has(text, field) {
    const found = text.match(new RegExp(`^${field}:\\s*([0-9a-f]+)$`, 'm'));
    return found !== null && (BigInt(`0x${found[1]}`) & SIGINT) !== 0n;
}

function sleeps() {
    if (watched === null) return true;
    const text = read(`${THREADS}/${watched}/stat`);
    return text === '' || text[text.lastIndexOf(')') + 2] === 'S';
}

/* -> the text, '' if there is none. */
function read(file) {
    try {
        open = openSync(file);
        return bytes.latin1Slice(0, readSync(open, bytes, 0, FILE_MAX, 0));
    } catch {
        return '';
    } finally {
        closeFile();
    }
}

function closeFile() {
    const file = open;
    open = -1;
    if (file !== -1) closeSync(file);
}

module.exports = { listThreads, settle, watchThread };
