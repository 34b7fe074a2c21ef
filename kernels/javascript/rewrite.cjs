'use strict';
/*
 * A cell, as V8's REPL mode takes it.
 *
 * REPL mode gives a cell what a notebook needs: top-level await, names that persist, the value of
 * the last expression. Five things it does not do are done here, on the cell's tokens, so that
 * lines stay where they are:
 *
 *  - A static import is loaded before the cell runs, as in a module, and becomes a declaration of
 *    its names. `import(…)` and `import.meta` go to `$mport`, which is as long, so columns stay.
 *  - `export` means nothing in a cell and is taken away.
 *  - V8 lets a later cell declare a name again only with the same keyword. Top-level `const` is
 *    therefore declared by `let`, unless the cell itself assigns to it: then it stays, and V8
 *    throws what it always throws. A later cell that assigns to the name gets the same error.
 *  - Where `var` or `function` meets `let` or `class` of another cell, V8 refuses before anything
 *    has run, and names the name; the cell is then emitted once more with that declaration changed.
 *  - The cell's own code waits for a sign (evaluate.cjs): `await $mport.begin`.
 */
const { runInThisContext } = require('node:vm');
const { lex } = require('./lexer.cjs');

const ASSIGNS = new Set('= += -= *= /= %= **= <<= >>= >>>= &= |= ^= &&= ||= ??='.split(' '));
/* Punctuators that an expression does not go on with. */
const STARTS = new Set('{ ! ~ ++ -- @ # ;'.split(' '));
const CLOSERS = new Set([')', ']', '}']);
const SIGN = 'await $mport.begin;';
const REFUSAL = 'throw new TypeError("Assignment to constant variable.");';
/* What a statement begins with that is not an expression. */
const STATEMENTS = new Set(
    (
        'break case catch class const continue debugger default do else enum export finally for ' +
        'function if import let return switch throw try var while with'
    ).split(' '),
);

class Rewriter {
    constructor(code, tokens, constants) {
        this.code = code;
        this.tokens = tokens;
        this.constants = constants;
        /* what to replace: { start, end, text } */
        this.edits = [];
        this.holds = [];
        this.imports = [];
        this.declarations = [];
        this.refusals = [];
        /* the tokens that are declared themselves, and all names that are assigned to */
        this.bound = new Set();
        this.assigned = null;
    }

    text(i) {
        const token = this.tokens[i];
        return token === undefined ? '' : this.code.slice(token.start, token.end);
    }

    is(i, text) {
        const kind = this.tokens[i]?.kind;
        return (kind === 'name' || kind === 'punctuator') && this.text(i) === text;
    }

    isName(i) {
        return this.tokens[i]?.kind === 'name';
    }

    isString(i) {
        return this.tokens[i]?.kind === 'string';
    }

    /* What a string literal says. */
    value(i) {
        const text = this.text(i);
        return text.includes('\\') ? runInThisContext(text) : text.slice(1, -1);
    }

    startsStatement(i) {
        const token = this.tokens[i];
        if (token.depth !== 0 || CLOSERS.has(this.text(i))) return false;
        if (i === 0 || this.is(i - 1, ';')) return true;
        const { operand } = this.tokens[i - 1];
        if (this.is(i - 1, '}') && !operand) return true;
        return token.line && operand && !this.continues(i);
    }

    /* Whether an expression goes on with this token on a new line. */
    continues(i) {
        const { kind } = this.tokens[i];
        if (kind === 'punctuator') return !STARTS.has(this.text(i));
        return kind === 'template' || this.is(i, 'in') || this.is(i, 'instanceof');
    }

    isProperty(i) {
        return this.is(i - 1, '.') || this.is(i - 1, '?.');
    }

    replace(from, to, text) {
        this.edits.push({ start: this.tokens[from].start, end: this.tokens[to].end, text });
    }

    scan() {
        let last = -1;
        for (let i = 0; i < this.tokens.length; i++) {
            const starts = this.startsStatement(i);
            if (starts && !this.is(i, ';')) last = i;
            if (this.isName(i) && this.text(i) === 'import' && !this.isProperty(i))
                i = this.import(i);
            else if (starts && this.is(i, 'export')) i = this.export(i);
            else if (starts) this.statement(i);
        }
        if (last >= 0) this.last(last);
    }

    /* -> the last token it took */
    import(i) {
        const dynamic = this.is(i + 1, '(') ? !this.isMethod(i) : this.isMeta(i);
        if (dynamic) this.replace(i, i, '$mport');
        else if (this.startsStatement(i)) return this.staticImport(i);
        return i;
    }

    isMeta(i) {
        return this.is(i + 1, '.') && this.is(i + 2, 'meta');
    }

    /* `import() {}` in a class or an object is a method of that name. */
    isMethod(i) {
        const depth = this.tokens[i].depth;
        let end = i + 2;
        while (end < this.tokens.length && this.tokens[end].depth > depth) end++;
        return this.is(end + 1, '{') && !this.tokens[end + 1].line;
    }

    staticImport(i) {
        const bindings = [];
        let at = i + 1;
        if (!this.isString(at)) {
            at = this.importClause(at, bindings);
            if (at < 0 || !this.is(at, 'from') || !this.isString(at + 1)) return i;
            at++;
        }
        const end = this.importEnd(at);
        const index = this.imports.length;
        this.imports.push({
            source: this.value(at),
            attributes: this.attributes(at, end),
            names: bindings.map(([name]) => name).filter((name) => name !== '*'),
            offset: this.tokens[i].start,
        });
        this.declareImport(i, end, index, bindings);
        return end;
    }

    /* `a, {b as c}`, `* as d`: pairs of the exported name and the local one. -> what follows */
    importClause(at, bindings) {
        if (this.isName(at)) {
            bindings.push(['default', this.text(at++)]);
            if (!this.is(at, ',')) return at;
            at++;
        }
        if (this.is(at, '*')) {
            if (!this.is(at + 1, 'as') || !this.isName(at + 2)) return -1;
            bindings.push(['*', this.text(at + 2)]);
            return at + 3;
        }
        if (!this.is(at, '{')) return -1;
        for (at++; !this.is(at, '}');) {
            if (!this.isName(at) && !this.isString(at)) return -1;
            const name = this.isString(at) ? this.value(at) : this.text(at);
            let local = this.text(at++);
            if (this.is(at, 'as') && this.isName(at + 1)) {
                local = this.text(at + 1);
                at += 2;
            }
            bindings.push([name, local]);
            if (this.is(at, ',')) at++;
            else if (!this.is(at, '}')) return -1;
        }
        return at + 1;
    }

    /* The last token of a statement whose module's name is at `at`. */
    importEnd(at) {
        if ((this.is(at + 1, 'with') || this.is(at + 1, 'assert')) && this.is(at + 2, '{')) {
            at += 2;
            while (at < this.tokens.length - 1 && !this.is(at, '}')) at++;
        }
        return this.is(at + 1, ';') ? at + 1 : at;
    }

    attributes(at, end) {
        const found = {};
        for (let i = at + 1; i <= end; i++)
            if (this.is(i, ':') && this.isString(i + 1))
                found[this.isString(i - 1) ? this.value(i - 1) : this.text(i - 1)] = this.value(
                    i + 1,
                );
        return found;
    }

    declareImport(from, to, index, bindings) {
        const { start, end } = this.span(from, to);
        const lines = this.code.slice(start, end).replace(/[^\n]+/g, '');
        const parts = [];
        const named = bindings.filter(([name]) => name !== '*');
        const whole = bindings.find(([name]) => name === '*');
        const module = (id) => `$mport.module(${id}, ${index})`;
        if (whole !== undefined) parts.push((id) => `${whole[1]} = ${module(id)}`);
        if (named.length > 0) {
            const names = named.map(([name, local]) => `${JSON.stringify(name)}: ${local}`);
            parts.push((id) => `{${names.join(', ')}} = ${module(id)}`);
        }
        const names = new Set(bindings.map(([, local]) => local));
        this.declarations.push({ keyword: 'import', start, end, names, lines, parts });
    }

    span(from, to) {
        return { start: this.tokens[from].start, end: this.tokens[to].end };
    }

    /* -> the last token it took */
    export(i) {
        if (this.is(i + 1, 'default')) return this.exportDefault(i);
        if (!this.is(i + 1, '{') && !this.is(i + 1, '*')) {
            this.replace(i, i, '      ');
            if (i + 1 < this.tokens.length) this.statement(i + 1);
            return i + 1;
        }
        let at = i + 1;
        while (this.tokens[at]?.depth > 0 || this.is(at, '{') || this.is(at, '*')) at++;
        if (this.is(at, 'as')) at += 2;
        if (this.is(at, '}') && this.is(at + 1, 'from')) at++;
        if (this.is(at, 'from') && this.isString(at + 1)) {
            const offset = this.tokens[i].start;
            this.imports.push({ source: this.value(at + 1), attributes: {}, names: [], offset });
            at = this.importEnd(at + 1);
        } else if (this.is(at + 1, ';')) at++;
        if (at >= this.tokens.length) return i;
        const { start, end } = this.span(i, at);
        this.edits.push({ start, end, text: this.code.slice(start, end).replace(/[^\n]+/g, ';') });
        return at;
    }

    /* A named function or class is declared, anything else is a value. */
    exportDefault(i) {
        const word = this.is(i + 2, 'async') ? i + 3 : i + 2;
        const name = this.is(word + 1, '*') ? word + 2 : word + 1;
        const declares = this.is(word, 'function') || this.is(word, 'class');
        if (declares && this.isName(name) && !this.is(name, 'extends')) {
            this.replace(i, i + 1, '');
            this.statement(i + 2);
            return i + 2;
        }
        this.replace(i, i + 1, '0,');
        return i + 1;
    }

    /* What a top-level statement declares, and whether it assigns to a constant of before. */
    statement(i) {
        const word = this.text(i);
        const { start, end } = this.tokens[i];
        if (word === 'const' || word === 'let' || word === 'var') {
            if (!this.isName(i + 1) && !this.is(i + 1, '{') && !this.is(i + 1, '[')) return;
            const names = this.patternNames(i + 1);
            const sole = this.isName(i + 1) && this.is(i + 2, '=') ? this.text(i + 1) : null;
            const empty = this.isName(i + 1) && !this.is(i + 2, '=') ? this.tokens[i + 1].end : -1;
            this.declarations.push({ keyword: word, start, end, names, sole, empty });
        } else if (word === 'class' && this.isName(i + 1)) {
            this.declareBody(i, i + 1, 'class');
        } else if (word === 'function' || (word === 'async' && this.is(i + 1, 'function'))) {
            const at = word === 'async' ? i + 2 : i + 1;
            this.declareBody(i, this.is(at, '*') ? at + 1 : at, 'function');
        } else if (this.constants.size > 0) {
            this.assignment(i);
        }
    }

    declareBody(i, name, keyword) {
        const { start } = this.tokens[i];
        const names = new Set([this.text(name)]);
        this.declarations.push({ keyword, start, end: start, names, body: this.bodyEnd(name + 1) });
    }

    /* The names a statement's patterns declare: those of defaults and keys too, never fewer. */
    patternNames(i) {
        const names = new Set();
        let pattern = true;
        for (let at = i; at < this.tokens.length; at++) {
            if (at > i && (this.startsStatement(at) || this.is(at, ';'))) break;
            if (this.tokens[at].depth === 0 && this.is(at, '=')) pattern = false;
            else if (this.tokens[at].depth === 0 && this.is(at, ',')) pattern = true;
            if (!pattern || !this.isName(at)) continue;
            names.add(this.text(at));
            this.bound.add(at);
        }
        return names;
    }

    /* Where the body of a function or class ends whose head goes on at i. */
    bodyEnd(i) {
        for (let at = i; at < this.tokens.length; at++)
            if (this.tokens[at].depth === 0 && this.is(at, '}') && !this.tokens[at].operand)
                return this.tokens[at].end;
        return this.code.length;
    }

    assignment(i) {
        const prefix = this.is(i, '++') || this.is(i, '--');
        const at = prefix ? i + 1 : i;
        if (!this.isName(at) || !this.constants.has(this.text(at))) return;
        const next = this.text(at + 1);
        const postfix = (next === '++' || next === '--') && !this.tokens[at + 1].line;
        if (!prefix && !postfix && !ASSIGNS.has(next)) return;
        this.refusals.push({ name: this.text(at), start: this.tokens[i].start });
    }

    /* Has the value of the last statement held, if that is an expression. */
    last(start) {
        let end = this.tokens.length - 1;
        while (end > start && this.is(end, ';')) end--;
        const word = this.text(start);
        const isName = this.isName(start);
        if (this.is(start, '{') || this.is(start, ';') || this.is(start, '@')) return;
        const isImport = word === 'import' && (this.is(start + 1, '(') || this.is(start + 1, '.'));
        const isStatement = STATEMENTS.has(word) && !isImport;
        if (isName && (isStatement || this.is(start + 1, ':'))) return;
        if (word === 'async' && this.is(start + 1, 'function')) return;
        const { start: from, end: to } = this.span(start, end);
        this.holds.push({ start: from, end: from, text: (id) => `$mport.hold(${id},(` });
        this.holds.push({ start: to, end: to, text: '))' });
    }

    /* Where its code begins: after directives (`"use strict"`), which only count if they come first. */
    beginning() {
        let i = 0;
        while (this.isString(i) && this.tokens[i + 1] !== undefined) {
            const ends = this.is(i + 1, ';');
            if (!ends && !this.startsStatement(i + 1)) break;
            i += ends ? 2 : 1;
        }
        return (this.tokens[i] ?? this.tokens[0])?.start ?? this.code.length;
    }

    /* Whether the cell assigns to one of these names anywhere. */
    assigns(names) {
        if (this.assigned === null) {
            this.assigned = new Set();
            for (let i = 0; i < this.tokens.length; i++) {
                if (!this.isName(i) || this.isProperty(i) || this.bound.has(i)) continue;
                const next = this.tokens[i + 1]?.kind === 'punctuator' ? this.text(i + 1) : '';
                const before = this.is(i - 1, '++') || this.is(i - 1, '--');
                if (before || next === '++' || next === '--' || ASSIGNS.has(next))
                    this.assigned.add(this.text(i));
            }
        }
        for (const name of names) if (this.assigned.has(name)) return true;
        return false;
    }

    /* The edits that make a declaration with this keyword of what it is in the cell. */
    declare(declaration, keyword) {
        const { start, end, names, body, empty, lines, parts } = declaration;
        switch (declaration.keyword) {
            case 'import': {
                const text = (id) =>
                    `${keyword} ${parts.map((part) => part(id)).join(', ')};${lines}`;
                return [{ start, end, text: parts.length > 0 ? text : `;${lines}` }];
            }
            case 'class':
            case 'function':
                if (keyword === declaration.keyword) return [];
                return [
                    { start, end, text: `${keyword} ${[...names][0]} = ` },
                    { start: body, end: body, text: ';' },
                ];
            default: {
                const edits = [{ start, end, text: keyword.padEnd(end - start) }];
                /* `let x;` makes it undefined; `var x;` alone would leave what it was. */
                if (declaration.keyword === 'let' && keyword !== 'let' && empty > 0)
                    edits.push({ start: empty, end: empty, text: ' = undefined' });
                return edits;
            }
        }
    }
}

/* The keywords to declare with, one after the other, as long as V8 refuses. */
const WAYS = {
    constant: ['let', 'const', 'var'],
    const: ['const', 'let', 'var'],
    let: ['let', 'var', 'const'],
    import: ['let', 'var', 'const'],
    class: ['class', 'var', 'const'],
    function: ['function', 'let', 'const'],
    var: ['var', 'let', 'const'],
};

class Cell {
    /* `constants`: the names that earlier cells declared by const. */
    constructor(code, constants) {
        this.code = code;
        const tokens = lex(code);
        this.rewriter = null;
        this.emitted = [];
        /* without holding the last value: V8 is to see, and to judge, the cell itself */
        this.bare = false;
        this.taken = new Map();
        this.imports = [];
        if (tokens === null) return;
        this.rewriter = new Rewriter(code, tokens, constants);
        this.rewriter.scan();
        this.imports = this.rewriter.imports;
    }

    /* V8 refused to declare `name`. -> whether there is another way to emit the cell. */
    refused(name) {
        const tries = (this.taken.get(name) ?? 0) + 1;
        this.taken.set(name, tries);
        if (tries >= WAYS.let.length || this.rewriter === null) return false;
        return this.rewriter.declarations.some(({ names }) => names.has(name));
    }

    /* The text for V8; `id` is what its imports are kept under. */
    emit(id) {
        const sign = (start) => ({ start, end: start, text: SIGN });
        if (this.rewriter === null) return this.apply([sign(hashbang(this.code))], id);
        const { declarations, refusals } = this.rewriter;
        const edits = [sign(this.rewriter.beginning())];
        const declared = new Set(declarations.flatMap(({ names }) => [...names]));
        for (const { name, start } of refusals)
            if (!declared.has(name)) edits.push({ start, end: start, text: REFUSAL });
        if (!this.bare) edits.push(...this.rewriter.holds);
        edits.push(...this.rewriter.edits);
        for (const declaration of declarations)
            edits.push(...this.rewriter.declare(declaration, this.keyword(declaration)));
        /* What is put in before something comes before what replaces it; else the order stays. */
        edits.sort((a, b) => a.start - b.start || (a.end > a.start) - (b.end > b.start));
        return this.apply(edits, id);
    }

    apply(edits, id) {
        const pieces = [];
        this.emitted = [];
        let at = 0;
        for (const { start, end, text } of edits) {
            const piece = typeof text === 'string' ? text : text(id);
            pieces.push(this.code.slice(at, start), piece);
            this.emitted.push({ start, end, length: piece.length });
            at = end;
        }
        return pieces.join('') + this.code.slice(at);
    }

    /* The place in the cell of one in what was emitted last; lines and columns from 0. */
    locate(text, line, column) {
        const at = offsetOf(text, line, column);
        let added = 0;
        for (const { start, end, length } of this.emitted) {
            if (at < start + added) break;
            if (at < start + added + length) return placeOf(this.code, start);
            added += length - (end - start);
        }
        return placeOf(this.code, at - added);
    }

    keyword({ keyword, names, empty }) {
        const tries = Math.max(0, ...[...names].map((name) => this.taken.get(name) ?? 0));
        const free = keyword === 'const' && empty < 0 && !this.rewriter.assigns(names);
        return WAYS[free ? 'constant' : keyword][tries];
    }

    /* Keeps `constants` up with what this cell has declared. */
    settle(constants) {
        for (const { keyword, names, sole } of this.rewriter?.declarations ?? []) {
            if (keyword === 'const' && sole !== null) constants.add(sole);
            else for (const name of names) constants.delete(name);
        }
    }
}

/* The length of a first line that is none of the code. */
function hashbang(code) {
    return code.startsWith('#!') ? code.indexOf('\n') + 1 || code.length : 0;
}

function offsetOf(text, line, column) {
    let at = 0;
    for (; line > 0; line--) {
        const end = text.indexOf('\n', at);
        if (end < 0) break;
        at = end + 1;
    }
    return at + column;
}

function placeOf(text, at) {
    const before = text.slice(0, at).split('\n');
    return [before.length - 1, before.at(-1).length];
}

module.exports = { Cell };
