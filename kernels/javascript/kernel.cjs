'use strict';
/*
 * The kernel: takes packets from the control socket and runs cells (kernels/README.md).
 *
 * The socket is read by one of Node's threads, so that timers and promises of earlier cells go on
 * between cells. A cell's own code begins under the guard (interrupt.cjs); if it is not over then, it
 * waits, and the event loop goes on. Packets that come meanwhile are kept.
 */
const { read } = require('node:fs');
const {
    changeDirectory,
    lendVariables,
    refuseExit,
    refuseInput,
    setVariable,
    SystemExit,
} = require('./environment.cjs');
const { cleanStacks, describeError } = require('./errors.cjs');
const { Evaluator } = require('./evaluate.cjs');
const {
    beginWait,
    catchInterrupts,
    endWait,
    guarded,
    Interrupted,
    takeMark,
} = require('./interrupt.cjs');
const { offerModules } = require('./modules.cjs');
const { conclude, failure } = require('./outcome.cjs');
const { passResult, startOutput, takeOutput } = require('./output.cjs');
const { makeDisplay } = require('./render.cjs');
const { cancelTimers, keepTimers, startTimers } = require('./timers.cjs');
const { die, sendFinished, sendReady, sendResult } = require('./wire.cjs');

const CONTROL = 3;
const PACKET_MAX = (128 << 10) + 16;
const { reallyExit } = process;

class Kernel {
    constructor(typescript) {
        this.evaluator = new Evaluator(typescript);
        this.packets = [];
        this.pieces = [];
        this.variables = [];
        this.cell = null;
    }

    listen() {
        const buffer = Buffer.allocUnsafe(PACKET_MAX);
        read(CONTROL, buffer, 0, buffer.length, null, (error, size) => {
            if (error !== null && error.code !== 'EAGAIN' && error.code !== 'EINTR') die();
            if (error === null && size === 0) this.close();
            this.listen();
            if (error === null) this.packets.push(buffer.subarray(0, size));
            this.work();
        });
    }

    /* No thread reads now, so exit does not wait for one. */
    close() {
        if (this.cell !== null) this.cell.over = true;
        reallyExit.call(process, 0);
    }

    work() {
        while (this.cell === null && this.packets.length > 0) this.handle(this.packets.shift());
    }

    handle(packet) {
        const payload = packet.subarray(1);
        switch (String.fromCharCode(packet[0])) {
            case 'G':
                setVariable(payload.toString());
                break;
            case 'D':
                changeDirectory(payload.toString());
                break;
            case 'V':
                this.variables.push(payload.toString());
                break;
            case 'C':
                this.pieces.push(payload);
                break;
            case 'X':
                this.pieces.push(payload.subarray(4));
                this.run(payload.readUInt32LE(0), Buffer.concat(this.pieces.splice(0)).toString());
                break;
            default:
                die();
        }
    }

    run(number, code) {
        const cell = { number, waits: false, over: false, result: null };
        this.cell = cell;
        cell.putBack = lendVariables(this.variables.splice(0));
        startOutput();
        startTimers();
        takeMark();
        const done = (result) => this.end(cell, result);
        const settle = (outcome) => conclude(outcome, done);
        try {
            const name = `cell-${number}`;
            const job = this.evaluator.take(code, name, settle);
            const go = () => this.evaluator.go(job);
            if (!guarded(go, () => cell.result?.kind === 'e')) this.interrupt(cell);
        } catch (error) {
            this.end(cell, failure(error));
        }
        if (cell.over) {
            this.finish(cell);
        } else {
            cell.waits = true;
            beginWait(() => this.interrupt(cell));
        }
    }

    /* The cell may have ended before it was told to: a program that it waited for dies of the same
     * signal. The interrupt counts. */
    interrupt(cell) {
        cell.over = false;
        cancelTimers();
        this.end(cell, failure(new Interrupted()));
    }

    /* The first result counts: an interrupted cell may go on in the background. */
    end(cell, result) {
        if (cell.over) return;
        cell.over = true;
        cell.result = result;
        if (!cell.waits) return;
        endWait((interrupted) => {
            if (interrupted) {
                cancelTimers();
                cell.result = failure(new Interrupted());
            }
            this.finish(cell);
        }, result?.kind === 'e');
    }

    finish(cell) {
        cell.putBack();
        if (cell.result !== null) sendResult(cell.result.kind, cell.result.fields);
        this.cell = null;
        sendFinished(cell.number);
        if (cell.waits) this.work();
    }

    /* Results are a cell's. What the background shows between cells is printed. */
    display(fields) {
        if (this.cell !== null) {
            sendResult('d', fields);
            passResult();
        } else if (typeof fields.text === 'string') {
            process.stdout.write(`${fields.text}\n`);
        }
    }
}

function reportUncaught(error, origin) {
    if (error instanceof SystemExit) return;
    const how = origin === 'unhandledRejection' ? 'Uncaught (in promise)' : 'Uncaught';
    process.stderr.write(`${how} ${describeError(error).traceback}\n`);
}

function serve(typescript) {
    cleanStacks();
    takeOutput();
    refuseInput();
    catchInterrupts();
    process.argv.length = 1;
    const kernel = new Kernel(typescript);
    offerModules(typescript?.compileModule ?? null);
    const display = makeDisplay((fields) => kernel.display(fields));
    Object.defineProperty(globalThis, 'display', {
        value: display,
        writable: true,
        configurable: true,
    });
    refuseExit((exit) => {
        if (kernel.cell !== null) kernel.end(kernel.cell, failure(exit));
    }, die);
    process.on('uncaughtException', reportUncaught);
    sendReady();
    kernel.listen();
    /* After Q: the first packet is taken in the next turn at the earliest. */
    keepTimers();
}

module.exports = { serve };
