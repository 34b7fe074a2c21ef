'use strict';
/*
 * The thread that looks for SIGINT while a cell waits: see interrupt.cjs. It sleeps while none
 * does.
 */
const { Session } = require('node:inspector');
const { parentPort, workerData } = require('node:worker_threads');

const [IDLE, ENDING] = [0, -1];
const LOOK_MS = 20;
/* How long the event loop may take to end the cell by itself. */
const PATIENCE_MS = 100;

process.noDeprecation = true;
const binding = process.binding('contextify');

/* Has V8 end what the main thread runs. The session is there for this only: a process with one
 * would wait for it at its end. */
function end(then) {
    const session = new Session();
    /* A session alone does not keep a thread from being over. */
    const alive = setInterval(() => {}, 1000);
    session.connectToMainThread();
    session.post('Runtime.terminateExecution', () => {
        clearInterval(alive);
        session.disconnect();
        then();
    });
}

function watch() {
    for (;;) {
        Atomics.wait(workerData, 0, IDLE);
        const wait = Atomics.load(workerData, 0);
        while (wait > IDLE && Atomics.load(workerData, 0) === wait) {
            Atomics.wait(workerData, 0, wait, LOOK_MS);
            if (Atomics.load(workerData, 0) !== wait) continue;
            if (!binding.watchdogHasPendingSigint()) continue;
            parentPort.postMessage(wait);
            Atomics.wait(workerData, 0, wait, PATIENCE_MS);
            if (Atomics.compareExchange(workerData, 0, wait, ENDING) !== wait) continue;
            end(() => {
                Atomics.store(workerData, 0, wait);
                watch();
            });
            return;
        }
    }
}

watch();
