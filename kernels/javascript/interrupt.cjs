'use strict';
/*
 * Interrupting a cell.
 *
 * JavaScript sees a signal only when it returns to the event loop, which a busy cell does not. Node
 * has a thread of its own for this, behind the option breakOnSigint of vm: while a script with it
 * runs, SIGINT ends the script. So a cell's first stretch, up to where it waits for something, and
 * the making of its result, go through one such script, the guard.
 *
 * When the cell waits, the event loop calls it back, and no guard is around that. Then a second
 * thread (watcher.cjs) looks for the signal. It tells the event loop, which ends the cell; if that
 * does not happen, the cell is busy, and the watcher has V8 end whatever runs. It takes 10 MiB and
 * is made when a cell first waits.
 *
 * Node's thread is started once and for all here: vm would put SIGINT back to its default, which
 * ends the process, each time a script is over. A signal that finds no guard leaves a mark, and
 * that is what the watcher looks for.
 *
 * V8 ends a callback without its `finally`, so Node's count of nested callbacks is wrong
 * afterwards. Its check is switched off and the count put back to zero.
 */
const path = require('node:path');
const vm = require('node:vm');
const { GUARD } = require('./errors.cjs');

/* The one word that is shared with the watcher: these, or the number of the wait. */
const IDLE = 0;
const ENDING = -1;

const WAITS_MAX = 1 << 30;
const ENDING_MAX_MS = 1000;

let binding = null;
let hooks = null;
let body = null;
let runGuard = null;
let watcher = null;
let wait = 0;
let onInterrupt = null;
const shared = new Int32Array(new SharedArrayBuffer(4));

class Interrupted extends Error {
    constructor() {
        super('the cell was interrupted');
        this.stack = `${this.name}: ${this.message}`;
    }

    get name() {
        return 'KeyboardInterrupt';
    }
}

/* `process.binding` is old, but it is the only way to these; its warning is not for the user. */
function bindings() {
    const quiet = process.noDeprecation;
    process.noDeprecation = true;
    const found = {
        contextify: process.binding('contextify'),
        hooks: process.binding('async_wrap'),
    };
    process.noDeprecation = quiet;
    return found;
}

/* process.on('SIGINT') of a cell must not take the signal from the kernel. */
function keepSignal() {
    const own = process.listeners('newListener').find((f) => f.name === 'startListeningIfSignal');
    if (own === undefined) return;
    process.removeListener('newListener', own);
    process.on('newListener', (type) => {
        if (type !== 'SIGINT') own(type);
    });
}

function catchInterrupts() {
    const found = bindings();
    binding = found.contextify;
    hooks = found.hooks;
    keepSignal();
    /* Twice: the mark is taken by a stop, which is one too few to stop it. */
    binding.startSigintWatchdog();
    binding.startSigintWatchdog();
    /* A name of the global object, since a script sees nothing else. */
    const name = '$guard';
    Object.defineProperty(globalThis, name, { get: () => body });
    const script = new vm.Script(`${name}()`, { filename: GUARD });
    runGuard = () => script.runInThisContext({ breakOnSigint: true, displayErrors: false });
}

/* -> whether a SIGINT has come since the last call, or since a guard took one */
function takeMark() {
    const marked = binding.stopSigintWatchdog();
    binding.startSigintWatchdog();
    return marked;
}

/* Runs `call`, and what it has put off to the end of this turn. -> false if it was interrupted. */
function guarded(call) {
    relax();
    body = () => {
        body = null;
        call();
        process._tickCallback();
    };
    try {
        runGuard();
        return true;
    } catch (error) {
        if (error?.code !== 'ERR_SCRIPT_EXECUTION_INTERRUPTED') throw error;
        return false;
    } finally {
        body = null;
    }
}

/* Hooks that the cell has set switch the check on again. */
function relax() {
    const { async_hook_fields: fields, constants } = hooks;
    fields[constants.kCheck] = 0;
    fields[constants.kTotals] = 0;
}

/* From now on the cell is called by the event loop; `interrupted` is called if SIGINT comes. */
function beginWait(interrupted) {
    onInterrupt = interrupted;
    relax();
    wait = (wait % WAITS_MAX) + 1;
    Atomics.store(shared, 0, wait);
    Atomics.notify(shared, 0);
    if (watcher === null) startWatcher();
}

/* The cell is over, or about to be: calls `then` as soon as V8 will not be made to end it. */
function endWait(then) {
    onInterrupt = null;
    const state = Atomics.compareExchange(shared, 0, wait, IDLE);
    Atomics.notify(shared, 0);
    if (state !== ENDING) {
        then();
        return;
    }
    /* The watcher has asked V8 to end what runs, and that is this. */
    setImmediate(() => {
        hooks.clearAsyncIdStack();
        then();
    });
    const until = Date.now() + ENDING_MAX_MS;
    while (Atomics.load(shared, 0) === ENDING && Date.now() < until);
}

/* Without a moment's delay: the cell may be busy in the next turn. */
function startWatcher() {
    const { Worker } = require('node:worker_threads');
    watcher = new Worker(path.join(__dirname, 'watcher.cjs'), { workerData: shared });
    watcher.unref();
    watcher.on('message', (told) => {
        if (told !== wait) return;
        hooks.clearAsyncIdStack();
        onInterrupt?.();
    });
    watcher.on('exit', () => {
        watcher = null;
    });
}

module.exports = { Interrupted, catchInterrupts, takeMark, guarded, beginWait, endWait };
