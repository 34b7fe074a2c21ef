#include "front/main/world_image.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "front/main/worker.h"
#include "lib/base/fd.h"

/* Its folder is the puller's, who could have put anything there. */
static int open_pulled(int dir, const char *digest, struct sg_error *e)
{
    AUTO(close_p) int fd = openat(dir, digest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "open a layer of the image");
    return S_ISREG(st.st_mode) ? steal_fd(&fd) : err_invalid(e, "a layer of the image is no file");
}

/* An image may name a layer more than once. */
static bool comes_again(const struct pulled *p, uint32_t i)
{
    for (uint32_t k = i + 1; k < p->n; k++)
        if (strcmp(p->layers[k].digest, p->layers[i].digest) == 0)
            return true;
    return false;
}

static int add_layers(struct world_making *m, int dir, const struct pull_order *order,
                      struct pulled *p, struct sg_error *e)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < p->n; i++) {
        AUTO(close_p) int layer = open_pulled(dir, p->layers[i].digest, e);

        p->what = PULLED_UNPACKING;
        p->layer = i + 1;
        p->of = p->n;
        if (order->tell)
            order->tell(p, order->arg);
        r = layer < 0 ? layer : world_add(m, layer, p->layers[i].diff_id + strlen("sha256:"), e);
        if (!comes_again(p, i))
            unlinkat(dir, p->layers[i].digest, 0);
    }
    return r;
}

int world_add_image(struct world_making *m, const struct pull_order *order, struct pulled *ret,
                    struct sg_error *e)
{
    AUTO(close_p) int dir = -1;
    int r = mkdirat(m->dir, WORLD_LAYERS, 0700) < 0 ? -errno : 0;

    dir = openat(m->dir, WORLD_LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r < 0 || dir < 0 || fchown(dir, WORKER_NOBODY, WORKER_NOBODY) < 0)
        return err_errno(e, "make a folder for layers");
    r = world_pull(dir, order, ret, e);
    if (r == 0 && order->known && strcmp(order->known, ret->digest) == 0)
        return 0;
    if (r == 0)
        r = add_layers(m, dir, order, ret, e);
    if (r == 0 && unlinkat(m->dir, WORLD_LAYERS, AT_REMOVEDIR) < 0)
        r = err_errno(e, "remove the layers of the image");
    return r;
}
