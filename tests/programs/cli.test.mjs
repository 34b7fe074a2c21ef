// E2B's command line: the verbs that tests/e2e/cli.test.mjs, which runs in `make test`, does not have.
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { assert, mine, modules, require, run, same, Sandbox, test, TOP, unique } from '../e2e/lib.mjs'

const { Template } = require('e2b')
const CLI = path.join(modules, 'node_modules/.bin/e2b')
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sandglass-cli.'))
process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }))
fs.symlinkSync(path.join(modules, 'node_modules'), path.join(home, 'node_modules'))
const name = `cli-${unique()}`

function e2b(...args) {
  return new Promise((resolve) => {
    const child = execFile(CLI, args, { cwd: home, env: { ...process.env, HOME: home }, timeout: 60_000 }, (err, stdout, stderr) =>
      resolve({ status: err ? (err.code ?? -1) : 0, told: stdout + stderr }))
    child.stdin.end()
  })
}

async function works(...args) {
  const { status, told } = await e2b(...args)
  same(status, 0, `e2b ${args.join(' ')}: ${told}`)
  return told
}

const listed = async () => JSON.parse(await works('template', 'list', '--format', 'json')).find((t) => t.aliases.includes(name))
const build = async (folder, as) => Template.build((await import(pathToFileURL(path.join(home, folder, 'template.ts')))).template, { alias: as })

test('template create: a Dockerfile, built and used', async () => {
  fs.writeFileSync(path.join(home, 'e2b.Dockerfile'), 'FROM e2bdev/base\nRUN echo of the file > /made\nENV COLOUR=blue\n')
  assert.match(await works('template', 'create', name, '-d', 'e2b.Dockerfile'), new RegExp(`${name} finished`))
  const sandbox = mine(await Sandbox.create(name))
  same((await sandbox.commands.run('cat /made; echo $COLOUR')).stdout, 'of the file\nblue\n')
  assert.ok(await listed())
})

test('template publish, and back', async () => {
  await works('template', 'publish', name, '-y')
  same((await listed()).public, true)
  await works('template', 'unpublish', name, '-y')
  same((await listed()).public, false)
})

test('template init: what it writes is built', async () => {
  await works('template', 'init', '-n', 'begun', '-l', 'typescript')
  await build('begun', `${name}-begun`)
  await works('template', 'delete', `${name}-begun`, '-y')
})

test('template migrate: a Dockerfile becomes a program, which builds the same', async () => {
  await works('template', 'migrate', '-n', 'moved', '-l', 'typescript')
  await build('.', `${name}-moved`)
  const sandbox = mine(await Sandbox.create(`${name}-moved`))
  same((await sandbox.commands.run('cat /made; echo $COLOUR')).stdout, 'of the file\nblue\n')
  await works('template', 'delete', `${name}-moved`, '-y')
})

test('template delete', async () => {
  await works('template', 'delete', name, '-y')
  same(await listed(), undefined)
})

test('auth: nobody is logged in, and a key is all that is needed', async () => {
  assert.match(await works('auth', 'info'), /Not logged in/)
  assert.match(await works('auth', 'logout'), /Not logged in/)
  assert.match(await works('auth', 'configure'), /log in first/)
})

test('no verb is without a test', async () => {
  const tests = ['tests/e2e/cli.test.mjs', 'tests/programs/cli.test.mjs'].map((file) => fs.readFileSync(path.join(TOP, file), 'utf8')).join()
  const untried = { auth: ['login'], template: [], sandbox: [] } // a browser
  for (const [noun, without] of Object.entries(untried))
    for (const [, verb] of (await works(noun, '--help')).matchAll(/^ {2}([a-z]+)\|?[a-z]*( [[<]|  |$)/gm))
      if (!['help', ...without].includes(verb)) assert.match(tests, new RegExp(`['"]${noun}['"], ['"]${verb}['"]|${noun} ${verb}`), `e2b ${noun} ${verb}`)
})

await run()
