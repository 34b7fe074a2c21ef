// A PostgreSQL of a test's own: tests/postgres, and what else a test does to a database.
import { execFileSync, spawn } from 'node:child_process'
import path from 'node:path'
import { assert, eventually, TOP, unique } from './lib.mjs'
import { scratch } from './server.mjs'

const SCRIPT = path.join(TOP, 'tests/postgres')

export class Postgres {
  #dir = path.join(scratch, `pg-${unique()}`)

  constructor() {
    this.url = this.#do('start', String(process.pid))
  }

  #do(verb, ...args) {
    return execFileSync(SCRIPT, [verb, this.#dir, ...args], { encoding: 'utf8' }).trim()
  }

  // At once, as if its machine had gone.
  down() {
    this.#do('down')
  }

  up() {
    this.#do('up')
  }

  stop() {
    this.#do('stop')
  }

  sql(text) {
    return this.#do('psql', '-At', '-c', text)
  }

  // Ends all connections of servers.
  disconnect() {
    this.sql("select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'sandglass'")
  }

  // Does something in a transaction that stays open until the function that it gives is called.
  async hold(text) {
    const child = spawn(SCRIPT, ['psql', this.#dir], { stdio: ['pipe', 'pipe', 'pipe'] })
    const ended = new Promise((resolve) => child.on('exit', resolve))
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (d) => { said += d })
    child.stdin.write(`begin;\n${text};\n\\echo held\n`)
    await eventually('the lock is held', () => said.includes('held')).catch((err) => assert.fail(`${err.message}: ${said}`))
    return async () => {
      child.stdin.end('rollback;\n')
      await ended
    }
  }
}
