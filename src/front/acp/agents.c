/* The list of all hosted agents: limits, deadlines, and the ended agents that are kept. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "front/acp/impl.h"
#include "lib/base/clock.h"
#include "lib/text/utf8.h"
#include "front/contexts/context.h"
#include "front/core/events.h"
#include "lib/log/log.h"

#define NS_PER_MS     1000000ull
#define TICK_MS       250
#define COMMAND_MAX   512
#define ENDED_BACKLOG 4 /* times agent_replay: limit of the messages of a tenant's ended agents */

static void on_tick(uv_timer_t *t);

static struct agents *agents_of(struct front *f)
{
    if (f->agents)
        return f->agents;
    struct agents *a = NEW(struct agents, .front = f);
    uv_timer_init(f->loop, &a->tick);
    a->tick.data = a;
    f->agents = a;
    return a;
}

bool agent_ended(const struct hosted *h)
{
    return h->state != AGENT_STARTING && h->state != AGENT_RUNNING;
}

static void list_in(struct agents *a, struct hosted *h)
{
    list_push(&a->all, &h->link);
    if (!uv_is_active((const uv_handle_t *)&a->tick))
        uv_timer_start(&a->tick, on_tick, TICK_MS, TICK_MS);
}

/* ---- new agents, and the list ---------------------------------------------------------------- */

static char *command_line(const json_t *command)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(COMMAND_MAX);

    for (size_t i = 0; i < json_array_size(command); i++)
        strbuf_addf(&line, "%s%s", i > 0 ? " " : "", json_string_value(json_array_get(command, i)));
    /* A cut within a character leaves invalid UTF-8, which the sandbox's note cannot hold. */
    while (line.len > 0 && !utf8_valid(line.buf, line.len))
        line.buf[--line.len] = '\0';
    return xstrdup(line.buf);
}

static size_t count_of(const struct agents *a, const char *tenant)
{
    size_t n = 0;

    LIST_EACH(struct hosted, h, &a->all, link)
        n += !h->dropped && !agent_ended(h) && strcmp(h->tenant, tenant) == 0;
    return n;
}

int agent_new(struct front *f, const struct agent_ask *ask, struct hosted **ret, struct sg_error *e)
{
    struct agents *a = agents_of(f);
    uint32_t limit = f->settings.tenant_agents;

    if (f->draining)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN, "the server is shutting down");
    if (count_of(a, ask->tenant) >= limit)
        return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                       "you have reached the maximum number of hosted agents: the limit is %u; "
                       "stop one first",
                       limit);
    struct hosted *h = NEW(struct hosted, .front = f, .command = command_line(ask->command),
                           .exit_code = -1, .ask = *ask);
    id_random(h->id);
    snprintf(h->tenant, sizeof(h->tenant), "%s", ask->tenant);
    json_incref(h->ask.body);
    backlog_init(&h->backlog, f->settings.agent_replay);
    operation_begin(&h->operation, OPERATION_AGENT);
    list_in(a, h);
    *ret = h;
    return 0;
}

const struct trace_ref *agent_trace(const struct hosted *h)
{
    return &h->operation.trace;
}

void agent_refused(struct hosted *h, const struct sg_error *e)
{
    operation_end(&h->operation, h->front, NULL, e->code, e, "refused");
    hosted_drop(h);
}

/* Frees everything but the struct itself, which a loop over the list may be using. on_tick does the
 * rest. */
void hosted_drop(struct hosted *h)
{
    if (h->dropped)
        return;
    h->dropped = true;
    if (agent_ended(h))
        h->front->agents->n_ended--;
    viewers_drop(h);
    source_cancel(steal_ptr(&h->source));
    operation_drop(&h->operation);
    json_decref(steal_ptr(&h->ask.body));
    backlog_drop(&h->backlog);
    strbuf_done(&h->line);
    strbuf_done(&h->input);
    sandbox_log_done(&h->log);
}

static void hosted_free(struct hosted *h)
{
    list_remove(&h->link);
    free(h->conversation);
    free(h->path);
    free(h->command);
    free(h);
}

void agent_forget(struct hosted *h)
{
    if (agent_ended(h))
        hosted_drop(h);
}

static bool is_shown(const struct hosted *h, const char *tenant)
{
    return h->state != AGENT_STARTING && !h->dropped && strcmp(h->tenant, tenant) == 0;
}

struct hosted *agent_find(struct front *f, const char *tenant, const char *id)
{
    if (!f->agents)
        return NULL;
    return LIST_FIND(struct hosted, h, &f->agents->all, link,
                     is_shown(h, tenant) && strcmp(h->id, id) == 0);
}

void agents_put(struct json *j, struct front *f, const char *tenant)
{
    if (!f->agents)
        return;
    LIST_EACH(struct hosted, h, &f->agents->all, link)
        if (is_shown(h, tenant))
            agent_put(j, h);
}

void agents_count(struct front *f, size_t *ret_running, size_t *ret_ended)
{
    *ret_running = f->agents ? f->agents->n_running : 0;
    *ret_ended = f->agents ? f->agents->n_ended : 0;
}

void agents_hold(const struct hosted *of, size_t *ret_lines, size_t *ret_longest, size_t *ret_input)
{
    *ret_lines = *ret_longest = *ret_input = 0;
    LIST_EACH(struct hosted, h, &of->front->agents->all, link) {
        if (h->state != AGENT_RUNNING || strcmp(h->tenant, of->tenant) != 0)
            continue;
        *ret_lines += h->line.len;
        *ret_input += h->input.len - h->input_at;
        /* A line whose agent waits for its client will not be whole soon, so it does not count
         * here. */
        if (!backlog_full(&h->backlog, h->backlog.confirmed, h->line.len) &&
            h->line.len > *ret_longest)
            *ret_longest = h->line.len;
    }
}

/* ---- note of the sandbox --------------------------------------------------------------------- */

static json_t *remembered(const struct hosted *h)
{
    return json_pack("{s:s, s:I, s:b, s:s, s:s*, s:s*}", "id", h->id, "startedMs",
                     (json_int_t)h->started_ms, "own", h->own_sandbox, "command", h->command,
                     "conversation", h->conversation, "path", h->path);
}

void agents_remember(struct hosted *h, bool runs)
{
    struct sandbox *b = h->sandbox;
    json_t *list = b->spec.agents;

    if (!runs && b->state == SANDBOX_ENDED)
        return;
    if (runs) {
        if (!list)
            list = b->spec.agents = json_array();
        json_array_append_new(list, remembered(h));
    }
    for (size_t i = 0; !runs && i < json_array_size(list); i++) {
        json_t *one = json_array_get(list, i);
        if (strcmp(jr_text(one, "id"), h->id) == 0)
            json_array_remove(list, i--);
    }
    if (runs || !h->own_sandbox)
        sandbox_note_changed(b);
}

void agents_tell(struct hosted *h)
{
    bool ended = agent_ended(h);

    event_emit(h->front, ended ? HAPPENED_AGENT_ENDED : HAPPENED_AGENT_STARTED,
               &(struct event_about){.tenant = h->tenant,
                                     .sandbox_id = h->sandbox_id,
                                     .conversation = h->conversation,
                                     .path = h->path,
                                     .agent = h->id,
                                     .reason = ended ? agent_state_name(h->state) : NULL,
                                     .detail = ended ? h->reason : NULL});
}

/* Lists an agent that an earlier front had. Its process ended with the channel. */
static void add_lost(const struct sandbox *b, const json_t *one)
{
    const char *conversation = jr_text(one, "conversation"), *path = jr_text(one, "path");
    struct hosted *h =
        NEW(struct hosted, .front = b->front,
            .conversation = conversation[0] ? xstrdup(conversation) : NULL,
            .path = path[0] ? xstrdup(path) : NULL, .command = xstrdup(jr_text(one, "command")),
            .state = AGENT_LOST, .fault = FAULT_INFRASTRUCTURE, .exit_code = -1,
            .started_ms = jr_int(one, "startedMs"), .ended_ms = clock_wall_ms(),
            .ended_ns = clock_ns(), .own_sandbox = jr_flag(one, "own"));

    snprintf(h->id, sizeof(h->id), "%s", jr_text(one, "id"));
    memcpy(h->tenant, b->spec.tenant, sizeof(h->tenant));
    memcpy(h->sandbox_id, b->id, sizeof(h->sandbox_id));
    snprintf(h->reason, sizeof(h->reason), "the server was restarted while the agent ran");
    backlog_init(&h->backlog, b->front->settings.agent_replay);
    list_in(agents_of(b->front), h);
    b->front->agents->n_ended++;
    agents_tell(h);
}

void agents_start(struct front *f)
{
    SANDBOXES_EACH(b, f) {
        bool own = false;

        if (json_array_size(b->spec.agents) == 0)
            continue;
        for (size_t k = 0; k < json_array_size(b->spec.agents); k++) {
            add_lost(b, json_array_get(b->spec.agents, k));
            own = own || LIST_FIRST(struct hosted, &f->agents->all, link)->own_sandbox;
        }
        json_decref(steal_ptr(&b->spec.agents));
        if (own)
            sandbox_kill(b, NULL, NULL);
        else
            sandbox_note_changed(b);
    }
}

/* ---- begin and end --------------------------------------------------------------------------- */

void agents_started(struct hosted *h)
{
    h->front->agents->n_running++;
    if (!h->own_sandbox) /* an own sandbox has the note from the start */
        agents_remember(h, true);
    agents_tell(h);
    sandbox_log_add(&h->log, LOG_INFO, FAULT_AGENT, h->pid, "agent started: %s", h->command);
    log_with(
        LEVEL_INFO,
        &(struct log_about){.fault = FAULT_AGENT, .sandbox_id = h->sandbox_id, .tenant = h->tenant},
        "agent %s started", h->id);
}

/* Drops ended agents beyond AGENTS_KEPT, and messages of ended agents beyond ENDED_BACKLOG. `h` is
 * the newest. */
void agents_ended(struct hosted *h)
{
    struct agents *a = h->front->agents;
    size_t n = 0, bytes = 0;

    a->n_running--;
    a->n_ended++;
    LIST_EACH(struct hosted, k, &a->all, link) {
        if (!agent_ended(k) || k->dropped || k == h || strcmp(k->tenant, h->tenant) != 0)
            continue;
        n++;
        bytes += backlog_kept(&k->backlog);
        if (n >= AGENTS_KEPT)
            hosted_drop(k);
        else if (bytes > ENDED_BACKLOG * h->front->settings.agent_replay)
            backlog_drop(&k->backlog);
    }
}

void agent_stop(struct hosted *h, void (*over)(void *arg), void *arg)
{
    if (agent_ended(h)) {
        over(arg);
        return;
    }
    struct stopper *s = NEW(struct stopper, .over = over, .arg = arg);
    list_push(&h->stoppers, &s->link);
    if (h->stopping)
        return;
    h->stopping = true;
    h->stop_ns = clock_ns();
    hosted_signal(h, SIGTERM);
    call_eof(&h->call); /* an agent that reads its input sees the end */
}

void agent_set_timeout(struct hosted *h, uint64_t timeout_ms)
{
    h->deadline_ns = clock_ns() + timeout_ms * NS_PER_MS;
    h->end_ms = clock_wall_ms() + (int64_t)timeout_ms;
    if (h->own_sandbox && h->sandbox)
        sandbox_set_timeout(h->sandbox, timeout_ms + AGENT_GRACE_MS, false, NULL, NULL);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void tick_running(struct hosted *h, uint64_t now)
{
    uint64_t since = now - h->stop_ns;

    if (h->timed_out && since > 2 * AGENT_STOP_MS * NS_PER_MS) {
        hosted_end(h, AGENT_TIMED_OUT, FAULT_AGENT, "the agent's timeout expired");
    } else if (h->timed_out || h->stopping) {
        if (!h->killed && since > AGENT_STOP_MS * NS_PER_MS)
            hosted_signal(h, SIGKILL);
        else if (h->killed && since > 2 * AGENT_STOP_MS * NS_PER_MS)
            hosted_end(h, AGENT_KILLED, FAULT_CLIENT, "the agent was stopped on request");
    } else if (now >= h->deadline_ns) {
        h->timed_out = true;
        h->stop_ns = now;
        hosted_signal(h, SIGKILL);
    }
}

static void on_tick(uv_timer_t *t)
{
    struct agents *a = t->data;
    uint64_t now = clock_ns();

    LIST_EACH(struct hosted, h, &a->all, link) {
        if (a->front->draining)
            viewers_close(h, WS_GOING_AWAY, "the server is stopping: come back later");
        if (h->state == AGENT_RUNNING) {
            hosted_read_on(h);
            tick_running(h, now);
        } else if (agent_ended(h) && now - h->ended_ns > AGENT_KEPT_MS * NS_PER_MS)
            hosted_drop(h);
    }
    LIST_EACH(struct hosted, h, &a->all, link)
        if (h->dropped)
            hosted_free(h);
    if (list_empty(&a->all))
        uv_timer_stop(t);
}
