/* multipart/form-data, piece by piece. Sans I/O: bytes in, callbacks out; holds at most one part's
 * headers and one boundary's length. */
#pragma once

#include "lib/base/err.h"

#define MULTIPART_PARTS_MAX   1000
#define MULTIPART_HEADERS_MAX 8192

struct multipart;

struct multipart_handlers {
    /* name and filename as in Content-Disposition, unescaped (%22, %0D, %0A and backslash forms as
     * browsers and undici write them), "" if absent. Negative stops the parser with that. */
    int (*on_part)(void *arg, const char *name, const char *filename, struct sg_error *e);
    int (*on_data)(void *arg, const char *data, size_t len, struct sg_error *e);
    int (*on_part_end)(void *arg, struct sg_error *e);
};

/* From the Content-Type header. -EINVAL: it is no multipart/form-data, or has no usable boundary.
 */
int multipart_new(const char *content_type, const struct multipart_handlers *h, void *arg,
                  struct multipart **ret, struct sg_error *e);
int multipart_feed(struct multipart *m, const char *data, size_t len, struct sg_error *e);
/* At the end of the body: -EINVAL if the closing boundary has not come. */
int multipart_end(struct multipart *m, struct sg_error *e);
void multipart_free(struct multipart *m); /* NULL is allowed */
