// A real terminal for programs that want one: a shell in tmux, with a server and a socket of its own.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { assert, eventually, KEY } from './lib.mjs'

// A home of their own for programs that keep settings there, and nothing of the caller's surroundings.
export const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sandglass-e2e-home.'))
process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }))

export const surroundings = {
  PATH: process.env.PATH,
  HOME: home,
  XDG_CONFIG_HOME: home,
  TMUX_TMPDIR: home,
  LC_ALL: 'C.UTF-8',
  NO_UPDATE_NOTIFIER: '1',
  E2B_API_KEY: KEY,
  E2B_API_URL: process.env.E2B_API_URL,
  E2B_SANDBOX_URL: process.env.E2B_SANDBOX_URL,
}

let count = 0

export class Terminal {
  constructor({ cols = 200, rows = 50 } = {}) {
    this.socket = `sandglass-e2e-${process.pid}-${count++}`
    this.from = 0
    // Without HISTFILE a shell that is ended writes into the home while that is being removed.
    const env = { ...surroundings, PS1: 'ready> ', TERM: 'xterm-256color', HISTFILE: '' }
    const shell = ['bash', '--norc', '--noprofile']
    execFileSync('tmux', ['-L', this.socket, '-f', '/dev/null', 'new-session', '-d', '-x', cols, '-y', rows, ...shell].map(String), { env })
    this.tmux('set-option', '-g', 'history-limit', '5000')
  }

  tmux(...args) {
    return execFileSync('tmux', ['-L', this.socket, ...args.map(String)], { env: surroundings, encoding: 'utf8' })
  }

  // Everything that was shown, long lines in one.
  screen() {
    return this.tmux('capture-pane', '-p', '-J', '-S', '-')
  }

  type(text) {
    this.tmux('send-keys', '-l', text)
    this.tmux('send-keys', 'Enter')
  }

  press(...keys) {
    this.tmux('send-keys', ...keys)
  }

  resize(cols, rows) {
    this.tmux('resize-window', '-x', cols, '-y', rows)
  }

  async shows(pattern, seconds = 20) {
    let screen
    const found = await eventually(`the terminal shows ${pattern}`, () => {
      screen = this.screen()
      return screen.match(pattern)
    }, seconds).catch((err) => assert.fail(`${err.message}\n${screen.trimEnd().slice(-1500)}`))
    return found
  }

  // Runs a command to its end: what it showed, and its status.
  async run(command, seconds = 20) {
    this.tmux('send-keys', 'C-l')
    this.tmux('clear-history')
    const mark = `end-${count++}`
    this.type(`clear; ${command}; echo "${mark.slice(0, 3)}""${mark.slice(3)} $?"`)
    const found = await this.shows(new RegExp(`^((?:.*\\n)*)${mark} (\\d+)$`, 'm'), seconds)
    return { shown: found[1], status: Number(found[2]) }
  }

  end() {
    try {
      this.tmux('kill-server')
    } catch {}
  }
}
