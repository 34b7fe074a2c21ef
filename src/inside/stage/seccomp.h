/* The system-call filter of every process in a sandbox but the agent: an allow-list with argument
 * checks, compiled once into a tree of ranges and loaded as plain BPF.
 *
 *   foreign architecture          kill the process
 *   x32 numbers                   ENOSYS
 *   listed, arguments fine        allow
 *   listed, arguments refused     EPERM
 *   known and not listed          EPERM
 *   newer than the list, clone3   ENOSYS, so that libc falls back to what it can do
 *
 * seccomp_rules.c has the rules, with reasons where they are not obvious. The compiler in seccomp.c
 * knows nothing about particular calls. */
#pragma once

#include <linux/filter.h>

#include "lib/base/err.h"

struct strbuf;

#define SECCOMP_PROG_MAX 512

struct seccomp_prog {
    unsigned short len;
    struct sock_filter insns[SECCOMP_PROG_MAX];
};

/* Compiles the rules. Takes some microseconds and allocates nothing. Fails only if the tables are
 * wrong (a unit test checks them) or the program is too long; ret->insns is scratch space then. */
int seccomp_compile(struct seccomp_prog *ret, struct sg_error *e);
/* Loads the filter for the calling thread, which must have no_new_privs. 0 or -errno. Allocates
 * nothing. */
int seccomp_load(const struct seccomp_prog *p);

/* Appends the policy as text, one call per line: name, answer, condition. */
void seccomp_explain(struct strbuf *out);
