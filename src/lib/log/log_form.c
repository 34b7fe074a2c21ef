#include "lib/log/log_form.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/text/utf8.h"

_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line is one write that does not mix with others");

/* Bounds of the texts of a line. Even if every character had to be escaped, and so doubled, the
 * line would not be too long. */
#define MESSAGE_MAX 1024
#define PATH_MAX_   256
#define WORD_MAX    64
#define CUT         "..."
#define REPLACEMENT "\xef\xbf\xbd"

static const char *const level_names[] = {"debug", "info", "warn", "error"};
_Static_assert(ARRAY_SIZE(level_names) == LEVEL_MAX_, "a name for each level");

static const char *const fault_names[] = {"code", "agent", "sandbox", "infrastructure", "client"};
_Static_assert(ARRAY_SIZE(fault_names) == FAULT_MAX_, "a name for each layer");

const char *fault_name(enum fault fault)
{
    return fault_names[fault];
}

/* ---- clean ----------------------------------------------------------------------------------- */

/* How many bytes the character at p has; p is not at the end of the text. 0: invalid UTF-8. */
static size_t character(const char *p)
{
    for (size_t n = 1; n <= 4 && p[n - 1]; n++)
        if (utf8_valid(p, n))
            return n;
    return 0;
}

static bool is_control(const char *p, size_t n)
{
    unsigned char c = (unsigned char)p[0];

    return n == 1 ? c < 0x20 || c == 0x7f
                  : n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0; /* C1 */
}

static void clean(const char *text, size_t max, struct strbuf *out)
{
    strbuf_init(out, max + strlen(CUT));
    while (*text) {
        size_t n = character(text);
        const char *as = n == 0 ? REPLACEMENT : is_control(text, n) ? "?" : text;
        size_t len = as == text ? n : strlen(as);
        if (out->len + len > max) {
            strbuf_addstr(out, CUT);
            return;
        }
        strbuf_add(out, as, len);
        text += n ? n : 1;
    }
}

/* ---- the two forms --------------------------------------------------------------------------- */

struct form {
    struct strbuf *out;
    bool json; /* else logfmt */
    bool begun;
};

static void put_key(struct form *f, const char *key)
{
    const char *between = !f->begun ? "" : f->json ? "," : " ";

    strbuf_addf(f->out, f->json ? "%s\"%s\":" : "%s%s=", between, key);
    f->begun = true;
}

/* The text is clean, so this is enough for JSON too. */
static void put_quoted(struct strbuf *out, const char *text)
{
    strbuf_addch(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            strbuf_addch(out, '\\');
        strbuf_addch(out, *text);
    }
    strbuf_addch(out, '"');
}

static void put_text(struct form *f, const char *key, const char *value, size_t max)
{
    AUTO(strbuf_done) struct strbuf text = {0};

    if (!value || !value[0])
        return;
    clean(value, max, &text);
    put_key(f, key);
    if (f->json || text.buf[strcspn(text.buf, " =\"\\")])
        put_quoted(f->out, text.buf);
    else
        strbuf_add(f->out, text.buf, text.len);
}

static void put_number(struct form *f, const char *key, const char *digits)
{
    put_key(f, key);
    strbuf_addstr(f->out, digits);
}

static void put_fields(struct form *f, const struct log_record *r)
{
    const struct log_about *a = &r->about;
    char time[CLOCK_TEXT_LEN], digits[32];

    clock_text(r->ms, time);
    put_text(f, "time", time, WORD_MAX);
    put_text(f, "level", level_names[r->level], WORD_MAX);
    put_text(f, "layer", fault_names[a->fault], WORD_MAX);
    put_text(f, "sandbox", a->sandbox_id, WORD_MAX);
    put_text(f, "tenant", a->tenant, WORD_MAX);
    put_text(f, "request", a->request, WORD_MAX);
    put_text(f, "trace", a->trace, WORD_MAX);
    put_text(f, "method", a->method, WORD_MAX);
    put_text(f, "path", a->path, PATH_MAX_);
    put_text(f, "peer", a->peer, WORD_MAX);
    if (a->status) {
        snprintf(digits, sizeof(digits), "%d", a->status);
        put_number(f, "status", digits);
    }
    if (a->ns) {
        snprintf(digits, sizeof(digits), "%llu.%03llu", (unsigned long long)(a->ns / 1000000),
                 (unsigned long long)(a->ns / 1000 % 1000));
        put_number(f, "ms", digits);
    }
    put_text(f, f->json ? "message" : "msg", r->message[0] ? r->message : "-", MESSAGE_MAX);
}

void log_form_text(const struct log_record *r, struct strbuf *out)
{
    put_fields(&(struct form){.out = out}, r);
    strbuf_addch(out, '\n');
}

void log_form_json(const struct log_record *r, struct strbuf *out)
{
    strbuf_addch(out, '{');
    put_fields(&(struct form){.out = out, .json = true}, r);
    strbuf_addstr(out, "}\n");
}
