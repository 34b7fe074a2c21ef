/* The contexts of a sandbox. Each route is one operation of the agent. */
#include <string.h>

#include "lib/text/json.h"
#include "front/core/replay.h"
#include "front/core/reply.h"
#include "front/interpreter/request.h"
#include "front/interpreter/routes.h"

#define ANSWER_MAX (1024u * 1024)

struct ask {
    struct call call;
    struct http_req *req;
    struct sandbox *sandbox;
    const char *context; /* the context that the URL names; NULL: none */
    struct strbuf answer;
    struct json json;
    /* Writes the answer; NULL: the answer is null. False: the agent has sent bytes that make no
     * sense. */
    bool (*done)(struct ask *a, const void *result, size_t len);
};

static void on_close(struct http_req *req)
{
    struct ask *a = req->owner;

    call_cancel(&a->call);
    sandbox_unref(a->sandbox);
    strbuf_done(&a->answer);
    free(a);
}

static void nonsense(struct ask *a)
{
    call_cancel(&a->call);
    refuse(a->req, status_of_call(EPROTO), "the sandbox sent a malformed answer");
}

static void on_end(struct call *call, int status, const char *message, const void *result,
                   size_t len)
{
    struct ask *a = call->owner;

    if (status != 0) {
        refuse_call(a->req, a->sandbox, status, message, a->context);
    } else if (a->done && !a->done(a, result, len)) {
        nonsense(a);
    } else {
        if (!a->done)
            jw_null(&a->json);
        reply_json(a->req, 200, &a->answer);
    }
}

static struct ask *ask_new(struct http_req *req)
{
    struct ask *a = NEW(struct ask, .req = req, .sandbox = sandbox_ref(req->owner),
                        .call.on_end = on_end, .answer = strbuf_upto(ANSWER_MAX));

    a->call.owner = a;
    a->json.out = &a->answer;
    req->owner = a;
    req->on_close = on_close;
    return a;
}

static void ask(struct ask *a, enum chan_op op, const struct strbuf *request)
{
    struct sg_error e = {0};
    int r = call_begin(&a->call, a->sandbox, op, request, &e);

    if (r < 0)
        refuse_call(a->req, a->sandbox, r == -EPIPE ? CALL_GONE : -r, e.message, a->context);
}

/* Writes a context. Its language is noted, too: cells of contexts in Python are not recorded. */
static bool write_context(struct ask *a, const void *p, size_t len)
{
    struct json *j = &a->json;
    struct wire_reader r = wire_reader_of(p, len);

    const char *id = wire_get_str(&r, KERNEL_ID_LEN), *language = wire_get_str(&r, LANGUAGE_MAX);
    const char *cwd = wire_get_str(&r, OPS_PATH_MAX);
    for (int i = 0; i < 3; i++)
        wire_get_u32(&r); /* state, cells, is_default */
    bool cold = wire_get_u32(&r) != 0 && strcmp(language, "python") == 0;
    if (!wire_done(&r))
        return false;
    replay_learn(a->sandbox, id, language);
    jw_object_begin(j);
    jw_bytes(jw_key(j, "id"), id, strlen(id));
    jw_bytes(jw_key(j, "language"), language, strlen(language));
    jw_bytes(jw_key(j, "cwd"), cwd, strlen(cwd));
    if (cold && a->sandbox->cold[0])
        jw_string(jw_key(j, "coldReason"), a->sandbox->cold);
    jw_object_end(j);
    return true;
}

/* ---- list ------------------------------------------------------------------------------------ */

static void on_context(struct call *call, uint8_t what, const void *p, size_t len)
{
    struct ask *a = call->owner;

    if (what != EVENT_CONTEXT || !write_context(a, p, len))
        nonsense(a);
}

static bool list_done(struct ask *a, const void *result UNUSED, size_t len UNUSED)
{
    jw_array_end(&a->json);
    return true;
}

void interpreter_list(struct http_req *req)
{
    struct ask *a = ask_new(req);

    jw_array_begin(&a->json);
    a->call.on_event = on_context;
    a->done = list_done;
    ask(a, OP_KERNEL_LIST, NULL);
}

/* ---- create ---------------------------------------------------------------------------------- */

static void create(struct http_req *req, const char *body, size_t len)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    struct context_request c;

    if (!context_request_parse(req, body, len, &c))
        return;
    wire_put_str(&request, c.language[0] ? c.language : "python");
    wire_put_str(&request, c.cwd);
    ask(req->owner, OP_KERNEL_CREATE, &request);
}

void interpreter_create(struct http_req *req)
{
    ask_new(req)->done = write_context;
    http_body_collect(req, CONTEXT_BODY_MAX, create);
}

/* ---- remove, restart, interrupt -------------------------------------------------------------- */

static void about_context(struct http_req *req, enum chan_op op)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    struct ask *a = ask_new(req);

    a->context = req->params[0];
    if (strlen(a->context) > KERNEL_ID_LEN) {
        refuse_call(req, a->sandbox, ENOENT, "", a->context);
        return;
    }
    wire_put_str(&request, a->context);
    if (op != OP_KERNEL_INTERRUPT)
        replay_forget(a->sandbox, a->context);
    ask(a, op, &request);
}

void contexts_remove(struct http_req *req)
{
    about_context(req, OP_KERNEL_REMOVE);
}

void contexts_restart(struct http_req *req)
{
    about_context(req, OP_KERNEL_RESTART);
}

void contexts_interrupt(struct http_req *req)
{
    about_context(req, OP_KERNEL_INTERRUPT);
}
