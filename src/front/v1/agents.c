/* Hosted agents (front/acp/agents.h): the bodies of their requests, and a sandbox for each. */
#include "front/acp/agents.h"

#include <string.h>

#include "wire/agent.h"
#include "front/e2b/spec.h"
#include "front/core/request_log.h"
#include "front/core/operation.h"
#include "front/core/secret_text.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/spec.h"

#define LIST_MAX (2u * 1024 * 1024)
#define LOGS_MAX (4u * 1024 * 1024)
#define INTO     "~/project"
#define ID_MAX   64

/* ---- body ------------------------------------------------------------------------------------ */

static json_t *read_command(struct fields *in)
{
    json_t *command = field_array(in, "command", OPS_ARGS_MAX), *v;
    size_t i;

    if (json_array_size(command) == 0)
        field_wrong(in, "'command' is required: the agent's program and its arguments");
    json_array_foreach(command, i, v)
    {
        if (!json_is_string(v))
            field_must(in, "command", "an array of strings");
    }
    if (json_string_length(json_array_get(command, 0)) == 0)
        field_wrong(in, "'command' begins with an empty string");
    return command;
}

/* "~/x" means "x": relative paths are below the home. */
static const char *read_path(struct fields *in, const char *name)
{
    const char *path = field_text(in, name, OPS_PATH_MAX - 1, NULL);

    if (path && strcmp(path, "~") == 0)
        return "";
    return path && strncmp(path, "~/", 2) == 0 ? path + 2 : path;
}

static void read_source(struct fields *in, struct agent_ask *ask)
{
    struct fields source = field_object(in, "source");

    fields_known(&source, "type", "data", "path", "into");
    const char *type = field_text(&source, "type", 16, "");
    ask->source_data = field_text(&source, "data", AGENT_BODY_MAX, NULL);
    ask->source_path = read_path(&source, "path");
    ask->into = field_text(&source, "into", OPS_PATH_MAX - 1, INTO);
    if (!source.object)
        return;
    if (strcmp(type, "tar") != 0 && strcmp(type, "bundle") != 0)
        field_wrong(in, "'source.type' must be \"tar\" or \"bundle\"");
    if (!ask->source_data == !ask->source_path)
        field_wrong(in, "'source' has either 'data', in base64, or 'path', a file in the sandbox");
    if (ask->into[0] == '\0')
        field_wrong(in, "'source.into' is empty");
    ask->source = type[0] == 't' ? SOURCE_TAR : SOURCE_BUNDLE;
}

static const char *read_user(struct fields *in)
{
    static const char *const users[] = {"user", "root"};

    return users[field_word(in, "user", users, ARRAY_SIZE(users), 0, "\"user\" or \"root\"")];
}

static uint64_t read_timeout(struct e2b_req *q)
{
    const struct settings *s = &q->front->settings;
    uint64_t ms = s->agent_timeout_ms < s->max_timeout_ms ? s->agent_timeout_ms : s->max_timeout_ms;

    return field_timeout(&q->in, 1, (uint32_t)(ms / 1000), s->max_timeout_ms);
}

/* Variables that refer to secrets need a sandbox of the agent's own: it is made with them. */
static json_t *read_env(struct e2b_req *q, bool own)
{
    json_t *env = spec_read_envs(&q->in, "env"), *value;
    struct secret_mention mention;
    const char *name;

    if (own && env)
        json_object_set(q->body, "envs", env);
    if (own)
        return NULL;
    json_object_foreach(env, name, value)
    {
        if (secret_mentioned(json_string_value(value), &mention))
            field_wrong(&q->in,
                        "'env.%.64s' names a secret: only an agent with a sandbox of its own can "
                        "have one",
                        name);
    }
    return env;
}

static struct agent_ask read_ask(struct e2b_req *q, bool own)
{
    struct agent_ask ask = {.tenant = q->tenant.id, .body = q->body};

    check_body(q, "command", "env", "cwd", "user", "template", "timeout", "sandboxId",
               "conversationId", "pathId", "source", "serveFs", "network", "metadata",
               "ttlSeconds");
    ask.command = read_command(&q->in);
    ask.env = read_env(q, own);
    ask.cwd = read_path(&q->in, "cwd");
    ask.user = read_user(&q->in);
    ask.timeout_ms = read_timeout(q);
    ask.serve_fs = field_flag(&q->in, "serveFs", false);
    read_source(&q->in, &ask);
    if (!ask.cwd && ask.source != SOURCE_NONE)
        ask.cwd = strncmp(ask.into, "~/", 2) == 0 ? ask.into + 2 : ask.into;
    if (!ask.cwd)
        ask.cwd = "";
    return ask;
}

/* ---- POST ------------------------------------------------------------------------------------ */

/* While an agent starts, the request's `work` is the agent. */
static void reply_agent(struct e2b_req *q, int status, const struct hosted *h)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(REPLY_MAX);
    struct json j = {.out = &out};

    agent_put(&j, h);
    reply_json(q->http, status, &out);
}

static void fail(struct e2b_req *q, const struct sg_error *e)
{
    if (!e2b_back(q))
        return;
    if (e->kind == SG_ERR_LIMIT && e->code == -ENOSPC)
        request_log_blame(q->http, FAULT_SANDBOX);
    reply_sg_error(q->http, e);
}

static void on_unwanted(void *arg)
{
    agent_forget(arg);
}

static void on_started(void *arg, struct hosted *h, int r, const struct sg_error *e)
{
    struct e2b_req *q = arg;

    if (r < 0)
        fail(q, e);
    else if (e2b_back(q))
        reply_agent(q, 201, h);
    else /* the client is gone: nobody learned the agent's id, and the client will ask again */
        agent_stop(h, on_unwanted, h);
}

static void refuse(struct e2b_req *q, const struct sg_error *e)
{
    agent_refused(q->work, e);
    fail(q, e);
}

static void on_sandbox(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct e2b_req *q = arg;

    if (r < 0)
        refuse(q, e);
    else
        agent_enter(q->work, b, true, on_started, q);
}

/* Makes a sandbox of the agent's own. */
static void make_sandbox(struct e2b_req *q, uint64_t timeout_ms)
{
    char snapshot[ID_LEN + 1];
    struct sandbox_spec spec;
    struct sg_error e = {0};

    if (spec_of_body(q, NULL, &spec, snapshot, &e) < 0) {
        refuse(q, &e);
        return;
    }
    struct trace_ref before = operation_enter(agent_trace(q->work));
    sandbox_create(q->front, &spec, snapshot[0] ? snapshot : NULL, timeout_ms + AGENT_GRACE_MS,
                   on_sandbox, q);
    operation_leave(&before);
}

static void on_context(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;
    struct sg_error e = {0};

    if (a->r == 0 && a->sandbox) {
        agent_enter(q->work, a->sandbox, false, on_started, q);
        return;
    }
    if (a->r < 0)
        e = *a->e;
    else
        err_set(&e, SG_ERR_GONE, -EXDEV, "the path is on another server");
    agent_refused(q->work, &e);
    reply_came(q, a);
}

/* Obtains the sandbox of a path of a conversation. */
static void obtain_sandbox(struct e2b_req *q, const struct context_ask *ask)
{
    struct trace_ref before = operation_enter(agent_trace(q->work));

    context_obtain(q->front, ask, on_context, q);
    operation_leave(&before);
}

/* The sandbox that the request names. NULL: the request has been answered. */
static struct sandbox *named_sandbox(struct e2b_req *q, const char *id)
{
    static const char *const made[] = {"template", "network", "metadata", "conversationId"};
    struct sandbox *b = sandbox_get(q->front, q->tenant.id, id);

    for (size_t i = 0; i < ARRAY_SIZE(made); i++)
        if (field_get(&q->in, made[i])) {
            reply_error(q->http, 400,
                        FIELD_ERROR "'%s' is for a new sandbox, and excludes 'sandboxId'", made[i]);
            return NULL;
        }
    if (!b) {
        reply_no_sandbox(q->http, q->tenant.id, id);
        return NULL;
    }
    if (b->state == SANDBOX_RUNNING && b->busy != BUSY_PAUSING)
        return b;
    reply_error(q->http, 409, "Sandbox \"%s\" is paused: resume it first", b->id);
    return NULL;
}

void v1_agent_post(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    bool on_path = field_get(&q->in, "conversationId") || field_get(&q->in, "pathId");
    const char *id = field_text(&q->in, "sandboxId", ID_MAX, NULL);
    struct agent_ask ask = read_ask(q, !id && !on_path);
    struct context_ask context = {0};
    struct sandbox *sandbox = NULL;
    struct hosted *h = NULL;

    if (fields_ok(&q->in) && id && !(sandbox = named_sandbox(q, id)))
        return;
    if (on_path)
        context = check_ask(q, "pathId");
    fields_check(&q->in, agent_new(q->front, &ask, &h, &q->wrong));
    if (!e2b_read(q))
        return;
    q->work = h;
    e2b_wait(q);
    if (sandbox)
        agent_enter(h, sandbox, false, on_started, q);
    else if (on_path)
        obtain_sandbox(q, &context);
    else
        make_sandbox(q, ask.timeout_ms);
}

/* ---- one agent, and the list ----------------------------------------------------------------- */

/* The answer is the same for an unknown agent and for another tenant's. */
static void reply_no_agent(struct e2b_req *q, const char *id)
{
    reply_error(q->http, 404, "Agent \"%.64s\" doesn't exist or you don't have access to it", id);
}

/* The agent that the request names. NULL: the request has been answered. */
static struct hosted *named_agent(struct e2b_req *q)
{
    const char *id = q->http->params[0];
    struct hosted *h = agent_find(q->front, q->tenant.id, id);

    if (!h)
        reply_no_agent(q, id);
    return h;
}

void v1_agents_list(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct reply r;
    struct json *j = reply_begin(&r, LIST_MAX);

    jw_array_begin(jw_key(j, "agents"));
    agents_put(j, q->front, q->tenant.id);
    jw_array_end(j);
    reply_send(q, 200, &r);
}

void v1_agent_get(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct hosted *h = named_agent(q);

    if (h)
        reply_agent(q, 200, h);
}

void v1_agent_logs(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct hosted *h = named_agent(q);
    struct reply r;

    if (!h)
        return;
    struct json *j = reply_begin(&r, LOGS_MAX);
    jw_array_begin(jw_key(j, "entries"));
    agent_put_logs(j, h);
    jw_array_end(j);
    reply_send(q, 200, &r);
}

/* The agent has ended. It stays in the list for a while, as ended. */
static void on_stopped(void *arg)
{
    struct e2b_req *q = arg;
    struct hosted *h = agent_find(q->front, q->tenant.id, q->id);

    if (!e2b_back(q))
        return;
    if (h)
        reply_agent(q, 200, h);
    else
        reply_no_agent(q, q->id);
}

void v1_agent_end(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct hosted *h = named_agent(q);

    if (!h)
        return;
    if (agent_ended(h)) {
        reply_agent(q, 200, h);
        agent_forget(h);
        return;
    }
    snprintf(q->id, sizeof(q->id), "%s", req->params[0]);
    e2b_wait(q);
    agent_stop(h, on_stopped, q);
}

void v1_agent_timeout(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    check_body(q, "timeout");
    if (!field_get(&q->in, "timeout"))
        field_wrong(&q->in, "'timeout' is required: seconds from now");
    uint64_t ms = read_timeout(q);
    struct hosted *h = e2b_read(q) ? named_agent(q) : NULL;
    if (!h)
        return;
    if (agent_ended(h)) {
        reply_error(q->http, 409, "Agent \"%s\" has ended", q->http->params[0]);
    } else {
        agent_set_timeout(h, ms);
        reply_agent(q, 200, h);
    }
}

void v1_agent_acp(struct http_req *req)
{
    struct hosted *h = named_agent(e2b_of(req));

    if (h)
        agent_attach(h, req);
}
