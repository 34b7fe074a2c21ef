/* Reads and writes files of a sandbox, for the library. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/channel/wire.h"
#include "engine/session.h"

#define FILE_MS 60000

static void send_more(struct call *c)
{
    struct file_write *w = CONTAINER_OF(c, struct file_write, call);
    struct chan *chan = session_chan(w->session);

    while (c->stream && w->sent < w->len) {
        size_t n = w->len - w->sent, credit = chan_credit(c->stream);
        if (n > credit)
            n = credit;
        if (n == 0)
            return;
        chan_send(chan, c->stream, CHAN_STDIN, w->data + w->sent, n);
        w->sent += n;
    }
    if (c->stream)
        chan_eof(chan, c->stream);
}

int file_write_begin(struct session *s, struct file_write *w, const char *user, const char *path,
                     unsigned mode, const void *data, size_t len, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf q = strbuf_upto(OPS_OPEN_MAX);
    int r;

    wire_put_str(&q, user);
    wire_put_str(&q, path);
    wire_put_u32(&q, mode);
    wire_put_u32(&q, FILE_PARENTS);
    wire_put_u32(&q, 0); /* no metadata */
    *w = (struct file_write){.call.on_credit = send_more, .session = s, .data = data, .len = len};
    r = session_call_begin(s, &w->call, OP_FILE_WRITE, &q, e);
    if (r == 0)
        send_more(&w->call);
    return r;
}

struct file_read {
    struct call call;
    struct strbuf data;
};

static void keep(struct call *c, uint8_t sub UNUSED, const void *p, size_t len)
{
    strbuf_add(&CONTAINER_OF(c, struct file_read, call)->data, p, len);
}

int file_read_whole(struct session *s, const char *user, const char *path, size_t max, char **ret,
                    size_t *ret_len, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf q = strbuf_upto(OPS_OPEN_MAX);
    struct file_read f = {.call.on_data = keep};
    int r;

    strbuf_init(&f.data, max);
    wire_put_str(&q, user);
    wire_put_str(&q, path);
    wire_put_u64(&q, 0);
    wire_put_u64(&q, (uint64_t)max + 1);
    r = session_call_begin(s, &f.call, OP_FILE_READ, &q, e);
    if (r == 0)
        r = session_wait(s, &f.call, clock_ns() + FILE_MS * 1000000ull, e);
    if (r == 0)
        r = session_call_error(&f.call, e);
    if (r == 0 && f.data.truncated)
        r = err_set(e, SG_ERR_LIMIT, -EFBIG, "'%s' is larger than %zu bytes", path, max);
    if (r == 0)
        *ret = strbuf_detach(&f.data, ret_len);
    session_call_done(&f.call);
    strbuf_done(&f.data);
    return r;
}
