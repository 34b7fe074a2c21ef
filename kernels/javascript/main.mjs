/*
 * The JavaScript and TypeScript kernel: see kernels/README.md for what it is told and how, and
 * kernel.mjs for how it is made.
 *
 *     node main.mjs javascript|typescript [--once FILE [--results FILE]]
 */
import { parseArgs } from 'node:util';

const USAGE = 'usage: main.mjs javascript|typescript [--once FILE [--results FILE]]\n';

function readArguments() {
    try {
        return parseArgs({
            options: { once: { type: 'string' }, results: { type: 'string' } },
            allowPositionals: true,
        });
    } catch {
        return { positionals: [], values: {} };
    }
}

const { positionals, values } = readArguments();
const [language] = positionals;
if (positionals.length !== 1 || !['javascript', 'typescript'].includes(language)) {
    process.stderr.write(USAGE);
    process.exit(2);
}
const typescript = language === 'typescript' ? await import('./typescript.mjs') : null;
if (values.once === undefined) {
    const { serve } = await import('./kernel.mjs');
    serve(typescript);
} else {
    const { runOnce } = await import('./once.mjs');
    runOnce(typescript, values.once, values.results ?? null);
}
