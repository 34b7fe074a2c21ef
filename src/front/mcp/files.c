#include "front/mcp/files.h"

#include <string.h>

#include "lib/channel/wire.h"
#include "front/contexts/context.h"
#include "front/e2b/create.h"

static void work_free(struct file_work *w)
{
    call_cancel(&w->call);
    if (w->sandbox)
        context_release(w->sandbox);
    strbuf_done(&w->bytes);
    strbuf_done(&w->data);
    free(w);
}

static void on_abandon(struct mcp_call *c)
{
    struct file_work *w = c->work;

    w->c = NULL;
    if (w->sandbox)
        work_free(w);
}

void file_done(struct file_work *w, struct result *r)
{
    struct mcp_call *c = w->c;

    work_free(w);
    mcp_call_done(c, r);
}

void file_fail(struct file_work *w, int status, const char *message)
{
    struct mcp_call *c = w->c;
    char path[OPS_PATH_MAX];

    memcpy(path, w->path, sizeof(path));
    mcp_call_fail(c, "%s: %s", path, message && message[0] ? message : strerror(status));
    work_free(w);
}

/* ---- the sandbox ----------------------------------------------------------------------------- */

static int make_spec(void *arg, const char *template_id, struct sandbox_spec *ret,
                     char snapshot[ID_LEN + 1], struct sg_error *e)
{
    struct file_work *w = arg;

    return create_spec(w->front, &w->tenant, NULL, SPEC_OWN,
                       template_id ? template_id : w->front->settings.context_template, ret,
                       snapshot, e);
}

static void on_context(void *arg, const struct context_answer *a)
{
    struct file_work *w = arg;

    if (w->c && a->r == 0 && !a->elsewhere) {
        w->sandbox = a->sandbox;
        context_hold(w->sandbox);
        w->begin(w);
        return;
    }
    struct mcp_call *c = w->c;
    work_free(w);
    if (!c)
        return;
    if (a->r < 0)
        mcp_call_fail(c, RESULT_UNAVAILABLE, c->tool->name, a->e->message);
    else
        mcp_call_fail(c, RESULT_ELSEWHERE, a->elsewhere);
}

void file_begin(struct mcp_call *c, struct file_work *w, const char *default_path)
{
    struct context_ask ask = {.tenant = &w->tenant, .spec = make_spec};

    w->c = c;
    w->front = c->x->front;
    w->tenant = c->x->tenant;
    mcp_call_place(c, &ask.conversation, &ask.path);
    const char *path = field_text(&c->in, "path", sizeof(w->path) - 1, default_path);
    if (!path || !path[0])
        fields_invalid(&c->in, "path is missing");
    if (!mcp_call_read(c)) {
        work_free(w);
        return;
    }
    snprintf(w->path, sizeof(w->path), "%s", path);
    c->work = w;
    c->on_abandon = on_abandon;
    context_obtain(w->front, &ask, on_context, w);
}

struct strbuf file_request(const struct file_work *w)
{
    struct strbuf request = strbuf_upto(OPS_OPEN_MAX);

    wire_put_str(&request, FILE_USER);
    wire_put_str(&request, w->path);
    return request;
}

void file_begun(struct file_work *w, int r, const struct sg_error *e)
{
    if (r < 0)
        file_fail(w, r == -EPIPE ? CALL_GONE : -r, e->message);
}

void file_call(struct file_work *w, enum chan_op op, const struct strbuf *request)
{
    struct sg_error e = {0};

    file_begun(w, call_begin(&w->call, w->sandbox, op, request, &e), &e);
}

/* ---- entries --------------------------------------------------------------------------------- */

bool file_entry_read(const void *p, size_t len, struct file_entry *ret)
{
    struct wire_reader r = wire_reader_of(p, len);

    ret->name = wire_get_str(&r, OPS_PATH_MAX);
    ret->path = wire_get_str(&r, OPS_PATH_MAX);
    ret->type = wire_get_u32(&r);
    for (int i = 0; i < 3; i++) /* mode, owner and group as numbers */
        wire_get_u32(&r);
    for (int i = 0; i < 2; i++) /* and as names */
        wire_get_str(&r, OPS_PATH_MAX);
    ret->size = wire_get_u64(&r);
    ret->mtime_ms = (int64_t)wire_get_u64(&r) / 1000000;
    ret->target = wire_get_str(&r, OPS_PATH_MAX);
    return !r.bad && ret->path[0] == '/';
}
