'use strict';
/*
 * From what a cell came to (evaluate.cjs) to its result: { kind, fields }, or null if there is
 * nothing to show. A promise is waited for.
 */
const { types } = require('node:util');
const { describeError } = require('./errors.cjs');
const { render } = require('./render.cjs');

/* The cell may change its own. */
const { then } = Promise.prototype;

function failure(error) {
    return { kind: 'e', fields: describeError(error) };
}

/* Calls done(result), at once or later. Runs code of the user: how values want to be shown. */
function conclude(outcome, done) {
    if ('error' in outcome) {
        done({ kind: 'e', fields: outcome.error });
    } else if ('thrown' in outcome) {
        done(failure(outcome.thrown));
    } else if (outcome.value === undefined) {
        done(null);
    } else {
        follow(outcome.value, present, done);
    }
}

function present(value, done) {
    let fields;
    try {
        fields = value === undefined ? null : render(value);
    } catch (error) {
        done(failure(error));
        return;
    }
    const show = (made, finish) => finish(made === null ? null : { kind: 'm', fields: made });
    follow(fields, show, done);
}

/* Calls next(value, done) when it is there. */
function follow(value, next, done) {
    if (!types.isPromise(value)) {
        next(value, done);
        return;
    }
    then.call(
        value,
        (settled) => next(settled, done),
        (error) => done(failure(error)),
    );
}

module.exports = { failure, conclude };
