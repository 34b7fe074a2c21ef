/* HTTP by libcurl: one request after the other on a handle, whose connections are kept.
 *
 * Errors tell three things apart, because a user does: the server could not be reached
 * (-EHOSTUNREACH), it took too long (-ETIMEDOUT), a signal came (-EINTR). What a server answers is
 * no error here, whatever the status. */
#pragma once

#include <curl/curl.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define WEB_REPLY_MAX       (32u * 1024 * 1024)
#define WEB_CALL_TIMEOUT_MS 60000

struct web_request {
    const char *method, *url;
    const struct curl_slist *headers;
    const char *body; /* NULL: none */
    size_t body_len;
    uint64_t more_ms; /* that a call may take beyond WEB_CALL_TIMEOUT_MS */
};

struct web_reply {
    long status;
    struct strbuf body;
    char next_token[1024]; /* X-Next-Token, "" if the page was the last one */
};

/* Adds "NAME: value" to a list; *list starts as NULL and is freed with web_headers_done. */
void web_add_header(struct curl_slist **list, const char *name, const char *value);
void web_headers_done(struct curl_slist **list);

/* Makes the handle ready for this request. Answers go to standard output unless the caller sets
 * where, and there is no time limit but the one for connecting. */
void web_prepare(CURL *easy, const struct web_request *q);
/* Does what was prepared. */
int web_perform(CURL *easy, const char *url, struct sg_error *e);
/* What a result of libcurl means. Returns 0 for CURLE_OK. */
int web_result(CURL *easy, CURLcode code, const char *url, struct sg_error *e);

/* The same for a request whose whole answer is wanted, bounded in size and time: it goes into
 * `reply`, which must be web_reply_done in any case. */
void web_prepare_call(CURL *easy, const struct web_request *q, struct web_reply *reply);
/* Such a request, made and waited for. */
int web_call(CURL *easy, const struct web_request *q, struct web_reply *ret, struct sg_error *e);
void web_reply_done(struct web_reply *r);
