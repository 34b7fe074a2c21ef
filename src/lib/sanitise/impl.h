/* The parts of the sanitiser, from the bytes up:
 *
 *   view.c      the text as it is read: escapes of JSON count as what they stand for
 *   patterns.c  the vectorscan database: what begins like something that must not leave
 *   numbers.c   what begins with a digit: a pass of its own, see there
 *   mail.c, url.c, ip.c, phone.c, number_kinds.c, tokens.c, jwt.c, pem.c
 *               where it begins and ends, if it is one
 *   checks.c    the arithmetic of cards, IBANs and national numbers
 *   stream.c    what goes out, what is replaced, what is held back
 *   custom.c    the operator's patterns, on what is left
 *
 * What makes a stream come out the same however it was cut: a decision about a place depends on at
 * most BACK characters before it and AHEAD after it, and never looks past the end of the line. So a
 * line that is complete is decided, and in one that is not, all but the last AHEAD characters. Two
 * things are longer: the rest of something long (the tail of a token, the body of a private key) is
 * swallowed as it comes, without being held. */
#pragma once

#include <hs/hs.h>

#include "lib/sanitise/sanitise.h"

#define AHEAD      512
#define BACK       128
#define WINDOW_MAX (64u * 1024)

/* ---- classes of characters ------------------------------------------------------------------- */

#define CC_DIGIT 1u
#define CC_UPPER 2u
#define CC_LOWER 4u
#define CC_HEX   8u
#define CC_DASH  16u  /* - _ */
#define CC_DOT   32u  /* . */
#define CC_B64   64u  /* + / = */
#define CC_MAIL  128u /* more of what the local part of an address may have: % + ' high bytes */
#define CC_URL   256u /* more of what a URL may have */
#define CC_COMMA 512u
#define CC_SLASH 1024u
#define CC_TILDE 2048u
#define CC_SIGN  4096u /* between a name and its value: blanks and : = " ' ` # > . ( */
#define CC_ALPHA (CC_UPPER | CC_LOWER)
#define CC_ALNUM (CC_ALPHA | CC_DIGIT)
#define CC_TOKEN (CC_ALNUM | CC_DASH)
#define CC_ADDR  (CC_TOKEN | CC_DOT | CC_B64 | CC_URL | CC_SLASH | CC_TILDE)

extern const uint16_t cc_of[256];

static inline bool cc_is(int c, unsigned classes)
{
    return c >= 0 && (cc_of[c] & classes);
}

/* ---- the text as it is read ------------------------------------------------------------------ */

struct view_step {
    uint32_t at;    /* from this place on... */
    uint32_t shift; /* ...the raw text is so much further */
};

struct view {
    const unsigned char *p;
    size_t n;
    bool final; /* nothing comes after it */
    struct view_step *steps;
    size_t n_steps;
};

struct view_space { /* memory that views use again and again */
    unsigned char *text;
    struct view_step *steps;
};

/* len is at most WINDOW_MAX. Unless it is final, an escape at its end that may go on is left out.
 */
void view_make(struct view *v, struct view_space *space, const char *raw, size_t len, bool final);
void view_space_done(struct view_space *space);
/* Where in the raw text the character is, or the end for n. */
size_t view_raw(const struct view *v, size_t at);
/* The first character that begins at a place of the raw text or after it. */
size_t view_index(const struct view *v, size_t raw);

/* What a quote and the end of a line are read as if they were escaped. */
#define ESCAPED_QUOTE 2
#define ESCAPED_LINE  '\v'

/* -1 outside, also for what is before the beginning. */
static inline int view_at(const struct view *v, size_t at)
{
    return at < v->n ? v->p[at] : -1;
}
/* How many characters of the classes there are from a place on, at most max. */
static inline size_t view_span(const struct view *v, size_t at, unsigned classes, size_t max)
{
    size_t n = 0;

    while (n < max && cc_is(view_at(v, at + n), classes))
        n++;
    return n;
}
/* Whether a lower-case word is there, in any case. */
bool view_has(const struct view *v, size_t at, const char *word);
/* Whether one of the names (in lower case) stands before `at`, in any case, with not more than a
 * few blanks, quotes, colons and the like between. */
struct name {
    const char *text;
    size_t len; /* 0: the end of a list */
};
#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }
bool view_named(const struct view *v, size_t at, const struct name *names);
/* Neither side continues a word. */
static inline bool view_word_begins(const struct view *v, size_t at)
{
    int c = view_at(v, at - 1);

    return !cc_is(c, CC_ALNUM) && c != '_';
}
static inline bool view_word_ends(const struct view *v, size_t at)
{
    int c = view_at(v, at);

    return !cc_is(c, CC_ALNUM) && c != '_';
}

/* ---- finds ----------------------------------------------------------------------------------- */

/* How the rest of a find goes on. */
enum tail {
    TAIL_NONE,
    TAIL_TOKEN,
    TAIL_DOTTED,
    TAIL_BASE64,
    TAIL_URL,
    TAIL_URLS, /* with commas: several hosts */
    TAIL_PEM,
    TAIL_MAX_
};

struct find {
    uint32_t start, end;
    uint8_t kind, tail;
    bool more;      /* cannot be told yet */
    uint32_t quote; /* stands where JSON has a number, so the mark needs quotes: after a key, whose
                     * own closing quote is here; or QUOTE_LIST. 0: no */
};
#define QUOTE_LIST UINT32_MAX

struct finds {
    struct find *of;
    size_t n, cap;
};
void finds_add(struct finds *f, struct find one);

/* `to` is the end of the word that was found. */
typedef void (*spot)(const struct view *v, size_t to, struct finds *out);
void spot_mail(const struct view *v, size_t to, struct finds *out);
void spot_mail_percent(const struct view *v, size_t to, struct finds *out);
void spot_url(const struct view *v, size_t to, struct finds *out);
void spot_jwt(const struct view *v, size_t to, struct finds *out);
void spot_aws_id(const struct view *v, size_t to, struct finds *out);
void spot_aws_secret(const struct view *v, size_t to, struct finds *out);
void spot_aws_session(const struct view *v, size_t to, struct finds *out);
void spot_bearer(const struct view *v, size_t to, struct finds *out);
void spot_basic(const struct view *v, size_t to, struct finds *out);
void spot_named_key(const struct view *v, size_t to, struct finds *out);
void spot_pem(const struct view *v, size_t to, struct finds *out);

/* Keys with a beginning of their own. */
struct token_form {
    const char *prefix;
    uint16_t classes; /* of what follows */
    uint16_t min;     /* how much of it */
    uint8_t needs;    /* NEEDS_... */
};
#define NEEDS_DIGIT 1u
#define NEEDS_MIXED 2u /* digits, and letters of both cases; or hexadecimal */
#define NEEDS_DOT   4u
extern const struct token_form token_forms[];
extern const size_t token_forms_n;
void spot_token(const struct view *v, size_t to, const struct token_form *form, struct finds *out);

/* Everything that begins with a digit. */
void numbers_scan(const struct view *v, struct finds *out);

/* One run of digits [from, to); true if it was one of these. */
bool number_ipv4(const struct view *v, size_t from, size_t to, struct finds *out);
bool number_ipv6(const struct view *v, size_t from, size_t to, struct finds *out);
bool number_card(const struct view *v, size_t from, size_t to, struct finds *out);
bool number_ssn(const struct view *v, size_t from, size_t to, struct finds *out);
bool number_ppsn(const struct view *v, size_t from, size_t to, struct finds *out);
bool number_iban(const struct view *v, size_t from, size_t to, struct finds *out);
bool number_phone(const struct view *v, size_t from, size_t to, struct finds *out);
bool number_bot_key(const struct view *v, size_t from, size_t to, struct finds *out);
void number_add(const struct view *v, size_t start, size_t end, enum sanitise_kind kind,
                struct finds *out);

/* Goes on over the body of a private key from `at` and returns how far it is sure to go. *in_run is
 * its state between calls. *ret_over: the key has ended there; else it waits for more text. */
size_t pem_swallow(const struct view *v, size_t at, bool *in_run, bool *ret_over);

/* ---- arithmetic ------------------------------------------------------------------------------ */

bool check_luhn(const char *digits, size_t n);
bool check_card(const char *digits, size_t n);   /* issuer, length and Luhn */
size_t check_iban_length(const char country[2]); /* 0: no such country */
bool check_iban(const char *text, size_t n);     /* capitals and digits, without blanks */
bool check_ppsn(const char *digits, char letter, char second); /* second: or 0 */
bool check_ssn(const char *digits);                            /* nine */
bool check_phone(const char *digits, size_t n);                /* international, without the plus */
bool check_nanp(const char *digits);                           /* ten: North America */

/* ---- the whole ------------------------------------------------------------------------------- */

struct custom;
int custom_new(const char *text, struct custom **ret, struct sg_error *e);
void custom_free(struct custom *c); /* NULL is allowed */
size_t custom_count(const struct custom *c);
const char *custom_name(const struct custom *c, size_t i);

struct mark { /* where one is in a text */
    uint32_t start, end;
};
/* Replaces in one line, or a part of one; marks are left whole. */
void custom_line(struct custom *c, const char *text, size_t len, const struct mark *marks,
                 size_t n_marks, struct strbuf *out, struct sanitise_counts *counts);

struct sanitiser {
    unsigned refs; /* its owner's, and one of each stream but its own */
    hs_database_t *db;
    hs_scratch_t *scratch;
    struct custom *custom; /* or NULL */
    struct view_space space;
    struct finds finds;
    struct sanitise_stream *own; /* for texts that are there as a whole */
};

/* The built-in patterns, compiled; scanning calls the spots of what is found. */
int patterns_compile(hs_database_t **ret, struct sg_error *e);
void patterns_scan(struct sanitiser *s, const struct view *v, struct finds *out);
/* "email", and NULL for those that are not built in. */
const char *builtin_name(unsigned kind);
/* Appends the mark of a name: [EMAIL]. */
void mark_add(struct strbuf *out, const char *name);

void stream_restart(struct sanitise_stream *st, enum sanitise_mode mode);
