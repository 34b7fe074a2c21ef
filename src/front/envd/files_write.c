#include "front/envd/files_write.h"

#include <string.h>

#include "lib/channel/wire.h"
#include "front/envd/entry.h"
#include "front/envd/envd.h"

#define FILE_MODE 0644
#define HELD_MAX  (64u * 1024 * 1024) /* never reached: one piece of a body is far less */

/* The queue is a row of these records. BYTES is followed by its bytes, BEGIN by a path with its
 * NUL. */
struct record {
    enum { RECORD_BEGIN, RECORD_BYTES, RECORD_END } what;
    uint32_t len;
};

static bool queued(const struct sink *s)
{
    return s->queue_off < s->queue.len;
}

static void put(struct sink *s, int what, const void *p, size_t len)
{
    struct record r = {.what = what, .len = (uint32_t)len};

    strbuf_add(&s->queue, &r, sizeof(r));
    strbuf_add(&s->queue, p, len);
}

void sink_init(struct sink *s)
{
    strbuf_init(&s->queue, HELD_MAX);
    s->written = json_array();
    s->paths = xcalloc(SINK_FILES_MAX, sizeof(*s->paths));
}

void sink_done(struct sink *s)
{
    call_cancel(&s->call);
    for (size_t i = 0; i < s->n_paths; i++)
        free(s->paths[i]);
    free(s->paths);
    strbuf_done(&s->queue);
    json_decref(s->written);
}

static void fail(struct sink *s, int status, const char *message)
{
    s->failed = true;
    call_cancel(&s->call);
    s->on_fail(s, s->path, status, message);
}

static bool pump(struct sink *s);

static void on_end(struct call *c, int status, const char *message, const void *result, size_t len)
{
    struct sink *s = c->owner;
    struct wire_reader r = wire_reader_of(result, len);

    if (status != 0) {
        fail(s, status, message);
        return;
    }
    json_t *entry = s->ending ? entry_read(&r) : NULL;
    if (!entry) {
        fail(s, EPROTO, "the sandbox sent a malformed answer");
        return;
    }
    json_array_append_new(s->written, entry_of_written(entry));
    s->open = s->ending = false;
    if (pump(s))
        s->on_room(s);
}

static void on_credit(struct call *c)
{
    struct sink *s = c->owner;

    if (pump(s))
        s->on_room(s);
}

static void begin(struct sink *s, const char *path)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    struct sg_error e = {0};

    snprintf(s->path, sizeof(s->path), "%s", path);
    for (size_t i = 0; i < s->n_paths; i++)
        if (strcmp(s->paths[i], path) == 0) {
            char why[OPS_PATH_MAX + 160];
            snprintf(why, sizeof(why),
                     "you cannot upload multiple files to the same path '%s' in one upload "
                     "request, only the first specified file was uploaded",
                     path);
            fail(s, EEXIST, why);
            return;
        }
    if (s->n_paths == SINK_FILES_MAX) {
        fail(s, E2BIG, "too many files in one request");
        return;
    }
    s->paths[s->n_paths++] = xstrdup(path);

    envd_put_user(&request, s->target->user);
    wire_put_str(&request, path);
    wire_put_u32(&request, FILE_MODE);
    wire_put_u32(&request, FILE_PARENTS | FILE_IN_PLACE);
    strbuf_add(&request, s->metadata->buf, s->metadata->len);
    s->call = (struct call){.owner = s, .on_credit = on_credit, .on_end = on_end};
    if (call_begin(&s->call, s->sandbox, OP_FILE_WRITE, &request, &e) < 0)
        fail(s, files_begin_status(&e), e.message);
    else
        s->open = true;
}

/* Sends as much of a record of bytes as the credit allows. True: all of it was sent. */
static bool send_bytes(struct sink *s, struct record *r, const char *p)
{
    size_t n = call_credit(&s->call);

    n = n < r->len ? n : r->len;
    call_send(&s->call, CHAN_STDIN, p, n);
    if (n == r->len)
        return true;
    r->len -= (uint32_t)n; /* a new header for the rest overwrites bytes that were sent */
    s->queue_off += n;
    memcpy(s->queue.buf + s->queue_off, r, sizeof(*r));
    return false;
}

/* Sends as much of the queue as it can. False: the sink has failed. */
static bool pump(struct sink *s)
{
    while (!s->failed && queued(s)) {
        struct record r;
        const char *p = s->queue.buf + s->queue_off + sizeof(r);

        memcpy(&r, s->queue.buf + s->queue_off, sizeof(r));
        if (r.what == RECORD_BEGIN) {
            if (s->open)
                return true;
            begin(s, p);
        } else if (r.what == RECORD_END) {
            s->ending = true;
            call_eof(&s->call);
        } else if (!send_bytes(s, &r, p)) {
            return true;
        }
        s->queue_off += sizeof(r) + r.len;
    }
    strbuf_reset(&s->queue);
    s->queue_off = 0;
    return !s->failed;
}

void sink_begin(struct sink *s, const char *path)
{
    if (s->failed)
        return;
    if (queued(s) || s->open)
        put(s, RECORD_BEGIN, path, strlen(path) + 1);
    else
        begin(s, path);
}

void sink_data(struct sink *s, const void *p, size_t len)
{
    const char *bytes = p;

    if (s->failed)
        return;
    if (!queued(s) && s->open) {
        size_t n = call_credit(&s->call);
        n = n < len ? n : len;
        call_send(&s->call, CHAN_STDIN, bytes, n);
        bytes += n;
        len -= n;
    }
    if (len > 0)
        put(s, RECORD_BYTES, bytes, len);
}

void sink_end(struct sink *s)
{
    if (s->failed)
        return;
    if (queued(s)) {
        put(s, RECORD_END, NULL, 0);
        return;
    }
    s->ending = true;
    call_eof(&s->call);
}

bool sink_drained(const struct sink *s)
{
    return !queued(s) && (!s->open || s->ending || call_credit(&s->call) > 0);
}

bool sink_idle(const struct sink *s)
{
    return !queued(s) && !s->open;
}
