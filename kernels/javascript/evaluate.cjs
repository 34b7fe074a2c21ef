'use strict';
/*
 * Runs cells, by V8's own REPL mode: Runtime.evaluate of the inspector, in this thread.
 *
 * A cell may be read in several ways: `{a: 1}` as an object or as a block, TypeScript as it is or
 * stripped of types, a declaration with this or that keyword (rewrite.cjs). V8 compiles before it
 * runs anything, and says at once that it cannot, so the ways are tried one after the other.
 */
const { Session } = require('node:inspector');
const { promiseHooks } = require('node:v8');
const vm = require('node:vm');
const { describeError, describeRefusal, locate, remember } = require('./errors.cjs');
const { dropImports, ImportFailure, loadImports, takeHeld } = require('./modules.cjs');
const { Cell } = require('./rewrite.cjs');

const TAKEN = /^Identifier '(.+)' has already been declared$/;
const GROUP = 'cell';

/* An error that keeps a cell from running at all; line and column from 1. */
class Refusal {
    constructor(error, line, column) {
        this.error = error;
        this.line = line;
        this.column = column;
    }
}

/* Gets the values themselves out of the inspector, which gives handles. */
class Hand {
    constructor(session) {
        this.session = session;
        this.holder = { value: undefined };
        this.id = null;
    }

    take(remote) {
        if (remote.objectId === undefined && remote.unserializableValue === undefined)
            return remote.type === 'undefined' ? undefined : remote.value;
        if (this.id === null) this.introduce();
        this.session.post('Runtime.callFunctionOn', {
            objectId: this.id,
            functionDeclaration: 'function (value) { this.value = value; }',
            arguments: [this.argument(remote)],
            silent: true,
        });
        const { value } = this.holder;
        this.holder.value = undefined;
        return value;
    }

    argument({ objectId, unserializableValue }) {
        return objectId === undefined ? { unserializableValue } : { objectId };
    }

    introduce() {
        const name = '$holder';
        Object.defineProperty(globalThis, name, { value: this.holder, configurable: true });
        this.session.post('Runtime.evaluate', { expression: name }, (error, { result }) => {
            this.id = result.objectId;
        });
        delete globalThis[name];
    }
}

class Evaluator {
    /* `typescript` is null, or the module of that name. */
    constructor(typescript) {
        this.typescript = typescript;
        this.session = new Session();
        this.session.connect();
        this.hand = new Hand(this.session);
        this.constants = new Set();
        this.count = 0;
        /* id of a cell that runs -> its promise */
        this.running = new Map();
    }

    /* Calls done({ value }), done({ thrown }) or done({ error }), at once or later; error is
     * described already. `name` is what positions are said in. */
    run(code, name, done) {
        const job = { code, name, done, id: this.count++, ways: this.ways(code), refusal: null };
        this.next(job);
    }

    /* The ways to read a cell, as { text, map } or as the Refusal that keeps it from being one. */
    *ways(code) {
        const braces = /^\s*\{/.test(code) && !/;\s*$/.test(code);
        const read = function* (make) {
            if (braces) yield make(`(${code}\n)`, withoutParenthesis);
            yield make(code, null);
        };
        if (!this.typescript?.surely(code)) yield* read((text, map) => ({ text, map }));
        if (this.typescript === null) return;
        yield* read((text, map) => {
            const stripped = this.typescript.strip(text);
            if (stripped.error) return new Refusal(stripped.error, stripped.line, stripped.column);
            const { map: inner } = stripped;
            return { text: stripped.text, map: map ? (l, c) => map(...inner(l, c)) : inner };
        });
    }

    next(job) {
        let step;
        try {
            step = job.ways.next();
        } catch (error) {
            job.done({ error: describeError(error) });
            return;
        }
        const { value: way, done } = step;
        if (done) {
            this.refuse(job);
        } else if (way instanceof Refusal) {
            job.refusal = way;
            this.next(job);
        } else {
            this.prepare(job, way);
        }
    }

    refuse(job) {
        const { name, code } = job;
        const { error, line, column } = job.refusal;
        remember(name, code, null);
        job.done({ error: describeRefusal(error, { name, line, column }) });
    }

    /* Loads what the cell imports, if it compiles at all. */
    prepare(job, way) {
        job.cell = new Cell(way.text, this.constants);
        job.way = way;
        const { imports } = job.cell;
        if (imports.length === 0 || !compiles(job.cell.emit(job.id))) {
            this.start(job);
            return;
        }
        const strict = this.typescript === null;
        loadImports(job.id, imports, strict).then(
            () => this.start(job),
            (failure) => this.failImport(job, failure),
        );
    }

    /* Positions in `text` are those of the cell that it was made of. */
    rememberText(job, text) {
        const { cell, way } = job;
        remember(job.name, job.code, (line, column) => {
            const place = cell.locate(text, line, column);
            return way.map === null ? place : way.map(...place);
        });
    }

    failImport(job, failure) {
        if (!(failure instanceof ImportFailure)) throw failure;
        const { name, code, way } = job;
        remember(name, code, way.map);
        const before = way.text.slice(0, failure.offset).split('\n');
        const [line, column] = locate(name, before.length, before.at(-1).length + 1);
        const { error } = failure;
        if (error instanceof Error && !error.stack.includes('\n    at '))
            error.stack += `\n    at ${name}:${line}:${column}`;
        job.done({ error: describeError(error, { name, line, column }) });
    }

    start(job) {
        let refusal = this.post(job);
        while (refusal !== null && this.otherwise(job, refusal)) refusal = this.post(job);
        if (refusal === null) {
            job.cell.settle(this.constants);
            return;
        }
        job.refusal = refusal;
        this.next(job);
    }

    /* Whether the cell may be emitted in another way. A clash with another cell's name has no
     * place; one within the cell has. */
    otherwise({ cell }, { error, line, column }) {
        const taken = line === 1 && column === 1 ? TAKEN.exec(error?.message) : null;
        if (taken !== null) return cell.refused(taken[1]);
        const again = !cell.bare;
        cell.bare = true;
        return again;
    }

    /* -> a Refusal, or null: it runs, or has run. */
    post(job) {
        const text = job.cell.emit(job.id);
        const expression = `${text}\n//# sourceURL=${job.name}`;
        this.rememberText(job, text);
        let refusal = null;
        let posting = true;
        const answer = (failure, response) => {
            const details = response?.exceptionDetails;
            if (posting && details !== undefined) refusal = this.refusalOf(job, details);
            else this.answer(job, failure, response);
        };
        const parameters = { expression, replMode: true, objectGroup: GROUP, silent: true };
        const stop = this.keepPromise(job.id);
        this.session.post('Runtime.evaluate', parameters, answer);
        stop();
        posting = false;
        return refusal;
    }

    /* A cell may wait for what nobody will ever do. When the promise of such a cell is collected, the
     * inspector of Node 22 says so in the middle of the collection, which ends the process. So it is
     * kept: it is the first one that is made when a cell begins. -> ends the search for it. */
    keepPromise(id) {
        const stop = promiseHooks.onInit((promise) => {
            stop();
            this.running.set(id, promise);
        });
        return stop;
    }

    refusalOf({ name }, { exception, lineNumber, columnNumber }) {
        const error = this.hand.take(exception);
        const place = lineNumber === 0 && columnNumber === 0 ? [1, 1] : null;
        return new Refusal(error, ...(place ?? locate(name, lineNumber + 1, columnNumber + 1)));
    }

    answer(job, failure, response) {
        this.running.delete(job.id);
        dropImports(job.id);
        /* The process ends, and with it the cell; or it was interrupted, and who did that ends it. */
        if (/context was destroyed|Execution was terminated/.test(failure?.message)) return;
        if (failure) {
            job.done({ error: describeError(new Error(failure.message)) });
            return;
        }
        const { result, exceptionDetails } = response;
        const held = takeHeld(job.id);
        const value =
            exceptionDetails === undefined && held !== null
                ? held.value
                : this.hand.take(exceptionDetails?.exception ?? result);
        this.session.post('Runtime.releaseObjectGroup', { objectGroup: GROUP });
        job.done(exceptionDetails === undefined ? { value } : { thrown: value });
    }
}

/* A place in what a parenthesis was put before. */
function withoutParenthesis(line, column) {
    return [line, line === 0 ? column - 1 : column];
}

function compiles(text) {
    try {
        new vm.Script(`async () => {${text}\n}`);
        return true;
    } catch {
        return false;
    }
}

module.exports = { Evaluator };
