// A conversation as a tree: each path is a list of turns, and a new path begins with some of another's.
// A turn is what the user said, and all that came of it until the answer.

export class Conversation {
  paths = new Map([['main', []]])
  current = 'main'

  constructor(id) {
    this.id = id
  }

  get turns() {
    return this.paths.get(this.current)
  }

  // What a model is shown: the current path from its beginning.
  get messages() {
    return this.turns.flat()
  }

  say(text) {
    this.turns.push([{ role: 'user', content: [{ type: 'text', text }] }])
  }

  add(role, content) {
    this.turns.at(-1).push({ role, content })
  }

  has(path) {
    return this.paths.has(path)
  }

  // A new path that shares the first n turns with this one.
  branch(name, n) {
    this.paths.set(name, this.turns.slice(0, n).map((turn) => [...turn]))
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
