/* The system-call filters: allow-lists, each compiled once into a tree of ranges and loaded as plain
 * BPF. The filter of programs in sandboxes also checks arguments:
 *
 *   foreign architecture          kill the process
 *   x32 numbers                   ENOSYS
 *   listed, arguments fine        allow
 *   listed, arguments refused     EPERM; EPROTONOSUPPORT for an audit socket, as if there were none
 *   known and not listed          EPERM
 *   newer than the list, clone3   ENOSYS, so that libc falls back to what it can do
 *
 * Filters are inherited, and every call must pass all of them. So a process that programs descend
 * from is allowed what programs are, with any arguments, and some calls of its own:
 *
 *   warden        all that its descendants need, BPF, names of file handles
 *     spawner     mounts, namespaces
 *       agent     mounts, to move into another root; then come programs
 *     broker      ptrace, other processes' memory, namespaces
 *       zygote    namespaces; its copies are stopped until they become programs
 *
 * A program has as many filters by the first way as by the second: the broker finds by their number
 * which program has loaded one of its own.
 *
 * These filters look at no argument, so the kernel remembers what they allow in a bitmap, and
 * programs do not pay for them.
 *
 * seccomp_rules.c has the rules, with reasons where they are not obvious. The compiler in seccomp.c
 * knows nothing about particular calls. seccomp_load.c is apart: the warden loads a filter that a
 * child without rights has compiled. */
#pragma once

#include <linux/filter.h>

#include "lib/base/err.h"

struct strbuf;

#define SECCOMP_PROG_MAX 512

struct seccomp_prog {
    unsigned short len;
    struct sock_filter insns[SECCOMP_PROG_MAX];
};

enum seccomp_role {
    SECCOMP_PROGRAM,
    SECCOMP_SPAWNER,
    SECCOMP_AGENT,
    SECCOMP_ZYGOTE,
    SECCOMP_BROKER,
    SECCOMP_WARDEN,
};

/* Compiles the rules of a role. Takes some microseconds and allocates nothing. Fails only if the tables are
 * wrong (a unit test checks them) or the program is too long; ret->insns is scratch space then. */
int seccomp_compile(enum seccomp_role role, struct seccomp_prog *ret, struct sg_error *e);
/* Loads the filter for the calling thread, which must have no_new_privs or CAP_SYS_ADMIN. 0 or -errno. Allocates
 * nothing. */
int seccomp_load(const struct seccomp_prog *p);
/* Compiles and loads in one. */
int seccomp_confine(enum seccomp_role role, struct sg_error *e);

/* The name of a call, for messages; "a system call" if the rules do not know it. */
const char *seccomp_call_name(int64_t nr);

/* Appends the policy of programs as text, one call per line: name, answer, condition. */
void seccomp_explain(struct strbuf *out);
