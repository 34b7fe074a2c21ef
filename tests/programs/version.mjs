// The package that PROGRAM names, as `e2b-1.0.1`, and what its version can do.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { modules, require } from '../e2e/lib.mjs'

const NAME = process.env.PROGRAM
const versionIn = (folder) => JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')).version
const before = (a, b) => a.localeCompare(b, 'en', { numeric: true }) < 0

export const sdk = require(NAME)
export const { Sandbox } = sdk
export const version = versionIn(path.join(modules, 'node_modules', NAME))

// An interpreter's package has the SDK of its time beside it.
const ofSdk = () => {
  const entry = createRequire(path.join(modules, 'node_modules', NAME, 'package.json')).resolve('e2b')
  return versionIn(path.dirname(path.dirname(entry)))
}
const sdkVersion = NAME.startsWith('e2b-') ? version : ofSdk()
export const since = (wanted) => !before(sdkVersion, wanted)

// Every sandbox of the tenant: a list until 2.0, then pages.
export async function listAll() {
  const told = await Sandbox.list()
  if (Array.isArray(told)) return told
  const all = []
  while (told.hasNext) all.push(...(await told.nextItems()))
  return all
}
