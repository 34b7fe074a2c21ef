/* Small texts of HTTP that file transfers depend on: ranges, names, encodings, metadata. Pure
 * functions: strings of strangers in, plain values out. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "lib/http/http.h"

/* ---- Range ----------------------------------------------------------------------------------- */

enum range_kind {
    RANGE_NONE,   /* no header, several ranges, or one that is no range of bytes: the whole file */
    RANGE_FROM,   /* first, and last (inclusive; UINT64_MAX: to the end) */
    RANGE_SUFFIX, /* the last `last` bytes */
};

struct range {
    enum range_kind kind;
    uint64_t first, last;
};

/* header may be NULL. */
struct range range_parse(const char *header);
/* What it means for a file of this size, which must not be 0: false if nothing of it is in there.
 */
bool range_resolve(const struct range *r, uint64_t size, uint64_t *ret_first, uint64_t *ret_len);

/* ---- names and encodings --------------------------------------------------------------------- */

/* The value of Content-Disposition for a download: one line, whatever is in the path's last name.
 */
void disposition_write(struct strbuf *out, const char *path);
/* Does Accept-Encoding (may be NULL) rule out an answer that is not encoded? */
bool identity_refused(const char *accept);
/* The media type of a Content-Type without its parameters, compared without regard to case. */
bool media_type_is(const char *content_type, const char *type);

/* ---- metadata -------------------------------------------------------------------------------- */

/* X-Metadata-<key> headers, in the form of a file's metadata in wire/agent.h. Keys are
 * [a-z0-9._-]+, so none can name an attribute outside user.e2b; values are printable ASCII. */
int metadata_from_headers(const struct http_header *headers, size_t n, struct strbuf *ret,
                          struct sg_error *e);
