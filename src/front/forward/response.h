/* An HTTP answer from a server inside a sandbox, read strictly. Sans I/O: bytes in, callbacks out.
 *
 *             1xx: again
 *            .---------.
 *            v         |
 *   start --> HEAD ----'---> BODY ---> DONE
 *               `--- 101 --> UPGRADED            the rest is no HTTP
 *
 * The head is collected whole, checked for things that no head may have (lines that do not end in
 * CR LF, folded lines, control characters), and given to llhttp. It may also have only one
 * Content-Length or one Transfer-Encoding that is exactly "chunked", not both. llhttp then takes
 * the body apart. */
#pragma once

#include <llhttp.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "lib/http/http.h"

#define RESPONSE_HEAD_MAX    (64u * 1024)
#define RESPONSE_HEADERS_MAX 128
#define RESPONSE_INTERIM_MAX 16 /* 1xx answers before the final one */

enum response_state { RESPONSE_HEAD, RESPONSE_BODY, RESPONSE_DONE, RESPONSE_UPGRADED };

struct response {
    /* Set by the owner. */
    void *owner;
    bool to_head;     /* the request was HEAD: there is no body */
    bool may_upgrade; /* 101 is a possible answer */
    /* Called once, when the head is whole. Names are in lower case; all is valid during the
     * call. */
    void (*on_head)(struct response *r);
    void (*on_body)(struct response *r, const char *p, size_t len);

    enum response_state state;
    int status;
    int64_t length; /* length of the body; -1: not known */
    struct http_header headers[RESPONSE_HEADERS_MAX];
    size_t n_headers;

    unsigned interim;
    struct strbuf head;
    llhttp_t parser;
    llhttp_settings_t settings;
    bool head_seen; /* llhttp has parsed the head */
};

void response_init(struct response *r);
void response_done(struct response *r);
/* Takes bytes until the answer is complete. Bytes that are not used belong to nobody, or, when
 * UPGRADED, to the other protocol. -EPROTO: this answer cannot be passed on. */
int response_feed(struct response *r, const char *p, size_t len, size_t *ret_used,
                  struct sg_error *e);
/* The connection has ended. -EPROTO: the answer was not complete. */
int response_eof(struct response *r, struct sg_error *e);
