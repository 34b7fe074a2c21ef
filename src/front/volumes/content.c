/* A request for a volume's contents: finds the volume, asks its helper, and passes on what comes.
 *
 *   GET dir     entries as they come      POST dir    a directory
 *   GET path    one entry                 PATCH path  owner, mode
 *   GET file    bytes as they come        PUT file    bytes, as the helper takes them
 *   DELETE path                           ours:
 *   GET tar     a directory as it comes   PUT tar     an archive, as the helper takes it */
#include "front/volumes/content.h"

#include <string.h>

#include "front/core/auth.h"
#include "front/core/reply.h"
#include "front/volumes/stream.h"
#include "front/volumes/watch.h"
#include "lib/base/clock.h"
#include "lib/http/router.h"
#include "lib/json/fields.h"
#include "lib/text/parse.h"

#define ENTRY_MAX   (256u * 1024) /* the longest path, escaped */
#define LISTED_SEND 16384         /* so much of a list goes in one piece */
#define PATCH_MAX   4096
/* Files that are made over HTTP belong to the user that programs in sandboxes run as. */
#define USER_ID 1000

struct content {
    struct http_req *req;
    struct store_volume volume;
    struct volume_stream *stream;
    struct volume_request ask;
    char path[VOLUME_PATH_MAX];
    struct strbuf out;  /* of a list: what was not sent yet; else the entry */
    bool listed;        /* there was an entry */
    bool reading, read; /* the body: it is read, all of it was read */
    bool refused;       /* the helper has ended; the rest of the body is dropped */
    int status;         /* the answer, once the body is over */
    char why[256];
};

/* ---- answers --------------------------------------------------------------------------------- */

static void time_key(struct json *j, const char *key, int64_t ms)
{
    char text[CLOCK_TEXT_LEN];

    clock_text(ms, text);
    jw_string(jw_key(j, key), text);
}

static void write_entry(struct strbuf *out, const struct volume_entry *e, const char *path,
                        const char *target)
{
    static const char *const types[VOLUME_TYPE_MAX_] = {[VOLUME_FILE] = "file",
                                                        [VOLUME_DIRECTORY] = "directory",
                                                        [VOLUME_LINK] = "symlink",
                                                        [VOLUME_OTHER] = "unknown"};
    const char *slash = memrchr(path, '/', e->path_len);
    const char *name = slash && e->path_len > 1 ? slash + 1 : path;
    struct json j;

    jw_init(&j, out);
    jw_object_begin(&j);
    jw_bytes(jw_key(&j, "name"), name, e->path_len - (size_t)(name - path));
    jw_bytes(jw_key(&j, "path"), path, e->path_len);
    jw_string(jw_key(&j, "type"), types[e->type]);
    jw_u64(jw_key(&j, "size"), e->size);
    jw_u64(jw_key(&j, "mode"), e->mode);
    jw_u64(jw_key(&j, "uid"), e->uid);
    jw_u64(jw_key(&j, "gid"), e->gid);
    time_key(&j, "atime", e->atime_ms);
    time_key(&j, "mtime", e->mtime_ms);
    time_key(&j, "ctime", e->ctime_ms);
    if (e->type == VOLUME_LINK)
        jw_bytes(jw_key(&j, "target"), target, e->target_len);
    jw_object_end(&j);
}

static int status_of_end(int code)
{
    return code == -EOVERFLOW                  ? 507
           : code == -EEXIST || code == -EBUSY ? 409
                                               : status_of_call(-code);
}

static void reply_failure(struct content *c, int status, const char *why)
{
    if (status == 503)
        http_add_header(c->req, "Retry-After", "1");
    if (c->ask.op == VOLUME_IMPORT && status != 507)
        reply_error(c->req, status, "Volume \"%s\": %s", c->volume.name, why);
    else if (status == 507)
        reply_error(c->req, status, "Volume \"%s\" is full: %s", c->volume.name, why);
    else
        reply_error(c->req, status, "\"%.512s\" in volume \"%s\": %s", c->path, c->volume.name,
                    why);
}

/* A client that still sends its file does not look at the answer before it has sent it all. */
static void fail(struct content *c, int status, const char *why)
{
    if (http_started(c->req)) {
        http_abort(c->req);
    } else if (!c->reading || c->read) {
        reply_failure(c, status, why);
    } else {
        c->refused = true;
        c->status = status;
        snprintf(c->why, sizeof(c->why), "%s", why);
        http_body_resume(c->req);
    }
}

static void succeed(struct content *c)
{
    uint32_t op = c->ask.op;

    if (op == VOLUME_LIST) {
        strbuf_addstr(&c->out, c->listed ? "]" : "[]");
        if (!http_started(c->req))
            http_start(c->req, 200, "application/json", -1);
        http_write(c->req, c->out.buf, c->out.len);
        http_finish(c->req);
    } else if (op == VOLUME_READ || op == VOLUME_EXPORT) {
        http_finish(c->req);
    } else if (op == VOLUME_REMOVE || op == VOLUME_IMPORT) {
        reply_empty(c->req, 204);
    } else {
        reply_json(c->req, op == VOLUME_WRITE || op == VOLUME_MKDIR ? 201 : 200, &c->out);
    }
}

/* ---- what the helper says -------------------------------------------------------------------- */

static void write_out(struct content *c, const void *p, size_t len)
{
    if (!http_write(c->req, p, len))
        volume_stream_pause(c->stream);
}

static void on_entry(void *owner, const struct volume_entry *e, const char *path,
                     const char *target)
{
    struct content *c = owner;

    if (c->ask.op == VOLUME_READ) {
        http_add_header(c->req, "X-Content-Type-Options", "nosniff");
        http_start(c->req, 200, "application/octet-stream", (int64_t)e->size);
        return;
    }
    if (c->ask.op == VOLUME_LIST)
        strbuf_addch(&c->out, c->listed ? ',' : '[');
    else
        strbuf_reset(&c->out);
    write_entry(&c->out, e, path, target);
    c->listed = true;
    if (c->ask.op != VOLUME_LIST || c->out.len < LISTED_SEND)
        return;
    if (!http_started(c->req))
        http_start(c->req, 200, "application/json", -1);
    write_out(c, c->out.buf, c->out.len);
    strbuf_reset(&c->out);
}

static void on_data(void *owner, const void *p, size_t len)
{
    struct content *c = owner;

    if (c->ask.op == VOLUME_EXPORT && !http_started(c->req))
        http_start(c->req, 200, "application/x-tar", -1);
    if (http_started(c->req))
        write_out(c, p, len);
}

static void on_end(void *owner, int r, const struct volume_end *end, const struct sg_error *e)
{
    struct content *c = owner;

    c->stream = NULL;
    /* If it was full, a sandbox may have room to write again. */
    if (r == 0 && c->ask.op == VOLUME_REMOVE && !end->measured)
        volume_look(front_of(c->req), c->volume.id);
    if (r < 0)
        fail(c, status_of_error(e), e->message);
    else if (end->code < 0)
        fail(c, status_of_end(end->code), end->message);
    else if (c->reading && !c->read)
        fail(c, 503, "the volume's helper did not wait for all of it: try again");
    else
        succeed(c);
}

static void on_open(void *owner)
{
    struct content *c = owner;

    c->reading = c->ask.op == VOLUME_WRITE || c->ask.op == VOLUME_IMPORT;
    if (c->reading)
        http_body_stream(c->req);
}

static void on_room(void *owner)
{
    http_body_resume(((struct content *)owner)->req);
}

static const struct volume_stream_handlers handlers = {.on_open = on_open,
                                                       .on_room = on_room,
                                                       .on_entry = on_entry,
                                                       .on_data = on_data,
                                                       .on_end = on_end};

/* ---- what the client says -------------------------------------------------------------------- */

static void on_close(struct http_req *req)
{
    struct content *c = req->owner;

    volume_stream_drop(&c->stream);
    strbuf_done(&c->out);
    free(c);
}

static void on_writable(struct http_req *req)
{
    struct content *c = req->owner;

    if (c->stream)
        volume_stream_resume(c->stream);
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    struct content *c = req->owner;

    if (!c->refused && !volume_stream_write(c->stream, data, len))
        http_body_pause(req);
}

static void on_body_end(struct http_req *req)
{
    struct content *c = req->owner;

    c->read = true;
    if (c->refused)
        reply_failure(c, c->status, c->why);
    else
        volume_stream_write_end(c->stream);
}

static void begin(struct content *c)
{
    struct http_req *req = c->req;

    req->on_writable = on_writable;
    req->on_body = on_body;
    req->on_body_end = on_body_end;
    c->stream = volume_stream_new(front_of(req), &c->volume, &c->ask, c->path, &handlers, c);
}

static bool take_number(struct content *c, const char *name, uint64_t min, uint64_t max,
                        uint32_t *ret)
{
    const char *text = http_query_get(c->req, name);
    struct sg_error e;
    uint64_t v;

    if (!text)
        return true;
    if (parse_u64(name, text, min, max, &v, &e) < 0) {
        reply_error(c->req, 400, "%s", e.message);
        return false;
    }
    *ret = (uint32_t)v;
    return true;
}

/* Owner and mode of what is made. */
static bool take_looks(struct content *c)
{
    struct volume_request *q = &c->ask;
    const char *force = http_query_get(c->req, "force");

    q->uid = q->gid = USER_ID;
    q->flags |= VOLUME_HAS_UID | VOLUME_HAS_GID;
    q->flags |= http_query_get(c->req, "mode") ? VOLUME_HAS_MODE : 0;
    q->flags |= force && strcmp(force, "true") == 0 ? VOLUME_FORCE : 0;
    return take_number(c, "uid", 0, VOLUME_ID_MAX, &q->uid) &&
           take_number(c, "gid", 0, VOLUME_ID_MAX, &q->gid) &&
           take_number(c, "mode", 0, 07777, &q->mode);
}

static void take_field(struct fields *in, const char *name, uint64_t max, uint32_t flag,
                       struct volume_request *q, uint32_t *ret)
{
    uint64_t v = field_count(in, name, 0, max, UINT64_MAX);

    if (v == UINT64_MAX)
        return;
    *ret = (uint32_t)v;
    q->flags |= flag;
}

static void on_patch(struct http_req *req, void *made)
{
    struct content *c = req->owner;
    struct sg_error e = {0};
    json_t *body = request_json(req, made);
    struct fields in = {.object = body, .prefix = "", .e = &e};

    if (!body)
        return;
    take_field(&in, "uid", VOLUME_ID_MAX, VOLUME_HAS_UID, &c->ask, &c->ask.uid);
    take_field(&in, "gid", VOLUME_ID_MAX, VOLUME_HAS_GID, &c->ask, &c->ask.gid);
    take_field(&in, "mode", 07777, VOLUME_HAS_MODE, &c->ask, &c->ask.mode);
    json_decref(body);
    if (in.r < 0)
        reply_sg_error(req, &e);
    else
        begin(c);
}

/* ---- routes ---------------------------------------------------------------------------------- */

static struct content *content_of(struct http_req *req, enum volume_op op)
{
    struct content *c = req->owner;

    c->ask.op = op;
    return c;
}

static void content_list(struct http_req *req)
{
    struct content *c = content_of(req, VOLUME_LIST);

    c->ask.depth = 1;
    if (take_number(c, "depth", 1, VOLUME_DEPTH_MAX, &c->ask.depth))
        begin(c);
}

static void content_make_dir(struct http_req *req)
{
    struct content *c = content_of(req, VOLUME_MKDIR);

    if (take_looks(c))
        begin(c);
}

static void content_stat(struct http_req *req)
{
    begin(content_of(req, VOLUME_STAT));
}

static void content_change(struct http_req *req)
{
    content_of(req, VOLUME_CHANGE);
    http_body_make(req, PATCH_MAX, &json_make, NULL, on_patch);
}

static void content_remove(struct http_req *req)
{
    begin(content_of(req, VOLUME_REMOVE));
}

static void content_read(struct http_req *req)
{
    begin(content_of(req, VOLUME_READ));
}

/* A file that takes the place of another keeps its owner, unless one is asked for. */
static void content_write(struct http_req *req)
{
    struct content *c = content_of(req, VOLUME_WRITE);

    if (!take_looks(c))
        return;
    if (!http_query_get(req, "uid") && !http_query_get(req, "gid"))
        c->ask.flags |= VOLUME_KEEP;
    begin(c);
}

static void content_export(struct http_req *req)
{
    begin(content_of(req, VOLUME_EXPORT));
}

static void content_import(struct http_req *req)
{
    begin(content_of(req, VOLUME_IMPORT));
}

static const struct http_route routes[] = {
    {HTTP_M_GET, "/volumecontent/{id}/dir", content_list, 0},
    {HTTP_M_POST, "/volumecontent/{id}/dir", content_make_dir, 0},
    {HTTP_M_GET, "/volumecontent/{id}/path", content_stat, 0},
    {HTTP_M_PATCH, "/volumecontent/{id}/path", content_change, 0},
    {HTTP_M_DELETE, "/volumecontent/{id}/path", content_remove, 0},
    {HTTP_M_GET, "/volumecontent/{id}/file", content_read, 0},
    {HTTP_M_PUT, "/volumecontent/{id}/file", content_write, 0},
    {HTTP_M_GET, "/volumecontent/{id}/tar", content_export, 0},
    {HTTP_M_PUT, "/volumecontent/{id}/tar", content_import, 0},
};

/* Checks the token before all else: strangers must not learn which volumes there are. */
static bool find_volume(struct http_req *req, const char *id, struct store_volume *ret)
{
    const char *bearer = http_header_get(req, "authorization");
    char token[VOLUME_TOKEN_LEN + 1];
    struct sg_error e;
    int r;

    if (!auth_may_try(req))
        return false;
    if (volume_token(front_of(req), id, token, &e) < 0) {
        reply_sg_error(req, &e);
        return false;
    }
    if (!bearer || strncmp(bearer, "Bearer ", 7) != 0 || !token_equal(bearer + 7, token)) {
        auth_refuse(req, "Invalid volume token: it comes with the volume, as \"Authorization: "
                         "Bearer TOKEN\"");
        return false;
    }
    r = store_volume_get(front_of(req)->store, id, ret, &e);
    if (r == -ENOENT)
        reply_error(req, 404, "Volume \"%.64s\" doesn't exist any more", id);
    else if (r < 0)
        reply_sg_error(req, &e);
    return r == 0 && auth_admit(req, ret->tenant);
}

static bool take_path(struct http_req *req, char ret[VOLUME_PATH_MAX])
{
    const char *given = http_query_get(req, "path");

    if (given && volume_path(given, strlen(given), ret) == 0)
        return true;
    reply_error(req, 400,
                given ? "Invalid path: it has at most %d bytes, and names at most 255"
                      : "Invalid path: none was given in the query (at most %d bytes)",
                VOLUME_PATH_MAX - 1);
    return false;
}

void volume_content_request(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf allow = strbuf_upto(256);
    const struct http_route *route = NULL;
    enum http_match match = http_route_find(routes, ARRAY_SIZE(routes), req, &route, &allow);
    struct store_volume volume;
    char path[VOLUME_PATH_MAX];

    if (match != HTTP_FOUND) {
        if (match == HTTP_NO_METHOD)
            http_add_header(req, "Allow", allow.buf);
        reply_error(req, match == HTTP_NO_METHOD ? 405 : 404, "no such route: %.200s", req->path);
        return;
    }
    if (!find_volume(req, req->params[0], &volume) || !take_path(req, path))
        return;
    struct content *c = NEW(struct content, .req = req, .volume = volume);
    memcpy(c->path, path, sizeof(path));
    strbuf_init(&c->out, ENTRY_MAX + LISTED_SEND);
    req->owner = c;
    req->on_close = on_close;
    route->handler(req);
}
