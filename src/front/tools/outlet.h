/* An answer of any length to a client that may be slow: what he does not take yet waits here, not
 * in the connection, which would be given up for it. */
#pragma once

#include "lib/text/strbuf.h"
#include "lib/http/http.h"

struct outlet {
    struct http_req *req; /* started */
    struct strbuf waiting;
    size_t at;
    bool choked, finish;
};

void outlet_init(struct outlet *s, struct http_req *req, size_t max);
void outlet_done(struct outlet *s);
/* False: the client has not taken all of it: it is better to wait until outlet_pump says true. */
bool outlet_write(struct outlet *s, const void *p, size_t len);
/* The answer is complete when all was taken. */
void outlet_finish(struct outlet *s);
/* The connection takes more. True: nothing waits any longer. */
bool outlet_pump(struct outlet *s);
