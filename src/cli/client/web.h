/* HTTP through libcurl: one request after the other on a handle, which keeps its connections.
 *
 * Errors tell three cases apart, because users want to know which it is: the server could not be
 * reached (-EHOSTUNREACH), it took too long (-ETIMEDOUT), a signal came (-EINTR). An answer of the
 * server is no error here, whatever its status. */
#pragma once

#include <curl/curl.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define WEB_REPLY_MAX       (32u * 1024 * 1024)
#define WEB_CALL_TIMEOUT_MS 60000
#define WEB_TOKEN_MAX       1024

struct web_request {
    const char *method, *url;
    const struct curl_slist *headers;
    const struct strbuf *body; /* NULL: none */
    uint64_t more_ms;          /* time for the call beyond WEB_CALL_TIMEOUT_MS */
};

struct web_reply {
    long status;
    struct strbuf body;
    char next_token[WEB_TOKEN_MAX]; /* X-Next-Token, "" if the page was the last one */
};

/* Adds "NAME: value" to a list; *list starts as NULL. Free it with web_headers_done. */
void web_add_header(struct curl_slist **list, const char *name, const char *value);
void web_headers_done(struct curl_slist **list);

/* Copies the value of a header line into ret, if the line is of this name, which ends with a
 * colon, and the value fits. */
void web_take_header(const char *line, size_t len, const char *name, char *ret, size_t cap);

/* Prepares the handle for this request. The answer goes to standard output unless the caller sets
 * another place. Only connecting has a time limit. */
void web_prepare(CURL *easy, const struct web_request *q);
/* Makes the request that was prepared. */
int web_perform(CURL *easy, const char *url, struct sg_error *e);
/* Turns a result of libcurl into an error. Returns 0 for CURLE_OK. */
int web_result(CURL *easy, CURLcode code, const char *url, struct sg_error *e);

/* Prepares a request whose whole answer is wanted, bounded in size and time. The answer goes into
 * `reply`; call web_reply_done on it even after an error. */
void web_prepare_call(CURL *easy, const struct web_request *q, struct web_reply *reply);
/* Makes such a request and waits for its end. */
int web_call(CURL *easy, const struct web_request *q, struct web_reply *ret, struct sg_error *e);
void web_reply_done(struct web_reply *r);
