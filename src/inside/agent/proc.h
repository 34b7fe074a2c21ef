/* Programs that the host started, and the streams that follow them.
 *
 *   starting --exec--> running --wait--> draining --output ended--> over --PROC_KEPT_MS--> gone
 *      |                  |
 *      |                  +-- killed by its time limit, or when the stream that it belongs to is
 *      |                      cancelled or lost
 *      +--exec failed--> gone
 *
 * A process is an object of its own. Streams subscribe to it: the one that started it, and any that
 * attach later. All of them get its output, which is read at the pace of the slowest. With no
 * stream left, output is read and dropped. Without PROC_DETACH the process belongs to the stream
 * that started it, and is killed when that stream ends.
 *
 * Draining ends when every writer of the output has closed it. But a program may leave a background
 * process behind that never closes it. So the agent always delivers what was in the pipes at exit,
 * and after that stops at GRACE_QUIET_NS without output, or GRACE_MAX_NS in all. Then every
 * subscriber gets END. How the process ended is kept for a while, for those who ask later.
 *
 * Bounds: PROCS_MAX processes that live, and as many that are over, of which the oldest is dropped
 * first; NOTES_MAX bytes of notes in all; as much input as credit allows the streams that send
 * it. */
#pragma once

#include "inside/agent/memory.h"
#include "inside/agent/serve.h"

#define GRACE_QUIET_NS (100 * 1000 * 1000ull)
#define GRACE_MAX_NS   (2000 * 1000 * 1000ull)
#define COMMAND_MAX    128
#define PROCS_MAX      1024
#define NOTES_MAX      (16u * 1024 * 1024)
#define SIGNAL_MAX     64

struct proc;

struct proc_output {
    struct loop_source src;
    struct proc *proc;
    int fd; /* -1: at its end */
    uint8_t sub;
    bool paused; /* not watched: a subscriber is slow */
    size_t owed; /* bytes that were in the pipe when the process exited, and are not read yet */
};

/* A source of input: the stream that started the process, or an OP_PROCESS_INPUT. */
struct proc_feed {
    struct op *op;
    struct proc *proc;
    bool is_input; /* an OP_PROCESS_INPUT: it ends when all its bytes have been taken, and fails
                    * when they cannot be */
    bool closes;   /* the end of this feed is the end of the process's input */
    bool fed;      /* some bytes have come */
    size_t owed;   /* bytes of this feed that the process has not taken yet */
    struct list link;
};

/* Input that the process has not taken yet: bytes, or the end of a feed. */
struct proc_piece {
    struct list link;
    struct proc_feed *from;
    bool last;
    size_t at, len;
    char data[];
};

struct proc_input {
    struct loop_source src;
    int fd;     /* -1: closed, or there never was an input */
    bool wired; /* there was an input */
    struct list feeds, pieces;
};

/* A stream that gets the process's output. */
struct proc_stream {
    struct op op;
    struct proc *proc;
    struct list link;
    bool owner; /* it started a process without PROC_DETACH */
    bool fed;   /* it started the process: its bytes are input */
    struct proc_feed feed;
    bool discard[2];     /* after CONTROL_DISCARD, for each output */
    uint64_t dropped[2]; /* bytes that were dropped since then */
};

struct proc {
    struct agent *agent;
    uint64_t serial; /* counts processes in the order of their start */
    struct child child;
    char user[OPS_NAME_MAX + 1];
    struct loop_source report;
    int report_fd; /* -1: exec is known to have succeeded */
    bool tty, exited, over;
    bool hurried; /* it was killed: nobody waits for output of what it left behind */
    bool timed_out;
    bool killed;               /* the host sent it SIGKILL */
    struct memory_mark memory; /* before it began */
    uint64_t memory_limit;     /* that was its end; 0: it was not */
    struct proc_output out[2];
    struct proc_input in;
    struct list streams;
    int status;
    struct rusage usage;
    uint64_t exit_ns, last_output_ns, over_ns;
    struct loop_timer grace, limit;
    char *tag, *note;
    char command[COMMAND_MAX];
    struct list link; /* in procs.living or procs.kept */
    struct loop_trash trash;
};

/* process.c: the life of a process. */
struct proc_start {
    pid_t pid;
    int report_fd, in, out, err; /* all taken over; -1: none */
    bool tty, detach;
    uint64_t timeout_ms;
    struct memory_mark memory; /* before it began */
    const char *tag, *note;
    char command[COMMAND_MAX];
};
/* Makes the process that `start` describes, at the request q. */
void proc_new(struct request *q, const struct proc_start *start);
/* Call it when output moved or ended after the exit. */
void proc_check_end(struct proc *p);
void proc_signal(struct proc *p, uint32_t sig);
/* Kills its whole session. */
void proc_kill(struct proc *p);

/* process_ops.c: reads pid and tag from a request, and finds the process. */
int request_process(struct request *q, struct proc **ret);

/* procs.c: the table of all processes. Finds by tag if pid is 0: the newest, but a living one
 * before one that is over. */
struct proc *procs_find(struct agent *a, uint32_t pid, const char *tag);
/* Whether there is room for one more process with that note. */
int procs_admit(struct agent *a, const char *note, struct sg_error *e);
void procs_add(struct proc *p);
/* Moves it from the living to those that are kept for a while. */
void procs_keep(struct proc *p);
void procs_forget(struct proc *p);

/* proc_stream.c */
struct proc_stream *proc_subscribe(struct proc *p, struct request *q);
void proc_tell_started(struct proc *p, struct proc_stream *s);
/* Sends END for a process that is over. */
void proc_tell_end(struct proc *p, struct proc_stream *s);

/* proc_output.c */
void proc_output_init(struct proc *p);
void proc_output_watch(struct proc *p); /* call it when the descriptors are set */
void proc_output_close(struct proc *p);
void proc_output_resume(struct proc *p); /* call it when a subscriber can take more, or has left */
void proc_output_exited(struct proc *p); /* call it at exit: notes the bytes that are owed */

/* proc_input.c */
void proc_input_init(struct proc *p, int fd);
void proc_input_close(struct proc *p);
void proc_feed_add(struct proc_feed *f, struct op *op, struct proc *p);
void proc_feed_remove(struct proc_feed *f);
/* Each of these may end the feed's operation. */
void proc_feed_data(struct proc_feed *f, const void *data, size_t len);
void proc_feed_eof(struct proc_feed *f);

/* pty.c: opens both ends of a new terminal for `as`. */
int pty_open(const struct agent_user *as, uint32_t rows, uint32_t cols, int *ret_master,
             int *ret_slave);
void pty_resize(int master, uint32_t rows, uint32_t cols);
