/* An answer of any length to a client that may be slow. Bytes that the client does not take yet
 * wait here and not in the connection, which the server would drop for them. */
#pragma once

#include "lib/text/strbuf.h"
#include "lib/http/http.h"

struct outlet {
    struct http_req *req; /* http_start was called */
    struct strbuf waiting;
    size_t at;
    bool choked, finish;
};

void outlet_init(struct outlet *s, struct http_req *req, size_t max);
void outlet_done(struct outlet *s);
/* False: the client has not taken everything, and the caller should wait until outlet_pump returns
 * true. */
bool outlet_write(struct outlet *s, const void *p, size_t len);
/* Completes the answer when the client has taken everything. */
void outlet_finish(struct outlet *s);
/* The connection takes more. True: no bytes wait any longer. */
bool outlet_pump(struct outlet *s);
