/* POST /files/compose: the parts of a large upload become one file, inside. */
#include <string.h>

#include "front/core/call.h"
#include "front/core/defaults.h"
#include "front/core/reply.h"
#include "front/envd/entry.h"
#include "front/envd/envd.h"
#include "front/envd/files.h"
#include "lib/channel/wire.h"
#include "lib/json/fields.h"

#define BODY_MAX  (2u * FILE_SOURCES_MAX * OPS_PATH_MAX)
#define FILE_MODE 0644

struct composing {
    struct call call;
    struct http_req *req;
    struct sandbox *sandbox;
    struct files_target target;
    char path[OPS_PATH_MAX];
};

static void on_close(struct http_req *req)
{
    struct composing *c = req->owner;

    call_cancel(&c->call);
    sandbox_unref(c->sandbox);
    free(c);
}

/* What is missing is one of the sources, which the agent's message names. */
static void fail(struct composing *c, int status, const char *message)
{
    if (status == ENOENT || status == ENOTDIR)
        reply_error(c->req, 404, "%s", message);
    else
        files_fail(c->req, c->sandbox, &c->target, c->path, status, message);
}

static void reply_file(struct http_req *req, json_t *file)
{
    AUTO(free_p) char *text = json_dumps(file, JSON_COMPACT);

    json_decref(file);
    if (text)
        http_reply(req, 200, "application/json", text, strlen(text));
    else
        reply_error(req, 500, "out of memory");
}

static void on_end(struct call *call, int status, const char *message, const void *result,
                   size_t len)
{
    struct composing *c = call->owner;
    struct wire_reader r = wire_reader_of(result, len);
    json_t *entry = status == 0 ? entry_read(&r) : NULL;

    if (entry)
        reply_file(c->req, entry_of_written(entry));
    else
        fail(c, status ? status : EPROTO, status ? message : "the sandbox sent a malformed answer");
}

/* False: the request has been answered. */
static bool put_sources(struct composing *c, const json_t *sources, struct strbuf *request)
{
    char path[OPS_PATH_MAX];
    size_t i;
    json_t *source;

    wire_put_u32(request, (uint32_t)json_array_size(sources));
    json_array_foreach(sources, i, source)
    {
        if (!json_is_string(source) || !json_string_value(source)[0]) {
            reply_error(c->req, 400, "'source_paths' must hold paths only");
            return false;
        }
        if (!files_resolve(c->req, c->target.user, json_string_value(source), path))
            return false;
        wire_put_str(request, path);
    }
    return true;
}

static void compose(struct composing *c, const json_t *sources, const char *destination)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    struct sg_error e = {0};

    if (!files_resolve(c->req, c->target.user, destination, c->path))
        return;
    envd_put_user(&request, c->target.user);
    wire_put_str(&request, c->path);
    wire_put_u32(&request, FILE_MODE);
    wire_put_u32(&request, FILE_PARENTS);
    if (put_sources(c, sources, &request) &&
        call_begin(&c->call, c->sandbox, OP_FILE_COMPOSE, &request, &e) < 0)
        fail(c, files_begin_status(&e), e.message);
}

static void read_body(struct composing *c, const json_t *body)
{
    struct sg_error e = {0};
    struct fields in = {.object = body, .prefix = "", .e = &e};
    const json_t *sources = field_array(&in, "source_paths", FILE_SOURCES_MAX);
    const char *destination = field_text(&in, "destination", OPS_PATH_MAX - 1, "");
    const char *user =
        field_text(&in, "username", OPS_NAME_MAX, defaults_user(c->sandbox->spec.defaults));

    if (fields_ok(&in) && json_array_size(sources) == 0)
        field_must(&in, "source_paths", "a list of at least one path");
    if (fields_ok(&in) && !*destination)
        field_must(&in, "destination", "a path");
    if (!fields_ok(&in)) {
        reply_error(c->req, 400, "%s", e.message);
        return;
    }
    snprintf(c->target.user, sizeof(c->target.user), "%s", user);
    if (user_name_valid(user))
        compose(c, sources, destination);
    else
        fail(c, EUSERS, "");
}

static void on_body(struct http_req *req, void *made)
{
    json_t *body = request_json(req, made);

    if (body)
        read_body(req->owner, body);
    json_decref(body);
}

void envd_files_compose(struct sandbox *b, struct http_req *req)
{
    struct composing *c =
        NEW(struct composing, .req = req, .sandbox = sandbox_ref(b), .call.on_end = on_end);

    c->call.owner = c;
    req->owner = c;
    req->on_close = on_close;
    http_body_make(req, BODY_MAX, &json_make, NULL, on_body);
}
