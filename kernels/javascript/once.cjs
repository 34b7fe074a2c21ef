'use strict';
/*
 * One file as one cell, without the protocol: `sandglass run`. The process is the user's here:
 * standard input can be read, exit ends it, a signal too, and it is over when nothing is left to
 * do.
 */
const { appendFileSync, readFileSync } = require('node:fs');
const { cleanStacks } = require('./errors.cjs');
const { Evaluator } = require('./evaluate.cjs');
const { offerModules } = require('./modules.cjs');
const { conclude } = require('./outcome.cjs');
const { takeConsole } = require('./output.cjs');
const { makeDisplay } = require('./render.cjs');

const UNSETTLED = 13; /* as Node says it */

function record(file, kind, fields) {
    const line = kind === 'm' ? { main: true } : { main: false };
    for (const [name, value] of Object.entries(fields))
        line[name] = typeof value === 'string' ? value : JSON.parse(value.json);
    appendFileSync(file, `${JSON.stringify(line)}\n`);
}

function runOnce(typescript, file, results) {
    let over = false;
    const show = (kind, fields) => {
        if (typeof fields.text === 'string') process.stdout.write(`${fields.text}\n`);
        if (results !== null) record(results, kind, fields);
    };
    const finish = (result) => {
        over = true;
        if (result === null) return;
        if (result.kind === 'e') {
            process.stderr.write(`${result.fields.traceback}\n`);
            process.exitCode = 1;
        } else {
            show(result.kind, result.fields);
        }
    };
    const code = readFileSync(file, 'utf8');
    cleanStacks();
    takeConsole();
    process.argv.length = 1;
    offerModules(typescript?.compileModule ?? null);
    globalThis.display = makeDisplay((fields) => show('d', fields));
    process.on('beforeExit', () => {
        if (over) return;
        process.stderr.write('the cell waits for something that will never come\n');
        process.exitCode = UNSETTLED;
        over = true;
    });
    const evaluator = new Evaluator(typescript);
    evaluator.go(evaluator.take(code, 'cell-1', (outcome) => conclude(outcome, finish)));
}

module.exports = { runOnce };
