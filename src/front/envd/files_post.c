/* An upload: the body comes in pieces, is unpacked and taken apart if it must be, and goes into a
 * sink (files_write.h).
 *
 *   body --> held --> [inflate] --> [multipart] --> sink --> agent
 *
 * Of a packed body, one piece is held, and unpacked in slices of work (lib/http/work.h): each slice
 * calls inflate once, which makes WORK_PIECE bytes at most. While bytes are held, or the sink holds
 * something, the body is paused. So a small body that unpacks to a large file costs neither memory
 * here nor the time of others; the file's size is limited by the sandbox's disk. Bytes that reach
 * no file (before, between and after the parts, and in parts that are no files) have no such brake,
 * and are limited to STRAY_MAX. A file appears when all of it has arrived, so a client that goes
 * away leaves nothing behind. */
#include <string.h>
#include <strings.h>
#define ZLIB_CONST
#include <zlib.h>

#include "front/envd/envd.h"
#include "front/envd/files.h"
#include "front/envd/files_text.h"
#include "front/envd/files_write.h"
#include "front/core/reply.h"
#include "lib/http/multipart.h"

#define HELD_MAX  (64u * 1024 * 1024) /* never reached: one piece of a body is far less */
#define STRAY_MAX (1024u * 1024)      /* bytes of a body that belong to no file */

struct upload {
    struct http_req *req;
    struct sandbox *sandbox;
    struct files_target target;
    struct strbuf metadata;
    struct sink sink;
    struct multipart *parts; /* NULL: the body is the file */
    bool wanted;             /* the current part is a file */
    size_t stray; /* bytes that reached no file, names and boundaries of parts included */

    bool packed;       /* Content-Encoding: gzip */
    bool unpacked_all; /* inflate has reached the end of a gzip member */
    bool more_inside;  /* inflate filled its output and could make more */
    z_stream z;
    struct strbuf held; /* compressed bytes that wait */
    size_t held_off;
    struct work unpacking;

    bool paused;
    bool body_over; /* the whole body has come */
    bool told_end;  /* the body's end was passed on */
    bool answered;
};

static void on_close(struct http_req *req)
{
    struct upload *u = req->owner;

    work_drop(&u->unpacking);
    sink_done(&u->sink);
    multipart_free(u->parts);
    if (u->packed)
        inflateEnd(&u->z);
    strbuf_done(&u->held);
    strbuf_done(&u->metadata);
    sandbox_unref(u->sandbox);
    free(u);
}

static void refuse(struct upload *u, int status, const char *message)
{
    if (u->answered)
        return;
    u->answered = u->sink.failed = true;
    call_cancel(&u->sink.call);
    reply_error(u->req, status, "%s", message);
}

static void on_sink_fail(struct sink *s, const char *path, int status, const char *message)
{
    struct upload *u = s->owner;

    if (u->answered)
        return;
    u->answered = true;
    files_fail(u->req, u->sandbox, &u->target, path, status, message);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static int on_part(void *arg, const char *name, const char *filename, struct sg_error *e)
{
    struct upload *u = arg;
    const char *given = u->target.path ? u->target.path : filename;
    char path[OPS_PATH_MAX];

    u->wanted = strcmp(name, "file") == 0;
    if (!u->wanted)
        return 0;
    if (given[0] == '\0')
        return err_invalid(e, "a part has no file name, and the query has no path");
    if (!files_resolve(u->req, u->target.user, given, path)) {
        u->answered = true;
        return err_invalid(e, "the path is not valid");
    }
    sink_begin(&u->sink, path);
    return u->answered ? err_set(e, SG_ERR_INVALID, -ECANCELED, "answered") : 0;
}

static int on_part_data(void *arg, const char *data, size_t len, struct sg_error *e UNUSED)
{
    struct upload *u = arg;

    if (!u->wanted)
        return 0;
    u->stray -= len;
    sink_data(&u->sink, data, len);
    return 0;
}

static int on_part_end(void *arg, struct sg_error *e UNUSED)
{
    struct upload *u = arg;

    if (u->wanted)
        sink_end(&u->sink);
    return 0;
}

static const struct multipart_handlers part_handlers = {
    .on_part = on_part, .on_data = on_part_data, .on_part_end = on_part_end};

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Takes bytes of the body, unpacked. */
static void take(struct upload *u, const char *data, size_t len)
{
    struct sg_error e = {0};

    if (!u->parts) {
        sink_data(&u->sink, data, len);
        return;
    }
    u->stray += len; /* on_part_data subtracts the bytes of files again */
    if (multipart_feed(u->parts, data, len, &e) < 0)
        refuse(u, 400, e.message);
    else if (u->stray > STRAY_MAX)
        refuse(u, 413,
               "more than 1 MiB of the body belongs to no file: a file is a part named "
               "'file', and only such parts are taken");
}

/* Whether packed bytes wait for inflate, or bytes inside inflate wait to come out. */
static bool holds(const struct upload *u)
{
    return u->held_off < u->held.len || u->more_inside;
}

/* Unpacks one slice: one call of inflate. */
static void unpack(struct upload *u)
{
    static char out[WORK_PIECE];
    z_stream *z = &u->z;

    if (u->unpacked_all) { /* a gzip body may have several members */
        inflateReset(z);
        u->unpacked_all = false;
    }
    z->next_in = (const Bytef *)u->held.buf + u->held_off;
    z->avail_in = (uInt)(u->held.len - u->held_off);
    z->next_out = (Bytef *)out;
    z->avail_out = sizeof(out);
    int r = inflate(z, Z_NO_FLUSH);
    if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) {
        refuse(u, 400, "error decompressing request body: it is not valid gzip");
        return;
    }
    u->unpacked_all = r == Z_STREAM_END;
    u->more_inside = !u->unpacked_all && z->avail_out == 0;
    u->held_off = u->held.len - z->avail_in;
    if (u->held_off == u->held.len) {
        strbuf_reset(&u->held);
        u->held_off = 0;
    }
    if (z->avail_out < sizeof(out))
        take(u, out, sizeof(out) - z->avail_out);
}

/* ---- the whole upload ------------------------------------------------------------------------ */

static void pass_end(struct upload *u)
{
    struct sg_error e = {0};

    u->told_end = true;
    if (u->packed && !u->unpacked_all)
        refuse(u, 400, "error decompressing request body: it ends too early");
    else if (!u->parts)
        sink_end(&u->sink);
    else if (multipart_end(u->parts, &e) < 0)
        refuse(u, 400, e.message);
}

static void reply_done(struct upload *u)
{
    AUTO(free_p) char *text = json_dumps(u->sink.written, JSON_COMPACT);

    u->answered = true;
    if (text)
        http_reply(u->req, 200, "application/json", text, strlen(text));
    else
        reply_error(u->req, 500, "out of memory");
}

static void pause_body(struct upload *u, bool on)
{
    if (u->paused == on || u->body_over)
        return;
    u->paused = on;
    if (on)
        http_body_pause(u->req);
    else
        http_body_resume(u->req);
}

/* Called after every event: takes each step that is possible now. */
static void settle(struct upload *u)
{
    bool room = sink_drained(&u->sink);

    if (!u->answered && !holds(u) && u->body_over && !u->told_end && room)
        pass_end(u);
    if (u->answered)
        return;
    if (holds(u) && room)
        work_post(http_server_works(u->req->server), &u->unpacking, u->req->party);
    if (u->told_end && sink_idle(&u->sink))
        reply_done(u);
    else
        pause_body(u, holds(u) || !room);
}

static void on_unpacking(struct work *w)
{
    struct upload *u = CONTAINER_OF(w, struct upload, unpacking);

    if (!u->answered && sink_drained(&u->sink))
        unpack(u);
    settle(u);
}

static void on_room(struct sink *s)
{
    settle(s->owner);
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    struct upload *u = req->owner;

    if (u->answered)
        return;
    if (u->packed)
        strbuf_add(&u->held, data, len);
    else
        take(u, data, len);
    settle(u);
}

static void on_body_end(struct http_req *req)
{
    struct upload *u = req->owner;

    u->body_over = true;
    if (!u->answered)
        settle(u);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Reads Content-Encoding. False: the request has been answered. */
static bool read_encoding(struct http_req *req, bool *ret_packed)
{
    const char *encoding = http_header_get(req, "content-encoding");

    *ret_packed = encoding && strcasecmp(encoding, "gzip") == 0;
    if (!encoding || *ret_packed || encoding[0] == '\0' || strcasecmp(encoding, "identity") == 0)
        return true;
    reply_error(req, 400,
                "error decompressing request body: unsupported Content-Encoding: %.64s, "
                "supported: [gzip]",
                encoding);
    return false;
}

/* Finds out whether the body is one file or multipart. False: the request has been answered. */
static bool begin_body(struct upload *u)
{
    const char *type = http_header_get(u->req, "content-type");
    char path[OPS_PATH_MAX];
    struct sg_error e = {0};

    if (media_type_is(type, "application/octet-stream")) {
        if (!u->target.path) {
            refuse(u, 400, "path query parameter is required for raw body upload");
            return false;
        }
        if (!files_resolve(u->req, u->target.user, u->target.path, path))
            return false;
        sink_begin(&u->sink, path);
        return !u->answered;
    }
    if (!media_type_is(type, "multipart/form-data")) {
        reply_error(u->req, 400,
                    "unsupported content type: %.128s, expected multipart/form-data or "
                    "application/octet-stream",
                    type ? type : "");
        return false;
    }
    if (multipart_new(type, &part_handlers, u, &u->parts, &e) < 0) {
        refuse(u, 400, e.message);
        return false;
    }
    u->req->body_piece = WORK_PIECE;
    return true;
}

void envd_files_post(struct sandbox *b, struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf metadata = strbuf_upto(16u * 1024 + 32 * req->n_headers);
    struct files_target target;
    struct sg_error e = {0};
    bool packed;

    if (!files_admit(b, req, FILES_WRITE, &target) || !read_encoding(req, &packed))
        return;
    if (metadata_from_headers(req->headers, req->n_headers, &metadata, &e) < 0) {
        reply_error(req, 400, "%s", e.message);
        return;
    }

    struct upload *u = NEW(struct upload, .req = req, .sandbox = sandbox_ref(b), .target = target,
                           .packed = packed);
    u->metadata = metadata;
    metadata = (struct strbuf){0};
    strbuf_init(&u->held, HELD_MAX);
    u->sink = (struct sink){.sandbox = b,
                            .target = &u->target,
                            .metadata = &u->metadata,
                            .owner = u,
                            .on_room = on_room,
                            .on_fail = on_sink_fail};
    sink_init(&u->sink);
    u->unpacking.run = on_unpacking;
    if (packed && inflateInit2(&u->z, 15 + 16) != Z_OK) /* 16: gzip only */
        abort();                                        /* out of memory */
    req->owner = u;
    req->on_close = on_close;
    req->on_body = on_body;
    req->on_body_end = on_body_end;
    if (begin_body(u))
        http_body_stream(req);
}
