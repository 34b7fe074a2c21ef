/* A list of system calls for a stopped process to make, with the strings that they point to. It
 * becomes part of a table (cpu.h), the part that differs from process to process.
 *
 * remote_calls_make has a process that is not ours make the calls: it maps a page in the process,
 * runs the table there, unmaps the page, and restores the thread's registers. The process notices
 * nothing. If the stop interrupted a system call, the call goes on when the thread does, as after
 * any stop. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "inside/broker/cpu.h"

#define REMOTE_CALLS_STEPS_MAX 4096
#define REMOTE_CALLS_DATA_MAX  (4u << 20)

/* The result that a call must have: a number, or one of the first two below. */
#define REMOTE_CALLS_DONE    (-1) /* anything but an error */
#define REMOTE_CALLS_ANY     (-2) /* anything at all */
#define REMOTE_CALLS_NO_DATA (-1)

struct remote_call {
    struct cpu_call call;
    int data; /* the index of the argument that is an offset into the data, or
               * REMOTE_CALLS_NO_DATA */
    int64_t want;
};

struct remote_calls {
    struct remote_call *steps;
    size_t n, room;
    struct strbuf data;
    bool overflow;
};

void remote_calls_init(struct remote_calls *v);
void remote_calls_done(struct remote_calls *v); /* accepts a zeroed one */
void remote_calls_add(struct remote_calls *v, int64_t want, const struct cpu_call *c);
/* `which` is the index of the argument that will point to the data. */
void remote_calls_add_data(struct remote_calls *v, int64_t want, const struct cpu_call *c,
                           int which, const void *data, size_t len);

/* remote_calls_len: how many bytes the calls and the data take. remote_calls_place: writes the
 * calls as they must be if the data is at data_at in the process's memory; it adds no end of
 * table. */
size_t remote_calls_len(const struct remote_calls *v);
void remote_calls_place(const struct remote_calls *v, struct cpu_call *calls, uint64_t data_at);
/* Checks what the calls returned: 0, or the error of the first that went wrong. */
int remote_calls_check(const struct remote_calls *v, const struct cpu_call *calls,
                       struct sg_error *e);

/* Makes the calls in a stopped thread. Everybody else who has its memory must be stopped too.
 * -EREMOTE: the thread runs no code that we know. */
int remote_calls_make(pid_t tid, const struct remote_calls *v, struct sg_error *e);
