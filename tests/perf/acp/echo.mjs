// The same in Node, for the part that a real agent's runtime has: one line in, the same line out.
import readline from 'node:readline'

readline.createInterface({ input: process.stdin }).on('line', (line) => process.stdout.write(`${line}\n`))
