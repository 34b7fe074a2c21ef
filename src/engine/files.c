/* Reads and writes files of a sandbox, for the library. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/channel/wire.h"
#include "engine/session.h"

#define FILE_MS 60000

static void send_more(struct call *c)
{
    struct file_write *w = CONTAINER_OF(c, struct file_write, call);

    if (session_call_send(w->chan, c, w->data, w->len, &w->sent) && c->stream)
        chan_eof(w->chan, c->stream);
}

int file_write_begin(struct chan *chan, struct file_write *w, const char *user, const char *path,
                     unsigned mode, const void *data, size_t len, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf q = strbuf_upto(OPS_OPEN_MAX);
    int r;

    wire_put_str(&q, user);
    wire_put_str(&q, path);
    wire_put_u32(&q, mode);
    wire_put_u32(&q, FILE_PARENTS);
    wire_put_u32(&q, 0); /* no metadata */
    *w = (struct file_write){.call.on_credit = send_more, .chan = chan, .data = data, .len = len};
    r = session_call_begin(chan, &w->call, OP_FILE_WRITE, &q, e);
    if (r == 0)
        send_more(&w->call);
    return r;
}

struct file_read {
    struct call call;
    struct strbuf *data;
};

static void keep(struct call *c, uint8_t sub UNUSED, const void *p, size_t len)
{
    strbuf_add(CONTAINER_OF(c, struct file_read, call)->data, p, len);
}

int file_read_into(struct chan *chan, const char *user, const char *path, uint64_t timeout_ms,
                   struct strbuf *ret, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf q = strbuf_upto(OPS_OPEN_MAX);
    struct file_read f = {.call.on_data = keep, .data = ret};
    int r;

    wire_put_str(&q, user);
    wire_put_str(&q, path);
    wire_put_u64(&q, 0);
    wire_put_u64(&q, (uint64_t)ret->max + 1);
    r = session_call_begin(chan, &f.call, OP_FILE_READ, &q, e);
    if (r == 0)
        r = session_wait(chan, &f.call, clock_ns() + timeout_ms * 1000000, e);
    if (r == 0)
        r = session_call_error(&f.call, e);
    session_call_done(&f.call);
    return r;
}

int file_read_whole(struct chan *chan, const char *user, const char *path, size_t max, char **ret,
                    size_t *ret_len, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(max);
    int r = file_read_into(chan, user, path, FILE_MS, &data, e);

    if (r == 0 && data.truncated)
        r = err_set(e, SG_ERR_LIMIT, -EFBIG, "'%s' is larger than %zu bytes", path, max);
    if (r == 0)
        *ret = strbuf_detach(&data, ret_len);
    return r;
}
