/* Runs the sanitiser over the body of a request: unpacks the body if it is packed, looks through
 * it, counts what is found.
 *
 *   enforce      findings are replaced, and the body goes on unpacked; a body that cannot be
 *                unpacked is refused (415)
 *   report-only  the body goes on as it came; findings are counted */
#pragma once

#include "guard/guard.h"
#include "guard/http_body.h"
#include "guard/policy.h"

struct cleaner {
    enum sanitise_mode mode;
    struct sanitiser *sanitiser;
    struct sanitise_stream *stream; /* NULL: the body is not looked at */
    struct inflater *inflater;      /* NULL: the body is not packed */
    const char *gap;                /* why part of the body was not looked at; NULL */
};

/* Begins the body of one request. Returns 0, or the status to refuse the request with. */
int cleaner_begin(struct cleaner *c, struct guard *g, const struct policy *p,
                  const struct http_message *m, const char **ret_why);
void cleaner_done(struct cleaner *c);
/* Whether the output may be longer or shorter than the input. */
bool cleaner_changes(const struct cleaner *c);
/* Takes a part of the body and appends the result to out. Call it until it has taken all: each call
 * does a bounded amount of work. 0; -EINVAL, -EFBIG as inflater_feed. */
int cleaner_feed(struct cleaner *c, const char *p, size_t len, size_t *ret_used,
                 struct strbuf *out);
/* Tells the cleaner that the body has ended. 1: call it again, there is more output. */
int cleaner_end(struct cleaner *c, struct strbuf *out);
/* Puts the findings on record. */
void cleaner_record(const struct cleaner *c, struct sandbox *s, const char *name, const char *rule);
