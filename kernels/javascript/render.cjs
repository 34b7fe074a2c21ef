'use strict';
/*
 * Values as results: the fields of kernels/README.md, name -> text, or { json: text }.
 *
 * A value is shown as util.inspect shows it; a string as itself. One that says how it wants to be
 * shown, by the method Symbol.for('Jupyter.display'), gives a MIME bundle. Bytes that are a
 * picture are a picture.
 */
const { inspect, types } = require('node:util');

const DISPLAY = Symbol.for('Jupyter.display');
const RESULT_MAX = 32 << 20;
const JSON_MAX = 8 << 20;
const JSON_DEPTH_MAX = 64;
const JSON_VALUES_MAX = 1_000_000;

const MIME = {
    'text/plain': 'text',
    'text/html': 'html',
    'text/markdown': 'markdown',
    'image/svg+xml': 'svg',
    'image/png': 'png',
    'image/jpeg': 'jpeg',
    'application/pdf': 'pdf',
    'text/latex': 'latex',
    'application/json': 'json',
    'text/javascript': 'javascript',
    'application/javascript': 'javascript',
    'e2b/data': 'data',
    'e2b/chart': 'chart',
};
const AS_JSON = new Set(['json', 'data', 'chart', 'extra']);

/* What bytes begin with, in hexadecimal. */
const PICTURES = [
    ['png', '89504e470d0a1a0a'],
    ['jpeg', 'ffd8ff'],
    ['pdf', '255044462d'],
];

function isBytes(value) {
    return types.isUint8Array(value) || types.isAnyArrayBuffer(value);
}

function bytesOf(value) {
    if (types.isAnyArrayBuffer(value)) return Buffer.from(value);
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

function describe(value) {
    if (typeof value === 'string') return value;
    try {
        return inspect(value);
    } catch (error) {
        const why = attempt(() => String(error?.message ?? error));
        return `<value that cannot be described: ${why}>`;
    }
}

function attempt(make) {
    try {
        return make();
    } catch {
        return 'its error cannot be either';
    }
}

/* Whether JSON says all of a value: plain objects and arrays, numbers, texts, dates. */
function isJson(value, depth, count) {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
    if (typeof value === 'number') return Number.isFinite(value);
    if (typeof value !== 'object' || depth > JSON_DEPTH_MAX || types.isProxy(value)) return false;
    if (types.isDate(value)) return !Number.isNaN(value.getTime());
    if (Array.isArray(value)) {
        if ((count.left -= value.length) < 0) return false;
        return value.every((inner) => isJson(inner, depth + 1, count));
    }
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== null && prototype !== Object.prototype) return false;
    for (const key of Object.keys(value)) {
        /* A getter is code, and says nothing that lasts. */
        const property = Object.getOwnPropertyDescriptor(value, key);
        if (!('value' in property) || --count.left < 0) return false;
        if (property.value !== undefined && !isJson(property.value, depth + 1, count)) return false;
    }
    return true;
}

/* -> JSON text, or null. Half a surrogate pair has no UTF-8, and a reader may refuse its escape. */
function jsonText(value) {
    let text;
    try {
        text = JSON.stringify(value);
    } catch {
        return null;
    }
    if (text === undefined || text.length > JSON_MAX || /\\ud[89a-f]/i.test(text)) return null;
    return Buffer.byteLength(text) > JSON_MAX ? null : text;
}

function ofValue(value) {
    const fields = { text: describe(value) };
    if (value === null || typeof value !== 'object') return fields;
    if (isBytes(value)) {
        const bytes = bytesOf(value);
        const start = bytes.subarray(0, 8).toString('hex');
        const picture = PICTURES.find(([, magic]) => start.startsWith(magic));
        if (picture !== undefined) fields[picture[0]] = bytes.toString('base64');
    } else if (!types.isDate(value) && isJson(value, 0, { left: JSON_VALUES_MAX })) {
        const json = jsonText(value);
        if (json !== null) fields.json = { json };
    }
    return fields;
}

function textOf(value) {
    if (typeof value === 'string') return value;
    if (isBytes(value)) return bytesOf(value).toString('base64');
    if (Array.isArray(value)) return value.join('');
    return String(value);
}

function ofBundle(bundle) {
    const fields = {};
    const extra = {};
    for (const [mime, value] of Object.entries(bundle)) {
        if (value === undefined || value === null) continue;
        const name = Object.hasOwn(MIME, mime) ? MIME[mime] : null;
        if (name === null) extra[mime] = isBytes(value) ? textOf(value) : value;
        else if (!AS_JSON.has(name)) fields[name] = textOf(value);
        else addJson(fields, name, value);
    }
    if (Object.keys(extra).length > 0) addJson(fields, 'extra', extra);
    return fields;
}

function addJson(fields, name, value) {
    const json = jsonText(value);
    if (json !== null) fields[name] = { json };
    else fields.text ??= `<${name} left out: not JSON, or larger than ${JSON_MAX} bytes>`;
}

function leftOut(name, bytes) {
    return `<${name} of ${bytes} bytes left out: the limit is ${RESULT_MAX}>`;
}

/* What is too large is left out, and the text says so. */
function fit(fields) {
    const fitting = {};
    let left = RESULT_MAX - 4096;
    let note = null;
    for (const [name, value] of Object.entries(fields)) {
        const size = Buffer.byteLength(typeof value === 'string' ? value : value.json);
        if (size <= left) {
            fitting[name] = value;
            left -= size;
        } else if (name === 'text' || note === null) {
            note = leftOut(name, size);
        }
    }
    if (note !== null)
        fitting.text = fitting.text === undefined ? note : `${fitting.text}\n${note}`;
    return fitting;
}

/* -> the fields of a value, or a promise of them if its method Jupyter.display is asynchronous. */
function render(value) {
    const type = typeof value;
    const how =
        value !== null && (type === 'object' || type === 'function') ? value[DISPLAY] : null;
    if (typeof how !== 'function') return fit(ofValue(value));
    const finish = (bundle) => {
        if (bundle === null || typeof bundle !== 'object') return fit(ofValue(value));
        return fit(ofBundle(bundle));
    };
    const bundle = how.call(value);
    return types.isPromise(bundle) ? bundle.then(finish) : finish(bundle);
}

/* The global `display`: shows values while the cell runs. `send` takes fields. */
function makeDisplay(send) {
    const show = (value) => {
        const fields = render(value);
        return types.isPromise(fields) ? fields.then(send) : send(fields);
    };
    const display = (...values) => {
        const pending = values.map(show).filter((shown) => types.isPromise(shown));
        return pending.length > 0 ? Promise.all(pending).then(() => undefined) : undefined;
    };
    for (const [mime, name] of Object.entries(MIME)) {
        if (Object.hasOwn(display, name)) continue;
        display[name] = (value) => show({ [DISPLAY]: () => ({ [mime]: value }) });
    }
    display.bundle = (bundle) => show({ [DISPLAY]: () => bundle });
    return display;
}

module.exports = { render, makeDisplay };
