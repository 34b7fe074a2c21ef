/* The parts of the sanitiser, from the bytes up:
 *
 *   view.c      the text as it is read: escapes of JSON count as what they stand for
 *   patterns.c  the vectorscan database: finds words that something to remove may begin with
 *   numbers.c   finds what begins with a digit, in a pass of its own
 *   mail.c, url.c, ip.c, phone.c, number_kinds.c, tokens.c, jwt.c, pem.c
 *               one kind each: whether it is one, and where it begins and ends
 *   checks.c    the arithmetic of cards, IBANs and national numbers
 *   stream.c    lets text out, replaces finds, holds back what is not decided
 *   custom.c    the operator's patterns, on the text that is left
 *
 * A stream comes out the same however it was cut. For that, a decision about a place depends on at
 * most BACK characters before it and AHEAD after it, and never looks past the end of the line. So a
 * complete line is decided, and in an incomplete one all but the last AHEAD characters are. Finds
 * may be longer than that: the tail of a token and the body of a private key are swallowed as they
 * come, without being held. */
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
#define CC_MAIL  128u /* what else the local part of an address may have: % + ' high bytes */
#define CC_URL   256u /* what else a URL may have */
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
    uint32_t at;    /* from this place of the view on... */
    uint32_t shift; /* ...the raw text is so many bytes further */
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

/* Makes a view of the raw text. len is at most WINDOW_MAX. Unless the text is final, an escape at
 * its end that may go on is left out. */
void view_make(struct view *v, struct view_space *space, const char *raw, size_t len, bool final);
void view_space_done(struct view_space *space);
/* The place of a character in the raw text; for n, the end. */
size_t view_raw(const struct view *v, size_t at);
/* The first character that begins at a place of the raw text or after it. */
size_t view_index(const struct view *v, size_t raw);

/* An escaped quote and an escaped end of a line are read as these. */
#define ESCAPED_QUOTE 2
#define ESCAPED_LINE  '\v'

/* The character at a place; -1 outside the view, also before its beginning. */
static inline int view_at(const struct view *v, size_t at)
{
    return at < v->n ? v->p[at] : -1;
}
/* How many characters from a place on are of the classes, at most max. */
static inline size_t view_span(const struct view *v, size_t at, unsigned classes, size_t max)
{
    size_t n = 0;

    while (n < max && cc_is(view_at(v, at + n), classes))
        n++;
    return n;
}
/* Whether a word, given in lower case, stands at a place, in any case. */
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
/* Whether a word can begin, or end, at a place: the character on the other side is no part of a
 * word. */
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

/* How the rest of a long find is swallowed. */
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
    bool more;      /* whether it is a find depends on text to come */
    uint32_t quote; /* JSON has a number here, so the mark needs quotes: the place of the closing
                     * quote of the key before it, or QUOTE_LIST. 0: none needed */
};
#define QUOTE_LIST UINT32_MAX

struct finds {
    struct find *of;
    size_t n, cap;
};
void finds_add(struct finds *f, struct find one);
void find_add(struct finds *f, size_t start, size_t end, enum sanitise_kind kind, enum tail tail);

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

/* Keys that are known by their prefix. */
struct token_form {
    const char *prefix;
    uint16_t classes; /* of the characters after the prefix */
    uint16_t min;     /* how many of them there must be */
    uint8_t needs;    /* NEEDS_... */
};
#define NEEDS_DIGIT 1u
#define NEEDS_MIXED 2u /* digits, and letters of both cases; or hexadecimal */
#define NEEDS_DOT   4u
extern const struct token_form token_forms[];
extern const size_t token_forms_n;
void spot_token(const struct view *v, size_t to, const struct token_form *form, struct finds *out);

/* Finds everything that begins with a digit. */
void numbers_scan(const struct view *v, struct finds *out);

/* Judge one run of digits [from, to). True: it is a find of this kind. */
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

/* Goes on over the body of a private key from `at`, and returns how far the body surely goes.
 * *in_run is the state between calls. *ret_over: the key has ended there; otherwise it waits for
 * more text. */
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

struct mark { /* the place of a mark in a text */
    uint32_t start, end;
};
/* Replaces matches in one line, or a part of one; marks are left whole. */
void custom_line(struct custom *c, const char *text, size_t len, const struct mark *marks,
                 size_t n_marks, struct strbuf *out, struct sanitise_counts *counts);

struct sanitiser {
    unsigned refs; /* one for the owner, and one for each stream except `own` */
    hs_database_t *db;
    hs_scratch_t *scratch;
    struct custom *custom; /* or NULL */
    struct view_space space;
    struct finds finds;
    struct sanitise_stream *own; /* for texts that come as a whole */
};

/* Compiles the built-in patterns. patterns_scan calls the `spot` function of each word that is
 * found. */
int patterns_compile(hs_database_t **ret, struct sg_error *e);
void patterns_scan(struct sanitiser *s, const struct view *v, struct finds *out);
/* "email" and so on; NULL for a kind that is not built in. */
const char *builtin_name(unsigned kind);
/* Appends the mark of a name: [EMAIL]. */
void mark_add(struct strbuf *out, const char *name);

void stream_restart(struct sanitise_stream *st, enum sanitise_mode mode);
