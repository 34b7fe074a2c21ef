/* The sanitiser: takes out of what leaves a sandbox what should not leave it. One engine for
 * output, errors, results, stored messages and inspected request bodies.
 *
 * Words that something may begin with are one vectorscan database that every byte goes through
 * once; numbers have a pass of their own. What is found there is looked at again by the kind's own
 * check (Luhn, IBAN mod 97, PPSN check letter, the shape of a JWT...), so that look-alikes stay.
 * What is found is replaced by a mark, such as [EMAIL]: letters, underscores and brackets only,
 * which keeps JSON, CSV and shell text valid.
 *
 * The built-in kinds cannot be switched off one by one. Patterns of the operator's come after them,
 * see the text that the built-in kinds have left, and so cannot bring anything back.
 *
 * A stream is sanitised piece by piece: what could be the beginning of a match is held back, at
 * most SANITISE_HOLD bytes, until it is clear; sanitise_flush lets it go for who has waited long
 * enough.
 *
 * Modes: enforce replaces; report-only counts and changes nothing; off does nothing. Found things
 * are counted by kind; the content is not kept, not logged, not counted. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define SANITISE_HOLD       4096
#define SANITISE_CUSTOM_MAX 64

enum sanitise_mode { SANITISE_ENFORCE, SANITISE_REPORT, SANITISE_OFF, SANITISE_MODE_MAX_ };
const char *sanitise_mode_name(enum sanitise_mode m); /* "enforce", "report-only", "off" */
int sanitise_mode_parse(const char *name, enum sanitise_mode *ret);

enum sanitise_kind {
    KIND_EMAIL,
    KIND_PHONE,
    KIND_SSN,
    KIND_PPSN,
    KIND_CARD,
    KIND_IBAN,
    KIND_API_KEY,
    KIND_JWT,
    KIND_AWS_KEY,
    KIND_PRIVATE_KEY,
    KIND_DATABASE_URL,
    KIND_IP_ADDRESS,
    KIND_CUSTOM, /* the first of the operator's; SANITISE_CUSTOM_MAX of them */
};
#define SANITISE_KINDS (KIND_CUSTOM + SANITISE_CUSTOM_MAX)

struct sanitise_counts {
    uint64_t of[SANITISE_KINDS];
};

struct sanitiser; /* compiled; may be used by several streams of one thread */

/* custom: lines `name = regular expression` (PCRE2's), or NULL; names are [a-z][a-z0-9_]*, their
 * mark is the name in capitals. An error names the line. */
int sanitiser_new(const char *custom, struct sanitiser **ret, struct sg_error *e);
/* Streams of it that are left go on. */
void sanitiser_free(struct sanitiser *s);
const char *sanitiser_kind_name(const struct sanitiser *s, unsigned kind); /* "email"; NULL */

/* A text that is there as a whole. Appends the result to out; counts may be NULL. JSON text (a
 * results bundle, a request body) goes through as it is: marks keep it valid, and what is written
 * with escapes (\u0040) is found too. */
void sanitise_text(struct sanitiser *s, enum sanitise_mode mode, const char *text, size_t len,
                   struct strbuf *out, struct sanitise_counts *counts);

struct sanitise_stream;
struct sanitise_stream *sanitise_stream_new(struct sanitiser *s, enum sanitise_mode mode);
void sanitise_stream_free(struct sanitise_stream *st); /* NULL is allowed */
/* Appends what can go out to `out`. */
void sanitise_feed(struct sanitise_stream *st, const char *data, size_t len, struct strbuf *out);
/* What is held back goes out now, sanitised as far as it can be told. */
void sanitise_flush(struct sanitise_stream *st, struct strbuf *out);
bool sanitise_holds(const struct sanitise_stream *st); /* whether anything is held back */
const struct sanitise_counts *sanitise_stream_counts(const struct sanitise_stream *st);

/* ---- G2: which mode counts ------------------------------------------------------------------- */

/* One level's word: the server, the tenant, the key (the user), the call; from general to special.
 */
struct sanitise_level {
    bool set;
    enum sanitise_mode mode; /* if set */
    bool no_off;             /* nobody below may say off */
};
/* The most special word counts, but an `off` that a level above forbids does not: *ret_refused then
 * says so (may be NULL), and the word above stands. */
enum sanitise_mode sanitise_resolve(enum sanitise_mode normal, const struct sanitise_level *levels,
                                    size_t n, bool *ret_refused);
