#include <stdio.h>

#include "front/core/sandbox_end.h"
#include "front/envd/process.h"

static const char *const signals[] = {
    [1] = "hangup",
    [2] = "interrupt",
    [3] = "quit",
    [4] = "illegal instruction",
    [5] = "trace/breakpoint trap",
    [6] = "aborted",
    [7] = "bus error",
    [8] = "floating point exception",
    [9] = "killed",
    [10] = "user defined signal 1",
    [11] = "segmentation fault",
    [12] = "user defined signal 2",
    [13] = "broken pipe",
    [14] = "alarm clock",
    [15] = "terminated",
    [16] = "stack fault",
    [17] = "child exited",
    [18] = "continued",
    [19] = "stopped (signal)",
    [20] = "stopped",
    [21] = "stopped (tty input)",
    [22] = "stopped (tty output)",
    [23] = "urgent I/O condition",
    [24] = "CPU time limit exceeded",
    [25] = "file size limit exceeded",
    [26] = "virtual timer expired",
    [27] = "profiling timer expired",
    [28] = "window changed",
    [29] = "I/O possible",
    [30] = "power failure",
    [31] = "bad system call",
};

/* The status is in E2B's words, by which clients know the signal; the error is for people. */
static json_t *error_text(const char *status, bool killed, uint32_t code, uint64_t memory_limit)
{
    char text[MEMORY_LIMIT_TEXT];

    return rpc_text(memory_limit ? memory_limit_text(memory_limit, killed ? 0 : code, text)
                                 : status);
}

json_t *process_end_event(bool killed, uint32_t code, uint64_t memory_limit)
{
    char status[64];
    json_t *end;

    if (!killed)
        snprintf(status, sizeof(status), "exit status %u", code & 255);
    else if (code < ARRAY_SIZE(signals) && signals[code])
        snprintf(status, sizeof(status), "signal: %s", signals[code]);
    else
        snprintf(status, sizeof(status), "signal: signal %u", code);
    end = json_pack("{s:s}", "status", status);
    if (!killed)
        json_object_set_new(end, "exited", json_true());
    if (killed || (code & 255) != 0) {
        json_object_set_new(end, "exitCode", json_integer(killed ? -1 : (int)(code & 255)));
        json_object_set_new(end, "error", error_text(status, killed, code, memory_limit));
    }
    return end;
}
