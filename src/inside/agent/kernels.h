/* Kernels: interpreters that keep their state between cells. OP_KERNEL_* in wire/agent.h is what
 * the host sees of them, kernels/README.md what a kernel and the agent say to each other.
 *
 *   context ----> kernel, or none                 a process of `user` with a control socket, and
 *      |                                          pipes for what it writes
 *      +--------> queue of executions ---> the cell that runs
 *
 *              needed               Q               a cell's turn
 *    absent ------------> starting -----> idle -------------------> busy
 *      ^                     |            | ^                       | |
 *      |                     |            | +---------- F ----------+ |
 *      +---- no kernel ------+            |                           |
 *      +---- it ended: the next cell is --+                           |
 *      |     told, and starts another                                 |
 *   starting <-- died, stuck, broke its protocol, was restarted ------+
 *
 * A kernel comes in one of two ways. A twin is a copy of a warm process that the warden makes
 * (src/warden/twin): it comes over the line, when asked for, or ahead of any need; then it is a
 * spare, told at once to become a Python kernel, and waits. Otherwise, and for Node.js always, the
 * agent starts the program itself: cold. A twin is not the agent's child: its end shows on its
 * pidfd, and how it ended is not known.
 *
 * A twin can also be a copy of a kernel that ran, in this sandbox or another: it has arrived, is
 * told so (Y), and waits until OP_KERNEL_ADOPT says which context it belongs to.
 *
 * Order. What a cell wrote before it sent R, F, or died is delivered before that: what the two
 * pipes hold when the packet is read is owed first. Everything of a kernel stops while the host is
 * slow: with less credit than the largest packet takes, nothing of it is read. Output between cells
 * is kept for the next, up to KERNEL_KEPT_MAX bytes of each stream.
 *
 * An interrupt is SIGINT to the process group, again every second: the first may come before the
 * kernel has begun with the cell, and is ignored then. After KERNEL_GRACE_MS the kernel is killed.
 * An execution that was cancelled is over for the host at once; its cell is interrupted and the
 * context is busy until it has stopped.
 *
 * Bounds: KERNELS_MAX contexts; KERNEL_QUEUE_MAX executions wait in each; code and variables of all
 * executions are KERNEL_HELD_MAX bytes. */
#pragma once

#include "inside/agent/countdown.h"
#include "inside/agent/kernel_packets.h"
#include "inside/agent/serve.h"

#define KERNELS_DIR         "/usr/local/lib/sandglass/kernels"
#define KERNEL_QUEUE_MAX    64
#define KERNEL_HELD_MAX     (64u * 1024 * 1024)
#define KERNEL_KEPT_MAX     (64u * 1024)
#define KERNEL_LANGUAGE_MAX 64
#define KERNEL_NAME_MAX     256 /* of a language that is asked for */
#define KERNEL_STARTS_MAX   5   /* that fail in a row, then the executions do */
#define KERNEL_START_MS     60000
#define KERNEL_AGAIN_MS     250  /* until the next try: others have to end first; twice that, ... */
#define KERNEL_REFUSALS_MAX 20   /* of starts for want of room, then the executions fail */
#define KERNEL_TWIN_MS      8000 /* for the warden to answer: it may be loading libraries */
#define KERNEL_GRACE_MS     5000
#define KERNEL_REST_MS      2000 /* for threads of its libraries to end */
#define KERNEL_NOTE_MAX     1000 /* of the host's */

struct context;
struct kernel;
struct execution;

enum kernel_program { PROGRAM_PYTHON, PROGRAM_BRIDGE, PROGRAM_NODE };

struct kernel_language {
    char name[KERNEL_LANGUAGE_MAX + 1];
    enum kernel_program program;
};

struct kernel_output {
    struct loop_source src;
    struct kernel *kernel;
    int fd; /* -1: at its end */
    uint8_t sub;
    size_t owed;        /* bytes to be delivered before what is next */
    struct strbuf kept; /* what came when no cell ran */
};

/* A packet to the kernel. */
struct kernel_piece {
    struct kernel_piece *next;
    size_t len;
    char data[];
};

struct kernel {
    struct agent *agent;
    struct context *context; /* NULL: a spare, or it has arrived and waits */
    pid_t was;               /* the kernel that it is a copy of, in its sandbox; 0: of a zygote */
    struct kernel *next;     /* of those that have arrived */
    struct child child;      /* known to the reaper if it is ours */
    int report_fd;           /* of its launch; -1: a twin */
    struct loop_source pidfd_src;
    int pidfd; /* -1: not a twin */
    struct loop_source control_src;
    int control; /* -1: it has closed it */
    struct kernel_output out[2];
    struct loop_task task; /* goes on after a pause */
    bool paused;           /* nothing of it is watched: the host is slow */
    struct kernel_packets packets;
    uint8_t held[8]; /* R or F, until what is owed was delivered */
    size_t held_len;
    struct kernel_piece *first, **tail; /* to be sent, then `code` */
    bool has_code;
    struct strbuf code;
    size_t code_at;
    bool settled; /* has the usual environment, in its user's home */
    bool dead;    /* the process has ended */
    bool ending;  /* and all its packets were read */
    int status;   /* of wait; nothing of a twin */
    bool over;    /* nobody's any more: the object is in the bin */
    struct loop_trash trash;
};

struct context {
    struct agent *agent;
    uint64_t serial; /* in the order of their creation */
    char id[KERNEL_ID_LEN + 1];
    struct kernel_language language;
    char cwd[OPS_PATH_MAX];
    bool is_default;
    struct kernel *kernel;
    bool wants_twin; /* and waits for the line */
    bool had_kernel; /* `env` is that of the last one */
    struct strbuf env;
    unsigned failures; /* starts in a row */
    unsigned refusals; /* starts for which there was no room, in a row */
    struct countdown start, again;
    uint32_t cells;   /* that its kernel ran */
    const char *note; /* why what the kernel knew is gone, if nobody was told yet; else NULL */
    char *own_note;   /* where that is one that the host gave */

    struct execution *first, **tail; /* those that wait */
    size_t n_waiting;
    bool busy;                 /* a cell runs */
    struct execution *running; /* whose; NULL: it was cancelled */
    struct countdown limit, grace;

    struct context *next, **link;
    struct loop_trash trash;
};

struct execution {
    struct op op;
    char context_id[KERNEL_ID_LEN + 1];
    struct context *context; /* while it waits or runs there */
    uint64_t timeout_ms;
    bool timed_out;
    struct strbuf env, cell_env; /* as requests have them: n u32, "K=V" str... */
    struct strbuf code;
    size_t held; /* bytes of these three, as counted in struct kernels */
    struct execution *next, **link;
};

/* kernel_context.c: the table. */
struct context *context_new(struct agent *a, const struct kernel_language *language,
                            const char *cwd, bool is_default,
                            struct sg_error *e); /* NULL: too many */
struct context *context_find(struct agent *a, const char *id, struct sg_error *e); /* or NULL */
/* The default of the language, or NULL. */
struct context *context_of_language(struct agent *a, const char *name);
/* The same, made if need be. NULL: too many. */
struct context *context_default(struct agent *a, const struct kernel_language *language,
                                struct sg_error *e);
/* The next with a higher serial, or NULL: a walk that survives what happens meanwhile. */
struct context *context_after(struct agent *a, uint64_t serial);
/* It must have no kernel and no execution. */
void context_free(struct context *c);
enum kernel_state context_state(const struct context *c);
void context_put(const struct context *c, struct strbuf *out);

/* kernel_languages.c: an alias is resolved; -EINVAL if it is not to be had here. "" is python. */
int kernel_language_find(const char *name, struct kernel_language *ret, struct sg_error *e);
/* Its name as find would have it, whether it is there or not. */
void kernel_language_name(const char *name, char ret[KERNEL_LANGUAGE_MAX + 1]);

/* kernel_process.c: one process. */
struct kernel *kernel_launch(struct context *c, struct sg_error *e); /* NULL on error */
/* Takes over the descriptors. NULL: they are no good, and closed. */
struct kernel *kernel_from_twin(struct agent *a, pid_t pid, pid_t was, const int fds[LINE_FDS_MAX]);
/* To a twin: what it becomes; then whose it is. A spare is settled in between, with all that does
 * not depend on whose it will be, so that its first cell need not wait for it. */
void kernel_born(struct kernel *k, const char *language);
int kernel_settle(struct kernel *k, struct sg_error *e);
int kernel_furnish(struct kernel *k, const struct context *c, struct sg_error *e);
void kernel_interrupt(struct kernel *k);
/* The process alone, which is no longer a kernel. */
void kernel_kill_process(struct kernel *k);
/* Lets go of it, and kills all of its session if it still runs. */
void kernel_free(struct kernel *k);
/* KERNEL_DIED's code. */
uint32_t kernel_exit_code(const struct kernel *k);

/* kernel_io.c: what goes in and out of it. */
void kernel_io_init(struct kernel *k);
int kernel_io_watch(struct kernel *k);
void kernel_io_close(struct kernel *k);
void kernel_queue(struct kernel *k, char what, const char *text);
/* Each of a list of variables, as a packet of that kind. */
void kernel_variables(struct kernel *k, char what, const struct strbuf *list);
/* Asks it to let the threads of its libraries rest. Answered by a packet, or not. */
void kernel_rest(struct kernel *k);
/* The code is taken over. */
void kernel_run(struct kernel *k, uint32_t cell, struct strbuf *code);
/* Reads its packets, and what is owed; when it is dead, ends it. */
void kernel_pump(struct kernel *k);
/* The host can take more, or nobody listens any more. */
void kernel_resume(struct kernel *k);
/* False: it hung up, which the loop will tell. */
bool kernel_is_there(const struct kernel *k);
/* The last line of what it wrote to its standard error since the last cell. */
void kernel_last_words(const struct kernel *k, char *ret, size_t size);

/* kernel_start.c: how a context comes to a kernel. */
void context_start_init(struct context *c);
/* There is none yet. The executions that wait fail if that is not possible. */
void context_start(struct context *c);
/* No longer: it is killed, or not waited for. */
void context_drop_kernel(struct context *c);
/* The kernel is no good any more. A cell that runs is over, as `how` says, and another kernel is
 * started; if nobody listens to it, and something was lost, the next cell is told `note`. */
void context_lose_kernel(struct context *c, enum kernel_end how, uint32_t code, const char *note);
/* What kernel_io.c found out. */
void kernel_is_ready(struct kernel *k);
void kernel_is_over(struct kernel *k);
void kernel_is_broken(struct kernel *k);

/* kernel_arrived.c: copies of kernels that ran, which belong to nobody yet. */
void kernel_arrives(struct kernel *k);
/* By the one that it was; or NULL. */
struct kernel *kernel_arrived(const struct agent *a, uint32_t was);
/* Out of the list: it is a context's, or has ended. */
void kernel_leaves(struct kernel *k);
void kernels_arrived_free(struct agent *a);

/* kernel_adopt.c: what OP_KERNEL_ADOPT asks for. adopt_read checks what it can without an agent. */
struct adopt {
    char id[KERNEL_ID_LEN + 1], language[KERNEL_NAME_MAX + 1], cwd[OPS_PATH_MAX];
    struct kernel_language found; /* by a later check */
    bool is_default;
    uint32_t cells, was;
    char *note; /* NULL: none */
    struct strbuf env;
};
struct adopt_list {
    struct adopt *v;
    size_t n;
};
int adopt_read(struct wire_reader *r, struct adopt_list *ret, struct sg_error *e);
void adopt_done(struct adopt_list *l);

/* kernel_hold.c: a cell has ended, or a kernel's threads rest. */
void kernels_hold_check(struct agent *a);

/* kernel_execute.c: cells and those who wait for them. */
void context_cells_init(struct context *c);
/* Begins with the next cell if that is possible now, or starts the kernel for it. */
void context_advance(struct context *c);
/* The cell that runs, if one does, is over. */
void context_cell_over(struct context *c, enum kernel_end how, uint32_t code);
void context_interrupt(struct context *c);
/* All that wait end. */
void context_end_waiting(struct context *c, enum kernel_end how);
void context_fail_waiting(struct context *c, const struct sg_error *e);
/* Reads n u32 and n "K=V", checks them, and keeps them as they are. */
int request_variables(struct wire_reader *r, struct strbuf *ret, struct sg_error *e);
