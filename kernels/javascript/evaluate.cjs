'use strict';
/*
 * Runs cells, by V8's own REPL mode: Runtime.evaluate of the inspector, in this thread.
 *
 * A cell may be read in several ways: `{a: 1}` as an object or as a block, TypeScript as it is or
 * stripped of types, a declaration with this or that keyword (rewrite.cjs). V8 compiles before it
 * runs anything, and says at once that it cannot, so the ways are tried one after the other.
 *
 * The inspector itself must not be interrupted: much of it takes for granted that V8 does what it is
 * told, and ends the process if V8 has been told to end what runs. So a cell is in two steps. First
 * the inspector is given its text, which stops before the cell's own code (`$mport.begin`), and the
 * session is closed: then it does nothing more about the cell. The second step, which may be
 * interrupted, lets it go on. What the cell comes to is known from its promise.
 */
const { Session } = require('node:inspector');
const { promiseHooks } = require('node:v8');
const vm = require('node:vm');
const { describeError, describeRefusal, locate, remember } = require('./errors.cjs');
const {
    dropImports,
    ImportFailure,
    loadImports,
    makeBeginning,
    takeHeld,
} = require('./modules.cjs');
const { Cell } = require('./rewrite.cjs');

const TAKEN = /^Identifier '(.+)' has already been declared$/;
/* Where REPL mode puts the value of a cell. */
const RESULT = '.repl_result';

/* A cell may change its own. */
const { then } = Promise.prototype;

/* An error that keeps a cell from running at all; line and column from 1. */
class Refusal {
    constructor(error, line, column) {
        this.error = error;
        this.line = line;
        this.column = column;
    }
}

class Evaluator {
    /* `typescript` is null, or the module of that name. */
    constructor(typescript) {
        this.typescript = typescript;
        this.constants = new Set();
        this.count = 0;
    }

    /* Takes a cell, up to where its own code begins: that waits for `go`. Calls done({ value }),
     * done({ thrown }) or done({ error }), at once or later; error is described already. `name` is
     * what positions are said in. */
    take(code, name, done) {
        const job = { code, name, done, id: this.count++, ways: this.ways(code), refusal: null };
        job.begin = null;
        job.going = false;
        this.next(job);
        return job;
    }

    /* The cell's own code may run: in a microtask, or later, when what it imports is there. */
    go(job) {
        job.going = true;
        job.begin?.();
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
        const session = new Session();
        session.connect();
        let refusal = this.post(session, job);
        while (refusal !== null && this.otherwise(job, refusal)) refusal = this.post(session, job);
        session.disconnect();
        if (refusal === null) {
            job.cell.settle(this.constants);
            if (job.going) job.begin();
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

    /* -> a Refusal, or null: it has been taken. */
    post(session, job) {
        const text = job.cell.emit(job.id);
        const expression = `${text}\n//# sourceURL=${job.name}`;
        this.rememberText(job, text);
        job.begin = makeBeginning();
        let refusal = null;
        let failed = null;
        let posting = true;
        const answer = (failure, response) => {
            /* That the session is closed. */
            if (!posting) return;
            if (failure) failed = failure;
            else refusal = refusalOf(session, job, response.exceptionDetails);
        };
        const parameters = { expression, replMode: true, silent: true };
        /* The cell's promise is the first one that is made when it begins. */
        let promise = null;
        const stop = promiseHooks.onInit((made) => {
            stop();
            promise = made;
        });
        session.post('Runtime.evaluate', parameters, answer);
        stop();
        posting = false;
        if (failed !== null) this.fail(job, failed);
        else if (refusal === null) this.follow(job, promise);
        return refusal;
    }

    fail(job, { message }) {
        /* It was interrupted, and who did that ends it. */
        if (!message.includes('Execution was terminated'))
            job.done({ error: describeError(new Error(message)) });
    }

    follow(job, promise) {
        const over = (key) => (value) => {
            dropImports(job.id);
            const held = takeHeld(job.id);
            if (key === 'thrown') job.done({ thrown: value });
            else job.done({ value: held === null ? value[RESULT] : held.value });
        };
        then.call(promise, over('value'), over('thrown'));
    }
}

/* The inspector has the error, and describes it by its stack. */
function refusalOf(session, { name }, { exception, lineNumber, columnNumber }) {
    let error = null;
    const functionDeclaration = 'function () { return { name: this.name, message: this.message }; }';
    session.post(
        'Runtime.callFunctionOn',
        { objectId: exception.objectId, functionDeclaration, returnByValue: true, silent: true },
        (failure, { result }) => {
            error = result.value;
        },
    );
    const place = lineNumber === 0 && columnNumber === 0 ? [1, 1] : null;
    return new Refusal(error, ...(place ?? locate(name, lineNumber + 1, columnNumber + 1)));
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
