/* Starts an agent's process, in an existing sandbox, after its source was unpacked. */
#include <stdio.h>
#include <string.h>

#include "front/acp/impl.h"
#include "lib/base/clock.h"
#include "lib/channel/wire.h"
#include "front/contexts/context.h"
#include "front/core/identity.h"

#define NS_PER_MS 1000000ull
#define SERVE_FS  "/usr/local/lib/sandglass/kernels/acp/serve_fs.py"

void hosted_fail_start(struct hosted *h, const struct sg_error *e)
{
    agent_done done = h->done;
    void *arg = h->done_arg;
    struct sg_error copy = *e;

    operation_end(&h->operation, h->front, h->sandbox, copy.code, &copy, "refused");
    hosted_leave_sandbox(h);
    hosted_drop(h);
    done(arg, NULL, copy.code, &copy);
}

/* A start failed with ENOENT, which is about the program or about its directory. This is the answer
 * of a second call that looked whether the directory exists. */
static void on_cwd(struct call *c, int status, const char *message UNUSED,
                   const void *result UNUSED, size_t len UNUSED)
{
    struct hosted *h = c->owner;
    struct sg_error e = {0};

    if (status == CALL_GONE)
        sandbox_gone_error(h->sandbox, &e);
    else if (status == ENOENT)
        err_set(&e, SG_ERR_INVALID, -ENOENT, "the agent's cwd '%.200s' does not exist", h->ask.cwd);
    else
        err_set(&e, SG_ERR_INVALID, -ENOENT,
                "the agent's command '%.200s' does not exist in the sandbox",
                json_string_value(json_array_get(h->ask.command, 0)));
    hosted_fail_start(h, &e);
}

static bool look_at_cwd(struct hosted *h)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(2 * OPS_PATH_MAX);

    wire_put_str(&request, h->ask.user);
    wire_put_str(&request, h->ask.cwd[0] ? h->ask.cwd : ".");
    h->call = (struct call){.owner = h, .on_end = on_cwd};
    return call_begin(&h->call, h->sandbox, OP_FILE_STAT, &request, NULL) == 0;
}

static void start_refused(struct hosted *h, int status, const char *message)
{
    const char *command = json_string_value(json_array_get(h->ask.command, 0));
    struct sg_error e = {0};

    if (status == ENOENT && look_at_cwd(h))
        return;
    if (status == CALL_GONE)
        sandbox_gone_error(h->sandbox, &e);
    else if (status == EAGAIN || status == ENOMEM)
        err_set(&e, SG_ERR_LIMIT, -ENOSPC, "the sandbox has no room for the agent: %.300s",
                message);
    else
        err_invalid(&e, "the agent's command '%.200s' cannot be started: %.300s", command, message);
    hosted_fail_start(h, &e);
}

static void on_end(struct call *c, int status, const char *message, const void *result, size_t len)
{
    struct hosted *h = c->owner;

    if (h->state == AGENT_STARTING)
        start_refused(h, status ? status : EIO, status ? message : "the agent ended at once");
    else if (status == CALL_GONE)
        hosted_sandbox_ended(h);
    else if (status != 0)
        hosted_end(h, AGENT_FAILED, FAULT_SANDBOX, "agent failed: %.100s", message);
    else
        hosted_process_ended(h, result, len);
}

static void on_event(struct call *c, uint8_t what, const void *p, size_t len)
{
    struct hosted *h = c->owner;
    struct wire_reader r = wire_reader_of(p, len);

    uint32_t pid = wire_get_u32(&r);
    if (what != EVENT_STARTED || h->state != AGENT_STARTING || r.bad)
        return;
    h->pid = pid;
    h->state = AGENT_RUNNING;
    h->started_ms = clock_wall_ms();
    h->deadline_ns = clock_ns() + h->ask.timeout_ms * NS_PER_MS;
    h->end_ms = h->started_ms + (int64_t)h->ask.timeout_ms;
    json_decref(h->ask.body);
    h->ask = (struct agent_ask){.timeout_ms = h->ask.timeout_ms};
    agents_started(h);
    h->done(h->done_arg, h, 0, NULL);
}

static void put_command(const struct hosted *h, struct strbuf *request)
{
    static const char *const serve_fs[] = {"/usr/bin/python3", "-I", SERVE_FS, "--"};
    size_t n = json_array_size(h->ask.command), more = h->ask.serve_fs ? ARRAY_SIZE(serve_fs) : 0;

    wire_put_u32(request, (uint32_t)(n + more));
    for (size_t i = 0; i < more; i++)
        wire_put_str(request, serve_fs[i]);
    for (size_t i = 0; i < n; i++)
        wire_put_str(request, json_string_value(json_array_get(h->ask.command, i)));
}

void hosted_begin(struct hosted *h)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    char tag[ID_LEN + 8];
    struct sg_error e = {0};

    snprintf(tag, sizeof(tag), "acp:%s", h->id);
    wire_put_str(&request, h->ask.user);
    wire_put_str(&request, h->ask.cwd);
    wire_put_u32(&request, PROC_STDIN);
    wire_put_u32(&request, 0);
    wire_put_u32(&request, 0);
    wire_put_u64(&request, 0); /* the front has the deadline, and can move it */
    wire_put_str(&request, tag);
    wire_put_str(&request, "");
    put_command(h, &request);
    identity_put_envs(h->sandbox, &h->operation.trace, h->ask.env, &request);
    h->call = (struct call){.owner = h,
                            .on_event = on_event,
                            .on_data = hosted_on_data,
                            .on_credit = hosted_on_credit,
                            .on_end = on_end};
    strbuf_init(&h->line, AGENT_MESSAGE_MAX);
    strbuf_init(&h->input, 2 * AGENT_INPUT_MAX);
    if (call_begin(&h->call, h->sandbox, OP_PROCESS_START, &request, &e) < 0)
        hosted_fail_start(h, &e);
}

void agent_enter(struct hosted *h, struct sandbox *b, bool own, agent_done done, void *arg)
{
    h->done = done;
    h->done_arg = arg;
    h->sandbox = sandbox_ref(b);
    context_hold(b);
    h->own_sandbox = own;
    memcpy(h->sandbox_id, b->id, sizeof(h->sandbox_id));
    h->conversation = b->conversation ? xstrdup(b->conversation) : NULL;
    h->path = b->path ? xstrdup(b->path) : NULL;
    operation_sandbox(&h->operation, b);
    /* The note is written now: should this front die before the agent runs, the next front finds it
     * and ends the sandbox. */
    h->started_ms = clock_wall_ms();
    if (own)
        agents_remember(h, true);
    if (h->ask.source == SOURCE_NONE)
        hosted_begin(h);
    else
        source_put(h);
}
