#include "warden/cgroup_place.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/fd.h"
#include "warden/cgroup.h"

#define LOCAL_TENANT "runs"

struct cgroup_place {
    const struct cgroup_ops *ops;
    char path[CGROUP_PATH_MAX];
    int dir;
    bool lasting; /* stays when its last user goes */
};

/* ---- places ---------------------------------------------------------------------------------- */

static bool name_valid(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");

    return n > 0 && n < CGROUP_NAME_MAX && name[n] == '\0';
}

/* A server's with a digit in front could be a slot of the old layout. */
static int make_path(const char *server, const char *tenant, char ret[CGROUP_PATH_MAX],
                     struct sg_error *e)
{
    if (!name_valid(server) || isdigit((unsigned char)server[0]) || (tenant && !name_valid(tenant)))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "no name for a control group");
    if (tenant)
        snprintf(ret, CGROUP_PATH_MAX, "%s/%s", server, tenant);
    else
        snprintf(ret, CGROUP_PATH_MAX, "%s", server);
    return 0;
}

/* Opens a directory below `top` and holds it; it is made if it is not there, and handed what groups
 * below it need. */
static int hold_dir(const struct cgroup_ops *ops, int top, const char *path, struct sg_error *e)
{
    for (int tries = 0;; tries++) {
        int r = cgroup_mkdir(top, path);
        AUTO(close_p) int fd = r < 0 ? -1 : openat(top, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = r < 0 ? r : fd < 0 ? -errno : cgroup_hold(fd);
        if (r == 0) {
            r = ops->hand_down(fd, path, e);
            return r < 0 ? r : steal_fd(&fd);
        }
        if (r != -ENOENT || tries == CGROUP_TRIES)
            return err_set(e, err_kind_of(-r), r, "make the control group sandglass/%s: %s", path,
                           strerror(-r));
    }
}

int cgroup_place_open(const char *server, const char *tenant, struct cgroup_place **ret,
                      struct sg_error *e)
{
    const struct cgroup_ops *ops = cgroup_host(e);
    AUTO(close_p) int above = -1;
    char path[CGROUP_PATH_MAX];
    int tops[CGROUP_TOPS_MAX], dir, r = make_path(server, tenant, path, e);

    if (r == 0)
        r = ops ? ops->tops(true, tops, e) : -ENOSYS;
    if (r < 0)
        return r;
    above = tenant ? hold_dir(ops, tops[0], server, e) : -1;
    if (tenant && above < 0)
        return above;
    dir = hold_dir(ops, tops[0], path, e);
    if (dir < 0)
        return dir;
    *ret = xcalloc(1, sizeof **ret);
    **ret = (struct cgroup_place){.ops = ops, .dir = dir};
    memcpy((*ret)->path, path, sizeof path);
    return 0;
}

int cgroup_place_local(struct cgroup_place **ret, struct sg_error *e)
{
    int r = cgroup_place_open(CGROUP_LOCAL, LOCAL_TENANT, ret, e);

    if (r == 0)
        (*ret)->lasting = true;
    return r;
}

void cgroup_place_close(struct cgroup_place *p)
{
    int tops[CGROUP_TOPS_MAX];

    if (!p)
        return;
    if (!p->lasting && flock(p->dir, LOCK_EX | LOCK_NB) == 0 && p->ops->tops(true, tops, NULL) == 0)
        cgroup_remove_path(tops, p->path);
    close(p->dir);
    free(p);
}

const char *cgroup_place_path(const struct cgroup_place *p)
{
    return p->path;
}

int cgroup_place_dir(const struct cgroup_place *p)
{
    return p->dir;
}

int cgroup_place_limit(struct cgroup_place *p, uint64_t memory_bytes, struct sg_error *e)
{
    int r = p->ops->limit_memory(p->dir, memory_bytes);

    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "limit the memory of control group %s: %s", p->path,
                       strerror(-r));
    return 0;
}
