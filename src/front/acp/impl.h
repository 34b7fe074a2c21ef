/* Declarations that the files of this directory share. */
#pragma once

#include "front/acp/agents.h"
#include "front/acp/backlog.h"
#include "lib/base/list.h"
#include "lib/text/strbuf.h"
#include "front/core/call.h"
#include "front/core/operation.h"
#include "front/core/log.h"
#include "lib/http/websocket.h"

#define REASON_MAX 160
/* Lines and messages of at least AGENT_BIG_MIN are limited: a tenant's agents hold AGENT_BIG_MAX of
 * unfinished lines, and as much of input, at once. */
#define AGENT_BIG_MIN   (1024u * 1024)
#define AGENT_BIG_MAX   (128u * 1024 * 1024)
#define AGENT_INPUT_MAX (AGENT_MESSAGE_MAX + 1024u * 1024) /* unread input of one agent */
#define AGENT_KEEP_MAX  (64u * 1024)                       /* memory an empty buffer keeps */

struct agents {
    struct front *front;
    struct list all; /* the newest first */
    uv_timer_t tick;
    size_t n_running, n_ended;
};

/* A WebSocket. */
struct viewer {
    struct hosted *agent;
    struct ws *ws;
    bool writer;
    bool blocked; /* the client takes nothing now */
    bool paused;  /* the client is not read until the agent has read */
    bool closing;
    struct backlog_cursor cursor;
    uint64_t ping_number, ping_boundary; /* number and place of the last ping */
    bool ping_out;
    struct list link;
};

struct stopper {
    struct list link;
    void (*over)(void *arg);
    void *arg;
};

struct source_run;

struct hosted {
    struct front *front;
    char id[ID_LEN + 1], tenant[ID_LEN + 1], sandbox_id[ID_LEN + 1];
    char *conversation, *path; /* or NULL */
    char *command;             /* the command in one line, for people */
    enum agent_state state;
    enum fault fault;
    char reason[REASON_MAX];
    int exit_code; /* -1: none */
    int signal;    /* 0: none */
    uint32_t pid;
    int64_t started_ms, ended_ms, end_ms; /* wall clock; end_ms: the deadline */
    uint64_t deadline_ns, ended_ns;
    bool own_sandbox;

    struct agent_ask ask; /* used until it has started */
    agent_done done;
    void *done_arg;
    struct source_run *source; /* the source that is being unpacked; NULL: none */

    struct sandbox *sandbox; /* a reference, while it runs */
    struct call call;
    struct call killer; /* OP_PROCESS_SIGNAL */
    bool stopping, killed, timed_out;
    uint64_t stop_ns; /* when it was asked to stop */
    struct list stoppers;

    struct backlog backlog;
    struct strbuf line;  /* a line of output that is not whole yet */
    bool skipping;       /* the rest of a line that is too long is skipped */
    size_t owed;         /* bytes of output not acknowledged: the agent waits */
    struct strbuf input; /* input that the process has not taken yet */
    size_t input_at;
    uint64_t received, noise; /* messages of clients; lines of output that are no message */
    struct sandbox_log log;

    struct list viewers;
    struct viewer *writer;
    struct operation operation;
    bool dropped; /* freed but for the struct itself: see hosted_drop */
    struct list link;
};

/* start.c */
void hosted_begin(struct hosted *h); /* the sandbox is ready, with the source in it */
void hosted_fail_start(struct hosted *h, const struct sg_error *e);

/* lines.c */
void hosted_on_data(struct call *c, uint8_t sub, const void *p, size_t len);
void hosted_take_rest(struct hosted *h); /* the output has ended without a newline */
void hosted_read_on(struct hosted *h);   /* the backlog may have room again */
/* The agent ends soon: its output is read whether there is room or not. */
bool hosted_is_dying(const struct hosted *h);
void hosted_out_of_memory(struct hosted *h);

/* hosted.c */
/* Takes a message of the client. False: there is no room for it. */
bool hosted_take(struct hosted *h, const char *message, size_t len);
void hosted_give_input(struct hosted *h); /* as much as the process takes */
void hosted_on_credit(struct call *c);
void hosted_signal(struct hosted *h, int sig);
void hosted_process_ended(struct hosted *h, const void *result, size_t len);
void hosted_sandbox_ended(struct hosted *h);
void hosted_leave_sandbox(struct hosted *h);
PRINTF(4, 5)
void hosted_end(struct hosted *h, enum agent_state state, enum fault fault, const char *fmt, ...);

/* source.c: unpacks the source, then calls hosted_begin or hosted_fail_start. */
void source_put(struct hosted *h);
void source_cancel(struct source_run *s);

/* viewers.c */
void viewers_pump(struct hosted *h);   /* there are new messages, or the agent has ended */
void viewers_resume(struct hosted *h); /* the agent's input has room */
void viewers_close(struct hosted *h, unsigned code, const char *reason);
void viewers_drop(struct hosted *h); /* closes all; the agent is forgotten */
size_t viewers_count(const struct hosted *h);

/* agents.c */
void hosted_drop(struct hosted *h);
void agents_started(struct hosted *h);
void agents_ended(struct hosted *h);
/* Adds up the memory of the tenant's running agents: bytes of unfinished lines, the longest of
 * these, and bytes of waiting input. */
void agents_hold(const struct hosted *of, size_t *ret_lines, size_t *ret_longest,
                 size_t *ret_input);
void agents_remember(struct hosted *h, bool runs); /* writes it to the sandbox's note */
/* Tells of it in an event: that it has started, or, with a reason, that it has ended. */
void agents_tell(struct hosted *h);

/* shape.c */
const char *agent_state_name(enum agent_state s);
