/* The value of --network: "block", "allow", or a list of destinations with commas between:
 *
 *     example.com,*.example.com,192.0.2.0/24     nothing but these
 *     !192.0.2.7,!*.ads.example                  everything but these */
#pragma once

#include "lib/base/err.h"

#define NETWORK_LIST_MAX 4096 /* entries */

struct network_list {
    enum sg_network mode;
    const char **allow, **deny; /* NULL-terminated, or NULL */
    char *text;                 /* a copy of the value, which the lists point into */
};

/* Parses `value` into `l`, and frees what `l` held before. */
int network_list_parse(struct network_list *l, const char *value, struct sg_error *e);
void network_list_done(struct network_list *l);
