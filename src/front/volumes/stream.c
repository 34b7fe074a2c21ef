#include "front/volumes/stream.h"

#include <string.h>
#include <sys/socket.h>

#include "front/core/warden.h"
#include "lib/base/fd.h"
#include "lib/uv/handle.h"

#define IN_MAX   (2 * (VOLUME_RECORD_MAX + sizeof(struct volume_record)))
#define OUT_HIGH VOLUME_RECORD_MAX
#define OUT_MAX  (4u * 1024 * 1024) /* never reached: a piece of a body is far less */

struct volume_stream {
    struct front *front;
    char volume[ID_LEN + 1];
    const struct volume_stream_handlers *h;
    void *owner;  /* NULL: dropped */
    bool ordered; /* the warden's answer is to come */
    bool working; /* a callback is under way: it is freed afterwards */
    bool paused, wants_room;
    int fd;
    uv_poll_t *watch;
    struct strbuf in, out;
};

static void stream_free(struct volume_stream *s)
{
    watch_drop(&s->watch);
    close_p(&s->fd);
    strbuf_done(&s->in);
    strbuf_done(&s->out);
    free(s);
}

static void end(struct volume_stream *s, int r, const struct volume_end *with,
                const struct sg_error *e)
{
    void *owner = s->owner;

    s->owner = NULL;
    if (with && with->measured)
        volume_note_size(s->volume, with->used);
    if (owner)
        s->h->on_end(owner, r, with, e);
}

static void lost(struct volume_stream *s)
{
    struct sg_error e = {0};

    end(s, err_set(&e, SG_ERR_LIMIT, -EAGAIN, "the volume's helper was ended: try again"), NULL,
        &e);
}

static void watch_again(struct volume_stream *s);

static void take_record(struct volume_stream *s, const struct volume_record *r, const char *payload)
{
    struct volume_entry entry;
    struct volume_end over;
    const char *path, *target;

    if (r->kind == VOLUME_DATA)
        s->h->on_data(s->owner, payload, r->len);
    else if (r->kind == VOLUME_ENTRY &&
             volume_entry_read(payload, r->len, &entry, &path, &target) == 0)
        s->h->on_entry(s->owner, &entry, path, target);
    else if (r->kind == VOLUME_END && volume_end_read(payload, r->len, &over) == 0)
        end(s, 0, &over, NULL);
    else
        lost(s);
}

static void take_records(struct volume_stream *s)
{
    size_t at = 0;

    while (s->owner && !s->paused) {
        struct volume_record r;
        int64_t n = volume_take(s->in.buf + at, s->in.len - at, &r);

        if (n < 0)
            lost(s);
        if (n <= 0)
            break;
        take_record(s, &r, s->in.buf + at + sizeof(r));
        at += (size_t)n;
    }
    strbuf_consume(&s->in, at);
}

static void read_more(struct volume_stream *s)
{
    char buf[VOLUME_RECORD_MAX];
    ssize_t n = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        lost(s);
        return;
    }
    strbuf_add(&s->in, buf, (size_t)n);
    take_records(s);
}

static void send_more(struct volume_stream *s)
{
    ssize_t n =
        s->out.len == 0 ? 0 : send(s->fd, s->out.buf, s->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        strbuf_reset(&s->out); /* the helper says why, or is gone: reading will tell */
    else if (n > 0)
        strbuf_consume(&s->out, (size_t)n);
    if (s->wants_room && s->out.len < OUT_HIGH) {
        s->wants_room = false;
        s->h->on_room(s->owner);
    }
}

static void on_poll(uv_poll_t *p, int status, int events)
{
    struct volume_stream *s = p->data;

    s->working = true;
    if (status < 0)
        events = UV_READABLE;
    if (s->owner && (events & UV_READABLE))
        read_more(s);
    if (s->owner && (events & UV_WRITABLE))
        send_more(s);
    s->working = false;
    if (s->owner)
        watch_again(s);
    else
        stream_free(s);
}

static void watch_again(struct volume_stream *s)
{
    int events =
        (s->paused ? 0 : UV_READABLE) | (s->out.len > 0 || s->wants_room ? UV_WRITABLE : 0);

    if (s->watch)
        watch_for(s->watch, events, on_poll);
}

static void on_connected(void *arg, const struct warden_answer *w)
{
    struct volume_stream *s = arg;
    struct sg_error e = w->e;
    int r = w->r;

    s->ordered = false;
    if (r == 0 && *w->fd < 0)
        r = err_set(&e, SG_ERR_LIMIT, -EMFILE, "the server has no descriptor left: try again");
    if (!s->owner || r < 0) {
        end(s, r, NULL, &e);
        stream_free(s);
        return;
    }
    s->fd = steal_fd(w->fd);
    s->watch = watch_new(s->front->loop, s->fd, s);
    s->working = true;
    if (s->h->on_open)
        s->h->on_open(s->owner);
    s->working = false;
    if (s->owner)
        watch_again(s);
    else
        stream_free(s);
}

struct volume_stream *volume_stream_new(struct front *f, const struct store_volume *v,
                                        const struct volume_request *q, const char *path,
                                        const struct volume_stream_handlers *h, void *owner)
{
    struct volume_stream *s =
        NEW(struct volume_stream, .front = f, .h = h, .owner = owner, .ordered = true, .fd = -1);
    struct order o = {.op = ORDER_VOLUME_OPEN, .n_volumes = 1};
    struct volume_request full = *q;

    memcpy(s->volume, v->id, sizeof(s->volume));
    strbuf_init(&s->in, IN_MAX);
    strbuf_init(&s->out, OUT_MAX);
    full.magic = VOLUME_MAGIC;
    full.path_len = (uint32_t)strlen(path);
    full.max_bytes = f->settings.volume_size;
    strbuf_add(&s->out, &full, sizeof(full));
    strbuf_addstr(&s->out, path);
    memcpy(o.tenant, v->tenant, sizeof(o.tenant));
    memcpy(o.volumes[0].id, v->id, sizeof(v->id));
    warden_order(f, &o, -1, on_connected, s);
    return s;
}

void volume_stream_drop(struct volume_stream **ps)
{
    struct volume_stream *s = *ps;

    *ps = NULL;
    if (!s)
        return;
    s->owner = NULL;
    if (!s->ordered && !s->working)
        stream_free(s);
}

static void put(struct volume_stream *s, enum volume_record_kind kind, const void *p, size_t len)
{
    struct volume_record r = {.kind = kind, .len = (uint32_t)len};

    strbuf_add(&s->out, &r, sizeof(r));
    strbuf_add(&s->out, p, len);
}

bool volume_stream_write(struct volume_stream *s, const void *p, size_t len)
{
    const char *at = p;

    while (len > 0) {
        size_t n = len < VOLUME_RECORD_MAX ? len : VOLUME_RECORD_MAX;
        put(s, VOLUME_DATA, at, n);
        at += n;
        len -= n;
    }
    s->wants_room = s->out.len >= OUT_HIGH;
    watch_again(s);
    return !s->wants_room;
}

void volume_stream_write_end(struct volume_stream *s)
{
    put(s, VOLUME_END, NULL, 0);
    watch_again(s);
}

void volume_stream_pause(struct volume_stream *s)
{
    s->paused = true;
    watch_again(s);
}

/* Records that came before the pause are taken when the loop turns. */
void volume_stream_resume(struct volume_stream *s)
{
    s->paused = false;
    if (!s->working && !s->ordered) {
        s->working = true;
        take_records(s);
        s->working = false;
    }
    if (s->owner)
        watch_again(s);
    else
        stream_free(s);
}
