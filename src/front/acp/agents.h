/* Hosted agents: programs that speak the Agent Client Protocol on their standard input and output,
 * run in a sandbox and are reached over a WebSocket.
 *
 *   agents.c    all agents: limits, deadlines, the list, and the ended ones that are kept
 *   start.c     starts the process of an agent
 *   hosted.c    the input of a running agent, and its end
 *   lines.c     the output of an agent
 *   source.c    unpacks source code in the sandbox, before the agent starts
 *   viewers.c   WebSockets of one agent: a writer and readers
 *   backlog.h   the messages of an agent
 *   shape.c     an agent, its end and its log, as JSON
 *   figures.c   the number of agents, for /metrics
 *
 *   client ==WebSocket==> viewer --> input --> call ----> stdin  of the agent's process
 *   client <==WebSocket== viewer <-- backlog <-- call <-- stdout    stderr --> its log
 *
 * A message is a line of the agent's output without its newline, byte for byte, and a text message
 * of the WebSocket. Both directions are counted from 1. A client that comes back says how many
 * messages it has (?after=N), and is told how many of its own the agent was given
 * (Sandglass-Acp-Received), so neither side loses or repeats one. Pings tell us what the client
 * has: its answer to a ping says that all messages before the ping have arrived.
 *
 * Nothing grows without limit. Messages that no writer has confirmed fill the backlog (setting
 * agent_replay); when it is full, the agent's output is not read any more, and the agent waits. A
 * reader never makes the agent wait: a reader that falls behind the kept messages is cut off. A
 * client that sends faster than the agent reads is not read itself.
 *
 * Lines that are no message (not UTF-8, or neither object nor array, or longer than
 * AGENT_MESSAGE_MAX) are noise: they are counted, and go into the log, which is a ring.
 *
 *                  agent_enter                   END of its process
 *   agent_new --> STARTING --> RUNNING ---------> EXITED, KILLED, TIMED_OUT, FAILED
 *                     |                             ^
 *                     v                             |  LOST: the server, not the agent, is to blame
 *                  refused: gone                    +-- kept AGENT_KEPT_MS, AGENTS_KEPT of a tenant
 *
 * An agent either has a sandbox of its own, which ends with the agent, or shares the sandbox of a
 * client or of a conversation's path, and ends with that sandbox. The process belongs to the
 * channel: should this front die, the process ends too, and the next front finds the agent in the
 * sandbox's note (sandbox_spec.agents) and lists it as lost. */
#pragma once

#include "lib/text/json.h"
#include "front/core/sandbox.h"
#include "front/store/store.h"

#define AGENT_MESSAGE_MAX (64u * 1024 * 1024)
#define AGENT_KEPT_MS     (60 * 60 * 1000)
#define AGENTS_KEPT       200
#define AGENT_READERS_MAX 64
#define AGENT_STOP_MS     5000                /* from SIGTERM to SIGKILL */
#define AGENT_BODY_MAX    (16u * 1024 * 1024) /* bytes of a request, with its source code */
#define AGENT_GRACE_MS    (180 * 1000)        /* its own sandbox lives this much longer */
#define AGENT_SUBPROTOCOL "sandglass.acp.v1"

enum agent_state {
    AGENT_STARTING,
    AGENT_RUNNING,
    AGENT_EXITED,
    AGENT_KILLED,
    AGENT_TIMED_OUT,
    AGENT_FAILED,
    AGENT_LOST,
    AGENT_STATE_MAX_
};

enum source_type { SOURCE_NONE, SOURCE_TAR, SOURCE_BUNDLE };

/* The agent that a request asks for. Everything is checked; the texts live in `body`. */
struct agent_ask {
    const char *tenant;
    json_t *body;    /* a reference is taken */
    json_t *command; /* strings */
    json_t *env;     /* object of strings, or NULL */
    const char *cwd, *user;
    uint64_t timeout_ms;
    bool serve_fs;
    enum source_type source;
    const char *source_data, *source_path; /* one of the two: base64, or a file inside */
    const char *into;
};

struct hosted;

/* Called once, when the warden has listed the existing sandboxes: lists the agents that an earlier
 * front had as lost. */
void agents_start(struct front *f);
/* -EDQUOT: the tenant has as many agents as the setting tenant_agents allows. */
int agent_new(struct front *f, const struct agent_ask *ask, struct hosted **ret,
              struct sg_error *e);
/* The trace for operations on the agent's behalf before agent_enter. */
const struct trace_ref *agent_trace(const struct hosted *h);
/* Gives up an agent that cannot get to agent_enter. */
void agent_refused(struct hosted *h, const struct sg_error *e);
/* Unpacks the source and starts the agent, in a running sandbox. own: the sandbox ends with the
 * agent. `done` comes exactly once, when the agent runs, perhaps before agent_enter returns. After
 * an error `h` is gone, and so is a sandbox of its own. */
typedef void (*agent_done)(void *arg, struct hosted *h, int r, const struct sg_error *e);
void agent_enter(struct hosted *h, struct sandbox *b, bool own, agent_done done, void *arg);

/* Finds an agent of this tenant. NULL: there is none. */
struct hosted *agent_find(struct front *f, const char *tenant, const char *id);
/* Sends SIGTERM, then SIGKILL. `over` comes when the agent has ended, exactly once, perhaps at
 * once. */
void agent_stop(struct hosted *h, void (*over)(void *arg), void *arg);
bool agent_ended(const struct hosted *h);
/* Takes an ended agent out of the list. */
void agent_forget(struct hosted *h);
/* Sets another deadline, counted from now. The agent's own sandbox lives as long. */
void agent_set_timeout(struct hosted *h, uint64_t timeout_ms);
/* Upgrades the request to a WebSocket, or answers it. */
void agent_attach(struct hosted *h, struct http_req *req);

/* Writes the agents of a tenant, the newest first, each as an object. */
void agents_put(struct json *j, struct front *f, const char *tenant);
void agent_put(struct json *j, const struct hosted *h);
void agent_put_logs(struct json *j, const struct hosted *h);

/* Called once, at the start: adds the number of agents to /metrics. */
void agents_have_figures(void);
void agents_count(struct front *f, size_t *ret_running, size_t *ret_ended);
