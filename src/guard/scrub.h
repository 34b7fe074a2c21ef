/* Takes secrets out of what a server sends back. Each byte becomes an asterisk: lengths stay.
 *
 * What comes is read in four ways at once, and each secret is looked for in all of them:
 *
 *   raw      the bytes as they are
 *   text     with %XX, \uXXXX, \xXX, \/ and the like, &#NN;, &amp; and the like undone, + as a
 *            blank, and NUL left out (UTF-16)
 *   base64   of that text: both alphabets, whatever stands before the secret, line breaks, blanks
 *            and tabs left out
 *   hex      of that text: two digits a byte, the same left out
 *
 * The case of letters does not matter but in base64. The beginning of a secret counts as well if it
 * is more than half of it and SCRUB_PART_MIN bytes: whoever cuts what it echoes must not be asked
 * to cut it just before the end.
 *
 * Each reading of each secret is one automaton (Knuth, Morris and Pratt), so the time is that of
 * the bytes, whatever the secret and the answer look like: a tenant chooses both.
 *
 * A stream is looked at piece by piece; what could be the beginning of a secret is held back until
 * it is clear. This is against servers that echo what they get. One that wants to tell the sandbox
 * a secret that it was given can write it in ways that nobody looks for. */
#pragma once

#include "lib/text/strbuf.h"

#define SCRUB_VALUE_MAX (8u * 1024)
#define SCRUB_VALUE_MIN 4 /* shorter ones are everywhere by chance */
#define SCRUB_PART_MIN  8 /* of a beginning */
/* A byte of a secret can take so many, with what is left out between. */
#define SCRUB_STRETCH  12
#define SCRUB_HELD_MAX ((SCRUB_STRETCH + 2) * SCRUB_VALUE_MAX)

struct scrub;
struct scrub *scrub_new(void);
void scrub_free(struct scrub *s); /* wipes; NULL is allowed */
/* value: at most SCRUB_VALUE_MAX; it must live as long as s, so that there is no second copy. Not
 * while a stream is looked at. */
void scrub_add(struct scrub *s, const void *value, size_t len);

enum scrub_view { VIEW_RAW, VIEW_TEXT, VIEW_BASE64, VIEW_HEX, VIEW_MAX_ };

/* What one reading has seen of late. */
struct scrub_view_state {
    uint16_t *matched; /* symbols of each pattern */
    uint64_t *from;    /* where each of the last symbols begins: a ring; NULL: one byte each */
    uint64_t seen;     /* symbols */
    uint64_t end;      /* behind the last one */
    unsigned gap;      /* bytes left out since */
    unsigned active;   /* patterns that have begun */
};
struct scrub_stream {
    const struct scrub *scrub;
    struct strbuf held; /* bytes that are not done with */
    uint64_t base;      /* where they begin in the stream */
    size_t at;          /* of them: read */
    size_t given;       /* of them: gone out, since nothing came */
    uint64_t masked[2]; /* the last stretch of asterisks */
    struct scrub_view_state views[VIEW_MAX_];
};
void scrub_stream_init(struct scrub_stream *st, const struct scrub *s);
void scrub_stream_done(struct scrub_stream *st); /* zeros are allowed */
/* Appends what can go out to `out`, at most len and SCRUB_HELD_MAX bytes. last: nothing follows, so
 * nothing is held back. */
void scrub_feed(struct scrub_stream *st, const char *p, size_t len, bool last, struct strbuf *out);
/* Whether so little of a secret has come that it can go out before the rest does. */
bool scrub_holds_little(const struct scrub_stream *st);
/* Gives that out. What follows it is looked at as if it were still there. */
void scrub_give(struct scrub_stream *st, struct strbuf *out);
/* A text that is whole. */
void scrub_text(const struct scrub *s, const char *p, size_t len, struct strbuf *out);
