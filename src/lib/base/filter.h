/* A system-call filter for the server's processes, by refusal: the calls on a list fail with EPERM,
 * all others work. It is no allow-list, because the calls of libc and large libraries differ from
 * version to version, and a server that dies after an upgrade helps nobody. Sandboxes have a
 * stricter filter (inside/stage/seccomp.h). */
#pragma once

#include "lib/base/err.h"

/* No process of the server needs these, so all are refused: exec, ptrace, mounts, namespaces, bpf,
 * io_uring, keys, modules, and socket options that load code. New processes are refused too;
 * threads work. */
struct filter {
    const int *refused; /* further calls to refuse */
    size_t n_refused;
    const int *families; /* socket() makes only these, and only TCP and UDP; NULL: any */
    size_t n_families;
};
int filter_load(const struct filter *f, const char *whose, struct sg_error *e);
