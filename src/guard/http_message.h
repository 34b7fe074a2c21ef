/* Heads of HTTP/1 messages, read strictly and without I/O, and which of their fields may be passed
 * on.
 *
 * Nothing is passed on as it came: the guard writes anew what it understood. It refuses whatever
 * two readers could understand differently: a line that does not end in CR LF, control characters,
 * folded lines, names that are no tokens, blanks before a colon, more than one Content-Length or
 * one that is not plain digits, a Transfer-Encoding that is not exactly "chunked", both of these
 * together, versions other than 1.0 and 1.1. */
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
bool http_text_is(struct http_text t, const char *s); /* ignores case */
struct http_text http_text_skip(struct http_text t, size_t n);
struct http_text http_text_trim(struct http_text t); /* without blanks around it */
/* Whether c can be in a method or in the name of a header field. */
static inline bool http_is_token(char c)
{
    return c > 0x20 && c < 0x7f && !strchr("()<>@,;:\\\"/[]?={}", c);
}

struct http_field {
    struct http_text name, value; /* value: without blanks around it */
};

enum http_framing { FRAMING_NONE, FRAMING_LENGTH, FRAMING_CHUNKED, FRAMING_CLOSE };

struct http_message {
    struct http_text method, target; /* of a request */
    unsigned status;                 /* of an answer */
    struct http_text reason;
    bool http10;
    bool close;     /* the sender will not use the connection again */
    bool websocket; /* asks for, or grants, the WebSocket protocol */
    bool expect;    /* the client waits for 100 before it sends the body */
    bool host_port; /* Host has a port */
    enum http_framing framing;
    uint64_t length;
    size_t n_fields;
    struct http_field fields[HTTP_MESSAGE_FIELDS];
};

/* Finds the end of a head while it comes in; looks at each byte once. */
struct http_scan {
    size_t at;      /* bytes looked at */
    size_t line;    /* where the current line begins */
    unsigned lines; /* complete lines before it */
};
/* p is the head from its first byte on. Returns the length of the head, with the empty line; 0: its
 * end has not come yet; -EINVAL: no head looks like that; -E2BIG. */
ssize_t http_scan(struct http_scan *s, const char *p, size_t len);

/* Reads a whole head. Returns 0, or the status to refuse it with and the reason in *ret_why. ret
 * points into p. */
int http_read_request(const char *p, size_t len, struct http_message *ret, const char **ret_why);
/* to_head: the response answers a HEAD request. 0 or -EPROTO. */
int http_read_response(const char *p, size_t len, bool to_head, struct http_message *ret,
                       const char **ret_why);
/* Checks that a request is for the host that the connection is with: in Host, and in the target if
 * that names a host, which is then removed from the target. 0, or the status to refuse it with: 400
 * or 421. */
int http_check_host(struct http_message *m, const char *name, uint16_t port, bool tls,
                    const char **ret_why);

/* The first field of that name, or NULL. */
const struct http_field *http_find(const struct http_message *m, const char *name);
/* Whether a field goes on to the other side as it is. Two kinds do not: fields of one connection
 * alone (the known ones and those that Connection lists), and fields that the guard writes anew
 * (Host, Expect, framing). */
bool http_passes(const struct http_message *m, const struct http_field *f);
/* Whether a name is that of a field that never passes. */
bool http_is_own(const char *name);
/* Whether text can be a field's value: no control characters but tabs. */
bool http_is_value(const char *p, size_t len);
void http_write_field(struct strbuf *out, struct http_text name, struct http_text value);
