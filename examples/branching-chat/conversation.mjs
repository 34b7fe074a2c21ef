// A conversation as a tree: each path is a list of turns, and a new path begins with some of another's.
// A turn is what the user said, and all that came of it until the answer. It has an id, by which Sandglass
// knows the state that the path's sandbox had before it.
import crypto from 'node:crypto'

export class Conversation {
  paths = new Map([['main', []]])
  current = 'main'

  constructor(id) {
    this.id = id
  }

  get turns() {
    return this.paths.get(this.current)
  }

  get turn() {
    return this.turns.at(-1)
  }

  // What a model is shown: the current path from its beginning.
  get messages() {
    return this.turns.flatMap((turn) => turn.messages)
  }

  // `path` is where it was said: those that begin with it later have it from there.
  say(text) {
    this.turns.push({ id: `turn-${crypto.randomUUID()}`, path: this.current, ran: false, messages: [] })
    this.add('user', [{ type: 'text', text }])
  }

  add(role, content) {
    this.turn.messages.push({ role, content })
  }

  // The first turn from the nth on that ran code: before it the sandbox was what it was before turn n.
  // None: it is that still.
  firstThatRan(n) {
    return this.turns.slice(n - 1).find((turn) => turn.ran)
  }

  has(path) {
    return this.paths.has(path)
  }

  // A new path that shares the first n turns with this one.
  branch(name, n) {
    this.paths.set(name, this.turns.slice(0, n))
    this.current = name
  }

  // Forgets turn n and those after it. The path stays the same path.
  rewind(n) {
    this.turns.length = n - 1
  }

  drop(path) {
    this.paths.delete(path)
  }
}
