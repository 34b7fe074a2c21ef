/* Decides whether shell code is whole. Shells differ from other languages: words open and close
 * blocks, here-documents stand inside, and brackets need not match. */
#include "cli/client/repl_whole.h"

#define WORD_MAX 64
#define HERE_MAX 8

struct here {
    char end[WORD_MAX];
    bool tabs; /* <<-: the end may be indented by tabs */
};

struct shell {
    const char *code, *p;
    int words;         /* open if, for, case, { and the like */
    int parens;        /* open ( and $( */
    bool open;         /* inside quotes or a here-document */
    bool joined;       /* the line ends with a backslash, a pipe or && */
    bool command_next; /* the next word is a command, and may be a keyword */
    struct here here[HERE_MAX];
    size_t n_here;
};

static bool is_word(char c)
{
    return c && !strchr(" \t\r\n;&|()<>'\"`\\$", c);
}

/* ---- quotes ---------------------------------------------------------------------------------- */

static void skip_quotes(struct shell *s)
{
    char quote = *s->p++;

    for (; *s->p && *s->p != quote; s->p++)
        if (quote != '\'' && *s->p == '\\' && s->p[1])
            s->p++;
    s->open = !*s->p;
    s->p += *s->p != '\0';
    s->command_next = false;
}

/* ---- documents ------------------------------------------------------------------------------- */

/* Takes the end word of a here-document: <<WORD, <<-WORD, <<'WORD'. Without a word there is
 * none. */
static void take_here(struct shell *s)
{
    struct here h = {.tabs = s->p[2] == '-'};
    size_t len = 0;

    s->p += h.tabs ? 3 : 2;
    s->p += strspn(s->p, " \t");
    for (; *s->p && !strchr(" \t\r\n;&|()<>", *s->p); s->p++)
        if (!strchr("'\"\\", *s->p) && len + 1 < sizeof(h.end))
            h.end[len++] = *s->p;
    if (len > 0 && s->n_here < HERE_MAX)
        s->here[s->n_here++] = h;
}

/* Called at the line after one that begins here-documents: skips each of them. */
static void skip_documents(struct shell *s)
{
    size_t i = 0;

    while (i < s->n_here && *s->p) {
        const char *line = s->p + (s->here[i].tabs ? strspn(s->p, "\t") : 0);
        size_t len = strcspn(line, "\n");

        if (len == strlen(s->here[i].end) && strncmp(line, s->here[i].end, len) == 0)
            i++;
        s->p = line + len;
        if (i < s->n_here || *s->p)
            s->p += *s->p == '\n';
    }
    s->open = i < s->n_here;
    s->n_here = 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

static const struct keyword {
    const char *word;
    int opens;
    bool next; /* a command follows the keyword */
} keywords[] = {
    {"if", 1, true},     {"then", 0, true}, {"elif", 0, true},    {"else", 0, true},
    {"fi", -1, false},   {"for", 1, false}, {"select", 1, false}, {"while", 1, true},
    {"until", 1, true},  {"do", 0, true},   {"done", -1, false},  {"case", 1, false},
    {"esac", -1, false}, {"{", 1, true},    {"}", -1, false},     {"!", 0, true},
    {"time", 0, true},
};

static void take_keyword(struct shell *s, const char *word, size_t len)
{
    s->command_next = false;
    for (size_t i = 0; i < ARRAY_SIZE(keywords); i++) {
        if (strlen(keywords[i].word) != len || strncmp(word, keywords[i].word, len) != 0)
            continue;
        s->words += keywords[i].opens;
        s->command_next = keywords[i].next;
    }
    if (len == strlen("function") && strncmp(word, "function", len) == 0) {
        s->p += strspn(s->p, " \t"); /* skip the function's name */
        s->p += strcspn(s->p, " \t\n({");
        s->command_next = true; /* its body follows */
    }
}

static void take_word(struct shell *s)
{
    const char *word = s->p;

    while (is_word(*s->p))
        s->p++;
    size_t len = (size_t)(s->p - word);
    /* VAR=value stands before a command and is not the command itself. */
    if (s->command_next && !memchr(word, '=', len))
        take_keyword(s, word, len);
}

/* Skips ((1 << 2)): nothing in it is a keyword or a here-document. */
static void skip_arithmetic(struct shell *s)
{
    const char *end = strstr(s->p, "))");

    s->open = !end;
    s->p = end ? end + 2 : s->p + strlen(s->p);
    s->command_next = true; /* the body of for ((...)) may follow right here */
}

static void take_operator(struct shell *s)
{
    char c = *s->p;

    if (c == '(') {
        s->parens++;
        s->command_next = true;
    } else if (c == ')') {
        if (s->parens > 0)
            s->parens--;
        s->command_next = true; /* the body of a function or of a case may follow */
    } else if (c == ';' || c == '&' || c == '|') {
        s->command_next = true;
        s->joined = c == '|' || (c == '&' && s->p[1] == '&');
        if (s->p[1] == c)
            s->p++;
    }
    s->p++;
}

static bool begins_comment(const struct shell *s)
{
    return *s->p == '#' && (s->p == s->code || strchr(" \t\n;&|(", s->p[-1]));
}

static void step(struct shell *s)
{
    char c = *s->p;

    if (c == '\n') {
        s->p++;
        s->command_next = true;
        if (s->n_here > 0)
            skip_documents(s);
        return;
    }
    if (c == ' ' || c == '\t' || c == '\r') {
        s->p++;
        return;
    }
    s->joined = false;
    if (c == '\\') {
        s->joined = s->p[1] == '\n' || !s->p[1];
        s->p += s->p[1] ? 2 : 1;
    } else if (c == '\'' || c == '"' || c == '`') {
        skip_quotes(s);
    } else if (begins_comment(s)) {
        s->p += strcspn(s->p, "\n");
    } else if (strncmp(s->p, "((", 2) == 0) {
        skip_arithmetic(s);
    } else if (strncmp(s->p, "<<<", 3) == 0) {
        s->p += 3;
    } else if (strncmp(s->p, "<<", 2) == 0) {
        take_here(s);
    } else if (c == '$' && s->p[1] == '{') {
        s->p += 2 + strcspn(s->p + 2, "}\n");
    } else if (is_word(c)) {
        take_word(s);
    } else {
        take_operator(s);
    }
}

bool repl_bash_is_whole(const char *code)
{
    struct shell s = {.code = code, .p = code, .command_next = true};

    while (*s.p && !s.open)
        step(&s);
    return !s.open && !s.joined && s.n_here == 0 && s.words <= 0 && s.parens == 0;
}
