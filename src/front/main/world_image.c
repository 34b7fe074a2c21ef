#include "front/main/world_image.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"

#define AT_ONCE_MAX 4 /* layers that are unpacked */

struct adding {
    struct world_making *m;
    const struct pull_order *order;
    int dir;
    size_t at_once;
    char digests[IMAGE_BLOBS][PULL_DIGEST]; /* of layers that were added */
};

/* Its folder is the puller's, who could have put anything there. */
static int open_pulled(int dir, const char *digest, struct sg_error *e)
{
    AUTO(close_p) int fd = openat(dir, digest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "open a layer of the image");
    return S_ISREG(st.st_mode) ? steal_fd(&fd) : err_invalid(e, "a layer of the image is no file");
}

static int tell(const struct adding *a, const struct pulled *p, struct sg_error *e)
{
    return a->order->tell ? a->order->tell(p, a->order->arg, e) : 0;
}

/* A layer is unpacked while the next ones are fetched. If too many are, the puller waits. */
static int add_layer(struct adding *a, const struct pulled *p, struct sg_error *e)
{
    AUTO(close_p) int layer = open_pulled(a->dir, p->layers[0].digest, e);
    AUTO(free_p) struct pulled *told = xmemdup(p, sizeof(*p));
    size_t i = a->m->begun;
    int r = layer < 0 ? layer : 0;

    if (r == 0 && i - a->m->n == a->at_once)
        r = world_add_end(a->m, e);
    told->what = PULLED_UNPACKING;
    if (r == 0)
        r = tell(a, told, e);
    if (r == 0)
        r = world_add_begin(a->m, layer, p->layers[0].diff_id + strlen("sha256:"), e);
    if (r == 0)
        memcpy(a->digests[i], p->layers[0].digest, PULL_DIGEST);
    return r;
}

static int on_news(const struct pulled *p, void *arg, struct sg_error *e)
{
    return p->what == PULLED_LAYER ? add_layer(arg, p, e) : tell(arg, p, e);
}

/* What was unpacked must be what the image consists of. */
static int finish_layers(struct adding *a, const struct pulled *p, struct sg_error *e)
{
    int r = a->m->begun == p->n ? 0 : err_invalid(e, "layers of the image are missing");

    while (r == 0 && a->m->n < a->m->begun)
        r = world_add_end(a->m, e);
    for (uint32_t i = 0; r == 0 && i < p->n; i++) {
        if (strcmp(a->digests[i], p->layers[i].digest) != 0)
            r = err_invalid(e, "the layers of the image came in another order");
        unlinkat(a->dir, p->layers[i].digest, 0);
    }
    return r;
}

static size_t processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > AT_ONCE_MAX ? AT_ONCE_MAX : (size_t)n;
}

int world_add_image(struct world_making *m, const struct pull_order *order, struct pulled *ret,
                    struct sg_error *e)
{
    AUTO(close_p) int dir = -1;
    AUTO(free_p)
    struct adding *a = NEW(struct adding, .m = m, .order = order, .at_once = processors());
    struct pull_order with_layers = *order;
    int r = mkdirat(m->dir, WORLD_LAYERS, 0700) < 0 ? -errno : 0;

    dir = a->dir = openat(m->dir, WORLD_LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r < 0 || dir < 0 || fchown(dir, WORKER_NOBODY, WORKER_NOBODY) < 0)
        return err_errno(e, "make a folder for layers");
    with_layers.tell = on_news;
    with_layers.arg = a;
    r = world_pull(dir, &with_layers, ret, e);
    if (r == 0 && order->known && strcmp(order->known, ret->digest) == 0)
        return 0;
    if (r == 0)
        r = finish_layers(a, ret, e);
    if (r == 0 && unlinkat(m->dir, WORLD_LAYERS, AT_REMOVEDIR) < 0)
        r = err_errno(e, "remove the layers of the image");
    return r;
}
