/* The answer to a client about the end of a cell: at most one error. */
#pragma once

#include "wire/agent.h"
#include "front/interpreter/results.h"

struct ending {
    int status;          /* status of the call: 0, or an errno */
    enum kernel_end how; /* this and the rest count if status is 0 */
    uint32_t code;
    bool timed_out;
    uint64_t memory_limit; /* that ended its kernel, or 0 */
};

/* Reads the result of OP_KERNEL_EXECUTE. False: it makes no sense. */
bool ending_read(const void *result, size_t len, struct ending *ret);
/* The status of a shell's cell, or of a kernel that ended by itself; 0 if that is not known. */
unsigned ending_code(const struct ending *end);
/* Puts the error that the client gets into r->error. An error that the kernel told is overwritten
 * if the cell ran out of time or its kernel is gone: that matters more than how the cell took it.
 * `message` is the call's. False: there was no error. */
bool ending_error(const struct ending *end, const char *message, uint64_t timeout_ms,
                  struct results *r);
