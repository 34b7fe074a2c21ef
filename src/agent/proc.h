/* A process that a stream started.
 *
 *   starting --exec--> running --wait--> draining --output at its end--> END
 *      |                  |                 |
 *      +--report: failed--+--CANCEL: killed-+--CANCEL: no more patience
 *
 * Draining ends when every writer of the output has closed it. A program may leave a background
 * process behind that never does, so: what was in the pipes at exit is always delivered, then
 * GRACE_QUIET_NS without output, or GRACE_MAX_NS in all, end the stream. */
#pragma once

#include "agent/serve.h"

#define GRACE_QUIET_NS (100 * 1000 * 1000ull)
#define GRACE_MAX_NS   (2000 * 1000 * 1000ull)
#define COMMAND_MAX    128

struct proc;

struct proc_output {
    struct loop_source src;
    struct proc *proc;
    int fd; /* -1: at its end */
    uint8_t sub;
    bool paused;      /* not watched: the host is slow */
    bool discard;     /* CONTROL_DISCARD */
    uint64_t dropped; /* bytes, since then */
    size_t owed;      /* bytes that were there when the process exited, not read yet */
};

struct proc_input {
    struct loop_source src;
    int fd; /* -1: closed, or there never was one */
    bool eof;
    struct strbuf pending;
};

struct proc {
    struct op op;
    struct child child;
    const struct agent_user *as;
    struct loop_source report;
    int report_fd; /* -1: known to be running */
    bool tty, exited, cancelled;
    struct proc_output out[2];
    struct proc_input in;
    int status;
    struct rusage usage;
    uint64_t exit_ns, last_output_ns;
    struct loop_timer grace;
    char command[COMMAND_MAX];
};

/* proc_stdio.c */
void proc_stdio_init(struct proc *p);
int proc_stdio_watch(struct proc *p); /* the output descriptors are set */
void proc_stdio_close(struct proc *p);
void proc_stdio_resume(struct proc *p);
void proc_stdio_exited(struct proc *p);
void proc_discard(struct proc *p, uint32_t sub);
void proc_input_data(struct proc *p, const void *data, size_t len);
void proc_input_eof(struct proc *p);
/* process.c. Of a new one the caller sets tty, the descriptors and the command. */
struct proc *proc_new(struct agent *a, struct chan_stream *s, const struct agent_user *as,
                      pid_t pid, int report_fd);
/* Output moved or ended after the exit. */
void proc_check_end(struct proc *p);

/* pty.c: both ends of a new terminal for `as`. */
int pty_open(const struct agent_user *as, uint32_t rows, uint32_t cols, int *ret_master,
             int *ret_slave);
void pty_resize(int master, uint32_t rows, uint32_t cols);
