/* Parses multipart/form-data piece by piece, without I/O: bytes in, callbacks out. It holds at most
 * the headers of one part and the length of one boundary. */
#pragma once

#include "lib/base/err.h"

#define MULTIPART_PARTS_MAX   1000
#define MULTIPART_HEADERS_MAX 8192

struct multipart;

struct multipart_handlers {
    /* name and filename as in Content-Disposition, unescaped (%22, %0D, %0A and backslash forms as
     * browsers and undici write them), "" if absent. A negative result stops the parser, which
     * returns it. */
    int (*on_part)(void *arg, const char *name, const char *filename, struct sg_error *e);
    int (*on_data)(void *arg, const char *data, size_t len, struct sg_error *e);
    int (*on_part_end)(void *arg, struct sg_error *e);
};

/* Makes a parser from the Content-Type header. -EINVAL: the type is not multipart/form-data, or has
 * no usable boundary. */
int multipart_new(const char *content_type, const struct multipart_handlers *h, void *arg,
                  struct multipart **ret, struct sg_error *e);
int multipart_feed(struct multipart *m, const char *data, size_t len, struct sg_error *e);
/* At the end of the body: -EINVAL if the closing boundary has not come. */
int multipart_end(struct multipart *m, struct sg_error *e);
void multipart_free(struct multipart *m); /* NULL is allowed */
