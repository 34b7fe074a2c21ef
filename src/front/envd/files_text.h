/* Parsers and writers for the HTTP headers of file transfers: ranges, names, encodings, metadata.
 * They are pure functions: strings of strangers in, plain values out. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "lib/http/http.h"

/* ---- Range ----------------------------------------------------------------------------------- */

enum range_kind {
    RANGE_NONE,   /* the whole file: no header, several ranges, or none of bytes */
    RANGE_FROM,   /* from `first` to `last` (inclusive; UINT64_MAX: to the end) */
    RANGE_SUFFIX, /* the last `last` bytes */
};

struct range {
    enum range_kind kind;
    uint64_t first, last;
};

/* `header` may be NULL. */
struct range range_parse(const char *header);
/* The part of a file of this size, which must not be 0. False: no byte of the range is in the
 * file. */
bool range_resolve(const struct range *r, uint64_t size, uint64_t *ret_first, uint64_t *ret_len);

/* ---- names and encodings --------------------------------------------------------------------- */

/* Writes the value of Content-Disposition for a download. It is one line, whatever characters the
 * last name of the path has. */
void disposition_write(struct strbuf *out, const char *path);
/* Whether Accept-Encoding (may be NULL) rules out an answer that is not encoded. */
bool identity_refused(const char *accept);
/* Whether a Content-Type, without its parameters, is `type`. Case does not count. */
bool media_type_is(const char *content_type, const char *type);

/* ---- metadata -------------------------------------------------------------------------------- */

/* Reads X-Metadata-<key> headers into the form that a file's metadata has in wire/agent.h. Keys are
 * [a-z0-9._-]+, so none can name an attribute outside user.e2b; values are printable ASCII. */
int metadata_from_headers(const struct http_header *headers, size_t n, struct strbuf *ret,
                          struct sg_error *e);
