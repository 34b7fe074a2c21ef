/* What the files of the agent share: the agent, and the operations it has under way. */
#pragma once

#include "inside/agent/agent.h"
#include "inside/agent/countdown.h"
#include "inside/agent/door.h"
#include "inside/agent/line.h"
#include "inside/agent/loop.h"
#include "inside/agent/reaper.h"
#include "lib/channel/chan.h"
#include "lib/channel/wire.h"

struct op;
struct proc;

struct proc_list {
    struct proc *first, **tail; /* oldest first */
    size_t n;
};

/* See proc.h. */
struct procs {
    struct loop *loop;
    struct proc_list living, kept;
    size_t notes; /* bytes, of all that live */
    uint64_t serial;
    struct loop_timer expiry;
};

struct context;
struct kernel;

/* See kernels.h. */
struct kernels {
    struct context *first, **tail; /* oldest first */
    size_t n;
    uint64_t serial;
    size_t held;            /* bytes of code and variables, of all executions */
    struct kernel *spare;   /* came ahead of any need */
    struct kernel *arrived; /* copies of kernels that ran elsewhere, until a context adopts them */
    size_t n_arrived;
    struct op *hold;                             /* OP_KERNEL_HOLD: no cell begins */
    uint64_t launches;                           /* launch_count() when it was told */
    struct loop_task release;                    /* when it has ended */
    enum { ASKED_NOT, ASKED, ASKED_LATE } asked; /* the warden, for a kernel */
    struct countdown answer;
};

struct agent {
    struct loop loop;
    const struct agent_config *config;
    struct chan *chan; /* NULL between channels, which a line brings */
    struct loop_source chan_src;
    uint32_t chan_events;
    bool chan_ready;
    struct op *ops; /* all that have not ended: none without a channel */
    struct procs procs;
    struct kernels kernels;
    struct reaper reaper;
    struct door door;
    struct line line;
};

/* procs.c */
void procs_init(struct procs *t, struct loop *loop);
void procs_done(struct procs *t);

/* kernel_start.c, after line_init */
void kernels_init(struct agent *a);
void kernels_done(struct agent *a);
/* Every process is about to be killed: contexts have no kernels, cells end. */
void kernels_clear(struct agent *a);

/* root.c, after line_init: new root directories that come over the line. */
void agent_root_init(struct agent *a);

/* watch.c: the root is another one, with the same files in it or not. Whoever watches sees nothing
 * of that. */
void file_watch_moved(struct agent *a, bool same);

/* Where bytes pass through; nothing is kept in it from call to call. Untouched pages cost nothing.
 */
extern char agent_scratch[FRAME_PAYLOAD_MAX];

/* Those that are NULL: bytes are dropped, EOF and CONTROL ignored, CANCEL ends the operation. */
struct op_ops {
    void (*data)(struct op *op, uint8_t sub, const void *p, size_t len); /* owes chan_consumed */
    void (*eof)(struct op *op);
    void (*control)(struct op *op, uint8_t what, struct wire_reader *r);
    void (*cancel)(struct op *op);
    void (*resume)(struct op *op);  /* op_may_send() was false and may be true again */
    void (*destroy)(struct op *op); /* releases all but the object itself */
    bool writes;                    /* files, for the host: the root must stay where it is */
};

/* The first member of every operation that outlives its OPEN. */
struct op {
    const struct op_ops *ops;
    struct agent *agent;
    struct chan_stream *stream;
    struct loop_trash trash;
    struct op *next, **link;
};

void *op_new(struct agent *a, struct chan_stream *s, const struct op_ops *ops, size_t size);
/* Each sends END, releases what the operation holds and throws it away. */
void op_end(struct op *op, const struct strbuf *result); /* result may be NULL */
void op_fail(struct op *op, const struct sg_error *e);
void op_cancelled(struct op *op); /* fails as the host wished */
/* False while the host is slow. For events too: they are not counted, only held back. */
bool op_may_send(const struct op *op);

/* The common fields of requests: for whom, and where. A path has OPS_PATH_MAX bytes and is
 * absolute. */
int request_target(struct wire_reader *r, const struct agent_user **ret_as, char *ret_path,
                   struct sg_error *e);
int request_path(struct wire_reader *r, const struct agent_user *as, char *ret, struct sg_error *e);
int request_done(const struct wire_reader *r, struct sg_error *e);

/* One per operation. Negative: the stream ends with *e. 0: it has been answered, or an op will. */
int process_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                  struct sg_error *e);
int process_list(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e);
int process_signal(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                   struct sg_error *e);
int process_attach(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                   struct sg_error *e);
int process_input(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                  struct sg_error *e);
int process_resize(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                   struct sg_error *e);
int file_read_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                    struct sg_error *e);
int file_write_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                     struct sg_error *e);
int file_list_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                    struct sg_error *e);
int file_stat(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e);
int file_move_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                    struct sg_error *e);
int file_remove_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                      struct sg_error *e);
int file_mkdir(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e);
int file_watch_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                     struct sg_error *e);
int net_connect_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                      struct sg_error *e);
int kernel_execute(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                   struct sg_error *e);
int kernel_create(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                  struct sg_error *e);
int kernel_list(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e);
int kernel_remove(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                  struct sg_error *e);
int kernel_restart(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                   struct sg_error *e);
int kernel_stop_cell(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                     struct sg_error *e);
int kernel_warm(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e);
int kernel_hold(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e);
int kernel_adopt(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e);
int disk_answer(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e);
