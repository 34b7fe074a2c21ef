/* A list of calls for a stopped process to make, with the strings that they point to: a table
 * (cpu.h) that is not the same for all.
 *
 * In a process that is not ours it is a visit: a page is mapped in it, the table worked off there,
 * the page unmapped, and the thread has its registers back. It notices nothing: a call that was
 * interrupted by the stop goes on when the thread is let go, as after any stop. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "inside/broker/cpu.h"

#define REMOTE_CALLS_STEPS_MAX 4096
#define REMOTE_CALLS_DATA_MAX  (4u << 20)

/* What a call must return: a number, or one of these. */
#define REMOTE_CALLS_DONE    (-1) /* no error */
#define REMOTE_CALLS_ANY     (-2) /* whatever it is */
#define REMOTE_CALLS_NO_DATA (-1)

struct remote_call {
    struct cpu_call call;
    int data; /* which of its arguments is an offset into the data; or REMOTE_CALLS_NO_DATA */
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
/* `which` of the call's arguments will point to the data. */
void remote_calls_add_data(struct remote_calls *v, int64_t want, const struct cpu_call *c,
                           int which, const void *data, size_t len);

/* How long the calls and the data are, and their making for a place in memory: the calls, without
 * an end, and where the data will be. */
size_t remote_calls_len(const struct remote_calls *v);
void remote_calls_place(const struct remote_calls *v, struct cpu_call *calls, uint64_t data_at);
/* What was said: 0, or the first that went wrong. */
int remote_calls_check(const struct remote_calls *v, const struct cpu_call *calls,
                       struct sg_error *e);

/* In a thread that is stopped, as is all else that has its memory. -EREMOTE: it runs no code that
 * we know. */
int remote_calls_make(pid_t tid, const struct remote_calls *v, struct sg_error *e);
