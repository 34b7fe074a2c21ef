/* Removes a layer of any depth: a directory that is not empty is moved up to the top, so that in
 * the end all directories are one level deep. Where a quota is full only removing is possible: then the
 * way leads down, as far as there are descriptors for it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/btrfs.h>

#include "inside/files/layer_file.h"
#include "inside/files/layer_stack_merge.h"
#include "inside/files/layer_stack_origin.h"

#define DEPTH_MAX 200

struct removal {
    int top;
    int kept; /* the kept origins; -1: none */
    unsigned long moved;
    const char *dir;
    struct sg_error *e;
};

static int fail(struct removal *w, const char *what, const char *name)
{
    return err_errno(w->e, "%s '%.64s' of '%s'", what, name, w->dir);
}

/* Moves a kept origin to its entry and empties it: only its number is of use. */
static int put_by(struct removal *w, int dir, const char *name, const struct stat *st)
{
    char number[ORIGIN_NAME];
    AUTO(close_p) int fd = -1;

    origin_name(st->st_ino, number);
    if (renameat(dir, name, w->kept, number) < 0 ||
        (fd = openat(w->kept, number, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return fail(w, "keep", name);
    return 0;
}

static int remove_file(struct removal *w, int dir, const char *name, const struct stat *st)
{
    if (S_ISREG(st->st_mode) && st->st_nlink == 1 && origin_is_kept(w->kept, st->st_ino))
        return put_by(w, dir, name, st);
    return unlinkat(dir, name, 0) < 0 ? fail(w, "remove", name) : 0;
}

static int move_to_top(struct removal *w, int dir, const char *name)
{
    char number[24];
    int r;

    do {
        snprintf(number, sizeof(number), "%lu", w->moved++);
        r = layer_rename(dir, name, w->top, number);
    } while (r == -EEXIST);
    return r < 0 ? fail(w, "move", name) : 0;
}

static int empty_dir(struct removal *w, int dir, unsigned depth);

static int remove_dir(struct removal *w, int dir, const char *name, unsigned depth)
{
    AUTO(close_p) int in = -1;
    int r;

    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return fail(w, "remove", name);
    r = depth > 0 ? move_to_top(w, dir, name) : -EDQUOT;
    if (r != -EDQUOT || depth == DEPTH_MAX)
        return r;
    in = openat(dir, name, LAYER_DIR_FLAGS);
    if (in < 0)
        return fail(w, "open", name);
    r = empty_dir(w, in, depth + 1);
    return r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 ? fail(w, "remove", name) : r;
}

/* While the top is listed, directories are moved there; the list may or may not show them. */
static int empty_dir(struct removal *w, int dir, unsigned depth)
{
    AUTO(layer_closedir_p) DIR *d = layer_list(dir);
    const char *name;
    struct stat st;
    int r = 0, got = 0;

    while (r == 0 && (got = layer_next(d, &name)) > 0) {
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return fail(w, "stat", name);
        r = S_ISDIR(st.st_mode) ? remove_dir(w, dir, name, depth) : remove_file(w, dir, name, &st);
    }
    return r == 0 && got < 0 ? fail(w, "list", "a directory") : r;
}

/* kept: see put_by. */
static int remove_tree(int at, const char *dir, int kept, struct sg_error *e)
{
    AUTO(close_p) int top = openat(at, dir, LAYER_DIR_FLAGS);
    struct removal w = {.top = top, .kept = kept, .dir = dir, .e = e};
    int r = 0;

    if (top < 0)
        return errno == ENOENT ? 0 : err_errno(e, "open '%s'", dir);
    while (r == 0 && unlinkat(at, dir, AT_REMOVEDIR) < 0) {
        if (errno != ENOTEMPTY)
            return fail(&w, "remove", "all");
        r = empty_dir(&w, top, 0);
    }
    return r;
}

/* A whole scratch of the scratch store is a subvolume, which the kernel removes by itself
 * (warden/layers/scratch_store.h). */
static bool remove_subvolume(int at, const char *dir)
{
    AUTO(close_p) int parent = openat(at, ".", LAYER_DIR_FLAGS);
    struct btrfs_ioctl_vol_args args = {0};

    snprintf(args.name, sizeof(args.name), "%s", dir);
    return ioctl(parent, BTRFS_IOC_SNAP_DESTROY, &args) == 0;
}

int layer_stack_remove(int scratch, const char *dir, struct sg_error *e)
{
    AUTO(close_p) int kept = -1;

    if (remove_subvolume(scratch, dir))
        return 0;
    origin_open_kept(scratch, &kept);
    return remove_tree(scratch, dir, kept, e);
}

int layer_remove_tree(int at, const char *dir, struct sg_error *e)
{
    return remove_tree(at, dir, -1, e);
}
