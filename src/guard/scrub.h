/* Takes secrets out of what a server sends back: as they are, percent-encoded (each byte or some of
 * them), and in base64, whatever stands before them. Each byte becomes an asterisk: lengths stay.
 *
 * A stream is looked at piece by piece; what could be the beginning of a secret is held back until
 * it is clear. This is against servers that echo what they get. One that wants to tell the sandbox
 * a secret that it was given can write it in ways that nobody looks for. */
#pragma once

#include "base/strbuf.h"

#define SCRUB_VALUE_MAX (8u * 1024)
#define SCRUB_VALUE_MIN 4 /* shorter ones are everywhere by chance */

struct scrub;
struct scrub *scrub_new(void);
void scrub_free(struct scrub *s); /* wipes; NULL is allowed */
/* value: at most SCRUB_VALUE_MAX; it must live as long as s, so that there is no second copy.
 * False: it is known already. */
bool scrub_add(struct scrub *s, const void *value, size_t len);

struct scrub_stream {
    struct strbuf held;
    size_t masked; /* of the bytes to come, with the held ones first */
};
void scrub_stream_init(struct scrub_stream *st);
void scrub_stream_done(struct scrub_stream *st);
/* Appends what can go out to `out`. last: nothing follows, so nothing is held back. */
void scrub_feed(const struct scrub *s, struct scrub_stream *st, const char *p, size_t len,
                bool last, struct strbuf *out);
/* A text that is whole. */
void scrub_text(const struct scrub *s, const char *p, size_t len, struct strbuf *out);
