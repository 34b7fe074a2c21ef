#include "image/sink.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#include "lib/base/fd.h"

#define BUFFER (1u << 20)

/* ---- SHA-256 --------------------------------------------------------------------------------- */

struct digest {
    EVP_MD_CTX *md;
};

struct digest *digest_new(void)
{
    struct digest *d = xcalloc(1, sizeof(*d));

    d->md = EVP_MD_CTX_new();
    if (!d->md || EVP_DigestInit_ex(d->md, EVP_sha256(), NULL) != 1)
        abort(); /* out of memory: it fails for no other reason */
    return d;
}

void digest_add(struct digest *d, const void *data, size_t len)
{
    EVP_DigestUpdate(d->md, data, len);
}

void digest_end(struct digest *d, uint8_t ret[IMAGE_DIGEST])
{
    unsigned len;

    EVP_DigestFinal_ex(d->md, ret, &len);
    assert(len == IMAGE_DIGEST);
}

void digest_free_p(struct digest **d)
{
    if (*d)
        EVP_MD_CTX_free((*d)->md);
    free(*d);
    *d = NULL;
}

void digest_prepare(void)
{
    AUTO(digest_free_p) struct digest *d = digest_new();
    uint8_t sum[IMAGE_DIGEST];

    digest_end(d, sum);
}

/* ---- files ----------------------------------------------------------------------------------- */

void sink_init(struct sink *s, int fd)
{
    *s = (struct sink){.fd = fd, .digest = digest_new(), .buf = xcalloc(1, BUFFER)};
}

void sink_done(struct sink *s)
{
    digest_free_p(&s->digest);
    free(s->buf);
}

static void flush(struct sink *s)
{
    digest_add(s->digest, s->buf, s->len);
    if (s->error == 0)
        s->error = fd_write_all(s->fd, s->buf, s->len);
    s->len = 0;
}

void sink_add(struct sink *s, const void *data, size_t len)
{
    const uint8_t *p = data;

    s->total += len;
    while (len > 0) {
        size_t part = len < BUFFER - s->len ? len : BUFFER - s->len;

        memcpy(s->buf + s->len, p, part);
        s->len += part;
        p += part;
        len -= part;
        if (s->len == BUFFER)
            flush(s);
    }
}

void sink_zero(struct sink *s, uint64_t until)
{
    static const uint8_t zero[IMAGE_BLOCK];

    assert(until >= s->total);
    while (s->total < until)
        sink_add(s, zero, until - s->total < sizeof(zero) ? until - s->total : sizeof(zero));
}

void sink_align(struct sink *s, size_t unit)
{
    sink_zero(s, (s->total + unit - 1) / unit * unit);
}

int sink_end(struct sink *s, const char *what, uint8_t ret[IMAGE_DIGEST], struct sg_error *e)
{
    flush(s);
    digest_end(s->digest, ret);
    if (s->error == 0 && fsync(s->fd) < 0)
        s->error = -errno;
    return s->error < 0 ? err_code(e, s->error, "write the %s", what) : 0;
}
