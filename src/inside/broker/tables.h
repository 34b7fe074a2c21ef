/* The page that a source holds for its copies: the code that works through tables (cpu.h), the
 * table of H, the table of K, and the data that their calls point to. It is written once; in each
 * copy only the limits differ. */
#pragma once

#include "inside/stage/seccomp.h"
#include "inside/broker/source.h"
#include "inside/broker/twin.h"

/* remote_calls: as in struct source. */
size_t tables_bytes(const struct remote_calls *remote_calls);

/* Writes the page into the stopped source. */
int tables_install(struct source *s, const struct seccomp_prog *filter, struct sg_error *e);
/* Writes the limits into a copy, before the copy works through its table. */
int tables_set_limits(const struct source *s, pid_t h, uint32_t pids, uint64_t disk_bytes,
                      struct sg_error *e);
/* Each sets the registers so that the copy works through its table. */
int tables_aim_h(const struct source *s, pid_t h, struct sg_error *e);
int tables_aim_k(const struct source *s, pid_t k, struct sg_error *e);
/* Checks what each call returned: 0, or the error of the first that failed. *ret_pid: K's pid
 * inside. */
int tables_check(const struct source *s, pid_t h, pid_t *ret_pid, struct sg_error *e);
