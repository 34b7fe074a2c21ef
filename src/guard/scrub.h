/* Takes secrets out of what a server sends back. Each byte of a secret becomes an asterisk, so
 * lengths stay.
 *
 * The scrubber reads the bytes in four ways at once, and looks for each secret in all of them:
 *
 *   raw      the bytes as they are
 *   text     with %XX, \uXXXX, \xXX, \/ and the like, &#NN;, &amp; and the like undone, + as a
 *            blank, and NUL left out (UTF-16)
 *   base64   of that text: both alphabets, whatever stands before the secret; line breaks, blanks
 *            and tabs left out
 *   hex      of that text: two digits a byte; the same left out
 *
 * The case of letters matters in base64 only. The beginning of a secret counts as well if it is
 * more than half of the secret and at least SCRUB_PART_MIN bytes: otherwise a sandbox could ask a
 * server that cuts what it echoes to cut just before the end.
 *
 * Each reading of each secret is one automaton (Knuth, Morris and Pratt), so the time depends on
 * the number of bytes only, not on what the secret and the answer look like: a tenant chooses both.
 *
 * A stream is read piece by piece; bytes that could be the beginning of a secret are held back
 * until that is clear. This defends against servers that echo what they get. A server that wants to
 * tell the sandbox a secret that it was given can write it in ways that nobody looks for. */
#pragma once

#include "lib/text/strbuf.h"

#define SCRUB_VALUE_MAX (8u * 1024)
#define SCRUB_VALUE_MIN 4 /* shorter values occur everywhere by chance */
#define SCRUB_PART_MIN  8 /* the shortest beginning that counts */
/* One byte of a secret can take so many bytes, with what is left out between them. */
#define SCRUB_STRETCH  12
#define SCRUB_HELD_MAX ((SCRUB_STRETCH + 2) * SCRUB_VALUE_MAX)

struct scrub;
struct scrub *scrub_new(void);
void scrub_free(struct scrub *s); /* wipes; NULL is allowed */
/* value: at most SCRUB_VALUE_MAX bytes; it must live as long as s, so that there is no second copy.
 * Must not be called while a stream of s is open. */
void scrub_add(struct scrub *s, const void *value, size_t len);

enum scrub_view { VIEW_RAW, VIEW_TEXT, VIEW_BASE64, VIEW_HEX, VIEW_MAX_ };

/* How far one reading of the stream has got. */
struct scrub_view_state {
    uint16_t *matched; /* per pattern: symbols that match so far */
    uint64_t *from;    /* where each of the last symbols begins: a ring; NULL: one byte each */
    uint64_t seen;     /* symbols */
    uint64_t end;      /* behind the last one */
    unsigned gap;      /* bytes left out since that symbol */
    unsigned active;   /* patterns that have begun */
};
struct scrub_stream {
    const struct scrub *scrub;
    struct strbuf held; /* bytes that have not all been read and sent */
    uint64_t base;      /* offset in the stream of held's first byte */
    size_t at;          /* bytes of held that were read */
    size_t given;       /* bytes of held that went out early: scrub_give */
    uint64_t masked[2]; /* the last stretch of asterisks */
    struct scrub_view_state views[VIEW_MAX_];
};
void scrub_stream_init(struct scrub_stream *st, const struct scrub *s);
void scrub_stream_done(struct scrub_stream *st); /* a zeroed struct is allowed */
/* Appends the bytes that can go out to `out`, at most len and SCRUB_HELD_MAX bytes. last: nothing
 * follows, so nothing is held back. */
void scrub_feed(struct scrub_stream *st, const char *p, size_t len, bool last, struct strbuf *out);
/* Whether so little of a secret is held back that it can go out before the rest of the stream
 * comes. */
bool scrub_holds_little(const struct scrub_stream *st);
/* Sends those held bytes out. The bytes that follow are matched as if these were still held. */
void scrub_give(struct scrub_stream *st, struct strbuf *out);
/* Scrubs a whole text. */
void scrub_text(const struct scrub *s, const char *p, size_t len, struct strbuf *out);
