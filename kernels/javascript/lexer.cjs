'use strict';
/*
 * The tokens of a piece of JavaScript.
 *
 * V8 parses the cells; what it cannot do is to take an `import` in a script, and to declare a name
 * again with another keyword. For these a cell is rewritten (rewrite.cjs), and for that one has to
 * know where code is and where strings, templates, comments and regular expressions are. Nothing
 * more is understood here. What cannot be read gives null: then V8 gets the cell as it is, and says
 * what is wrong with it.
 *
 * The one hard question is whether a slash divides. It does if the token before ends an operand,
 * and for `)` and `}` that depends on what they close, so open brackets are kept on a stack.
 */

const NAME = /(?:[\p{ID_Continue}$\u200c\u200d]|\\u(?:\{[\da-fA-F]+\}|[\da-fA-F]{4}))+/uy;
const NAME_START = /[\p{ID_Start}$_\\]/u;
/* The same without the tables of Unicode, which take a millisecond to set up. */
const PLAIN_NAME = /[\w$]+/y;
const PLAIN_START = /[A-Za-z$_]/;
const NUMBER = /0[xXoObB][\da-fA-F_]+n?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?n?/y;
const PUNCTUATOR = new RegExp(
    '>>>=|\\.\\.\\.|===|!==|\\*\\*=|<<=|>>=|>>>|&&=|\\|\\|=|\\?\\?=|=>|==|!=|<=|>=|&&|\\|\\||' +
        '\\?\\?|\\?\\.(?!\\d)|\\+\\+|--|\\+=|-=|\\*=|/=|%=|&=|\\|=|\\^=|<<|>>|\\*\\*|' +
        '[{}()[\\];,<>+\\-*/%&|^!~?:=.@#]',
    'y',
);
const REST_OF_LINE = /[^\n\r\u2028\u2029]+/y;
const SPACE = /[^\S\n\r\u2028\u2029]+/y;

/* Keywords after which an operand comes. */
const BEFORE_OPERAND = new Set(
    (
        'return typeof case do else in instanceof new void delete throw yield await default ' +
        'extends'
    ).split(' '),
);
const CONTROL = new Set(['if', 'while', 'for', 'with']);
const BEFORE_BLOCK = new Set(['else', 'do', 'try', 'finally']);
const DECLARES = new Set(['const', 'let', 'var']);
const CLOSES = { ')': '(', ']': '[', '}': '{' };

const TOKENS_MAX = 2_000_000;

/* kind: name, number, string, template, regex, punctuator. `operand`: it ends one. `line`: a line
 * end comes before it. `depth`: of the brackets around it. */
class Lexer {
    constructor(code) {
        this.code = code;
        this.at = 0;
        this.line = false;
        this.tokens = [];
        this.open = [];
    }

    last(back = 1) {
        return this.tokens[this.tokens.length - back];
    }

    is(token, text) {
        return token !== undefined && this.text(token) === text;
    }

    text(token) {
        return this.code.slice(token.start, token.end);
    }

    push(kind, end, operand) {
        const depth = this.open.length;
        this.tokens.push({ kind, start: this.at, end, operand, line: this.line, depth });
        this.at = end;
        this.line = false;
        return this.tokens.length <= TOKENS_MAX;
    }

    match(pattern) {
        pattern.lastIndex = this.at;
        return pattern.test(this.code) ? pattern.lastIndex : -1;
    }

    run() {
        if (this.code.startsWith('#!')) this.skipLine();
        while (this.skip()) {
            if (this.at >= this.code.length) return this.open.length === 0;
            if (!this.token()) return false;
        }
        return false;
    }

    /* White space and comments; false if a comment does not end. */
    skip() {
        for (;;) {
            const c = this.code[this.at];
            if (c === '\n' || c === '\r' || c === '\u2028' || c === '\u2029') {
                this.line = true;
                this.at++;
            } else if (c === '/' && this.code[this.at + 1] === '/') {
                this.skipLine();
            } else if (c === '/' && this.code[this.at + 1] === '*') {
                const end = this.code.indexOf('*/', this.at + 2);
                if (end < 0) return false;
                if (/[\n\r\u2028\u2029]/.test(this.code.slice(this.at, end))) this.line = true;
                this.at = end + 2;
            } else {
                const end = this.match(SPACE);
                if (end < 0) return true;
                this.at = end;
            }
        }
    }

    skipLine() {
        const end = this.match(REST_OF_LINE);
        if (end >= 0) this.at = end;
    }

    token() {
        const c = this.code[this.at];
        if (c === '"' || c === "'") return this.string(c);
        if (c === '`') return this.template();
        if ((c >= '0' && c <= '9') || (c === '.' && /\d/.test(this.code[this.at + 1] ?? '')))
            return this.push('number', this.match(NUMBER), true);
        if (this.startsName(c)) return this.name();
        if (c === '/' && !this.last()?.operand) return this.regex();
        if (c === '}' && this.open.at(-1)?.text === '`') {
            this.open.pop();
            return this.template();
        }
        return this.punctuator();
    }

    startsName(c) {
        if (c < '\x80' && c !== '\\') return PLAIN_START.test(c);
        return NAME_START.test(String.fromCodePoint(this.code.codePointAt(this.at)));
    }

    nameEnd() {
        const end = this.match(PLAIN_NAME);
        const next = end < 0 ? '\\' : this.code[end];
        return next === '\\' || next >= '\x80' ? this.match(NAME) : end;
    }

    name() {
        const end = this.nameEnd();
        if (end < 0) return false;
        const text = this.code.slice(this.at, end);
        const before = this.last();
        const property = this.is(before, '.') || this.is(before, '?.') || this.is(before, '#');
        /* `of` of a loop comes after a name or a pattern, and only there. */
        const of = text === 'of' && before?.operand && this.open.at(-1)?.text === '(';
        return this.push('name', end, property || !(BEFORE_OPERAND.has(text) || of));
    }

    string(quote) {
        for (let i = this.at + 1; i < this.code.length; i++) {
            const c = this.code[i];
            if (c === quote) return this.push('string', i + 1, true);
            if (c === '\\') i++;
            else if (c === '\n' || c === '\r') return false;
        }
        return false;
    }

    /* A piece of a template: from a backquote, or the brace after a substitution, to the next. */
    template() {
        for (let i = this.at + 1; i < this.code.length; i++) {
            const c = this.code[i];
            if (c === '`') return this.push('template', i + 1, true);
            if (c === '\\') i++;
            else if (c === '$' && this.code[i + 1] === '{') {
                const fine = this.push('template', i + 2, false);
                this.open.push({ text: '`', operand: true });
                return fine;
            }
        }
        return false;
    }

    regex() {
        let inClass = false;
        for (let i = this.at + 1; i < this.code.length; i++) {
            const c = this.code[i];
            if (c === '\n' || c === '\r' || c === '\u2028' || c === '\u2029') return false;
            if (c === '\\') i++;
            else if (c === '[') inClass = true;
            else if (c === ']') inClass = false;
            else if (c === '/' && !inClass) {
                PLAIN_NAME.lastIndex = i + 1;
                const end = PLAIN_NAME.test(this.code) ? PLAIN_NAME.lastIndex : i + 1;
                return this.push('regex', end, true);
            }
        }
        return false;
    }

    punctuator() {
        const end = this.match(PUNCTUATOR);
        if (end < 0) return false;
        const text = this.code.slice(this.at, end);
        if (text === '(' || text === '[' || text === '{') {
            const operand = text === '[' || (text === '(' ? this.parenEnds() : this.braceEnds());
            const expression = text === '(' && this.functionExpression();
            const fine = this.push('punctuator', end, false);
            this.open.push({ text, operand, expression });
            return fine;
        }
        if (text in CLOSES) {
            const opened = this.open.pop();
            if (opened?.text !== CLOSES[text]) return false;
            const fine = this.push('punctuator', end, opened.operand);
            this.last().closes = opened;
            return fine;
        }
        return this.push('punctuator', end, text === '++' || text === '--');
    }

    /* Whether the parenthesis that opens here makes an operand: that of `if (x)` does not. */
    parenEnds() {
        let before = this.last();
        if (this.is(before, 'await') && this.is(this.last(2), 'for')) return false;
        if (before?.kind !== 'name' || !CONTROL.has(this.text(before))) return true;
        before = this.last(2);
        return this.is(before, '.') || this.is(before, '?.');
    }

    /* Whether it holds the parameters of a function that is part of an expression. */
    functionExpression() {
        let i = 1;
        if (this.last(i)?.kind === 'name' && !this.is(this.last(i), 'function')) i++;
        if (this.is(this.last(i), '*')) i++;
        if (!this.is(this.last(i), 'function')) return false;
        let word = this.last(i);
        if (this.is(this.last(i + 1), 'async')) word = this.last(++i);
        return !this.startsStatement(word, this.last(i + 1));
    }

    startsStatement(token, before) {
        if (before === undefined || this.is(before, ';') || this.is(before, '{')) return true;
        if (this.is(before, '}') || this.is(before, ')')) return token.line || !before.operand;
        return token.line && before.operand;
    }

    /* Whether the brace that opens here makes an operand: an object or a function's body does, a
     * block does not. */
    braceEnds() {
        const before = this.last();
        if (before === undefined) return false;
        const text = this.text(before);
        if (before.kind === 'name') {
            if (before.operand) return DECLARES.has(text);
            return !BEFORE_BLOCK.has(text);
        }
        if (text === ')') return before.closes?.expression === true;
        if (text === ':') return this.valueAfterColon();
        if (before.operand || text === ';' || text === '{' || text === '}') return false;
        return text !== '=>';
    }

    /* A colon is followed by a value, but for labels and cases. */
    valueAfterColon() {
        const around = this.open.at(-1);
        if (around !== undefined && (around.text !== '{' || around.operand)) return true;
        const label = this.last(2);
        if (label === undefined || this.is(label, 'default')) return false;
        if (label.kind === 'name' && this.startsStatement(label, this.last(3))) return false;
        for (let i = this.tokens.length - 2; i >= 0; i--) {
            const token = this.tokens[i];
            if (token.depth !== label.depth) continue;
            if (this.is(token, 'case')) return false;
            if (this.is(token, '?')) return true;
            if (this.is(token, ';')) return true;
        }
        return true;
    }
}

/* -> the tokens, or null if this is not JavaScript. */
function lex(code) {
    const lexer = new Lexer(code);
    return lexer.run() ? lexer.tokens : null;
}

module.exports = { lex };
