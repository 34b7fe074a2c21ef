/* Heads of HTTP/1 messages, read strictly and without I/O, and what of them may be passed on.
 *
 * Nothing is passed on as it came: what was understood is written anew. Refused is what two readers
 * could understand differently: a line that does not end in CR LF, control characters, folded
 * lines, names that are no tokens, blanks before a colon, more than one Content-Length or one that
 * is not plain digits, a Transfer-Encoding that is not exactly "chunked", both of these together,
 * versions other than 1.0 and 1.1. */
#pragma once

#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define HTTP_MESSAGE_MAX    (64u * 1024)
#define HTTP_MESSAGE_FIELDS 128

/* A piece of a head; not terminated. */
struct http_text {
    const char *p;
    size_t len;
};
bool http_text_is(struct http_text t, const char *s); /* whatever the case */

struct http_field {
    struct http_text name, value; /* without blanks around it */
};

enum http_framing { FRAMING_NONE, FRAMING_LENGTH, FRAMING_CHUNKED, FRAMING_CLOSE };

struct http_message {
    struct http_text method, target; /* of a request */
    unsigned status;                 /* of an answer */
    struct http_text reason;
    bool http10;
    bool close;     /* whoever sent it will use the connection no more */
    bool websocket; /* asks for, or grants, that protocol */
    bool expect;    /* waits for 100 before it sends the body */
    bool host_port; /* Host has a port */
    enum http_framing framing;
    uint64_t length;
    size_t n_fields;
    struct http_field fields[HTTP_MESSAGE_FIELDS];
};

/* Finds the end of a head while it comes in, each byte looked at once. */
struct http_scan {
    size_t at;      /* bytes looked at */
    size_t line;    /* where the line at hand begins */
    unsigned lines; /* before it */
};
/* p is the head from its first byte on. Returns its length, with the empty line; 0: its end has not
 * come; -EINVAL: no head is like that; -E2BIG. */
ssize_t http_scan(struct http_scan *s, const char *p, size_t len);

/* A whole head. 0, or the status to refuse it with; *ret_why then says why. ret points into p. */
int http_read_request(const char *p, size_t len, struct http_message *ret, const char **ret_why);
/* to_head: it answers a HEAD. 0 or -EPROTO. */
int http_read_response(const char *p, size_t len, bool to_head, struct http_message *ret,
                       const char **ret_why);
/* That a request is for who the connection is with: in Host, and in its target if that has a host,
 * which is taken off. 0; 400; 421. */
int http_check_host(struct http_message *m, const char *name, uint16_t port, bool tls,
                    const char **ret_why);

/* The first of that name, or NULL. */
const struct http_field *http_find(const struct http_message *m, const char *name);
/* Whether a field goes on to the other side as it is: not those of one connection alone, the known
 * ones and those that Connection lists, and not those that are written anew (Host, Expect,
 * framing).
 */
bool http_passes(const struct http_message *m, const struct http_field *f);
/* Whether a name is one of those that never pass. */
bool http_is_own(const char *name);
bool http_is_token(const char *p, size_t len);
/* Whether text can be a field's value: no control characters but tabs. */
bool http_is_value(const char *p, size_t len);
void http_write_field(struct strbuf *out, struct http_text name, struct http_text value);
