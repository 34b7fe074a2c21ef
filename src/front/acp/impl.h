/* What the files of this directory share. */
#pragma once

#include "front/acp/agents.h"
#include "front/acp/backlog.h"
#include "lib/text/strbuf.h"
#include "front/core/call.h"
#include "front/core/operation.h"
#include "front/core/log.h"
#include "lib/http/websocket.h"

#define REASON_MAX 160
/* Lines and messages from this size on are counted, and no more of a tenant's are held at once. */
#define AGENT_BIG_MIN   (1024u * 1024)
#define AGENT_BIG_MAX   (128u * 1024 * 1024)
#define AGENT_INPUT_MAX (AGENT_MESSAGE_MAX + 1024u * 1024) /* that one agent has not read yet */
#define AGENT_KEEP_MAX  (64u * 1024)                       /* memory that stays for what is next */

struct agents {
    struct front *front;
    struct hosted *list; /* the newest first */
    uv_timer_t tick;
    size_t n_running, n_ended;
};

/* A WebSocket. */
struct viewer {
    struct hosted *agent;
    struct ws *ws;
    bool writer;
    bool blocked; /* its client takes nothing now */
    bool paused;  /* it is not read: the agent is to read first */
    bool closing;
    struct backlog_cursor cursor;
    uint64_t ping_number, ping_boundary; /* of the last one */
    bool ping_out;
    struct viewer *next, **link;
};

struct stopper {
    struct stopper *next;
    void (*over)(void *arg);
    void *arg;
};

struct source_run;

struct hosted {
    struct front *front;
    char id[ID_LEN + 1], tenant[ID_LEN + 1], sandbox_id[ID_LEN + 1];
    char *conversation, *path; /* or NULL */
    char *command;             /* for people, in one line */
    enum agent_state state;
    enum agent_fault fault;
    char reason[REASON_MAX];
    int exit_code; /* -1: none */
    int signal;    /* 0: none */
    uint32_t pid;
    int64_t started_ms, ended_ms, end_ms; /* wall clock; end_ms: its deadline */
    uint64_t deadline_ns, ended_ns;
    bool own_sandbox;

    struct agent_ask ask; /* while it starts */
    agent_done done;
    void *done_arg;
    struct source_run *source; /* under way; NULL: none */

    struct sandbox *sandbox; /* held while it runs */
    struct call call;
    struct call killer; /* OP_PROCESS_SIGNAL */
    bool stopping, killed, timed_out;
    uint64_t stop_ns; /* when it was asked to */
    struct stopper *stoppers;

    struct backlog backlog;
    struct strbuf line;  /* of its output, not whole yet */
    bool skipping;       /* a line that was too long */
    size_t owed;         /* bytes of output that are not acknowledged: it waits */
    struct strbuf input; /* to it, as it has not taken them yet */
    size_t input_at;
    uint64_t received, noise; /* messages of clients; lines that were none */
    struct sandbox_log log;

    struct viewer *viewers, *writer;
    struct operation operation;
    bool dropped; /* it is not there any more, but for who is at work on it */
    struct hosted *next, **link;
};

/* start.c */
void hosted_begin(struct hosted *h); /* its sandbox is ready, with its source in it */
void hosted_fail_start(struct hosted *h, const struct sg_error *e);

/* lines.c */
void hosted_on_data(struct call *c, uint8_t sub, const void *p, size_t len);
void hosted_take_rest(struct hosted *h); /* it has ended without a newline */
void hosted_read_on(struct hosted *h);   /* there may be room in its backlog again */
/* It ends soon: its output is read whether there is room or not. */
bool hosted_is_dying(const struct hosted *h);
void hosted_out_of_memory(struct hosted *h);

/* hosted.c */
/* A message of the client. False: there is no room for it. */
bool hosted_take(struct hosted *h, const char *message, size_t len);
void hosted_give_input(struct hosted *h); /* to the process, as much as it takes */
void hosted_on_credit(struct call *c);
void hosted_signal(struct hosted *h, int sig);
void hosted_process_ended(struct hosted *h, const void *result, size_t len);
void hosted_sandbox_ended(struct hosted *h);
void hosted_leave_sandbox(struct hosted *h);
PRINTF(4, 5)
void hosted_end(struct hosted *h, enum agent_state state, enum agent_fault fault, const char *fmt,
                ...);

/* source.c: done is hosted_begin or hosted_fail_start. */
void source_put(struct hosted *h);
void source_cancel(struct source_run *s);

/* viewers.c */
void viewers_pump(struct hosted *h);   /* there are new messages, or it has ended */
void viewers_resume(struct hosted *h); /* its input has room */
void viewers_close(struct hosted *h, unsigned code, const char *reason);
void viewers_drop(struct hosted *h); /* the same, and the agent is forgotten */
size_t viewers_count(const struct hosted *h);

/* agents.c */
void hosted_drop(struct hosted *h);
void agents_started(struct hosted *h);
void agents_ended(struct hosted *h);
/* Of a tenant's agents that run: bytes of lines that are not whole, and of input that waits. */
void agents_hold(const struct hosted *of, size_t *ret_lines, size_t *ret_longest,
                 size_t *ret_input);
void agents_remember(struct hosted *h, bool runs); /* in its sandbox's note */

/* shape.c */
const char *agent_state_name(enum agent_state s);
const char *agent_fault_name(enum agent_fault f);
