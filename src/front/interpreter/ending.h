/* What the end of a cell means to its client: at most one error. */
#pragma once

#include "wire/agent.h"
#include "front/interpreter/results.h"

struct ending {
    int status;          /* of the call: 0, or an errno */
    enum kernel_end how; /* the rest is for 0 */
    uint32_t code;
    bool timed_out;
};

/* The result of OP_KERNEL_EXECUTE. False: it makes no sense. */
bool ending_read(const void *result, size_t len, struct ending *ret);
/* Puts into r->error what is to be said, over what the kernel said: that a cell's time was over, or
 * that its kernel is gone, is more than how the cell took it. message: of the call. False: there
 * was no error. */
bool ending_error(const struct ending *end, const char *message, uint64_t timeout_ms,
                  struct results *r);
