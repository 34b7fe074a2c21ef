#include "warden/host/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/fd.h"
#include "warden/host/cgroup_place.h"

/* Whether the comma-separated list contains the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
        if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

/* The lines of control groups in the list of mounts. They are read once: the hierarchies do not
 * move while the program runs. */
static const char *mounts_text(void)
{
    static char *text;
    char *to, *next;

    if (text || file_read(AT_FDCWD, "/proc/self/mounts", 4u << 20, &text, NULL) < 0)
        return text ? text : "";
    to = text;
    for (char *line = text; *line; line = next) {
        char *end = strchrnul(line, '\n');
        next = end + (*end == '\n');
        if (memmem(line, (size_t)(end - line), " cgroup", 7)) {
            memmove(to, line, (size_t)(next - line));
            to += next - line;
        }
    }
    *to = '\0';
    return text;
}

int cgroup_find_mount(const char *controller, struct cgroup_mount *ret)
{
    for (const char *line = mounts_text(); *line;) {
        char path[256], type[32], options[256];
        int n = sscanf(line, "%*s %255s %31s %255s", path, type, options);
        if (n == 3 && (controller ? strcmp(type, "cgroup") == 0 && has_word(options, controller)
                                  : strcmp(type, "cgroup2") == 0)) {
            snprintf(ret->path, sizeof(ret->path), "%s", path);
            return 0;
        }
        line = strchrnul(line, '\n');
        line += *line == '\n';
    }
    return -ENOENT;
}

int cgroup_kill_listed(int dirfd, const char *procs_file)
{
    AUTO(free_p) char *text = NULL;
    int n = 0;

    if (file_read(dirfd, procs_file, 4u << 20, &text, NULL) < 0)
        return 0;
    for (char *p = text; *p;) {
        char *end;
        long pid = strtol(p, &end, 10);
        if (end == p)
            break;
        /* A process of another pid namespace shows as 0; kill(0) would kill the caller's own
         * process group. */
        if (pid > 1) {
            kill((pid_t)pid, SIGKILL);
            n++;
        }
        p = *end ? end + 1 : end;
    }
    return n;
}

int cgroup_doors_add(struct cgroup_doors *d, int dirfd, const char *file, struct sg_error *e)
{
    int fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "open '%s' of a control group", file);
    d->fds[d->n++] = fd;
    return 0;
}

void cgroup_doors_close(struct cgroup_doors *d)
{
    for (size_t i = 0; i < d->n; i++)
        close(d->fds[i]);
    d->n = 0;
}

uint64_t cgroup_read_key(int dirfd, const char *file, const char *key)
{
    uint64_t value;

    cgroup_read_keys(dirfd, file, 1, &key, &value);
    return value;
}

void cgroup_read_keys(int dirfd, const char *file, size_t n, const char *const keys[],
                      uint64_t ret[])
{
    AUTO(free_p) char *text = NULL;

    memset(ret, 0, n * sizeof(ret[0]));
    if (file_read(dirfd, file, 64u << 10, &text, NULL) < 0)
        return;
    for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        for (size_t i = 0; i < n; i++) {
            size_t len = strlen(keys[i]);
            if (strncmp(p, keys[i], len) == 0 && p[len] == ' ')
                ret[i] = strtoull(p + len + 1, NULL, 10);
        }
}

uint64_t cgroup_read_u64(int dirfd, const char *file)
{
    AUTO(free_p) char *text = NULL;

    if (file_read(dirfd, file, 256, &text, NULL) < 0)
        return 0;
    return strtoull(text, NULL, 10);
}

int cgroup_put_u64(int dirfd, const char *file, uint64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    return file_write(dirfd, file, text);
}

int cgroup_open_top(const char *controller, bool make, struct sg_error *e)
{
    struct cgroup_mount m;
    char path[sizeof(m.path) + sizeof("/sandglass")];
    int fd;

    if (cgroup_find_mount(controller, &m) < 0)
        return controller
                   ? err_set(e, SG_ERR_UNSUPPORTED, -ENOSYS,
                             "the cgroup v1 controller '%s' is not mounted: mount it, or boot with "
                             "cgroup v2",
                             controller)
                   : err_set(e, SG_ERR_UNSUPPORTED, -ENOSYS, "cgroup v2 is not mounted");
    snprintf(path, sizeof(path), "%s/sandglass", m.path);
    if (make && mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_errno(e, "make the control group '%s'", path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_errno(e, "open the control group '%s'", path) : fd;
}

int cgroup_hold(int fd)
{
    if (flock(fd, LOCK_SH) < 0)
        return -errno;
    return faccessat(fd, "cgroup.procs", F_OK, 0) < 0 ? -ENOENT : 0;
}

int cgroup_hold_top(const char *controller, struct sg_error *e)
{
    for (int tries = 0;; tries++) {
        AUTO(close_p) int fd = cgroup_open_top(controller, true, e);
        int r = fd < 0 ? fd : cgroup_hold(fd);
        if (r == 0)
            return steal_fd(&fd);
        if (r != -ENOENT || tries == CGROUP_TRIES)
            return err_set(e, SG_ERR_INTERNAL, r, "hold the control group 'sandglass': %s",
                           strerror(-r));
    }
}

int cgroup_mkdir(int top, const char *path)
{
    char above[CGROUP_PATH_MAX];
    char *end;
    int r = mkdirat(top, path, 0755) < 0 ? -errno : 0;

    snprintf(above, sizeof(above), "%s", path);
    end = strrchr(above, '/');
    if (r != -ENOENT || !end)
        return r == -EEXIST ? 0 : r;
    *end = '\0';
    r = cgroup_mkdir(top, above);
    if (r == 0 && mkdirat(top, path, 0755) < 0 && errno != EEXIST)
        r = -errno;
    return r;
}

int cgroup_rmdir(int parent_fd, const char *name)
{
    for (int tries = 0;; tries++) {
        if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY || tries == 200)
            return -errno;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

const struct cgroup_ops *cgroup_host(struct sg_error *e)
{
    static const struct cgroup_ops *found;
    struct cgroup_mount m;

    if (found)
        return found;
    if (cgroup_find_mount("memory", &m) == 0)
        found = &cgroup_v1;
    else if (cgroup_find_mount(NULL, &m) == 0)
        found = &cgroup_v2;
    else
        err_set(e, SG_ERR_UNSUPPORTED, -ENOSYS,
                "no control groups are mounted: mount cgroup2 on /sys/fs/cgroup");
    return found;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void cgroup_free(struct cgroup *c)
{
    for (int k = 0; k < CGROUP_TOPS_MAX; k++)
        close_p(&c->dir[k]);
    free(c);
}

int cgroup_open_group(struct cgroup *c, int top, int hierarchy, struct sg_error *e)
{
    int r = cgroup_mkdir(top, c->path);

    if (r == 0)
        c->dir[hierarchy] = openat(top, c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && c->dir[hierarchy] < 0)
        r = -errno;
    return r < 0 ? err_set(e, err_kind_of(-r), r, "make control group %s/sandglass/%s: %s",
                           c->ops->hierarchies[hierarchy], c->path, strerror(-r))
                 : 0;
}

int cgroup_create(struct cgroup_place *place, uint32_t slot, struct cgroup **ret,
                  struct sg_error *e)
{
    const struct cgroup_ops *ops = cgroup_host(e);
    int tops[CGROUP_TOPS_MAX], r = ops ? ops->tops(true, tops, e) : -ENOSYS;
    struct cgroup *c;

    if (r < 0)
        return r;
    c = NEW(struct cgroup, .ops = ops, .dir = {-1, -1, -1, -1, -1, -1});
    snprintf(c->path, sizeof(c->path), "%s/%u", cgroup_place_path(place), slot);
    for (int k = 0; k < ops->n_groups && r == 0; k++)
        r = cgroup_open_group(c, tops[k], k, e);
    if (r == 0 && ops->prepare)
        r = ops->prepare(c, e);
    if (r < 0)
        cgroup_free(c);
    else
        *ret = c;
    return r;
}

int cgroup_destroy(struct cgroup *c, struct sg_error *e)
{
    int tops[CGROUP_TOPS_MAX], known = c->ops->tops(true, tops, e), r = known;

    for (int k = 0; known == 0 && k < CGROUP_TOPS_MAX; k++) {
        int one = tops[k] < 0 ? 0 : cgroup_rmdir(tops[k], c->path);
        if (one < 0)
            r = err_set(e, SG_ERR_INTERNAL, one, "remove control group %s/sandglass/%s: %s",
                        c->ops->hierarchies[k], c->path, strerror(-one));
    }
    cgroup_free(c);
    return r;
}

int cgroup_open_members(struct cgroup *c, int *ret, struct sg_error *e)
{
    int fd = openat(c->dir[c->ops->pids], "cgroup.procs", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "open 'cgroup.procs' of a control group");
    *ret = fd;
    return 0;
}

int cgroup_not_limited(const struct cgroup *c, int r, struct sg_error *e)
{
    return err_set(e, SG_ERR_INTERNAL, r, "set limits of control group %s: %s", c->path,
                   strerror(-r));
}

void cgroup_stats(struct cgroup *c, struct cgroup_stats *ret)
{
    ret->oom_kills = cgroup_read_key(c->dir[0], c->ops->oom_file, "oom_kill");
    ret->pids_hits = cgroup_read_key(c->dir[c->ops->pids], "pids.events", "max");
}

void cgroup_memory(const struct cgroup_ops *ops, int dir, struct cgroup_usage *ret)
{
    uint64_t values[3];

    cgroup_read_keys(dir, "memory.stat", ARRAY_SIZE(values), ops->stat_keys, values);
    *ret = (struct cgroup_usage){.memory_bytes = cgroup_read_u64(dir, ops->usage_file),
                                 .memory_cache = values[0],
                                 .memory_reclaimable = values[1] + values[2]};
}

int cgroup_ask_freeze(struct cgroup *c, bool on, struct sg_error *e)
{
    int r = file_write(c->dir[c->ops->freezer], c->ops->freeze_file,
                       on ? c->ops->frozen_text : c->ops->thawed_text);

    return r < 0 ? err_set(e, err_kind_of(-r), r, "freeze control group %s: %s", c->path,
                           strerror(-r))
                 : 0;
}
