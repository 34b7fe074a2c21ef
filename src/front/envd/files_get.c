/* A download.
 *
 *   asked --OP_FILE_READ--> entry --> data... --> END
 *
 * For a range of the last bytes there are two reads: one of no byte, to learn the size, and then
 * the one above.
 *
 * The answer starts when the agent has opened the file and told its size, so that an error can
 * still be a status. Bytes that the client has not taken are not acknowledged to the agent, which
 * then stops reading. If fewer bytes come than were promised, the connection is dropped: the client
 * must not take a part for the whole. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "lib/channel/wire.h"
#include "front/envd/entry.h"
#include "front/envd/envd.h"
#include "front/envd/files.h"
#include "front/envd/files_text.h"
#include "front/core/call.h"
#include "front/core/reply.h"

struct download {
    struct call call;
    struct sandbox *sandbox;
    struct http_req *req;
    struct files_target target;
    char path[OPS_PATH_MAX];
    struct range range;
    bool sizing; /* this read is only to learn the file's size */
    bool started;
    uint64_t left; /* bytes that the client was promised and has not got */
    size_t owed;   /* bytes that wait for the client, not yet acknowledged to the agent */
};

static void on_close(struct http_req *req)
{
    struct download *d = req->owner;

    call_cancel(&d->call);
    sandbox_unref(d->sandbox);
    free(d);
}

static void on_writable(struct http_req *req)
{
    struct download *d = req->owner;
    size_t owed = d->owed;

    d->owed = 0;
    call_consumed(&d->call, owed);
}

static void reply_no_range(struct download *d, uint64_t size)
{
    char range[48];

    call_cancel(&d->call);
    snprintf(range, sizeof(range), "bytes */%" PRIu64, size);
    http_add_header(d->req, "Content-Range", range);
    reply_error(d->req, 416, "the range is not in the file of %" PRIu64 " bytes", size);
}

/* first and len: the part of the file that the answer holds. An empty file has no parts, and len is
 * its size. */
static void start(struct download *d, uint64_t first, uint64_t len, uint64_t size)
{
    bool part = d->range.kind != RANGE_NONE && size > 0;
    AUTO(strbuf_done) struct strbuf name = strbuf_upto(2048);

    disposition_write(&name, d->path);
    http_add_header(d->req, "Content-Disposition", name.buf);
    http_add_header(d->req, "Accept-Ranges", "bytes");
    http_add_header(d->req, "Vary", "Accept-Encoding");
    http_add_header(d->req, "X-Content-Type-Options", "nosniff");
    if (part) {
        char range[80];
        snprintf(range, sizeof(range), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first,
                 first + len - 1, size);
        http_add_header(d->req, "Content-Range", range);
    }
    d->started = true;
    d->left = len;
    http_start(d->req, part ? 206 : 200, "application/octet-stream", (int64_t)len);
}

/* The size in an entry, or -1. */
static int64_t size_of(const void *p, size_t len)
{
    struct wire_reader r = wire_reader_of(p, len);

    json_t *entry = entry_read(&r);
    int64_t size = entry ? jr_int(entry, "size") : -1;
    json_decref(entry);
    return size;
}

/* The agent has opened the file: the entry says what the file is now. */
static void on_entry(struct call *c, uint8_t what, const void *p, size_t len)
{
    struct download *d = c->owner;
    uint64_t first = 0, wanted;

    if (what != EVENT_ENTRY || d->started)
        return;
    int64_t size = size_of(p, len);
    if (size < 0) {
        call_cancel(c);
        reply_error(d->req, status_of_call(EPROTO), "the sandbox sent a malformed answer");
        return;
    }
    wanted = (uint64_t)size;
    if (size > 0 && d->range.kind != RANGE_NONE &&
        !range_resolve(&d->range, (uint64_t)size, &first, &wanted))
        reply_no_range(d, (uint64_t)size);
    else if (d->sizing)
        d->range = (struct range){RANGE_FROM, first, first + wanted - 1};
    else
        start(d, first, wanted, (uint64_t)size);
}

static void on_data(struct call *c, uint8_t sub UNUSED, const void *p, size_t len)
{
    struct download *d = c->owner;

    if (len > d->left) {
        call_cancel(c); /* more bytes than announced: no honest agent does that */
        http_abort(d->req);
        return;
    }
    d->left -= len;
    if (http_write(d->req, p, len))
        call_consumed(c, len);
    else
        d->owed += len;
}

static void begin(struct download *d);

static void on_end(struct call *c, int status, const char *message, const void *result UNUSED,
                   size_t len UNUSED)
{
    struct download *d = c->owner;

    if (d->sizing && status == 0) {
        d->sizing = false;
        begin(d);
    } else if (d->started && status == 0 && d->left == 0) {
        http_finish(d->req);
    } else if (d->started) {
        http_abort(d->req);
    } else {
        files_fail(d->req, d->sandbox, &d->target, d->path, status ? status : EPROTO, message);
    }
}

static void begin(struct download *d)
{
    const struct range *range = &d->range;
    uint64_t first = d->sizing ? UINT64_MAX : range->first, len = 0; /* 0: to the end */
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    struct sg_error e = {0};

    if (range->kind == RANGE_FROM && range->last != UINT64_MAX)
        len = range->last - range->first + 1;

    envd_put_user(&request, d->target.user);
    wire_put_str(&request, d->path);
    wire_put_u64(&request, first);
    wire_put_u64(&request, len);
    d->call = (struct call){.owner = d, .on_event = on_entry, .on_data = on_data, .on_end = on_end};
    if (call_begin(&d->call, d->sandbox, OP_FILE_READ, &request, &e) < 0)
        files_fail(d->req, d->sandbox, &d->target, d->path, files_begin_status(&e), e.message);
}

void envd_files_get(struct sandbox *b, struct http_req *req)
{
    struct files_target target;
    char path[OPS_PATH_MAX];

    if (!files_admit(b, req, FILES_READ, &target) ||
        !files_resolve(req, target.user, target.path ? target.path : "", path))
        return;
    if (identity_refused(http_header_get(req, "accept-encoding"))) {
        reply_error(req, 406, "no acceptable encoding found, supported: identity");
        return;
    }
    struct download *d =
        NEW(struct download, .req = req, .sandbox = sandbox_ref(b), .target = target);
    memcpy(d->path, path, sizeof(path));
    req->owner = d;
    req->on_close = on_close;
    req->on_writable = on_writable;

    /* If-Range asks for a part only if the client has the same version of the file. We name no
     * versions, so such a client gets the whole file. */
    if (!http_header_get(req, "if-range"))
        d->range = range_parse(http_header_get(req, "range"));
    d->sizing = d->range.kind == RANGE_SUFFIX;
    begin(d);
}
