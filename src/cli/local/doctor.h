/* The checks of `sandglass doctor`. A check looks at one thing that sandboxes need or profit from.
 * Checks change nothing: if one must try something out (namespaces, mounts, cgroups), it works in a
 * child process or undoes it afterwards. */
#pragma once

#include "lib/base/base.h"
#include "lib/command/options.h"

enum check_state {
    CHECK_OK,
    CHECK_WARN,    /* sandboxes run, with less protection or fewer features */
    CHECK_MISSING, /* no sandbox can run */
    CHECK_MAX_
};

struct check_result {
    const void *about; /* of the check */
    enum check_state state;
    char value[160]; /* what was found */
    char fix[320];   /* what to do; empty when the state is CHECK_OK */
};

struct check {
    const char *name;
    void (*probe)(struct check_result *r);
    const void *about; /* NULL, or what the probe looks at, if it serves several checks */
};

struct check_group {
    const char *title;
    const struct check *checks;
    size_t n;
};

extern const struct cli_syntax doctor_syntax;

extern const struct check_group doctor_host, doctor_namespaces, doctor_filesystems,
    doctor_confinement, doctor_cgroups, doctor_runtimes, doctor_server;

/* Each sets the state and the value; check_fix adds the fix. */
#define check_ok(r, ...)      check_set(r, CHECK_OK, __VA_ARGS__)
#define check_warn(r, ...)    check_set(r, CHECK_WARN, __VA_ARGS__)
#define check_missing(r, ...) check_set(r, CHECK_MISSING, __VA_ARGS__)
void check_set(struct check_result *r, enum check_state state, const char *fmt, ...) PRINTF(3, 4);
void check_fix(struct check_result *r, const char *fmt, ...) PRINTF(2, 3);

/* Runs fn in a child process and returns fn's result: 0 or -errno. A child that hangs is ended
 * after some seconds (-ETIMEDOUT). */
int probe_in_child(int (*fn)(void *arg), void *arg);
/* Reads a number from /proc/sys/NAME; -1 if there is none. */
long probe_sysctl(const char *name);
