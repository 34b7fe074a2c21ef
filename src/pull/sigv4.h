/* Signatures of requests to AWS, version 4. */
#pragma once

#include <time.h>

#include "lib/text/strbuf.h"

struct sigv4_header {
    const char *name; /* lower case */
    const char *value;
};

struct sigv4 {
    const char *method, *path, *query;  /* encoded; the query's names in order */
    const struct sigv4_header *headers; /* in the order of their names; x-amz-date is one of them */
    size_t n_headers;
    const char *body;
    size_t body_len;
    const char *key_id, *secret, *region, *service;
    time_t time;
};

#define SIGV4_TIME_LEN sizeof("20150830T123600Z")

/* The value of x-amz-date. */
void sigv4_time(time_t t, char ret[SIGV4_TIME_LEN]);
/* Appends the value of the header Authorization. */
void sigv4_sign(const struct sigv4 *s, struct strbuf *out);
