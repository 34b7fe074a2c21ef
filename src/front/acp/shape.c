/* An agent as JSON: its state, its end, its log. */
#include <stdio.h>

#include "front/acp/impl.h"
#include "lib/base/clock.h"
#include "lib/base/signame.h"

const char *agent_state_name(enum agent_state s)
{
    static const char *const names[] = {"starting",  "running", "exited", "killed",
                                        "timed_out", "failed",  "lost"};

    _Static_assert(ARRAY_SIZE(names) == AGENT_STATE_MAX_, "a name for each");
    return names[s];
}

static void put_time(struct json *j, const char *key, int64_t ms)
{
    char text[CLOCK_TEXT_LEN];

    clock_text(ms, text);
    jw_string(jw_key(j, key), text);
}

static void put_text(struct json *j, const char *key, const char *text)
{
    if (!text)
        return;
    jw_bytes(jw_key(j, key), text, strlen(text));
}

/* Writes how the agent ended. */
static void put_end(struct json *j, const struct hosted *h)
{
    char signal[16];

    put_time(j, "endedAt", h->ended_ms);
    put_text(j, "reason", h->reason);
    if (h->state != AGENT_EXITED || h->exit_code != 0)
        put_text(j, "fault", fault_name(h->fault));
    if (h->exit_code >= 0)
        jw_u64(jw_key(j, "exitCode"), (uint64_t)h->exit_code);
    if (h->signal > 0) {
        snprintf(signal, sizeof(signal), "SIG%s", signal_name(h->signal));
        put_text(j, "signal", signal);
    }
}

void agent_put(struct json *j, const struct hosted *h)
{
    const struct backlog *b = &h->backlog;
    char acp[64];

    snprintf(acp, sizeof(acp), "/v1/agents/%s/acp", h->id);
    jw_object_begin(j);
    put_text(j, "agentId", h->id);
    put_text(j, "sandboxId", h->sandbox_id);
    put_text(j, "conversationId", h->conversation);
    put_text(j, "pathId", h->path);
    put_text(j, "state", agent_state_name(h->state));
    put_text(j, "command", h->command);
    jw_u64(jw_key(j, "pid"), h->pid);
    put_time(j, "startedAt", h->started_ms);
    if (h->end_ms > 0)
        put_time(j, "endAt", h->end_ms);
    if (agent_ended(h))
        put_end(j, h);
    jw_u64(jw_key(j, "messagesIn"), h->received);
    jw_u64(jw_key(j, "messagesOut"), b->next - 1);
    jw_u64(jw_key(j, "messagesKept"), b->next - b->first_number);
    jw_u64(jw_key(j, "noise"), h->noise);
    jw_u64(jw_key(j, "connected"), viewers_count(h));
    jw_bool(jw_key(j, "writer"), h->writer != NULL);
    put_text(j, "acp", acp);
    jw_object_end(j);
}

void agent_put_logs(struct json *j, const struct hosted *h)
{
    for (size_t i = 0; i < sandbox_log_count(&h->log); i++) {
        const struct log_entry *e = sandbox_log_get(&h->log, i);

        jw_object_begin(j);
        put_time(j, "time", e->ms);
        put_text(j, "stream", e->stream ? e->stream : "server");
        jw_bytes(jw_key(j, "text"), e->text, e->len);
        jw_object_end(j);
    }
}
