#include "warden/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/base/hash.h"
#include "lib/base/ids.h"
#include "lib/log/log.h"
#include "warden/host/idmap.h"
#include "warden/layers/mounts.h"

/* mkdir -p, for the few levels of a path that the administrator gave. */
static int make_parents(const char *path, struct sg_error *e)
{
    char part[512];

    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return err_errno(e, "make '%s' for the state directory", part);
    }
    return 0;
}

/* Whoever can write to this directory could plant a link in it. */
static int check_owner(int fd, const char *path, struct sg_error *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_errno(e, "stat '%s'", path);
    if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "the state directory '%s' must belong to root and be writable by root "
                       "alone: chown root and chmod go-w it",
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
    snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
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
        return err_errno(e, "set the owner of '%s' in the state directory", name);
    return steal_fd(&fd);
}

/* Whether a directory on this file system can be mounted with mapped ids, as a layer of a
 * sandbox. */
static bool can_map_ids(int dir)
{
    struct idmap_one map = {.host_uid = 65534, .host_gid = 65534};
    AUTO(close_p) int userns = -1, mapped = -1;

    return idmap_open(&map, &userns, NULL) == 0 &&
           mounts_map_dir(dir, "", userns, &mapped, NULL) == 0;
}

/* ---- the database ---------------------------------------------------------------------------- */

#define DATABASE       "front/server.db"
#define USED           "used"
#define HEADER_LEN     100
#define APPLICATION_AT 68 /* in SQLite's header: 4 bytes, set with the first tables */

static bool has_database(const struct state *s)
{
    AUTO(close_p)
    int fd = openat(s->dir, DATABASE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unsigned char head[HEADER_LEN];
    static const unsigned char none[4];

    if (fd < 0)
        return errno != ENOENT; /* the front complains of a file that cannot be opened */
    ssize_t n = read(fd, head, sizeof(head));
    return n == sizeof(head) && memcmp(head + APPLICATION_AT, none, sizeof(none)) != 0;
}

static bool has_snapshots(const struct state *s)
{
    int fd = openat(s->snapshots, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    bool found = false;

    while (d && !found && (entry = readdir(d)) != NULL)
        found = entry->d_name[0] != '.';
    if (d)
        closedir(d);
    return found;
}

static int move_aside(struct state *s, struct sg_error *e)
{
    static const char *const names[] = {"front", "layers", "worlds", "volumes"};
    AUTO(close_p) int aside = -1;
    char id[ID_LEN + 1], name[ID_LEN + 8];
    int r;

    id_random(id);
    snprintf(name, sizeof(name), "before-%s", id);
    aside = open_sub(s->dir, name, 0, 0, e);
    if (aside < 0)
        return aside;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (renameat(s->dir, names[i], aside, names[i]) < 0 && errno != ENOENT)
            return err_errno(e, "move '%s/%s' aside", s->path, names[i]);
    close_p(&s->snapshots);
    close_p(&s->worlds);
    close_p(&s->volumes);
    r = s->snapshots = open_sub(s->dir, "layers", 0, 0, e);
    if (r >= 0)
        r = s->worlds = open_sub(s->dir, "worlds", 0, 0, e);
    if (r >= 0)
        r = s->volumes = open_sub(s->dir, "volumes", 0, 0, e);
    return r < 0 ? r : 0;
}

int state_check_database(struct state *s, bool anew, struct sg_error *e)
{
    if (has_database(s))
        return 0;
    bool snapshots = has_snapshots(s);
    if (!snapshots && faccessat(s->dir, USED, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (anew)
        return move_aside(s, e);
    return err_set(e, SG_ERR_UNSUPPORTED, -ENODATA,
                   "the database '%s/" DATABASE
                   "' is missing, with all keys and tenants%s: restore a backup with 'sandglass "
                   "restore', or start afresh with 'sandglass serve --new'",
                   s->path, snapshots ? ", but there are snapshots" : "");
}

void state_note_used(struct state *s)
{
    if (s->used)
        return;
    int fd = openat(s->dir, USED, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    close_p(&fd);
    s->used = true;
}

/* ---- owners ---------------------------------------------------------------------------------- */

#define GIVE_DEPTH 2 /* guard/audit/TENANT */

/* Gives away all that belongs to the user `old` below a directory, and nothing else: that user may
 * have put somebody else's file there. */
static void give_all(int dir, uid_t old, uint32_t uid, uint32_t gid, unsigned depth)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    struct stat st;

    while (d && (entry = readdir(d)) != NULL) {
        if (entry->d_name[0] == '.' || fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            st.st_uid != old)
            continue;
        if (S_ISDIR(st.st_mode) && depth > 0) {
            AUTO(close_p)
            int sub = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (sub >= 0 && fchown(sub, uid, gid) == 0)
                give_all(sub, old, uid, gid, depth - 1);
        } else if (S_ISREG(st.st_mode) && st.st_nlink == 1 &&
                   fchownat(dir, entry->d_name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0) {
            log_line(LEVEL_WARN, "'%s' cannot be given to user %u: %s", entry->d_name, uid,
                     strerror(errno));
        }
    }
    if (d)
        closedir(d);
    else
        close_p(&fd);
}

int state_give(struct state *s, const char *name, uint32_t uid, uint32_t gid, struct sg_error *e)
{
    struct stat before;
    bool there = fstatat(s->dir, name, &before, AT_SYMLINK_NOFOLLOW) == 0;
    AUTO(close_p) int fd = open_sub(s->dir, name, uid, gid, e);

    if (fd >= 0 && there && before.st_uid != uid)
        give_all(fd, before.st_uid, uid, gid, GIVE_DEPTH);
    return fd < 0 ? fd : 0;
}

/* The name is short, and has no character that anybody else chose. */
static void name_server(struct state *s)
{
    struct stat st = {0};

    fstat(s->dir, &st);
    uint64_t parts[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    snprintf(s->name, sizeof(s->name), "s%016llx",
             (unsigned long long)hash_stable(0, parts, sizeof(parts)));
}

int state_open(struct state *s, const char *path, struct sg_error *e)
{
    struct state t = STATE_NONE;
    int r;

    snprintf(t.path, sizeof(t.path), "%s", path);
    r = t.dir = open_top(path, e);
    if (r >= 0)
        r = t.lock = take_lock(t.dir, path, e);
    if (r >= 0)
        r = t.snapshots = open_sub(t.dir, "layers", 0, 0, e);
    if (r >= 0)
        r = t.worlds = open_sub(t.dir, "worlds", 0, 0, e);
    if (r >= 0)
        r = t.volumes = open_sub(t.dir, "volumes", 0, 0, e);
    if (r < 0) {
        state_close(&t);
        return r;
    }
    t.maps_ids = can_map_ids(t.snapshots);
    name_server(&t);
    *s = t;
    return 0;
}

void state_close(struct state *s)
{
    close_p(&s->snapshots);
    close_p(&s->worlds);
    close_p(&s->volumes);
    close_p(&s->lock);
    close_p(&s->dir);
    *s = (struct state)STATE_NONE;
}
