/* A system-call filter by refusal: what is on a list fails with EPERM, the rest works. Not an
 * allow-list: what libc and large libraries call differs from version to version, and a server that
 * dies after an upgrade helps nobody. Sandboxes have a stricter one (inside/stage/seccomp.h). */
#pragma once

#include "lib/base/err.h"

/* Whatever a process of the server is, it has no use for these: exec, ptrace, mounts, namespaces,
 * bpf, io_uring, keys, modules, options of sockets that load code. New processes are refused too;
 * threads work. */
struct filter {
    const int *refused; /* further calls */
    size_t n_refused;
    const int *families; /* socket() makes these only, of TCP and UDP alone; NULL: any */
    size_t n_families;
};
int filter_load(const struct filter *f, const char *whose, struct sg_error *e);
