/* Reads the head of a request: its lines and their meaning, without I/O.
 *
 * Two steps. head_scan looks at bytes as they come, once each, and finds the end of the head. It
 * refuses what no head may have: a line that does not end in CR LF, control characters, folded
 * lines, too much of anything. head_parse then has llhttp check the grammar of the whole head, and
 * takes it apart in place. head_parse adds rules of its own, because requests get smuggled where
 * two programs read the same bytes differently: one Host, one Content-Length of plain digits or one
 * Transfer-Encoding that is exactly "chunked", never both, single spaces in the first line. */
#pragma once

#include "lib/base/base.h"

struct http_limits;
struct req;

struct head_scan {
    uint32_t pos;   /* bytes looked at */
    uint32_t line;  /* where the current line begins */
    uint32_t start; /* where the request line begins: one empty line before it is ignored */
    uint32_t headers;
    bool cr;
    bool in_headers;
};

/* p holds the head from its first byte on. Returns the head's length, or 0 if its end has not come,
 * or a negative status to refuse the request with; *ret_why says why. */
int head_scan(struct head_scan *s, const struct http_limits *limits, const char *p, size_t len,
              const char **ret_why);

struct http_header;
/* Fills r from the head, a NUL-terminated block that lives as long as r and is changed. `headers`
 * has room for as many as were scanned. Returns 0, or a negative status to refuse the request
 * with. */
int head_parse(struct req *r, char *head, size_t len, struct http_header *headers, size_t n_headers,
               const char **ret_why);
