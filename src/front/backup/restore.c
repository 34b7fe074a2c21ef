/* Restores a backup, or only checks it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "front/backup/manifest.h"
#include "front/backup/place.h"
#include "lib/base/fds.h"

struct reading {
    int from, to; /* to: -1 to check only */
    const char *source;
    struct manifest m;
    struct map same;
    const struct backup_watch *watch;
    struct sg_error *e;
};

static void on_bytes(void *arg, uint64_t bytes)
{
    struct reading *r = arg;

    r->watch->progress(r->watch->arg, r->to < 0 ? "checked" : "restored", bytes);
}

/* Makes the directory of a part, and, for a volume, that of its tenant above it. */
static int make_part(const struct reading *r, const char *path)
{
    char above[sizeof(((struct part *)0)->path)], *slash;

    snprintf(above, sizeof(above), "%s", path);
    slash = strrchr(above, '/');
    if (slash)
        *slash = '\0';
    if (slash && mkdirat(r->to, above, 0700) < 0 && errno != EEXIST)
        return err_errno(r->e, "make the directory '%s'", above);
    return place_make(r->to, path, 0700, r->e);
}

static int read_part(struct reading *r, const struct part *p)
{
    AUTO(close_p) int from = place_open(r->from, p->path, r->e);
    AUTO(close_p) int to = from >= 0 && r->to >= 0 ? make_part(r, p->path) : -1;
    struct tree_pass pass = {.from = from,
                             .to = to,
                             .same = &r->same,
                             .old_sums = r->m.old_sums,
                             .progress = on_bytes,
                             .arg = r};
    struct tree_sum sum;

    if (from < 0 || (r->to >= 0 && to < 0))
        return -EIO;
    int code = tree_pass(&pass, &sum, r->e);
    if (code < 0)
        return err_wrap(r->e, code, "'%s/%s'", r->source, p->path);
    if (strcmp(sum.sha256, p->sum.sha256) != 0)
        return err_set(r->e, SG_ERR_INVALID, -EBADMSG,
                       "'%.200s/%s' does not match its checksum: it is damaged, or was copied "
                       "without owners, attributes or links",
                       r->source, p->path);
    return 0;
}

static int read_parts(struct reading *r)
{
    static const char *const above[] = {"layers", "worlds", PART_VOLUMES};
    int code = 0;

    for (size_t i = 0; r->to >= 0 && code >= 0 && i < ARRAY_SIZE(above); i++) {
        AUTO(close_p) int dir = place_make(r->to, above[i], 0700, r->e);

        code = dir;
    }
    for (size_t i = 0; code >= 0 && i < r->m.n; i++)
        code = read_part(r, &r->m.parts[i]);
    tree_links_free(&r->same);
    return code < 0 ? code : 0;
}

static int open_backup(struct reading *r, const char *source)
{
    r->source = source;
    r->from = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->from < 0)
        return err_errno(r->e, "open the backup '%.200s'", source);
    return manifest_read(r->from, source, &r->m, r->e);
}

int backup_check(const char *source, const struct backup_watch *watch, struct backup_report *ret,
                 struct sg_error *e)
{
    struct reading r = {.from = -1, .to = -1, .watch = watch, .e = e};
    int code = open_backup(&r, source);

    fds_raise_limit(); /* a tree may be deep */
    if (code == 0)
        code = read_parts(&r);
    *ret = r.m.report;
    manifest_done(&r.m);
    close_p(&r.from);
    return code;
}

/* ---- the destination ------------------------------------------------------------------------- */

/* Makes the directory and those above it. */
static int make_all(const char *path, struct sg_error *e)
{
    AUTO(free_p) char *copy = xstrdup(path);

    for (char *p = copy + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                return err_errno(e, "make '%.200s'", copy);
            *p = '/';
        }
    if (mkdir(copy, 0711) < 0 && errno != EEXIST)
        return err_errno(e, "make '%.200s'", copy);
    return 0;
}

static bool has_database(int state)
{
    struct stat st;

    return fstatat(state, "front/server.db", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0;
}

/* The database comes last: until it is in place, a server that starts says that it is gone. */
static const char *const parts[] = {"worlds", PART_VOLUMES, "layers", "guard", "front"};

/* What is a file system of its own cannot be renamed: this is found before anything is copied. */
static int check_places(int state, const char *path, struct sg_error *e)
{
    struct stat st, own;

    if (fstat(state, &own) < 0)
        return err_errno(e, "stat '%.200s'", path);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (fstatat(state, parts[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev != own.st_dev)
            return err_set(
                e, SG_ERR_INVALID, -EXDEV,
                "'%.200s/%s' is a file system of its own, which a restore cannot replace: "
                "restore to another --state, and move its '%s' to that file system",
                path, parts[i], parts[i]);
    return 0;
}

static int open_state(const char *path, bool replace, int *ret_lock, struct sg_error *e)
{
    int r = make_all(path, e);
    AUTO(close_p) int dir = r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(close_p) int lock = -1;

    if (r < 0)
        return r;
    if (dir < 0)
        return err_errno(e, "open the state directory '%.200s'", path);
    lock = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return err_errno(e, "open '%.200s/lock'", path);
    if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, SG_ERR_LIMIT, -EBUSY,
                       "a server runs in '%.200s': stop it first, or restore to another --state",
                       path);
    if (!replace && has_database(dir))
        return err_set(e, SG_ERR_INVALID, -EEXIST,
                       "there is a server's database in '%.200s': give --replace to move it aside",
                       path);
    r = check_places(dir, path, e);
    if (r < 0)
        return r;
    *ret_lock = steal_fd(&lock);
    return steal_fd(&dir);
}

static int move_aside(int state, const char *path, char *ret, size_t cap, struct sg_error *e)
{
    AUTO(close_p) int aside = -1;
    char name[ID_LEN + 16];
    size_t moved = 0;

    place_name("before", name);
    if (mkdirat(state, name, 0700) < 0)
        return err_errno(e, "make '%.200s/%s'", path, name);
    aside = place_open(state, name, e);
    if (aside < 0)
        return aside;
    for (size_t i = ARRAY_SIZE(parts); i-- > 0;) {
        if (renameat(state, parts[i], aside, parts[i]) == 0)
            moved++;
        else if (errno != ENOENT)
            return err_errno(e, "move '%.200s/%s' aside", path, parts[i]);
    }
    if (moved == 0)
        unlinkat(state, name, AT_REMOVEDIR);
    snprintf(ret, cap, "%s%s%s", moved ? path : "", moved ? "/" : "", moved ? name : "");
    return 0;
}

static int put_in_place(int state, int from, const char *path, struct sg_error *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (renameat(from, parts[i], state, parts[i]) < 0)
            return err_errno(e, "put '%s' into '%.200s'", parts[i], path);
    return fsync(state) < 0 ? err_errno(e, "write '%.200s' to disk", path) : 0;
}

/* Notes in the restored database that it is a copy, for the server that starts with it. */
static int mark_restored(int to, struct sg_error *e)
{
    AUTO(close_p) int front = place_open(to, "front", e);
    struct store *copy = NULL;
    struct store_facts facts;
    char path[64];

    if (front < 0)
        return front;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", front);
    int r = store_copied_open(path, &copy, &facts, e);
    if (r == 0)
        r = store_copied_restored(copy, e);
    store_close(copy);
    return r;
}

static int restore_into(struct reading *r, int state, const char *path)
{
    char name[ID_LEN + 16];

    place_name("new", name);
    int code = r->to = place_make(state, name, 0700, r->e);
    if (code >= 0)
        code = read_parts(r);
    if (code >= 0)
        code = mark_restored(r->to, r->e);
    if (code >= 0 && syncfs(r->to) < 0)
        code = err_errno(r->e, "write '%.200s' to disk", path);
    if (code >= 0)
        code = move_aside(state, path, r->m.report.aside, sizeof(r->m.report.aside), r->e);
    if (code >= 0)
        code = put_in_place(state, r->to, path, r->e);
    close_p(&r->to);
    tree_drop(state, name);
    return code < 0 ? code : 0;
}

int backup_restore(const char *source, const char *state, bool replace,
                   const struct backup_watch *watch, struct backup_report *ret, struct sg_error *e)
{
    struct reading r = {.from = -1, .to = -1, .watch = watch, .e = e};
    AUTO(close_p) int lock = -1, dir = -1;
    int code = open_backup(&r, source);

    fds_raise_limit(); /* a tree may be deep */
    umask(0);
    if (code == 0)
        code = dir = open_state(state, replace, &lock, e);
    if (code >= 0)
        code = restore_into(&r, dir, state);
    *ret = r.m.report;
    manifest_done(&r.m);
    close_p(&r.from);
    return code < 0 ? code : 0;
}
