'use strict';
/*
 * The control socket: packets to the agent (kernels/README.md). One write is one packet.
 *
 * A socket that is gone, or is another file now because the cell closed it, ends the kernel: the
 * agent then starts a new one. It ends by a signal, since exit() would wait for the thread that
 * reads.
 */
const { fstatSync, writeSync } = require('node:fs');

const CONTROL = 3;
const PACKET_MAX = 64 << 10;

/* The cell may change its own. */
const { alloc, concat, from } = Buffer;
const { kill, pid } = process;

let identity = null;
/* A result may have begun. An interrupt may keep it from being sent to its end, or from being known to
 * have ended: an end too many is no harm. */
let open = false;

function sameSocket() {
    const { dev, ino } = fstatSync(CONTROL);
    identity ??= { dev, ino };
    return dev === identity.dev && ino === identity.ino;
}

function die() {
    kill.call(process, pid, 'SIGKILL');
}

function write(packet) {
    for (;;) {
        try {
            writeSync(CONTROL, packet);
            return;
        } catch (error) {
            if (error.code !== 'EAGAIN' && error.code !== 'EINTR') die();
        }
    }
}

function number(kind, value) {
    const packet = alloc(5);
    packet.write(kind, 'latin1');
    packet.writeUInt32LE(value, 1);
    return packet;
}

/* Pieces end between characters, so that each is UTF-8 by itself. */
function field(kind, key, text) {
    const head = from(`${kind}${key}\0`);
    const bytes = from(text);
    const room = PACKET_MAX - head.length;
    let at = 0;
    do {
        let end = Math.min(at + room, bytes.length);
        while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end--;
        write(concat([head, bytes.subarray(at, end)]));
        at = end;
    } while (at < bytes.length);
}

function sendReady() {
    sameSocket();
    write(from('Q'));
}

/* `kind`: m, d or e. */
function sendResult(kind, fields) {
    closeResult();
    open = true;
    write(from(`R${kind}`));
    for (const [key, value] of Object.entries(fields)) {
        if (typeof value === 'string') field('T', key, value);
        else field('J', key, value.json);
    }
    closeResult();
}

function closeResult() {
    if (open) write(from('r'));
    open = false;
}

function sendFinished(cell) {
    try {
        if (!sameSocket()) die();
    } catch {
        die();
    }
    closeResult();
    write(number('F', cell));
}

module.exports = { die, sendReady, sendResult, sendFinished };
