#include "front/builds/pour.h"

#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "front/core/call.h"
#include "lib/channel/wire.h"
#include "lib/uv/handle.h"

#define DISKS_MAX 4                    /* an archive may unpack to this many disks */
#define SPARE_MAX (UINT64_C(64) << 20) /* ... and this many bytes */
#define GZIP_1    0x1f
#define GZIP_2    0x8b

struct pour {
    struct sandbox *sandbox;
    struct call call;
    int fd;
    struct work slice;
    bool begun, packed, z_ready;
    z_stream z;
    bool member_over; /* inflate has reached the end of a gzip member */
    bool over;        /* everything was sent */
    char in[WORK_PIECE], out[WORK_PIECE];
    size_t out_len, out_off;
    uint64_t total, most;
    uv_timer_t *later; /* an error of the beginning, told from the loop */
    struct sg_error wrong;
    pour_done done;
    void *arg;
};

static void pour_free(struct pour *p)
{
    call_cancel(&p->call);
    work_drop(&p->slice);
    alarm_drop(&p->later);
    if (p->z_ready)
        inflateEnd(&p->z);
    close_p(&p->fd);
    sandbox_unref(p->sandbox);
    free(p);
}

void pour_cancel(struct pour *p)
{
    pour_free(p);
}

static void finish(struct pour *p, int r, const struct sg_error *e)
{
    pour_done done = p->done;
    void *arg = p->arg;
    struct sg_error why = e ? *e : (struct sg_error){0};

    pour_free(p);
    done(arg, r, &why);
}

PRINTF(2, 3)
static int fail(struct pour *p, const char *fmt, ...)
{
    struct sg_error e;
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    finish(p, err_invalid(&e, "%s", text), &e);
    return -EINVAL;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Reads the first bytes, which say whether the archive is packed. */
static void look(struct pour *p)
{
    unsigned char magic[2];

    p->begun = true;
    p->packed = pread(p->fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
                magic[0] == GZIP_1 && magic[1] == GZIP_2;
    if (p->packed && inflateInit2(&p->z, 15 + 16) != Z_OK) /* 16: gzip only */
        abort();                                           /* out of memory */
    p->z_ready = p->packed;
}

static int unpack(struct pour *p)
{
    if (p->z.avail_in == 0) {
        ssize_t n = read(p->fd, p->in, sizeof(p->in));

        if (n < 0)
            return fail(p, "the archive cannot be read: %s", strerror(errno));
        if (n == 0 && !p->member_over)
            return fail(p, "the archive is malformed: it is not whole");
        p->over = n == 0;
        p->z.next_in = (const Bytef *)p->in;
        p->z.avail_in = (uInt)n;
    }
    if (p->over)
        return 0;
    if (p->member_over) { /* a gzip file may have several members */
        inflateReset(&p->z);
        p->member_over = false;
    }
    p->z.next_out = (Bytef *)p->out;
    p->z.avail_out = sizeof(p->out);
    int r = inflate(&p->z, Z_NO_FLUSH);
    if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
        return fail(p, "the archive is malformed: it is not valid gzip");
    p->member_over = r == Z_STREAM_END;
    p->out_len = sizeof(p->out) - p->z.avail_out;
    return 0;
}

static int read_plain(struct pour *p)
{
    ssize_t n = read(p->fd, p->out, sizeof(p->out));

    if (n < 0)
        return fail(p, "the archive cannot be read: %s", strerror(errno));
    p->out_len = (size_t)n;
    p->over = n == 0;
    return 0;
}

/* Makes the next bytes to send. Negative: it has failed, and p is gone. */
static int fill(struct pour *p)
{
    p->out_len = p->out_off = 0;
    if (p->fd < 0) {
        p->over = true;
        return 0;
    }
    if (!p->begun)
        look(p);
    int r = p->packed ? unpack(p) : read_plain(p);
    if (r < 0)
        return r;
    p->total += p->out_len;
    if (p->total > p->most)
        return fail(p, "the archive unpacks to more than %llu MiB",
                    (unsigned long long)(p->most >> 20));
    return 0;
}

static void on_slice(struct work *w)
{
    struct pour *p = CONTAINER_OF(w, struct pour, slice);

    if (p->out_off == p->out_len && fill(p) < 0)
        return;
    if (p->over) {
        call_eof(&p->call);
        return;
    }
    size_t n = call_credit(&p->call), left = p->out_len - p->out_off;
    n = n < left ? n : left;
    call_send(&p->call, CHAN_STDIN, p->out + p->out_off, n);
    p->out_off += n;
    if (call_credit(&p->call) > 0 || p->out_off == p->out_len)
        work_post(http_server_works(p->sandbox->front->http), w,
                  work_party_of(p->sandbox->spec.tenant));
}

static void on_credit(struct call *c)
{
    struct pour *p = c->owner;

    if (!p->over)
        work_post(http_server_works(p->sandbox->front->http), &p->slice,
                  work_party_of(p->sandbox->spec.tenant));
}

static void on_end(struct call *c, int status, const char *message, const void *result UNUSED,
                   size_t len UNUSED)
{
    struct pour *p = c->owner;
    struct sg_error e = {0};

    if (status == 0)
        finish(p, 0, NULL);
    else if (status == CALL_GONE)
        finish(p, sandbox_gone_error(p->sandbox, &e), &e);
    else
        finish(p, err_set(&e, SG_ERR_GONE, -status, "%s", message), &e);
}

/* ---- begin ----------------------------------------------------------------------------------- */

static void on_later(uv_timer_t *t)
{
    struct pour *p = t->data;

    finish(p, p->wrong.code, &p->wrong);
}

struct pour *pour_begin(struct sandbox *b, int fd, const struct step_copy *how, pour_done done,
                        void *arg)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(2 * OPS_PATH_MAX);
    struct pour *p = xcalloc(1, sizeof(*p));

    p->sandbox = sandbox_ref(b);
    p->fd = fd;
    p->slice.run = on_slice;
    p->most = DISKS_MAX * b->spec.limits.disk_bytes + SPARE_MAX;
    p->done = done;
    p->arg = arg;
    wire_put_str(&request, how->user);
    wire_put_str(&request, how->dest);
    wire_put_str(&request, how->group);
    wire_put_u32(&request, how->mode);
    wire_put_u32(&request, how->strip);
    p->call =
        (struct call){.owner = p, .uncounted = true, .on_credit = on_credit, .on_end = on_end};
    if (call_begin(&p->call, b, OP_FILE_UNPACK, &request, &p->wrong) < 0) {
        p->later = alarm_new(b->front->loop, p);
        alarm_set(p->later, 0, on_later);
    } else {
        work_post(http_server_works(b->front->http), &p->slice, work_party_of(b->spec.tenant));
    }
    return p;
}
