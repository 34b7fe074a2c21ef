/* VOLUME_IMPORT: a tar, from anybody, becomes files in a directory of the volume.
 *
 * They are made below a directory of another name (".import-..."), and are moved to their places when all of
 * them are there: a tar that is refused, or that ends early, leaves nothing. Nothing of the tar is
 * followed while it is unpacked: neither `..`, nor a link that an earlier entry made. What a symbolic
 * link says is a text, and is kept. Devices and pipes are refused; set-id bits are taken away. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/files/layer_file.h"
#include "inside/files/layer_stack_merge.h"
#include "inside/volume/volume.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "lib/tar/tar_in.h"
#include "lib/text/parse.h"

#define LEVELS_MAX   900 /* a tree that is deeper could not be counted: measure.c */
#define NAME_LEN_MAX 255
#define NOBODY       65534 /* who owns what has an id that no sandbox has */
#define BITS         01777
#define PARENTS      0755

struct unpack {
    struct volume_serving *serving;
    struct tar_reader tar;
    int top;                 /* what is unpacked goes here */
    char path[TAR_PATH_MAX]; /* of the entry */
    int fd;                  /* the file that is being written; -1 */
    uint32_t mode;
    uid_t uid;
    gid_t gid;
    struct timespec mtime;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* The name without "." and doubled slashes; "" is the directory itself. */
static int clean_name(const char *name, char ret[TAR_PATH_MAX], struct sg_error *e)
{
    size_t at = 0, levels = 0;

    if (name[0] == '/')
        return err_invalid(e, "'%.100s' in the archive is an absolute path", name);
    for (const char *p = name; *p;) {
        size_t len = strcspn(p, "/");

        if (len == 2 && memcmp(p, "..", 2) == 0)
            return err_invalid(e, "'%.100s' in the archive leads out of it", name);
        if (len > NAME_LEN_MAX || ++levels > LEVELS_MAX)
            return err_invalid(e, "'%.100s...' in the archive is too long a name, or too deep",
                               name);
        if (len > 0 && !(len == 1 && p[0] == '.')) {
            ret[at] = '/';
            at += at > 0;
            memcpy(ret + at, p, len);
            at += len;
        }
        p += len + (p[len] == '/');
    }
    ret[at] = '\0';
    return 0;
}

/* Below the top, and through no link. */
static int open_below(const struct unpack *u, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    int fd = sys_openat2(u->top, path[0] ? path : ".", &how);

    return fd < 0 ? -errno : fd;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int failed(const struct unpack *u, const char *path, int code, struct sg_error *e)
{
    char size[32];

    if (code == -EDQUOT)
        return err_set(e, SG_ERR_LIMIT, code, "'%.100s' does not fit: the volume may hold %s", path,
                       format_size(u->serving->q.max_bytes, size, sizeof(size)));
    if (code == -ELOOP || code == -ENOTDIR)
        return err_invalid(e, "'%.100s' in the archive leads through a link or a file", path);
    if (code == -EISDIR)
        return err_invalid(e, "'%.100s' in the archive takes the place of a directory", path);
    return err_set(e, SG_ERR_INTERNAL, code, "'%.100s': %s", path, strerror(-code));
}

static int make_dir(const struct unpack *u, int dir, const char *name, uint32_t mode)
{
    AUTO(close_p) int fd = -1;
    int r = volume_take_room(u->serving, 0);

    if (r < 0)
        return r;
    if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    fd = openat(dir, name, LAYER_DIR_FLAGS);
    if (fd < 0)
        return -errno;
    return fchown(fd, u->uid, u->gid) < 0 || fchmod(fd, mode & BITS) < 0 ? -errno : 0;
}

/* Opens a directory, and makes what is missing of its path, which is as before afterwards. */
static int open_dir(const struct unpack *u, char *path)
{
    int fd = open_below(u, path, O_PATH | O_DIRECTORY);
    char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (fd != -ENOENT || path[0] == '\0')
        return fd;
    if (slash)
        *slash = '\0';
    AUTO(close_p) int above = open_dir(u, slash ? path : path + strlen(path));
    int r = above < 0 ? above : make_dir(u, above, name, PARENTS);
    if (slash)
        *slash = '/';
    return r < 0 ? r : open_below(u, path, O_PATH | O_DIRECTORY);
}

static int open_parent(const struct unpack *u, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    char up[TAR_PATH_MAX];

    *ret_name = slash ? slash + 1 : path;
    snprintf(up, sizeof(up), "%.*s", (int)(slash ? slash - path : 0), path);
    return open_dir(u, up);
}

/* The last of several entries of a name counts. */
static int clear_place(int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

static int make_file(struct unpack *u, int dir, const char *name)
{
    u->fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return u->fd < 0 ? -errno : 0;
}

static int make_symlink(const struct unpack *u, int dir, const char *name, const char *target)
{
    const struct timespec times[2] = {u->mtime, u->mtime};

    if (symlinkat(target, dir, name) < 0 ||
        fchownat(dir, name, u->uid, u->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
        utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

static int make_hardlink(const struct unpack *u, int dir, const char *name, const char *target)
{
    const char *old;
    AUTO(close_p) int old_dir = open_parent(u, target, &old);

    if (old_dir < 0)
        return old_dir;
    return linkat(old_dir, old, dir, name, 0) < 0 ? -errno : 0;
}

static int make(struct unpack *u, const struct tar_entry *entry, const char *path,
                const char *target)
{
    const char *name;
    AUTO(close_p) int dir = open_parent(u, path, &name);
    int r;

    if (dir < 0)
        return dir;
    if (entry->type == TAR_DIR)
        return make_dir(u, dir, name, entry->mode);
    if (entry->type == TAR_HARDLINK && strcmp(path, target) == 0)
        return 0;
    r = clear_place(dir, name);
    if (r == 0)
        r = volume_take_room(u->serving, 0);
    if (r < 0)
        return r;
    return entry->type == TAR_FILE      ? make_file(u, dir, name)
           : entry->type == TAR_SYMLINK ? make_symlink(u, dir, name, entry->link)
                                        : make_hardlink(u, dir, name, target);
}

/* ---- entries --------------------------------------------------------------------------------- */

static uint32_t owner(uint64_t id)
{
    return id <= VOLUME_ID_MAX ? (uint32_t)id : NOBODY;
}

static int on_entry(void *arg, const struct tar_entry *entry, struct sg_error *e)
{
    struct unpack *u = arg;
    char *path = u->path, target[TAR_PATH_MAX] = "";
    int r = clean_name(entry->path, path, e);

    if (r == 0 && entry->type == TAR_HARDLINK)
        r = clean_name(entry->link, target, e);
    if (r < 0)
        return r;
    if (path[0] == '\0') /* the volume's own directory stays as it is */
        return entry->type == TAR_DIR
                   ? 0
                   : err_invalid(e, "'%.100s' in the archive is no name for a file", entry->path);
    u->mode = entry->mode & BITS;
    u->uid = owner(entry->uid);
    u->gid = owner(entry->gid);
    u->mtime = (struct timespec){.tv_sec = entry->mtime};
    r = make(u, entry, path, target);
    if (r == -ENOENT && entry->type == TAR_HARDLINK)
        return err_invalid(e,
                           "'%.100s' in the archive is a link to '%.100s', which is not before it",
                           path, target);
    return r < 0 ? failed(u, path, r, e) : 0;
}

static int on_data(void *arg, const void *p, size_t len, struct sg_error *e)
{
    struct unpack *u = arg;
    int r = volume_take_room(u->serving, len);

    if (r == 0)
        r = fd_write_all(u->fd, p, len);
    return r < 0 ? failed(u, u->path, r, e) : 0;
}

static int on_entry_end(void *arg, struct sg_error *e)
{
    struct unpack *u = arg;
    const struct timespec times[2] = {u->mtime, u->mtime};
    int r = u->fd >= 0 && (fchown(u->fd, u->uid, u->gid) < 0 || fchmod(u->fd, u->mode) < 0 ||
                           futimens(u->fd, times) < 0)
                ? -errno
                : 0;

    close_p(&u->fd);
    u->fd = -1;
    return r < 0 ? failed(u, u->path, r, e) : 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct feeding {
    struct unpack *unpack;
    struct sg_error *e;
};

static int feed(void *arg, const char *data, size_t len)
{
    const struct feeding *f = arg;

    return tar_feed(&f->unpack->tar, data, len, f->e);
}

static int take_archive(struct unpack *u, struct sg_error *e)
{
    static const struct tar_handlers handlers = {on_entry, on_data, on_entry_end};
    AUTO(free_p) char *data = xcalloc(1, VOLUME_RECORD_MAX);
    struct feeding f = {.unpack = u, .e = e};

    tar_init(&u->tar, &handlers, u);
    int r = volume_take_body(u->serving, data, feed, &f);
    if (r == 0)
        r = tar_feed(&u->tar, NULL, 0, e);
    if (r == 0)
        r = tar_end(&u->tar, e);
    /* Whoever wrote it may have failed between two entries, or before the first. */
    if (r == 0 && u->tar.at != TAR_AT_END)
        r = err_invalid(e, "the archive is cut off: the blocks at its end are missing");
    tar_done(&u->tar);
    close_p(&u->fd);
    return r;
}

/* First all names are looked at: so one that is taken is found before anything is moved. */
struct placing {
    int top, dest;
    size_t moved;
};

static int is_free(struct placing *p, const char *name)
{
    struct stat st;

    if (fstatat(p->dest, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return errno == ENOENT ? 0 : -errno;
}

static int move_one(struct placing *p, const char *name)
{
    int r = layer_rename(p->top, name, p->dest, name);

    p->moved += r == 0;
    return r;
}

static int each_name(struct placing *p, int (*fn)(struct placing *p, const char *name),
                     struct sg_error *e)
{
    AUTO(layer_closedir_p) DIR *d = layer_list(p->top);
    const char *name = "";
    int r = 0, got = 0;

    while (r == 0 && (got = layer_next(d, &name)) > 0)
        r = fn(p, name);
    r = r < 0 ? r : got;
    if (r < 0)
        err_set(e, SG_ERR_GONE, r, r == -EEXIST ? "'%.100s' is there already" : "'%.100s': %s",
                name, strerror(-r));
    return r;
}

/* Says what is there after an error. */
static void explain(struct volume_serving *s, const struct sg_error *e, bool some, int left,
                    const char *aside)
{
    char rest[80] = "; nothing of it was kept";

    if (left < 0)
        snprintf(rest, sizeof(rest), "; what was unpacked until then is in '%s'", aside);
    else if (some)
        snprintf(rest, sizeof(rest), "; a part of the archive is in its place");
    snprintf(s->why, sizeof(s->why), "%.230s%s", e->message, rest);
}

int volume_do_import(struct volume_serving *s)
{
    AUTO(close_p) int dest = volume_open(s->root, s->path, O_RDONLY | O_DIRECTORY);
    AUTO(free_p) struct unpack *u = xcalloc(1, sizeof(*u));
    struct sg_error e = {0};
    uint64_t number = 0;
    char aside[40];

    if (dest < 0)
        return dest;
    getrandom(&number, sizeof(number), 0);
    snprintf(aside, sizeof(aside), ".import-%016llx", (unsigned long long)number);
    if (mkdirat(dest, aside, 0700) < 0)
        return -errno;
    *u = (struct unpack){.serving = s, .fd = -1, .top = openat(dest, aside, LAYER_DIR_FLAGS)};
    int r = u->top < 0 ? -errno : take_archive(u, &e);
    struct placing p = {.top = u->top, .dest = dest};
    if (r == 0)
        r = each_name(&p, is_free, &e);
    if (r == 0)
        r = each_name(&p, move_one, &e);
    close_p(&u->top);
    volume_size_unknown(s);
    int left = layer_remove_tree(dest, aside, NULL);
    if (r < 0 && e.message[0])
        explain(s, &e, p.moved > 0, left, aside);
    return r;
}
