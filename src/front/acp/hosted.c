/* One running agent: its input, and its end. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "front/acp/impl.h"
#include "lib/base/clock.h"
#include "lib/base/signame.h"
#include "lib/channel/wire.h"
#include "front/contexts/context.h"
#include "front/core/events.h"
#include "lib/log/log.h"

#define INPUT_LOW (64u * 1024)

/* ---- input ----------------------------------------------------------------------------------- */

static bool has_room(const struct hosted *h, size_t len)
{
    size_t lines, longest, input;

    if (h->input.len - h->input_at + len + 1 > AGENT_INPUT_MAX)
        return false;
    if (len < AGENT_BIG_MIN)
        return true;
    agents_hold(h, &lines, &longest, &input);
    return input + len <= AGENT_BIG_MAX;
}

bool hosted_take(struct hosted *h, const char *message, size_t len)
{
    if (h->state == AGENT_RUNNING && !h->stopping) {
        if (!has_room(h, len))
            return false;
        strbuf_add(&h->input, message, len);
        strbuf_addch(&h->input, '\n');
        if (h->input.truncated) {
            hosted_out_of_memory(h);
            return false;
        }
    }
    h->received++;
    return true;
}

void hosted_give_input(struct hosted *h)
{
    size_t waiting = h->input.len - h->input_at, n = call_credit(&h->call);

    if (h->state != AGENT_RUNNING || h->stopping)
        return;
    n = n < waiting ? n : waiting;
    if (n > 0)
        call_send(&h->call, CHAN_STDIN, h->input.buf + h->input_at, n);
    h->input_at += n;
    waiting -= n;
    if (waiting == 0 && h->input.cap > AGENT_KEEP_MAX) {
        strbuf_done(&h->input);
        strbuf_init(&h->input, 2 * AGENT_INPUT_MAX);
        h->input_at = 0;
    } else if (h->input_at > h->input.len / 2) {
        strbuf_consume(&h->input, h->input_at);
        h->input_at = 0;
    }
    if (waiting <= INPUT_LOW)
        viewers_resume(h);
}

void hosted_on_credit(struct call *c)
{
    hosted_give_input(c->owner);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void on_signalled(struct call *c UNUSED, int status UNUSED, const char *message UNUSED,
                         const void *result UNUSED, size_t len UNUSED)
{
}

/* SIGKILL goes to the whole session; any other signal to the process group. */
void hosted_signal(struct hosted *h, int sig)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(512);

    wire_put_u32(&request, h->pid);
    wire_put_str(&request, "");
    wire_put_u32(&request, (uint32_t)sig);
    call_cancel(&h->killer);
    h->killer = (struct call){.owner = h, .uncounted = true, .on_end = on_signalled};
    call_begin(&h->killer, h->sandbox, OP_PROCESS_SIGNAL, &request, NULL);
    h->killed = h->killed || sig == SIGKILL;
    if (hosted_is_dying(h))
        hosted_read_on(h);
}

void hosted_leave_sandbox(struct hosted *h)
{
    struct sandbox *b = steal_ptr(&h->sandbox);

    if (!b)
        return;
    call_cancel(&h->call);
    call_cancel(&h->killer);
    context_release(b);
    if (h->own_sandbox && b->state != SANDBOX_ENDED)
        sandbox_kill(b, NULL, NULL);
    sandbox_unref(b);
}

static void tell_end(struct hosted *h)
{
    struct sg_error e = {0};
    bool bad = h->fault == FAULT_SANDBOX || h->fault == FAULT_INFRASTRUCTURE;
    int r = 0;

    if (bad)
        r = err_set(&e, h->fault == FAULT_SANDBOX ? SG_ERR_GONE : SG_ERR_INTERNAL, -EIO, "%s",
                    h->reason);
    if (h->exit_code >= 0)
        span_number(h->operation.span, KEY_EXIT_CODE, h->exit_code);
    operation_end(&h->operation, h->front, h->sandbox, r, &e, agent_state_name(h->state));
    agents_tell(h);
    log_with(
        bad ? LEVEL_WARN : LEVEL_INFO,
        &(struct log_about){.fault = h->fault, .sandbox_id = h->sandbox_id, .tenant = h->tenant},
        "agent %s: %s", h->id, h->reason);
    sandbox_log_add(&h->log, bad ? LOG_ERROR : LOG_INFO, FAULT_AGENT, h->pid, "%s", h->reason);
}

void hosted_end(struct hosted *h, enum agent_state state, enum fault fault, const char *fmt, ...)
{
    struct stopper *s;
    va_list ap;

    if (h->state != AGENT_RUNNING)
        return;
    va_start(ap, fmt);
    vsnprintf(h->reason, sizeof(h->reason), fmt, ap);
    va_end(ap);
    hosted_take_rest(h);
    h->state = state;
    h->fault = fault;
    h->ended_ms = clock_wall_ms();
    h->ended_ns = clock_ns();
    tell_end(h);
    agents_remember(h, false);
    hosted_leave_sandbox(h);
    strbuf_done(&h->line);
    strbuf_done(&h->input);
    viewers_pump(h);
    viewers_resume(h);
    agents_ended(h);
    while ((s = LIST_POP(struct stopper, &h->stoppers, link))) {
        s->over(s->arg);
        free(s);
    }
}

/* The process has ended, and the server did not end it: says how. */
static void end_by_itself(struct hosted *h, bool killed, uint32_t code, uint64_t memory_limit)
{
    char text[MEMORY_LIMIT_TEXT];

    if (!killed) {
        h->exit_code = (int)(code & 0xff);
        hosted_end(h, AGENT_EXITED, FAULT_AGENT, "the agent exited with status %d", h->exit_code);
        return;
    }
    h->signal = (int)(code & 0x7f);
    if (memory_limit)
        hosted_end(h, AGENT_KILLED, FAULT_SANDBOX, "the agent was %s",
                   memory_limit_text(memory_limit, 0, text));
    else if (h->signal == SIGKILL)
        hosted_end(h, AGENT_KILLED, FAULT_SANDBOX,
                   "the agent was killed by SIGKILL, as when the sandbox's memory runs out");
    else
        hosted_end(h, AGENT_KILLED, FAULT_AGENT, "the agent was killed by SIG%s",
                   signal_name(h->signal));
}

void hosted_process_ended(struct hosted *h, const void *result, size_t len)
{
    struct wire_reader r = wire_reader_of(result, len);

    bool killed = wire_get_u32(&r) == PROC_KILLED;
    uint32_t code = wire_get_u32(&r);
    for (int i = 0; i < 4; i++)
        wire_get_u64(&r); /* utime, stime, maxrss, disk_used */
    wire_get_u32(&r);     /* disk_full */
    wire_get_u64(&r);
    wire_get_u64(&r); /* dropped */
    wire_get_u32(&r); /* timed_out: it has no time limit of the agent */
    uint64_t memory_limit = wire_get_u64(&r);
    if (!wire_done(&r)) {
        hosted_end(h, AGENT_FAILED, FAULT_SANDBOX, "the sandbox sent a malformed answer");
        return;
    }
    if (killed)
        h->signal = (int)(code & 0x7f);
    else
        h->exit_code = (int)(code & 0xff);
    if (h->timed_out)
        hosted_end(h, AGENT_TIMED_OUT, FAULT_AGENT, "the agent's timeout expired");
    else if (h->stopping)
        hosted_end(h, AGENT_KILLED, FAULT_CLIENT, "the agent was stopped on request");
    else if (h->killed)
        hosted_end(h, AGENT_FAILED, FAULT_INFRASTRUCTURE, "the server was out of memory");
    else
        end_by_itself(h, killed, code, memory_limit);
}

static enum fault fault_of_end(const struct sandbox_end *end)
{
    return end_kind(end->why)->fault == FAULT_INFRASTRUCTURE ? FAULT_INFRASTRUCTURE : FAULT_SANDBOX;
}

/* The agent's sandbox has ended: finds out whose doing that was, and ends the agent. */
void hosted_sandbox_ended(struct hosted *h)
{
    if (h->timed_out)
        hosted_end(h, AGENT_TIMED_OUT, FAULT_AGENT, "the agent's timeout expired");
    else if (h->stopping)
        hosted_end(h, AGENT_KILLED, FAULT_CLIENT, "the agent was stopped on request");
    else if (h->front->draining)
        hosted_end(h, AGENT_LOST, FAULT_INFRASTRUCTURE, "the server is stopping");
    else if (sandbox_end_is_news(&h->sandbox->end))
        hosted_end(h, AGENT_KILLED, fault_of_end(&h->sandbox->end),
                   "the agent ended with its sandbox: %s", sandbox_end_text(&h->sandbox->end));
    else if (h->sandbox->state == SANDBOX_ENDED)
        hosted_end(h, AGENT_KILLED, FAULT_SANDBOX, "the agent ended with its sandbox");
    else
        hosted_end(h, AGENT_KILLED, FAULT_SANDBOX,
                   "the agent ended: its sandbox was paused or rewound");
}
