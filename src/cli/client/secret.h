/* The command line of `sandglass secret`, and where the value of a secret comes from. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

#define SECRET_LIST_MAX  64           /* hosts, and as many headers */
#define SECRET_VALUE_MAX (64u * 1024) /* bytes */

struct secret_list {
    const char *entries[SECRET_LIST_MAX];
    size_t n;
};

struct secret_options {
    struct client_actions base;
    struct secret_list hosts, headers;
    const char *from_file;
};

/* Reads the value from the file, from standard input, or from a terminal, which does not show it.
 * One line end after the value does not belong to it. The caller must wipe *ret. */
int secret_value_read(const char *from_file, const char *name, struct strbuf *ret,
                      struct sg_error *e);
