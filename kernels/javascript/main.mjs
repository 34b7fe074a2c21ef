/*
 * The JavaScript and TypeScript kernel: see kernels/README.md for what it is told and how, and
 * kernel.cjs for how it is made.
 *
 *     node main.mjs javascript|typescript [--once FILE [--results FILE]]
 *
 * The modules are CommonJS, which Node loads in half the time.
 */
import { createRequire } from 'node:module';

const USAGE = 'usage: main.mjs javascript|typescript [--once FILE [--results FILE]]\n';
const LANGUAGES = ['javascript', 'typescript'];

const require = createRequire(import.meta.url);
const [language, once, file, results, out, ...rest] = process.argv.slice(2);
const known = LANGUAGES.includes(language) && rest.length === 0;
const asked = once === '--once' && file !== undefined;
const recorded = results === undefined || (results === '--results' && out !== undefined);

if (!known || (once !== undefined && !(asked && recorded))) {
    process.stderr.write(USAGE);
    process.exitCode = 2;
} else {
    const typescript = language === 'typescript' ? require('./typescript.cjs') : null;
    if (asked) require('./once.cjs').runOnce(typescript, file, out ?? null);
    else require('./kernel.cjs').serve(typescript);
}
