#include "cli/client/repl_filter.h"

#define ESC 0x1b
#define BEL 0x07
#define DEL 0x7f
/* C1 control characters in UTF-8. Some terminals take them for ESC and a letter. */
#define C1_LEAD  0xc2
#define C1_FIRST 0x80
#define C1_LAST  0x9f
#define C1_TAIL  0xbf /* from C1_LAST to here: harmless characters */
#define C1_CSI   0x9b
#define C1_ST    0x9c

/* Final bytes of harmless sequences: colours, moving, erasing, scrolling, inserting and
 * deleting. */
static const char harmless[] = "mABCDEFGHJKLMPSTX@df";
static const char string_begins[] = "]PX^_"; /* OSC, DCS, SOS, PM, APC */
static const unsigned char string_begins_c1[] = {0x90, 0x98, 0x9d, 0x9e, 0x9f};

static void begin_csi(struct repl_filter *f)
{
    f->state = FILTER_CSI;
    f->n_csi = 0;
}

/* Private sequences (ESC [ ? ...) change how the terminal works, so all are left out but the one
 * that hides and shows the cursor. */
static bool is_harmless(const struct repl_filter *f, char final)
{
    size_t n = f->n_csi;

    if (n > sizeof(f->csi))
        return false;
    if (n == 3 && memcmp(f->csi, "?25", 3) == 0)
        return final == 'h' || final == 'l';
    for (size_t i = 0; i < n; i++)
        if (!strchr("0123456789;:", f->csi[i]))
            return false;
    return strchr(harmless, final) != NULL;
}

static void take_csi(struct repl_filter *f, struct strbuf *out, unsigned char c)
{
    if (c < 0x40 && c >= 0x20) {
        if (f->n_csi < sizeof(f->csi))
            f->csi[f->n_csi] = (char)c;
        f->n_csi++;
        if (f->n_csi > sizeof(f->csi))
            f->n_csi = sizeof(f->csi) + 1;
        return;
    }
    f->state = c == ESC ? FILTER_ESCAPE : FILTER_TEXT;
    if (c < 0x40 || c > 0x7e || !is_harmless(f, (char)c))
        return;
    strbuf_addstr(out, "\033[");
    strbuf_add(out, f->csi, f->n_csi);
    strbuf_addch(out, (char)c);
}

static void take_text(struct repl_filter *f, struct strbuf *out, unsigned char c)
{
    if (c == ESC)
        f->state = FILTER_ESCAPE;
    else if (c == C1_LEAD)
        f->state = FILTER_C1;
    else if ((c >= 0x20 && c != DEL) || (c && strchr("\n\r\t\b\a", c)))
        strbuf_addch(out, (char)c);
}

static void take_c1(struct repl_filter *f, struct strbuf *out, unsigned char c)
{
    f->state = FILTER_TEXT;
    if (c == C1_CSI) {
        begin_csi(f);
    } else if (memchr(string_begins_c1, c, sizeof(string_begins_c1))) {
        f->state = FILTER_STRING;
    } else if (c > C1_LAST && c <= C1_TAIL) {
        strbuf_addch(out, (char)C1_LEAD);
        strbuf_addch(out, (char)c);
    } else if (c < C1_FIRST || c > C1_TAIL) {
        take_text(f, out, c); /* the text was not UTF-8 after all */
    }
}

static void take(struct repl_filter *f, struct strbuf *out, unsigned char c)
{
    switch (f->state) {
    case FILTER_TEXT:
        take_text(f, out, c);
        break;
    case FILTER_ESCAPE:
        if (c == '[')
            begin_csi(f);
        else if (c && strchr(string_begins, c))
            f->state = FILTER_STRING;
        else if (c >= 0x30 || c < 0x20) /* bytes between continue the sequence */
            f->state = c == ESC ? FILTER_ESCAPE : FILTER_TEXT;
        break;
    case FILTER_CSI:
        take_csi(f, out, c);
        break;
    case FILTER_C1:
        take_c1(f, out, c);
        break;
    case FILTER_STRING:
        if (c == BEL)
            f->state = FILTER_TEXT;
        else if (c == ESC)
            f->state = FILTER_STRING_END;
        else if (c == C1_LEAD)
            f->state = FILTER_STRING_C1;
        break;
    case FILTER_STRING_END:
        /* In most terminals, ESC and any other character ends the string and begins a new
         * sequence. */
        f->state = FILTER_ESCAPE;
        if (c == '\\')
            f->state = FILTER_TEXT;
        else
            take(f, out, c);
        break;
    case FILTER_STRING_C1:
        f->state = c == C1_ST ? FILTER_TEXT : FILTER_STRING;
        if (c < C1_FIRST)
            take(f, out, c);
        break;
    default:
        break;
    }
}

void repl_filter(struct repl_filter *f, struct strbuf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        take(f, out, (unsigned char)text[i]);
}
