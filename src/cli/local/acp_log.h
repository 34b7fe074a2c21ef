/* The log of one hosted agent, for whoever started it: lines of JSON in the form of the server's
 * log (lib/log/log_form.h), to a file or to standard error. */
#pragma once

#include "lib/log/log.h"

struct acp_log {
    int fd;   /* -1: no log is wanted */
    bool own; /* acp_log_done closes fd */
    char sandbox_id[24];
};

/* path NULL: no log; "-": standard error; else a file that lines are appended to. */
int acp_log_open(struct acp_log *l, const char *path, struct sg_error *e);
void acp_log_done(struct acp_log *l);
/* Writes one line. status and ns are 0 if they do not apply. */
void acp_log_say(const struct acp_log *l, enum settings_level level, enum fault fault, int status,
                 uint64_t ns, const char *fmt, ...) PRINTF(6, 7);
