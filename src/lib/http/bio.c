#include "lib/http/bio.h"

#include "lib/base/base.h"

#define STREAM 0 /* the index of the application's own data */

static const struct bio_stream *stream_of(BIO *bio)
{
    return BIO_get_ex_data(bio, STREAM);
}

static int bio_write(BIO *bio, const char *p, int n)
{
    ssize_t sent = stream_of(bio)->send(BIO_get_data(bio), p, (size_t)n);

    BIO_clear_retry_flags(bio);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)sent;
}

static int bio_read(BIO *bio, char *p, int n)
{
    ssize_t got = stream_of(bio)->recv(BIO_get_data(bio), p, (size_t)n);

    BIO_clear_retry_flags(bio);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    if (got == 0)
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return (int)got;
}

static long bio_ctrl(BIO *bio, int cmd, long num UNUSED, void *p UNUSED)
{
    if (cmd == BIO_CTRL_EOF)
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    return cmd == BIO_CTRL_FLUSH;
}

static const BIO_METHOD *method(void)
{
    static BIO_METHOD *own;

    if (!own) {
        own = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
        if (!own)
            abort(); /* out of memory */
        BIO_meth_set_write(own, bio_write);
        BIO_meth_set_read(own, bio_read);
        BIO_meth_set_ctrl(own, bio_ctrl);
    }
    return own;
}

BIO *bio_new(const struct bio_stream *stream, void *arg)
{
    BIO *bio = BIO_new(method());

    if (!bio || BIO_set_ex_data(bio, STREAM, (void *)(uintptr_t)stream) != 1) {
        BIO_free(bio);
        return NULL;
    }
    BIO_set_data(bio, arg);
    BIO_set_init(bio, 1);
    return bio;
}
