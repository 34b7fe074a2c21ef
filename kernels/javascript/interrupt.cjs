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
 * does not happen, the cell is busy, and the watcher has V8 end whatever runs. That may be the
 * message itself, if the event loop did not get to it in time, so the watcher tells again until the
 * wait is over. It takes 10 MiB and is made when a cell first waits.
 *
 * Node's thread is started once and for all here: vm would put SIGINT back to its default, which
 * ends the process, each time a script is over. A signal that finds no guard leaves a mark. The
 * watcher looks for it, the guard when it begins, and this thread takes it.
 *
 * What the signal did besides (it ended the program that the cell waited for) may end the cell before
 * Node's thread knows of the signal. So before a cell is over, settle.cjs waits for that.
 *
 * V8 ends a callback without its `finally`, so Node's count of nested callbacks is wrong
 * afterwards. Its check is switched off and the count put back to zero.
 */
const path = require('node:path');
const vm = require('node:vm');
const { GUARD } = require('./errors.cjs');
const { listThreads, settle, watchThread } = require('./settle.cjs');

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
    const before = new Set(listThreads());
    /* Twice: the mark is taken by a stop, which is one too few to stop it. */
    binding.startSigintWatchdog();
    binding.startSigintWatchdog();
    const started = listThreads().filter((thread) => !before.has(thread));
    if (started.length === 1) watchThread(started[0]);
    /* A name of the global object, since a script sees nothing else. */
    const name = '$guard';
    Object.defineProperty(globalThis, name, { get: () => body });
    const script = new vm.Script(`${name}()`, { filename: GUARD });
    runGuard = () => script.runInThisContext({ breakOnSigint: true, displayErrors: false });
}

/* -> whether a SIGINT has come since the last call, or since a guard took one. Not while a cell
 * waits: the watcher looks for it then. */
function takeMark(failed = false) {
    settle(failed);
    const marked = binding.stopSigintWatchdog();
    binding.startSigintWatchdog();
    return marked;
}

/* Runs `call`, and what it has put off to the end of this turn. `failed` says afterwards whether the cell
 * has failed. -> false if it was interrupted, or if SIGINT has come since the last takeMark. */
function guarded(call, failed) {
    let marked = false;
    relax();
    body = () => {
        body = null;
        marked = binding.watchdogHasPendingSigint();
        if (marked) return;
        call();
        process._tickCallback();
        settle(failed());
    };
    try {
        runGuard();
        return !marked;
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

/* From now on the cell is called by the event loop. `interrupted` is called if SIGINT comes, again
 * and again if V8 ends it, until it has come to the end of endWait. */
function beginWait(interrupted) {
    onInterrupt = interrupted;
    relax();
    wait = (wait % WAITS_MAX) + 1;
    Atomics.store(shared, 0, wait);
    Atomics.notify(shared, 0);
    if (watcher === null) startWatcher();
}

/* The cell is about to be over: calls `then` when V8 will not be made to end it, and says whether
 * SIGINT has come. `failed`: the cell has failed. */
function endWait(then, failed) {
    const until = Date.now() + ENDING_MAX_MS;
    while (Atomics.compareExchange(shared, 0, wait, IDLE) === ENDING) {
        /* The watcher has asked V8 to end what runs, and that is this. It calls again then. */
        if (Date.now() > until) return;
    }
    onInterrupt = null;
    Atomics.notify(shared, 0);
    then(takeMark(failed));
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
