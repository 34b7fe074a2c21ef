/* The page that a zygote has for its copies: the code that works off tables (cpu.h), the table of
 * H, the table of K, and what their calls point to. It is written once; of a copy only the limits
 * differ. */
#pragma once

#include "warden/stage/seccomp.h"
#include "warden/twin/twin.h"
#include "warden/twin/zygote.h"

#define TABLES_BYTES 32768u

/* Offsets within it. */
size_t tables_code(void);
size_t tables_h(void);
size_t tables_k(void);
size_t tables_h_stack(void);
size_t tables_k_stack(void);

/* Into the stopped zygote, at z->page. */
int tables_install(const struct zygote *z, const struct seccomp_prog *filter, struct sg_error *e);
/* Into a copy, before its table is worked off. */
int tables_set_limits(const struct zygote *z, pid_t h, uint32_t pids, uint64_t disk_bytes,
                      struct sg_error *e);
/* What each call said: 0, or the first that failed. *ret_pid: of K, as seen inside. */
int tables_check(const struct zygote *z, pid_t h, pid_t *ret_pid, struct sg_error *e);
