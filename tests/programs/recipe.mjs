// The programs of examples/integrations, which docs/integrations.md shows, each as its reader would run it: in a folder of its own,
// with its packages installed, and nothing set but variables.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { modules, TOP } from '../e2e/lib.mjs'

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sandglass-recipe.'))
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }))
fs.symlinkSync(path.join(modules, 'node_modules'), path.join(folder, 'node_modules'))

// Runs it to its end: { status, out, err }.
export function recipe(name, { env = {}, args = [], input = '' } = {}) {
  fs.copyFileSync(path.join(TOP, 'examples/integrations', name), path.join(folder, name))
  const child = spawn('node', [name, ...args], { cwd: folder, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'], timeout: 120_000 })
  const ran = { out: '', err: '' }
  child.stdout.on('data', (d) => { ran.out += d })
  child.stderr.on('data', (d) => { ran.err += d })
  child.stdin.end(input)
  return new Promise((resolve) => child.on('close', (code, signal) => resolve({ ...ran, status: code ?? signal })))
}
