'use strict';
/*
 * The timers of a cell. Those it has set go on when it is over, as in any notebook. But when it is
 * interrupted they are cancelled: a loop that sleeps between its rounds would go on for ever,
 * since nothing else can reach into it.
 */
const { syncBuiltinESMExports } = require('node:module');
const { promisify } = require('node:util');

/* Above this, those that are done are forgotten. */
const MANY = 1000;

let current = new Set();
let many = MANY;
let abort = null;

function keep(timer) {
    if (current.size >= many) {
        for (const old of current) if (old._destroyed) current.delete(old);
        many = Math.max(MANY, 2 * current.size);
    }
    current.add(timer);
    return timer;
}

/* A new cell begins: the timers of the one before are nobody's. */
function startTimers() {
    if (current.size > 0) current = new Set();
    many = MANY;
    abort = null;
}

function cancelTimers() {
    for (const timer of current) {
        clearTimeout(timer);
        clearImmediate(timer);
    }
    abort?.abort();
    startTimers();
}

function wrap(name, sleep) {
    const original = globalThis[name];
    const wrapped = {
        [name](...args) {
            return keep(original.apply(this, args));
        },
    }[name];
    if (sleep !== undefined) wrapped[promisify.custom] = sleep;
    Object.defineProperty(globalThis, name, {
        value: wrapped,
        writable: true,
        enumerable: true,
        configurable: true,
    });
    return wrapped;
}

/* `at`: which argument is the options. */
function abortable(original, at) {
    return (...args) => {
        abort ??= new AbortController();
        const { signal } = args[at] ?? {};
        const any = signal ? AbortSignal.any([signal, abort.signal]) : abort.signal;
        while (args.length < at) args.push(undefined);
        args[at] = { ...args[at], signal: any };
        return original(...args);
    };
}

function keepTimers() {
    const timers = require('node:timers');
    const sleeping = require('node:timers/promises');
    sleeping.setTimeout = abortable(sleeping.setTimeout, 2);
    sleeping.setImmediate = abortable(sleeping.setImmediate, 1);
    sleeping.setInterval = abortable(sleeping.setInterval, 2);
    timers.setTimeout = wrap('setTimeout', sleeping.setTimeout);
    timers.setImmediate = wrap('setImmediate', sleeping.setImmediate);
    timers.setInterval = wrap('setInterval');
    syncBuiltinESMExports();
}

module.exports = { startTimers, cancelTimers, keepTimers };
