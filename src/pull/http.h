/* One exchange over HTTP at a time, with libcurl: nothing is followed, tried again or remembered
 * here but the connection. What is hostile is bounded: heads, bodies, time. */
#pragma once

#include "lib/text/strbuf.h"
#include "pull/deadline.h"
#include "lib/web/url.h"

struct request;

struct http {
    CURL *curl;
    const struct request *request;
    const struct deadline *deadline;
    bool answered; /* somebody has, so a network is there */
};

struct http_answer {
    long status;
    char type[128]; /* of the content, in lower case, without parameters */
    bool encoded;   /* compressed, which nobody asked for */
    bool has_length;
    uint64_t length;            /* of what comes now */
    uint64_t from;              /* of a part (206), where in the whole it begins; else 0 */
    uint64_t whole;             /* of a part, the length of the whole; 0: not said */
    char location[URL_MAX + 1]; /* of a redirect; one that was cut is too long to be followed */
    char challenge[4096];       /* WWW-Authenticate, all of them */
    uint64_t retry_after_ms;
    struct strbuf trouble; /* the beginning of a body that is no success: an error's JSON */
};

struct http_ask {
    const struct url *url;
    const char *accept;         /* NULL: anything */
    const char *authorization;  /* the header's value; NULL: none */
    const char *const *headers; /* more, "name: value", ended by NULL; NULL: none */
    const char *body;           /* a POST; NULL: a GET */
    size_t body_len;
    uint64_t from; /* asks for what begins there */
    /* Called before the first byte of a success (200, 206), and for each piece of it. An error ends
     * the exchange and is its result. */
    int (*begin)(void *arg, const struct http_answer *a, struct sg_error *e);
    int (*take)(void *arg, const void *data, size_t len, struct sg_error *e);
    void *arg;
};

int http_init(struct http *h, const struct request *q, const struct deadline *d,
              struct sg_error *e);
void http_done(struct http *h); /* accepts a zeroed struct */
/* 0: there is an answer, whatever its status. ret must be zeroed, and released in any case.
 * *ret_again: the error may be gone if the same is tried again. */
int http_exchange(struct http *h, const struct http_ask *ask, struct http_answer *ret,
                  bool *ret_again, struct sg_error *e);
void http_answer_done(struct http_answer *a);
