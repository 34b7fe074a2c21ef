/* Tries again what a network or a busy server spoilt, after pauses that grow. */
#pragma once

#include "pull/http.h"

struct attempt {
    bool again;        /* the error may be gone the next time */
    bool further;      /* something was won: the count begins anew */
    uint64_t after_ms; /* the server's own wish */
};

/* Calls `once` until it succeeds, says that another try is of no use, or has been called as often
 * as the request's limits allow. */
int retry(struct http *h, int (*once)(void *arg, struct attempt *ret, struct sg_error *e),
          void *arg, struct sg_error *e);
/* Turns a status that is no success into an error. what: "the manifest of debian:12". */
int retry_status(const struct http_answer *a, const char *what, const char *origin,
                 struct attempt *ret, struct sg_error *e);
