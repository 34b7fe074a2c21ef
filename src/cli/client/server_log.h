/* `sandglass logs --server`: the log of a server on this machine, from its state directory. */
#pragma once

#include "lib/base/err.h"
#include "cli/client/journal.h"

#define SERVER_LOG_LINES_MAX 1000000u

struct server_log_query {
    const char *state;                     /* state directory; NULL: the usual one */
    const char *layer, *request, *sandbox; /* NULL: any */
    enum journal_level level;
    int64_t since_ms;
    uint64_t lines; /* only the last so many; 0: all */
    bool follow, json;
};

int server_log_show(const struct server_log_query *q, struct sg_error *e);
