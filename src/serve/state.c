#include "serve/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/ids.h"
#include "warden/idmap.h"
#include "warden/layers.h"

/* mkdir -p for the few levels of a path that the administrator gave. */
static int make_parents(const char *path, struct sg_error *e)
{
    char part[512];

    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return err_errno(e, "make '%s' for the state directory", part);
    }
    return 0;
}

/* Whoever can write there could put a link in our way. */
static int check_owner(int fd, const char *path, struct sg_error *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_errno(e, "look at '%s'", path);
    if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "the state directory '%s' must belong to root, and to be written by nobody "
                       "else: chown root and chmod go-w it",
                       path);
    return 0;
}

static int open_top(const char *path, struct sg_error *e)
{
    AUTO(close_p) int fd = -1;
    int r = make_parents(path, e);

    if (r < 0)
        return r;
    if (mkdir(path, 0711) < 0 && errno != EEXIST)
        return err_errno(e, "make the state directory '%s'", path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "open the state directory '%s'", path);
    r = check_owner(fd, path, e);
    if (r < 0)
        return r;
    if (fchmod(fd, 0711) < 0)
        return err_errno(e, "set the mode of '%s'", path);
    return steal_fd(&fd);
}

static int take_lock(int dir, const char *path, struct sg_error *e)
{
    AUTO(close_p) int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    AUTO(free_p) char *owner = NULL;
    char pid[24];
    int r;

    if (fd < 0)
        return err_errno(e, "open '%s/lock'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        r = fd_read_all(fd, 32, &owner, NULL);
        return err_set(
            e, SG_ERR_LIMIT, -EBUSY,
            "'%s' is in use by another server (pid %.*s): end it, or use another --state", path,
            r < 0 ? 1 : (int)strspn(owner, "0123456789"), r < 0 ? "?" : owner);
    }
    snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, strlen(pid), 0) < 0)
        return err_errno(e, "write '%s/lock'", path);
    return steal_fd(&fd);
}

static int open_sub(int dir, const char *name, uint32_t uid, uint32_t gid, struct sg_error *e)
{
    AUTO(close_p) int fd = -1;

    if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "make '%s' of the state directory", name);
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, uid, gid) < 0 || fchmod(fd, 0700) < 0)
        return err_errno(e, "own '%s' of the state directory", name);
    return steal_fd(&fd);
}

/* Removing may take long: here it only gets a name that layers_load removes. */
static int empty_work(struct state *s, struct sg_error *e)
{
    char id[ID_LEN + 1], old[ID_LEN + 8];

    id_random(id);
    snprintf(old, sizeof old, "old-%s", id);
    if (renameat(s->dir, "work", s->layers, old) < 0 && errno != ENOENT)
        return err_errno(e, "empty '%s/work'", s->path);
    return 0;
}

/* Whether a directory there could be a layer of a sandbox. */
static bool can_map_ids(int dir)
{
    struct idmap_one map = {.host_uid = 65534, .host_gid = 65534};
    AUTO(close_p) int userns = -1, mapped = -1;

    return idmap_open(&map, &userns, NULL) == 0 &&
           layers_map_dir(dir, "", userns, &mapped, NULL) == 0;
}

int state_give(struct state *s, const char *name, uint32_t uid, uint32_t gid, struct sg_error *e)
{
    AUTO(close_p) int fd = open_sub(s->dir, name, uid, gid, e);

    return fd < 0 ? fd : 0;
}

/* Short, and of no character that anybody else chose. */
static void name_server(struct state *s)
{
    uint64_t hash = 14695981039346656037ull;
    struct stat st = {0};

    fstat(s->dir, &st);
    uint64_t parts[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    for (size_t i = 0; i < sizeof parts; i++)
        hash = (hash ^ ((const uint8_t *)parts)[i]) * 1099511628211ull;
    snprintf(s->name, sizeof s->name, "s%016llx", (unsigned long long)hash);
}

int state_open(struct state *s, const char *path, struct sg_error *e)
{
    struct state t = STATE_NONE;
    int r;

    snprintf(t.path, sizeof t.path, "%s", path);
    r = t.dir = open_top(path, e);
    if (r >= 0)
        r = t.lock = take_lock(t.dir, path, e);
    if (r >= 0)
        r = t.layers = open_sub(t.dir, "layers", 0, 0, e);
    if (r >= 0)
        r = empty_work(&t, e);
    if (r >= 0)
        r = t.work = open_sub(t.dir, "work", 0, 0, e);
    if (r < 0) {
        state_close(&t);
        return r;
    }
    t.maps_ids = can_map_ids(t.layers);
    name_server(&t);
    *s = t;
    return 0;
}

void state_close(struct state *s)
{
    close_p(&s->work);
    close_p(&s->layers);
    close_p(&s->lock);
    close_p(&s->dir);
    *s = (struct state)STATE_NONE;
}
