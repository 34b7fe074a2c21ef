/*
 * A kernel under test: the real program, on a real control socket (bridge.py).
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const BRIDGE = fileURLToPath(new URL('bridge.py', import.meta.url));
export const MAIN = fileURLToPath(new URL('../main.mjs', import.meta.url));
const DEADLINE_MS = 30_000;
const KEPT_MAX = 64 << 20;

export class Kernel {
    /* -> a kernel that is ready */
    static async start(language = 'javascript', { env = process.env, cwd } = {}) {
        const kernel = new Kernel(language, env, cwd);
        await kernel.until(() => kernel.ready);
        return kernel;
    }

    constructor(language, env, cwd) {
        this.child = spawn('python3', [BRIDGE, process.execPath, MAIN, language], {
            stdio: ['pipe', 'pipe', 'inherit'],
            env,
            cwd,
        });
        this.number = 0;
        this.ready = false;
        this.status = null;
        this.wake = () => {};
        this.open = null;
        this.reset();
        createInterface({ input: this.child.stdout }).on('line', (line) => {
            this.take(JSON.parse(line));
            this.wake();
        });
    }

    reset() {
        this.stdout = '';
        this.stderr = '';
        this.bytes = 0;
        /* what came, in order: [stream, text] or [kind, fields] */
        this.log = [];
        this.results = [];
        this.finished = null;
        this.packets = [];
    }

    take(event) {
        for (const stream of ['stdout', 'stderr']) {
            if (!(stream in event)) continue;
            const bytes = Buffer.from(event[stream], 'base64');
            this.bytes += bytes.length;
            if (this.bytes > KEPT_MAX) continue;
            const text = bytes.toString();
            this[stream] += text;
            this.log.push([stream, text]);
        }
        if ('exit' in event) this.status = event.exit;
        if ('packet' in event) this.packet(Buffer.from(event.packet, 'base64'));
    }

    packet(packet) {
        const kind = String.fromCharCode(packet[0]);
        const payload = packet.subarray(1);
        this.packets.push({ kind, size: packet.length });
        if (kind === 'Q') this.ready = true;
        else if (kind === 'F') this.finished = payload.readUInt32LE(0);
        else if (kind === 'R') this.open = { kind: payload.toString(), fields: {} };
        else if (kind === 'T' || kind === 'J') this.field(kind, payload);
        else if (kind === 'r') this.close();
        else throw new Error(`unknown packet ${kind}`);
    }

    field(kind, payload) {
        const at = payload.indexOf(0);
        const key = payload.subarray(0, at).toString();
        const known = this.open.fields[key];
        const piece = payload.subarray(at + 1).toString();
        this.open.fields[key] = known === undefined ? piece : known + piece;
        this.open.json ??= new Set();
        if (kind === 'J') this.open.json.add(key);
    }

    close() {
        if (this.open === null) return;
        const { kind, fields, json } = this.open;
        for (const key of json ?? []) fields[key] = JSON.parse(fields[key]);
        this.results.push({ kind, ...fields });
        this.log.push([kind, fields]);
        this.open = null;
    }

    /* Waits for something; a kernel that ends instead is an error, unless that is waited for. */
    async until(condition) {
        const end = Date.now() + DEADLINE_MS;
        while (!condition()) {
            if (this.status !== null) throw new Error(`the kernel ended: ${this.status}`);
            const left = end - Date.now();
            if (left <= 0) throw new Error(`nothing came; stderr: ${this.stderr.slice(-2000)}`);
            await new Promise((resolve) => {
                const timer = setTimeout(resolve, left);
                this.wake = () => {
                    clearTimeout(timer);
                    resolve();
                };
            });
        }
    }

    order(order) {
        this.child.stdin.write(`${JSON.stringify(order)}\n`);
    }

    send(kind, payload) {
        const packet = Buffer.concat([Buffer.from(kind), Buffer.from(payload)]);
        this.order({ send: packet.toString('base64') });
    }

    /* Sends a cell, and does not wait for it. */
    begin(code, { env = {} } = {}) {
        this.reset();
        for (const [key, value] of Object.entries(env)) this.send('V', `${key}=${value}`);
        const bytes = Buffer.from(code);
        let at = 0;
        for (; bytes.length - at > 65536; at += 65536)
            this.send('C', bytes.subarray(at, at + 65536));
        const number = Buffer.alloc(4);
        number.writeUInt32LE(++this.number);
        this.send('X', Buffer.concat([number, bytes.subarray(at)]));
    }

    /* -> { stdout, stderr, results, text, error } */
    async end() {
        await this.until(() => this.finished === this.number);
        const main = this.results.find(({ kind }) => kind === 'm');
        const error = this.results.find(({ kind }) => kind === 'e');
        const { stdout, stderr, bytes, results, log } = this;
        return { stdout, stderr, bytes, results, log, main, text: main?.text, error };
    }

    async run(code, options) {
        this.begin(code, options);
        return this.end();
    }

    interrupt() {
        this.order({ signal: 2 });
    }

    /* Stops threads between a signal and what Node knows of it: bridge.py. */
    hold(what) {
        this.order({ hold: what });
    }

    release() {
        this.order({ hold: null });
    }

    /* -> how it ended */
    async ended() {
        while (this.status === null) await this.until(() => this.status !== null);
        return this.status;
    }

    stop() {
        this.child.stdin.end();
    }
}
