#include "image/input.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "image/sink.h"

#define RAW        (64u * 1024)  /* of what comes */
#define OUT        (256u * 1024) /* of tar */
#define RATIO_FROM (1u << 20)    /* so many bytes are fine however few came */

enum form { FORM_TAR, FORM_GZIP, FORM_ZSTD };

struct input {
    int fd;
    enum form form;
    const struct image_limits *limits;
    struct digest *digest;
    z_stream gzip;
    ZSTD_DCtx *zstd;
    bool inside; /* a member or frame has begun and not ended */
    bool ended;  /* nothing more comes */
    uint8_t raw[RAW], out[OUT];
    size_t raw_at, raw_len, out_at, out_len;
    uint64_t came, taken;
};

/* ---- what comes ------------------------------------------------------------------------------ */

/* Reads on when all has been used. */
static int refill(struct input *in, struct sg_error *e)
{
    ssize_t n;

    if (in->ended || in->raw_at < in->raw_len)
        return 0;
    do
        n = read(in->fd, in->raw, RAW);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_errno(e, "read the layer");
    in->ended = n == 0;
    in->raw_at = 0;
    in->raw_len = (size_t)n;
    in->came += (size_t)n;
    return 0;
}

static enum form form_of(const uint8_t *p, size_t len)
{
    if (len >= 2 && p[0] == 0x1f && p[1] == 0x8b)
        return FORM_GZIP;
    if (len < 4)
        return FORM_TAR;
    if (memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0)
        return FORM_ZSTD;
    /* A frame that is passed over may come first. */
    return (p[0] & 0xf0) == 0x50 && memcmp(p + 1, "\x2a\x4d\x18", 3) == 0 ? FORM_ZSTD : FORM_TAR;
}

/* A pipe may give the first bytes one by one. */
static int read_first(struct input *in, struct sg_error *e)
{
    uint8_t first[4];
    size_t len = 0;

    while (len < sizeof(first)) {
        int r = refill(in, e);

        if (r < 0)
            return r;
        if (in->ended)
            break;
        while (len < sizeof(first) && in->raw_at < in->raw_len)
            first[len++] = in->raw[in->raw_at++];
    }
    if (len == 0)
        return err_invalid(e, "the layer is empty");
    memmove(in->raw + len, in->raw + in->raw_at, in->raw_len - in->raw_at);
    memcpy(in->raw, first, len);
    in->raw_len = len + in->raw_len - in->raw_at;
    in->raw_at = 0;
    in->form = form_of(in->raw, in->raw_len);
    return 0;
}

int input_new(int fd, const struct image_limits *limits, struct input **ret, struct sg_error *e)
{
    AUTO(input_free_p) struct input *in = xcalloc(1, sizeof(*in));

    in->fd = fd;
    in->limits = limits;
    in->digest = digest_new();
    int r = read_first(in, e);
    if (r < 0)
        return r;
    if (in->form == FORM_GZIP && inflateInit2(&in->gzip, 15 + 16) != Z_OK)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "no memory to decompress the layer");
    if (in->form == FORM_ZSTD) {
        in->zstd = ZSTD_createDCtx();
        if (!in->zstd)
            return err_set(e, SG_ERR_LIMIT, -ENOMEM, "no memory to decompress the layer");
    }
    *ret = steal_ptr(&in);
    return 0;
}

void input_free_p(struct input **in)
{
    if (!*in)
        return;
    inflateEnd(&(*in)->gzip);
    ZSTD_freeDCtx((*in)->zstd);
    digest_free_p(&(*in)->digest);
    free(*in);
    *in = NULL;
}

/* ---- decompression --------------------------------------------------------------------------- */

static int broken(struct sg_error *e, const char *form, const char *why)
{
    return err_invalid(e, "the layer is no valid %s data: %s", form, why);
}

static int step_gzip(struct input *in, struct sg_error *e)
{
    z_stream *z = &in->gzip;

    if (!in->inside && inflateReset(z) != Z_OK)
        return broken(e, "gzip", "it cannot be read");
    in->inside = true;
    z->next_in = in->raw + in->raw_at;
    z->avail_in = (uInt)(in->raw_len - in->raw_at);
    z->next_out = in->out;
    z->avail_out = OUT;
    int r = inflate(z, Z_NO_FLUSH);
    in->raw_at = in->raw_len - z->avail_in;
    in->out_len = OUT - z->avail_out;
    if (r == Z_STREAM_END)
        in->inside = false;
    else if (r == Z_MEM_ERROR)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "no memory to decompress the layer");
    else if (r != Z_OK && r != Z_BUF_ERROR)
        return broken(e, "gzip", z->msg ? z->msg : "it needs a dictionary");
    return 0;
}

static int step_zstd(struct input *in, struct sg_error *e)
{
    ZSTD_inBuffer from = {.src = in->raw, .size = in->raw_len, .pos = in->raw_at};
    ZSTD_outBuffer to = {.dst = in->out, .size = OUT};
    size_t r = ZSTD_decompressStream(in->zstd, &to, &from);

    in->raw_at = from.pos;
    in->out_len = to.pos;
    if (ZSTD_isError(r))
        return broken(e, "zstd", ZSTD_getErrorName(r));
    in->inside = r > 0;
    return 0;
}

static void step_tar(struct input *in)
{
    in->out_len = in->raw_len - in->raw_at;
    memcpy(in->out, in->raw + in->raw_at, in->out_len);
    in->raw_at = in->raw_len;
}

static int check_limits(const struct input *in, struct sg_error *e)
{
    uint64_t bytes = in->limits->bytes, ratio = in->limits->ratio;

    if (in->taken > bytes || in->came > bytes)
        return err_set(e, SG_ERR_LIMIT, -EFBIG, "the layer has more than %llu bytes",
                       (unsigned long long)bytes);
    if (in->taken > RATIO_FROM && in->taken / ratio > in->came)
        return err_set(e, SG_ERR_LIMIT, -EFBIG,
                       "the layer becomes more than %llu times as large when it is decompressed",
                       (unsigned long long)ratio);
    return 0;
}

/* Makes more tar when all has been used; none at the end. */
static int fill(struct input *in, struct sg_error *e)
{
    int r = 0;

    in->out_at = in->out_len = 0;
    while (r == 0 && in->out_len == 0) {
        r = refill(in, e);
        if (r < 0)
            break;
        /* What was decompressed already may wait in the decompressor, without more coming. */
        if (in->ended && in->raw_at == in->raw_len && !in->inside)
            return 0;
        size_t had = in->raw_at;
        if (in->form == FORM_TAR)
            step_tar(in);
        else
            r = in->form == FORM_GZIP ? step_gzip(in, e) : step_zstd(in, e);
        if (r == 0 && in->ended && in->out_len == 0 && in->raw_at == had && in->inside)
            r = err_invalid(e, "the layer ends in the middle of its compressed data");
        in->taken += in->out_len;
        if (r == 0)
            r = check_limits(in, e);
    }
    digest_add(in->digest, in->out, in->out_len);
    return r;
}

/* ---- what is taken --------------------------------------------------------------------------- */

int input_next(struct input *in, uint64_t max, const uint8_t **ret, size_t *ret_len,
               struct sg_error *e)
{
    if (in->out_at == in->out_len && max > 0) {
        int r = fill(in, e);

        if (r < 0)
            return r;
    }
    size_t there = in->out_len - in->out_at;
    *ret = in->out + in->out_at;
    *ret_len = there < max ? there : (size_t)max;
    in->out_at += *ret_len;
    return 0;
}

static int cut(struct sg_error *e)
{
    return err_invalid(e, "the layer ends in the middle of a file or of a header");
}

int input_read(struct input *in, void *buf, size_t len, struct sg_error *e)
{
    uint8_t *to = buf;
    const uint8_t *part;
    size_t done = 0, n;

    for (; done < len; done += n) {
        int r = input_next(in, len - done, &part, &n, e);

        if (r < 0)
            return r;
        if (n == 0)
            return done > 0 ? cut(e) : 0;
        memcpy(to + done, part, n);
    }
    return 1;
}

int input_skip(struct input *in, uint64_t len, struct sg_error *e)
{
    const uint8_t *part;
    size_t n;

    for (uint64_t left = len; left > 0; left -= n) {
        int r = input_next(in, left, &part, &n, e);

        if (r < 0)
            return r;
        if (n == 0)
            return len == UINT64_MAX ? 0 : cut(e);
    }
    return 0;
}

uint64_t input_taken(const struct input *in)
{
    return in->taken;
}

void input_digest(struct input *in, uint8_t ret[IMAGE_DIGEST])
{
    digest_end(in->digest, ret);
}
