/* Kernels: interpreters that keep their state between cells. OP_KERNEL_* in wire/agent.h is what
 * the host sees of them. kernels/README.md has the protocol between a kernel and the agent.
 *
 *   context ----> kernel, or none                 a process of `user` with a control socket, and
 *      |                                          pipes for its output
 *      +--------> queue of executions ---> the cell that runs
 *
 *   state      event                                                        next state
 *   absent     a cell needs a kernel                                        starting
 *   starting   Q                                                            idle
 *   starting   the kernel cannot be started                                 absent
 *   idle       a cell's turn                                                busy
 *   idle       the kernel ended: the next cell is told, and starts another  absent
 *   busy       F                                                            idle
 *   busy       the kernel died, got stuck, broke its protocol, or was       starting
 *              restarted
 *
 * A kernel comes in one of two ways. A twin is a copy of a warm process that the broker makes
 * (src/inside/broker). It comes over the line, when the agent asked for it, or ahead of any need.
 * In the latter case it is a spare: it is told at once to become a Python kernel, and waits. The
 * other way is a cold start: the agent starts the program itself. Node.js always starts cold. A
 * twin is not the agent's child: its end shows on its pidfd, and its exit status is not known.
 *
 * A twin can also be a copy of a kernel that ran, in this sandbox or another. Such a kernel "has
 * arrived". It is told so (Y), and waits until OP_KERNEL_ADOPT says which context it belongs to.
 *
 * Order. All output that a cell wrote before it sent R or F, or died, is delivered first: the bytes
 * that the two pipes hold when the packet is read are owed. While the host is slow, the whole
 * kernel waits: nothing of it is read as long as the credit is less than the largest packet needs.
 * Output between cells is kept for the next cell, up to KERNEL_KEPT_MAX bytes of each stream.
 *
 * An interrupt is SIGINT to the process group, repeated every second: the first may come before the
 * kernel has begun with the cell, and is ignored then. After KERNEL_GRACE_MS the kernel is killed.
 * For the host, a cancelled execution is over at once; its cell is interrupted, and the context
 * stays busy until the cell has stopped.
 *
 * Bounds: KERNELS_MAX contexts; KERNEL_QUEUE_MAX waiting executions in each; KERNEL_HELD_MAX bytes
 * for the code and variables of all executions. */
#pragma once

#include "lib/base/languages.h"
#include "inside/agent/countdown.h"
#include "inside/agent/kernel_packets.h"
#include "inside/agent/memory.h"
#include "inside/agent/serve.h"

#define KERNELS_DIR         "/usr/local/lib/sandglass/kernels"
#define KERNEL_QUEUE_MAX    64
#define KERNEL_HELD_MAX     (64u * 1024 * 1024)
#define KERNEL_KEPT_MAX     (64u * 1024)
#define KERNEL_LANGUAGE_MAX 64
#define KERNEL_NAME_MAX     256 /* of the name of a language in a request */
#define KERNEL_STARTS_MAX   5   /* after so many failed starts in a row the executions fail */
#define KERNEL_START_MS     60000
#define KERNEL_AGAIN_MS \
    250                          /* until the next try, doubled each time: other processes have to
                                  * end first */
#define KERNEL_REFUSALS_MAX 20   /* after so many starts without room the executions fail */
#define KERNEL_TWIN_MS      8000 /* for the warden's answer: the zygote may be loading libraries */
#define KERNEL_GRACE_MS     5000
#define KERNEL_REST_MS      2000 /* for the threads of a kernel's libraries to rest */
#define KERNEL_NOTE_MAX     1000 /* length of a note from the host */

struct context;
struct kernel;
struct execution;

struct kernel_language {
    char name[KERNEL_LANGUAGE_MAX + 1];
    enum kernel_program program;
};

struct kernel_output {
    struct loop_source src;
    struct kernel *kernel;
    int fd; /* -1: at its end */
    uint8_t sub;
    size_t owed;        /* bytes to deliver before the next packet counts */
    struct strbuf kept; /* output that came when no cell ran */
};

/* A packet that waits to be sent to the kernel. */
struct kernel_piece {
    struct list link;
    size_t len;
    char data[];
};

struct kernel {
    struct agent *agent;
    struct context *context; /* NULL: a spare, or a copy that has arrived and waits */
    pid_t was;               /* pid of the kernel that it is a copy of, in that one's sandbox; 0: a
                              * copy of a zygote */
    struct list link;        /* in the list of kernels that have arrived */
    struct child child;      /* a cold kernel is listed with the reaper */
    int report_fd;           /* reports how the launch went; -1: a twin */
    struct loop_source pidfd_src;
    int pidfd; /* -1: a cold kernel */
    struct loop_source control_src;
    int control; /* -1: the kernel has closed it */
    struct kernel_output out[2];
    struct loop_task task; /* reads on after a pause */
    bool paused;           /* nothing of the kernel is watched, because the host is slow */
    struct kernel_packets packets;
    uint8_t held[8]; /* R or F, until all owed output has been delivered */
    size_t held_len;
    struct list pieces; /* packets to be sent before `code` */
    bool has_code;
    struct strbuf code;
    size_t code_at;
    bool settled; /* it has the usual environment and is in its user's home */
    bool dead;    /* the process has ended */
    bool ending;  /* it has ended, and all its packets have been read */
    int status;   /* from wait; unknown for a twin */
    bool over;    /* nobody uses it any more: the object is in the bin */
    struct loop_trash trash;
};

struct context {
    struct agent *agent;
    uint64_t serial; /* counts contexts in the order of their creation */
    char id[KERNEL_ID_LEN + 1];
    struct kernel_language language;
    char cwd[OPS_PATH_MAX];
    bool is_default;
    struct kernel *kernel;
    bool wants_twin; /* waits for a kernel from the line */
    bool had_kernel; /* `env` is the environment of the last kernel */
    struct strbuf env;
    unsigned failures; /* failed starts in a row */
    unsigned refusals; /* starts in a row for which there was no room */
    struct countdown start, again;
    uint32_t cells;   /* how many cells its kernel ran */
    const char *note; /* why the kernel's state was lost, to tell the next cell; or NULL */
    char *own_note;   /* memory of `note` if the host gave it */

    struct list waiting; /* executions */
    size_t n_waiting;
    bool busy;                 /* a cell runs */
    struct execution *running; /* the execution of that cell; NULL: it was cancelled */
    struct memory_mark memory; /* when that cell began */
    struct countdown limit, grace;

    struct list link;
    struct loop_trash trash;
};

struct execution {
    struct op op;
    char context_id[KERNEL_ID_LEN + 1];
    struct context *context; /* set while it waits or runs there */
    uint64_t timeout_ms;
    bool timed_out;
    struct strbuf env, cell_env; /* in the form of requests: n u32, "K=V" str... */
    struct strbuf code;
    size_t held; /* bytes of these three, as counted in struct kernels */
    struct list link;
};

/* kernel_context.c: the table of contexts. */
struct context *context_new(struct agent *a, const struct kernel_language *language,
                            const char *cwd, bool is_default,
                            struct sg_error *e); /* NULL: there are too many */
struct context *context_find(struct agent *a, const char *id, struct sg_error *e); /* or NULL */
/* The default context of the language, or NULL. */
struct context *context_of_language(struct agent *a, const char *name);
/* The same, but makes the context if there is none. NULL: there are too many. */
struct context *context_default(struct agent *a, const struct kernel_language *language,
                                struct sg_error *e);
/* The context with the next higher serial, or NULL. A walk by serial stays valid whatever happens
 * to contexts meanwhile. */
struct context *context_after(struct agent *a, uint64_t serial);
/* The context must have no kernel and no execution. */
void context_free(struct context *c);
enum kernel_state context_state(const struct context *c);
void context_put(const struct context *c, struct strbuf *out);

/* kernel_languages.c: finds a language by its name or an alias. -EINVAL if this sandbox does not
 * have it. "" is python. */
int kernel_language_find(const char *name, struct kernel_language *ret, struct sg_error *e);
/* The name that kernel_language_find would look for, whether the language is there or not. */
void kernel_language_name(const char *name, char ret[KERNEL_LANGUAGE_MAX + 1]);

/* kernel_process.c: one kernel as a process. */
struct kernel *kernel_launch(struct context *c, struct sg_error *e); /* NULL on error */
/* Takes over the descriptors. NULL: they are unusable, and closed. */
struct kernel *kernel_from_twin(struct agent *a, pid_t pid, pid_t was, const int fds[LINE_FDS_MAX]);
/* A twin is told by B which language's kernel it becomes. kernel_settle tells it everything
 * that does not depend on its context, done early for a spare, so that its first cell need not
 * wait. kernel_furnish: the context it belongs to. */
int kernel_settle(struct kernel *k, struct sg_error *e);
int kernel_furnish(struct kernel *k, const struct context *c, struct sg_error *e);
void kernel_interrupt(struct kernel *k);
/* Kills the process alone, which no longer behaves as a kernel. */
void kernel_kill_process(struct kernel *k);
/* Lets go of the kernel, and kills its whole session if it still runs. */
void kernel_free(struct kernel *k);
/* The code for KERNEL_DIED. */
uint32_t kernel_exit_code(const struct kernel *k);

/* kernel_io.c: packets and output of a kernel. */
void kernel_io_init(struct kernel *k);
void kernel_io_watch(struct kernel *k);
void kernel_io_close(struct kernel *k);
void kernel_queue(struct kernel *k, char what, const char *text);
/* Sends each variable of the list as a packet of kind `what`. */
void kernel_variables(struct kernel *k, char what, const struct strbuf *list);
/* Asks the kernel to let the threads of its libraries rest. It may answer with P, or not. */
void kernel_rest(struct kernel *k);
/* Takes the code over. */
void kernel_run(struct kernel *k, uint32_t cell, struct strbuf *code);
/* Reads the kernel's packets and the output that is owed. If the kernel is dead, ends it after
 * that. */
void kernel_pump(struct kernel *k);
/* Call it when the host can take more, or nobody listens any more. */
void kernel_resume(struct kernel *k);
/* False: the kernel has hung up, which the loop will report. */
bool kernel_is_there(const struct kernel *k);
/* The last line that the kernel wrote to standard error since the last cell. */
void kernel_last_words(const struct kernel *k, char *ret, size_t size);

/* kernel_start.c: how a context gets a kernel. */
void context_start_init(struct context *c);
/* Starts a kernel for a context that has none. If that is impossible, the waiting executions
 * fail. */
void context_start(struct context *c);
/* Leaves the context without a kernel: kills it, or stops waiting for it. */
void context_drop_kernel(struct context *c);
/* Leaves it without a kernel and without executions: all of them end. */
void context_end(struct context *c, enum kernel_end how);
/* The kernel is lost. A running cell is over, as `how` says, and another kernel is started. If
 * nobody listens to that cell, and state was lost, the next cell is told `note`. */
void context_lose_kernel(struct context *c, enum kernel_end how, uint32_t code, const char *note);
/* kernel_io.c reports these. */
void kernel_is_ready(struct kernel *k);
void kernel_is_over(struct kernel *k);
void kernel_is_broken(struct kernel *k);

/* kernel_arrived.c: copies of kernels that ran and belong to no context yet. */
void kernel_arrives(struct kernel *k);
/* The copy of the kernel with pid `was`, or NULL. */
struct kernel *kernel_arrived(const struct agent *a, uint32_t was);
/* Takes it out of the list: a context has it now, or it has ended. */
void kernel_leaves(struct kernel *k);
void kernels_arrived_free(struct agent *a);

/* kernel_adopt.c: the request OP_KERNEL_ADOPT. adopt_read checks what can be checked without the
 * agent. */
struct adopt {
    char id[KERNEL_ID_LEN + 1], language[KERNEL_NAME_MAX + 1], cwd[OPS_PATH_MAX];
    struct kernel_language found; /* set by a later check */
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

/* kernel_hold.c: call it when a cell has ended, or a kernel's threads rest. */
void kernels_hold_check(struct agent *a);

/* kernel_execute.c: cells, and the executions that wait for their turn. */
void context_cells_init(struct context *c);
/* Begins the next cell if that is possible now, or starts a kernel for it. */
void context_advance(struct context *c);
/* The cell that runs, if any, is over. */
void context_cell_over(struct context *c, enum kernel_end how, uint32_t code);
void context_interrupt(struct context *c);
/* Each ends all executions that wait. */
void context_end_waiting(struct context *c, enum kernel_end how);
void context_fail_waiting(struct context *c, const struct sg_error *e);
/* Reads n u32 and n "K=V", checks them, and keeps them in that form. */
int request_variables(struct wire_reader *r, struct strbuf *ret, struct sg_error *e);
