#include "cli/client/repl_whole.h"

#include "lib/base/languages.h"

#define DEPTH_MAX   256
#define INDENT_STEP 4
#define INDENT_MAX  64

/* For a language that we do not know, we count brackets, and a blank line ends the code. */
static const struct language_syntax other_rules = {"\"", "", .open_ends = ""};

struct scan {
    const struct language_syntax *rules;
    const char *p;
    char stack[DEPTH_MAX]; /* the closing character of each open bracket; '`': text of a template */
    unsigned depth;
    bool open;          /* inside a string or a comment, or deeper than we count */
    bool joined;        /* the line ends with a backslash */
    char last, second;  /* the last two meaningful characters of the last full line */
    char line_first;    /* the first character of that line */
    size_t line_indent; /* the number of blanks before it */
    const char *word;   /* the word that was just read; NULL: no word came last */
    bool cell_magic;    /* the first line begins with %%: the rest is another language */
};

static const struct language_syntax *find_rules(const char *language)
{
    const struct language *l = language_find(language_full_name(language));

    return l && l->syntax.quotes ? &l->syntax : &other_rules;
}

static void note(struct scan *s, char c)
{
    s->second = s->last;
    s->last = c;
}

static void push(struct scan *s, char closes)
{
    if (s->depth == DEPTH_MAX)
        s->open = true;
    else
        s->stack[s->depth++] = closes;
}

/* Ignores a bracket that nothing has opened: the kernel explains that mistake better. */
static void pop(struct scan *s, char c)
{
    if (s->depth > 0 && s->stack[s->depth - 1] == c)
        s->depth--;
}

/* ---- what is skipped as a whole -------------------------------------------------------------- */

static void skip_line(struct scan *s)
{
    s->p += strcspn(s->p, "\n");
}

/* Skips a string from its quote on. A string that ends with its line, although it must not, is left
 * to the kernel. */
static void skip_string(struct scan *s)
{
    char quote = *s->p;
    bool triple = s->rules->triple && s->p[1] == quote && s->p[2] == quote;
    bool lines = triple || strchr(s->rules->long_ones, quote);

    s->p += triple ? 3 : 1;
    for (; *s->p; s->p++) {
        if (*s->p == '\\' && s->p[1])
            s->p++;
        else if (*s->p == quote && (!triple || (s->p[1] == quote && s->p[2] == quote)))
            break;
        else if (*s->p == '\n' && !lines)
            return;
    }
    if (!*s->p) {
        /* A backslash at the end of the code joins the next line to the string. */
        s->open = lines || s->p[-1] == '\\';
        return;
    }
    s->p += triple ? 3 : 1;
    note(s, quote);
}

static void skip_comment(struct scan *s)
{
    const char *end = strstr(s->p + 2, "*/");

    s->open = !end;
    s->p = end ? end + 2 : s->p + strlen(s->p);
}

/* Skips the text of a template, to its end or to the code in it. */
static void skip_template(struct scan *s)
{
    for (; *s->p; s->p++) {
        if (*s->p == '\\' && s->p[1]) {
            s->p++;
        } else if (*s->p == '`') {
            s->p++;
            s->depth--;
            note(s, '`');
            return;
        } else if (s->p[0] == '$' && s->p[1] == '{') {
            s->p += 2;
            push(s, '}');
            return;
        }
    }
}

/* Whether a slash begins a regular expression: after a value it divides, elsewhere it begins
 * one. */
static bool begins_regex(const struct scan *s)
{
    static const char *const words[] = {"return", "typeof", "case",  "in",   "of",
                                        "delete", "void",   "await", "yield"};

    if (!s->rules->regex || s->p[1] == '/' || s->p[1] == '*')
        return false;
    if (!s->last || strchr("=(,:;!&|?{}[+-*%<>~^\n", s->last))
        return true;
    for (size_t i = 0; s->word && i < ARRAY_SIZE(words); i++) {
        size_t len = strlen(words[i]);

        if (strncmp(s->word, words[i], len) == 0 && strchr(" \t/", s->word[len]))
            return true;
    }
    return false;
}

static void skip_regex(struct scan *s)
{
    bool set = false;

    for (s->p++; *s->p && *s->p != '\n'; s->p++) {
        if (*s->p == '\\' && s->p[1] && s->p[1] != '\n')
            s->p++;
        else if (*s->p == '[')
            set = true;
        else if (*s->p == ']')
            set = false;
        else if (*s->p == '/' && !set)
            break;
    }
    s->p += *s->p == '/';
    note(s, ')'); /* a regular expression counts as a value, like ')' */
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Called at the beginning of each line that is outside of brackets, strings and comments. */
static void begin_line(struct scan *s)
{
    size_t blanks = strspn(s->p, " \t");
    char first = s->p[blanks];

    if (first == '\n' || first == '\0' || (first == '#' && s->rules->hash))
        return; /* a blank line or comment: the line before still counts */
    s->line_indent = blanks;
    s->line_first = first;
    s->last = s->second = '\0';
    s->word = NULL;
    if (s->rules->blocks && (first == '!' || first == '%'))
        skip_line(s); /* a notebook command: its words are not the language's */
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static void take(struct scan *s)
{
    static const char opens[] = "([{", closes[] = ")]}";
    const char *at = strchr(opens, *s->p);

    if (is_word(*s->p)) {
        if (!s->word || !is_word(s->p[-1]))
            s->word = s->p;
        note(s, *s->p++);
        return;
    }
    if (at)
        push(s, closes[at - opens]);
    else if (strchr(closes, *s->p))
        pop(s, *s->p);
    s->word = NULL;
    note(s, *s->p++);
}

static void step(struct scan *s)
{
    bool slash = !s->rules->hash && *s->p == '/';

    s->joined = false;
    if (s->depth > 0 && s->stack[s->depth - 1] == '`') {
        skip_template(s);
    } else if (*s->p == '\n') {
        s->p++;
        if (s->depth == 0)
            begin_line(s);
    } else if (*s->p == ' ' || *s->p == '\t' || *s->p == '\r') {
        s->p++;
    } else if (*s->p == '\\' && (s->p[1] == '\n' || !s->p[1])) {
        s->joined = true;
        s->p += s->p[1] ? 2 : 1;
    } else if ((*s->p == '#' && s->rules->hash) || (slash && s->p[1] == '/')) {
        skip_line(s);
    } else if (slash && s->p[1] == '*') {
        skip_comment(s);
    } else if (strchr(s->rules->quotes, *s->p)) {
        skip_string(s);
    } else if (s->rules->template && *s->p == '`') {
        s->p++;
        push(s, '`');
    } else if (*s->p == '/' && begins_regex(s)) {
        skip_regex(s);
    } else {
        take(s);
    }
}

static void walk(struct scan *s, const struct language_syntax *rules, const char *code)
{
    *s = (struct scan){.rules = rules, .p = code};
    if (rules->blocks && strncmp(code, "%%", 2) == 0) {
        s->cell_magic = true;
        return;
    }
    begin_line(s);
    while (*s->p && !s->open)
        step(s);
}

/* Whether the last line is blank and another one stands before it. */
static bool ends_blank(const char *code)
{
    const char *end = strrchr(code, '\n');

    return end && end[1 + strspn(end + 1, " \t\r")] == '\0';
}

static bool ends_open(const struct scan *s)
{
    if (!s->last || !strchr(s->rules->open_ends, s->last))
        return false;
    /* i++ and i-- are whole. */
    return !((s->last == '+' || s->last == '-') && s->second == s->last);
}

bool repl_is_whole(const char *language, const char *code, bool together)
{
    const struct language_syntax *rules = find_rules(language);
    bool ended = ends_blank(code);
    struct scan s;

    if (strcmp(language, "bash") == 0 || strcmp(language, "sh") == 0)
        return repl_bash_is_whole(code);
    walk(&s, rules, code);
    if (s.cell_magic)
        return ended || together;
    if (s.open || s.depth > 0)
        return rules == &other_rules && ended;
    if (ended)
        return true;
    if (s.joined || ends_open(&s))
        return false;
    if (!rules->blocks)
        return true;
    if (s.last == ':' || s.line_first == '@')
        return false;
    return together || s.line_indent == 0;
}

size_t repl_indent(const char *language, const char *code)
{
    static const char *const leaving[] = {"return", "pass", "break", "continue", "raise"};
    struct scan s;

    walk(&s, find_rules(language), code);
    if (!s.rules->blocks || s.open || s.depth > 0 || s.cell_magic)
        return 0;
    size_t indent = s.line_indent;
    const char *line = strrchr(code, '\n');
    line = line ? line + 1 : code;
    line += strspn(line, " \t");
    if (s.last == ':')
        indent += INDENT_STEP;
    for (size_t i = 0; i < ARRAY_SIZE(leaving); i++) {
        size_t len = strlen(leaving[i]);

        if (strncmp(line, leaving[i], len) == 0 && !is_word(line[len]) && indent >= INDENT_STEP)
            indent -= INDENT_STEP;
    }
    return indent < INDENT_MAX ? indent : INDENT_MAX;
}

bool repl_is_command(const char *code)
{
    return code[0] == ':' && code[1] >= 'a' && code[1] <= 'z';
}
