/* The page that a source has for its copies: the code that works off tables (cpu.h), the table of
 * H, the table of K, and what their calls point to. It is written once; of a copy only the limits
 * differ. */
#pragma once

#include "inside/stage/seccomp.h"
#include "inside/broker/source.h"
#include "inside/broker/twin.h"

/* visit: as in struct source. */
size_t tables_bytes(const struct remote_calls *remote_calls);

/* Into the stopped source, at its page. */
int tables_install(struct source *s, const struct seccomp_prog *filter, struct sg_error *e);
/* Into a copy, before its table is worked off. */
int tables_set_limits(const struct source *s, pid_t h, uint32_t pids, uint64_t disk_bytes,
                      struct sg_error *e);
/* Sets the registers so that the copy works off its table. */
int tables_aim_h(const struct source *s, pid_t h, struct sg_error *e);
int tables_aim_k(const struct source *s, pid_t k, struct sg_error *e);
/* What each call said: 0, or the first that failed. *ret_pid: of K, as seen inside. */
int tables_check(const struct source *s, pid_t h, pid_t *ret_pid, struct sg_error *e);
