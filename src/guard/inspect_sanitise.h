/* The sanitiser in the way of a request's body: unpacked if it is packed, looked through, counted.
 *
 *   enforce      what is found is replaced, and the body goes on unpacked; what cannot be unpacked
 *                is refused (415)
 *   report-only  the body goes on as it came; what is found is counted */
#pragma once

#include "guard/guard.h"
#include "guard/http_body.h"
#include "guard/policy.h"

struct cleaner {
    enum sanitise_mode mode;
    struct sanitiser *sanitiser;
    struct sanitise_stream *stream; /* NULL: the body is not looked at */
    struct inflater *inflater;      /* NULL: it is not packed */
    const char *gap;                /* why it was not looked through to its end; NULL */
};

/* For one request. 0, or the status to refuse it with. */
int cleaner_begin(struct cleaner *c, struct guard *g, const struct policy *p,
                  const struct http_message *m, const char **ret_why);
void cleaner_done(struct cleaner *c);
/* Whether what comes out may be longer or shorter than what goes in. */
bool cleaner_changes(const struct cleaner *c);
/* Takes a part of the body, appends what it becomes to out. Call it until it takes all: each call
 * does a bounded amount. 0; -EINVAL, -EFBIG as inflater_feed. */
int cleaner_feed(struct cleaner *c, const char *p, size_t len, size_t *ret_used,
                 struct strbuf *out);
/* The body has ended. 1: call it again, there is more. */
int cleaner_end(struct cleaner *c, struct strbuf *out);
/* What was found goes on record. */
void cleaner_record(const struct cleaner *c, struct sandbox *s, const char *name, const char *rule);
