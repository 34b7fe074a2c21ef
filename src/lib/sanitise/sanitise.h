/* The sanitiser: removes secrets and personal data from what leaves a sandbox. One engine serves
 * output, errors, results, stored messages and inspected request bodies.
 *
 * Every byte goes once through one vectorscan database of words that a secret may begin with;
 * numbers have a pass of their own. Each candidate then has to pass the check of its kind (Luhn,
 * IBAN mod 97, PPSN check letter, the shape of a JWT...), so that look-alikes stay. A find is
 * replaced by a mark, such as [EMAIL]: letters, underscores and brackets only, which keeps JSON,
 * CSV and shell text valid.
 *
 * The built-in kinds cannot be switched off one by one. The operator's patterns come after them.
 * They see only the text that the built-in kinds have left, and so cannot bring anything back.
 *
 * A stream is sanitised piece by piece. Text that could be the beginning of a match is held back,
 * at most SANITISE_HOLD bytes, until that is clear; sanitise_flush lets it go when the reader has
 * waited long enough.
 *
 * Modes: enforce replaces; report-only counts and changes nothing; off does nothing. Finds are
 * counted by kind; their content is neither kept nor logged. */
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
    KIND_CUSTOM, /* the first of the operator's kinds; there are up to SANITISE_CUSTOM_MAX */
};
#define SANITISE_KINDS (KIND_CUSTOM + SANITISE_CUSTOM_MAX)

struct sanitise_counts {
    uint64_t of[SANITISE_KINDS];
};

struct sanitiser; /* compiled; may be used by several streams of one thread */

/* custom: lines `name = regular expression` (PCRE2's), or NULL. Names are [a-z][a-z0-9_]*, and the
 * mark is the name in capitals. An error names the line. */
int sanitiser_new(const char *custom, struct sanitiser **ret, struct sg_error *e);
/* Streams that still use the sanitiser go on working. */
void sanitiser_free(struct sanitiser *s);
const char *sanitiser_kind_name(const struct sanitiser *s, unsigned kind); /* "email"; NULL */

/* Sanitises a whole text. Appends the result to out; counts may be NULL. JSON text (a results
 * bundle, a request body) needs no special care: marks keep it valid, and finds that are written
 * with escapes (\u0040) are found too. */
void sanitise_text(struct sanitiser *s, enum sanitise_mode mode, const char *text, size_t len,
                   struct strbuf *out, struct sanitise_counts *counts);

struct sanitise_stream;
struct sanitise_stream *sanitise_stream_new(struct sanitiser *s, enum sanitise_mode mode);
void sanitise_stream_free(struct sanitise_stream *st); /* NULL is allowed */
/* Sanitises a piece, and appends the text that can go out to `out`. */
void sanitise_feed(struct sanitise_stream *st, const char *data, size_t len, struct strbuf *out);
/* Lets the held text go out now, sanitised as far as it can be judged. */
void sanitise_flush(struct sanitise_stream *st, struct strbuf *out);
bool sanitise_holds(const struct sanitise_stream *st); /* whether anything is held back */
const struct sanitise_counts *sanitise_stream_counts(const struct sanitise_stream *st);

/* ---- which mode counts ----------------------------------------------------------------------- */

/* The choice of one level. Levels, from general to special: the server, the tenant, the key (the
 * user), the call. */
struct sanitise_level {
    bool set;
    enum sanitise_mode mode; /* if set */
    bool no_off;             /* no level below may say off */
};
/* The choice of the most special level counts. But an `off` that a level above forbids does not
 * count: then *ret_refused (may be NULL) says so, and the choice above stands. */
enum sanitise_mode sanitise_resolve(enum sanitise_mode normal, const struct sanitise_level *levels,
                                    size_t n, bool *ret_refused);
