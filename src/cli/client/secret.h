/* sandglass secret: the secrets of a tenant, through E2B's API.
 *
 *   secret.c        the command line           secret_set.c   set
 *   secret_value.c  where the value is from    secret_list.c  ls, show, rm */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

#define SECRET_LIST_MAX   64           /* hosts, and as many headers */
#define SECRET_VALUE_MAX  (64u * 1024) /* bytes */
#define SECRET_KEY_HOSTS  "sandglass.hosts"
#define SECRET_KEY_HEADER "sandglass.headers"

struct secret_list {
    const char *entries[SECRET_LIST_MAX];
    size_t n;
};

struct secret_options {
    struct client_actions base;
    struct secret_list hosts, headers;
    const char *from_file;
};

int secret_set_fn(struct client *c, void *options, struct sg_error *e);
int secret_ls_fn(struct client *c, void *options, struct sg_error *e);
int secret_show_fn(struct client *c, void *options, struct sg_error *e);
int secret_rm_fn(struct client *c, void *options, struct sg_error *e);

/* Reads the value from the file, from standard input, or from a terminal, which does not show it.
 * One line end after the value does not belong to it. The caller must wipe *ret. */
int secret_value_read(const char *from_file, const char *name, struct strbuf *ret,
                      struct sg_error *e);
