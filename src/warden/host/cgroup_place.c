#include "warden/host/cgroup_place.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "lib/base/fd.h"
#include "warden/host/cgroup.h"

struct cgroup_place {
    const struct cgroup_ops *ops;
    char path[CGROUP_PATH_MAX];
    int dir;
    bool lasting;  /* it stays when its last user goes */
    int oom_watch; /* see ooms of cgroup.h; -1: none */
    uint64_t ooms;
};

/* ---- places ---------------------------------------------------------------------------------- */

static bool name_valid(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");

    return n > 0 && n < CGROUP_NAME_MAX && name[n] == '\0';
}

/* A server's name must not begin with a digit: it could be a slot of the old layout. */
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

/* Opens a directory below `top` and locks it. A missing directory is made, and gets the controllers
 * that groups below it need. */
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
    *ret = xcalloc(1, sizeof(**ret));
    **ret = (struct cgroup_place){.ops = ops, .dir = dir, .oom_watch = -1};
    (*ret)->lasting = strcmp(server, CGROUP_LOCAL) == 0;
    memcpy((*ret)->path, path, sizeof(path));
    return 0;
}

void cgroup_place_close(struct cgroup_place *p)
{
    int tops[CGROUP_TOPS_MAX];

    if (!p)
        return;
    if (!p->lasting && flock(p->dir, LOCK_EX | LOCK_NB) == 0 && p->ops->tops(true, tops, NULL) == 0)
        cgroup_remove_path(tops, p->path);
    close_p(&p->oom_watch);
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

uint64_t cgroup_place_uses(const struct cgroup_place *p)
{
    struct cgroup_usage u;

    cgroup_memory(p->ops, p->dir, &u);
    return u.memory_bytes > u.memory_reclaimable ? u.memory_bytes - u.memory_reclaimable : 0;
}

uint64_t cgroup_place_ooms(struct cgroup_place *p)
{
    p->ooms = p->ops->ooms(p->dir, &p->oom_watch, p->ooms);
    return p->ooms;
}

/* ---- this process's own group ---------------------------------------------------------------- */

/* The path of this process's group in the hierarchy of memory: the text after the second colon of
 * its line. */
static bool own_path(const char *text, bool v1, char *ret, size_t cap)
{
    for (const char *line = text; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        char list[128];

        if (!path)
            return false;
        snprintf(list, sizeof(list), "%.*s", (int)(path - names - 1), names + 1);
        if (v1 ? strcmp(list, "memory") == 0 : list[0] == '\0') {
            snprintf(ret, cap, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
            return true;
        }
    }
    return false;
}

/* "No limit" is a huge number in v1, and the word `max` in v2, which reads as 0 here. */
uint64_t cgroup_own_memory(void)
{
    const struct cgroup_ops *ops = cgroup_host(NULL);
    AUTO(free_p) char *text = NULL;
    struct cgroup_mount m;
    char path[512], file[1024];
    bool v1 = ops == &cgroup_v1;
    uint64_t least = 0;

    if (!ops || cgroup_find_mount(v1 ? "memory" : NULL, &m) < 0 ||
        file_read(AT_FDCWD, "/proc/self/cgroup", 16384, &text, NULL) < 0 ||
        !own_path(text, v1, path, sizeof(path)))
        return 0;
    for (;;) {
        snprintf(file, sizeof(file), "%s%s/%s", m.path, path, ops->limit_file);
        uint64_t limit = cgroup_read_u64(AT_FDCWD, file);
        if (limit && (least == 0 || limit < least))
            least = limit;
        char *end = strrchr(path, '/');
        if (!end)
            return least;
        *end = '\0';
    }
}
