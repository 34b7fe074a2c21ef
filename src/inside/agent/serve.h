/* Shared by the files of the agent: the agent, and the operations it has under way. */
#pragma once

#include "inside/agent/agent.h"
#include "inside/agent/countdown.h"
#include "inside/agent/door.h"
#include "inside/agent/line.h"
#include "lib/loop/tasks.h"
#include "inside/agent/reaper.h"
#include "inside/agent/view.h"
#include "lib/channel/chan.h"
#include "lib/channel/wire.h"
#include "wire/agent.h"

struct op;
struct proc;

struct proc_list {
    struct list all; /* oldest first */
    size_t n;
};

/* See proc.h. */
struct procs {
    struct loop *loop;
    struct proc_list living, kept;
    size_t notes; /* bytes of the notes of all living processes */
    uint64_t serial;
    struct loop_timer expiry;
};

struct context;
struct kernel;

/* See kernels.h. */
struct kernels {
    struct list contexts; /* oldest first */
    size_t n;
    uint64_t serial;
    size_t held;          /* bytes of code and variables of all executions */
    struct kernel *spare; /* a kernel that came ahead of any need */
    struct list arrived;  /* copies of kernels that ran, until a context adopts them */
    size_t n_arrived;
    struct op *hold;          /* OP_KERNEL_HOLD: no cell begins; or NULL */
    uint64_t launches;        /* launch_count() when the host was told that cells
                                                  * are held */
    struct loop_task release; /* begins cells again after the hold has ended */
    enum {
        ASKED_NOT,
        ASKED,
        ASKED_LATE
    } asked; /* whether the warden was asked for a kernel;
                                                  * ASKED_LATE: it has not answered in time */
    struct countdown answer;
};

struct agent {
    struct loop loop;
    const struct agent_config *config;
    struct chan *chan; /* NULL while the line has brought no channel */
    struct loop_source chan_src;
    uint32_t chan_events;
    bool chan_ready;
    struct list ops; /* all operations that have not ended; none without a channel */
    struct procs procs;
    struct kernels kernels;
    struct reaper reaper;
    struct door door;
    struct line line;
    struct view view;
    struct own_ports *own_ports; /* own_ports.h; NULL until a program or cell is about to run */
    uint64_t kills_told;         /* memory.h: kills of the group up to this one have been told of */
};

/* procs.c */
void procs_init(struct procs *t, struct loop *loop);
void procs_done(struct procs *t);

/* kernel_start.c */
void kernels_init(struct agent *a);
void kernels_done(struct agent *a);
/* Call it before every process is killed: contexts lose their kernels, and cells end. */
void kernels_clear(struct agent *a);

/* Messages of the line. The callee takes the descriptors over. */
/* kernel_start.c: a kernel, asked for or not. `was`: the pid of the kernel that it is a copy of, or
 * 0. Or none, although one was asked for. */
void kernel_came(struct agent *a, pid_t pid, pid_t was, const int fds[LINE_FDS_MAX]);
void no_kernel_came(struct agent *a);
/* root.c: a new root, and with more descriptors the figures of its disk; how: LINE_ROOT_... Answers
 * with line_told. */
void root_came(struct agent *a, const int *fds, size_t n, int how);
/* root.c: somebody is about to change files at or below this path. Takes the cover off /usr if it is
 * in the way of root. */
int root_written(const struct agent_user *as, const char *path, struct sg_error *e);

/* watch.c: call it when the root has been replaced, by one with the same files or not. Clients that
 * watch files notice nothing of that. */
void file_watch_moved(struct agent *a, bool same);

/* A buffer for bytes that pass through. Nothing is kept in it from call to call, and untouched
 * pages cost nothing. */
extern char agent_scratch[FRAME_PAYLOAD_MAX];

/* A request of the host, and what its handler needs. */
struct request {
    struct agent *agent;
    struct chan_stream *stream;
    struct wire_reader *r;
    struct sg_error *e;
    const struct agent_user *as; /* of a request that has a user and a path: &user */
    struct agent_user user;
    char path[OPS_PATH_MAX];
    struct strbuf answer; /* goes with END, unless an operation goes on */
    bool goes_on;         /* an operation was made, which ends the stream */
};

/* The callbacks of an operation. Where one is NULL: bytes are dropped, EOF and CONTROL are ignored,
 * CANCEL ends the operation. */
struct op_ops {
    void (*data)(struct op *op, uint8_t sub, const void *p, size_t len); /* owes chan_consumed */
    void (*eof)(struct op *op);
    void (*control)(struct op *op, uint8_t what, struct wire_reader *r);
    void (*cancel)(struct op *op);
    void (*resume)(struct op *op);  /* op_may_send() was false and may be true again */
    void (*turn)(struct op *op);    /* does a part of the work: see op_again */
    void (*destroy)(struct op *op); /* releases all but the object itself; or NULL */
    bool writes;                    /* it writes files for the host: the root must stay */
};

/* The first member of every operation that goes on after its OPEN. */
struct op {
    const struct op_ops *ops;
    struct agent *agent;
    struct chan_stream *stream;
    const struct agent_user *as; /* the user of the request: &user */
    struct agent_user user;
    struct loop_task task;
    struct loop_trash trash;
    struct list link;
};

void *op_new(struct request *q, const struct op_ops *ops, size_t size);
/* Each sends END, releases what the operation holds, and throws the operation away. */
void op_end(struct op *op, const struct strbuf *result); /* result may be NULL */
void op_fail(struct op *op, const struct sg_error *e);
void op_fail_path(struct op *op, int r, const char *verb, const char *path); /* path_error */
void op_cancelled(struct op *op); /* fails it, because the host cancelled it */
/* Has the operation go on in a later turn of the loop. */
void op_again(struct op *op);
/* False while the host is slow. Ask before sending events too: they use no credit, but are held
 * back as well. */
bool op_may_send(const struct op *op);

/* Read what many requests have. A path is made absolute and has OPS_PATH_MAX bytes. request_done
 * checks that all of the request was read, and nothing of it malformed. */
int request_path(struct wire_reader *r, const struct agent_user *as, char *ret, struct sg_error *e);
int request_done(struct request *q);

/* One function per operation. Negative: the stream ends with *q->e. 0: it ends with q->answer, or an
 * op was made, and ends it. */
int process_start(struct request *q);
int process_list(struct request *q);
int process_signal(struct request *q);
int process_attach(struct request *q);
int process_input(struct request *q);
int process_resize(struct request *q);
int file_read_start(struct request *q);
int file_write_start(struct request *q);
int file_unpack_start(struct request *q);
int file_list_start(struct request *q);
int file_stat(struct request *q);
int file_move_start(struct request *q);
int file_compose_start(struct request *q);
int file_remove_start(struct request *q);
int file_mkdir(struct request *q);
int file_watch_start(struct request *q);
int net_connect_start(struct request *q);
int kernel_execute(struct request *q);
int kernel_create(struct request *q);
int kernel_list(struct request *q);
int kernel_remove(struct request *q);
int kernel_restart(struct request *q);
int kernel_stop_cell(struct request *q);
int kernel_warm(struct request *q);
int kernel_hold(struct request *q);
int kernel_adopt(struct request *q);
int disk_answer(struct request *q);
