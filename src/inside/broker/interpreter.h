/* How the broker starts an interpreter: in a child that joins a memory group, sees the files of a sandbox, keeps the
 * one capability that an H needs, and executes Python. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "inside/broker/twin.h"

struct interpreter {
    const char *mode; /* "--zygote" or "--plain" */
    const char *imports;
    uint32_t first_id, cpus; /* as in struct twin_request */
    int namespaces[TWIN_ZYGOTE_FDS];
    int door;     /* of the memory group */
    int three;    /* becomes its descriptor 3 */
    int four;     /* becomes its descriptor 4; -1: it has none */
    int say;      /* what went wrong is sent there, after a '!' */
    int go_ahead; /* it does nothing until a byte comes from there; -1: at once */
};

/* Runs in the child, in which nothing but a fork has happened. */
_Noreturn void interpreter_run(const struct interpreter *i);
