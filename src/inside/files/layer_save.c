#include "inside/files/layer_save.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "lib/base/base.h"
#include "inside/files/layer_file.h"
#include "inside/files/layer_stack_merge.h"

#define DEPTH_MAX 2048 /* nested directories: as deep as a path can name */
#define IDS       65536u
#define NOBODY    65534u
#define DIR_BYTES 4096u

struct work {
    const struct layer_save *save;
    int links; /* a directory: one link, by inode, to each copied file with several names */
    uint64_t bytes;
    struct sg_error *e;
};

/* An error here may be the sandbox's doing: its programs chose names, depths and attributes. */
static int fail(struct work *w, const char *what, const char *name)
{
    return err_in_the_way(w->e, err_errno(w->e, "%s '%.64s' of the snapshot", what, name));
}

/* For a call that returns its error. */
static int fail_with(struct work *w, int r, const char *what, const char *name)
{
    errno = -r;
    return fail(w, what, name);
}

/* A directory takes up as much as a small file. */
static int spend(struct work *w, uint64_t bytes)
{
    uint64_t *left = w->save->left;

    if (left && bytes > *left)
        return err_set(w->e, SG_ERR_GONE, -EBUSY,
                       "the snapshot would be larger than the sandbox's disk: it has files that "
                       "share their contents (cp --reflink), or very many small ones; keep the "
                       "memory, or copy what you need to another sandbox");
    if (left)
        *left -= bytes;
    return 0;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* The id that a file has in a layer. `from_upper`: id is a host id of a running sandbox. */
static uint32_t layer_id(const struct work *w, uint32_t id, bool from_upper)
{
    if (from_upper)
        id -= w->save->first_id;
    return id < IDS ? id : NOBODY;
}

/* The owner comes first: changing it clears bits of the mode. */
static int copy_attributes(struct work *w, const struct stat *st, bool from_upper, int from, int to,
                           const char *name)
{
    mode_t mode = st->st_mode & (S_ISDIR(st->st_mode) ? 07777 : 01777);
    struct timespec times[2] = {st->st_atim, st->st_mtim};
    int r = layer_copy_xattrs(from, to, false);

    if (r == -EOVERFLOW || r == -E2BIG)
        return err_set(w->e, SG_ERR_GONE, -EBUSY,
                       "the attributes of '%.64s' are too large for a snapshot: remove some "
                       "(setfattr -x), or keep the memory",
                       name);
    if (r < 0)
        return fail_with(w, r, "copy the attributes of", name);
    if (fchown(to, layer_id(w, st->st_uid, from_upper), layer_id(w, st->st_gid, from_upper)) < 0 ||
        fchmod(to, mode) < 0 || futimens(to, times) < 0)
        return fail(w, "set owner, mode and time of", name);
    return 0;
}

/* ---- files and links ------------------------------------------------------------------------- */

static int copy_file(struct work *w, int from, const char *name, bool from_upper, int to)
{
    AUTO(close_p) int in = layer_open_file(from, name);
    AUTO(close_p) int out = -1;
    struct stat st;
    int r;

    if (in < 0 || fstat(in, &st) < 0)
        return fail(w, "open", name);
    if (!S_ISREG(st.st_mode))
        return err_set(w->e, SG_ERR_GONE, -EBUSY, "'%.64s' changed while it was copied: try again",
                       name);
    r = from_upper ? spend(w, (uint64_t)st.st_blocks * 512) : 0;
    if (r < 0)
        return r;
    out = layer_make_file(to, name);
    if (out < 0)
        return fail(w, "make", name);
    r = layer_copy_data(in, out, st.st_size);
    return r < 0 ? fail_with(w, r, "copy", name)
                 : copy_attributes(w, &st, from_upper, in, out, name);
}

/* Copies a file with several names once, and links the other names to the copy. */
static int copy_linked_file(struct work *w, int from, const char *name, const struct stat *st,
                            int to)
{
    char inode[24];
    int r;

    snprintf(inode, sizeof(inode), "%llu", (unsigned long long)st->st_ino);
    if (linkat(w->links, inode, to, name, 0) == 0)
        return 0;
    if (errno != ENOENT && errno != EMLINK)
        return fail(w, "link", name);
    r = copy_file(w, from, name, true, to);
    if (r == 0 && linkat(to, name, w->links, inode, 0) < 0 && errno != EEXIST)
        return fail(w, "link", name);
    return r;
}

static int copy_symlink(struct work *w, int from, const char *name, const struct stat *st,
                        bool from_upper, int to)
{
    struct timespec times[2] = {st->st_atim, st->st_mtim};
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

    if (n < 0)
        return fail(w, "read the link", name);
    target[n] = '\0';
    if (symlinkat(target, to, name) < 0 ||
        fchownat(to, name, layer_id(w, st->st_uid, from_upper), layer_id(w, st->st_gid, from_upper),
                 AT_SYMLINK_NOFOLLOW) < 0 ||
        utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(w, "make the link", name);
    return 0;
}

static int make_fifo(struct work *w, const char *name, const struct stat *st, bool from_upper,
                     int to)
{
    if (mkfifoat(to, name, 0600) < 0 ||
        fchownat(to, name, layer_id(w, st->st_uid, from_upper), layer_id(w, st->st_gid, from_upper),
                 AT_SYMLINK_NOFOLLOW) < 0 ||
        fchmodat(to, name, st->st_mode & 01777, 0) < 0)
        return fail(w, "make the pipe", name);
    return 0;
}

static int make_whiteout(struct work *w, const char *name, int to)
{
    int r = layer_expect_whiteouts(to);

    if (r < 0)
        return fail_with(w, r, "prepare for a whiteout for", name);
    return mknodat(to, name, S_IFCHR, makedev(0, 0)) < 0 ? fail(w, "make a whiteout for", name) : 0;
}

/* Copies anything but a directory. Sockets and devices are left out. */
static int copy_other(struct work *w, int from, const char *name, const struct stat *st,
                      bool from_upper, int to)
{
    w->bytes += (uint64_t)st->st_blocks * 512;
    if (S_ISREG(st->st_mode))
        return from_upper && st->st_nlink > 1 ? copy_linked_file(w, from, name, st, to)
                                              : copy_file(w, from, name, from_upper, to);
    if (S_ISLNK(st->st_mode))
        return copy_symlink(w, from, name, st, from_upper, to);
    if (S_ISFIFO(st->st_mode))
        return make_fifo(w, name, st, from_upper, to);
    return layer_is_whiteout(st) ? make_whiteout(w, name, to) : 0;
}

/* ---- directories ----------------------------------------------------------------------------- */

static int make_dir(struct work *w, int to, const char *name, bool opaque, int *ret)
{
    int fd;

    if (mkdirat(to, name, 0700) < 0 || (fd = openat(to, name, LAYER_DIR_FLAGS)) < 0)
        return fail(w, "make", name);
    if (opaque && layer_set_mark(fd, MARK_OPAQUE, "y", 1) < 0) {
        int r = fail(w, "make an opaque", name);
        close(fd);
        return r;
    }
    *ret = fd;
    return 0;
}

static int open_dir(struct work *w, int from, const char *name, struct stat *ret_st, int *ret)
{
    AUTO(close_p) int fd = openat(from, name, LAYER_DIR_FLAGS);

    if (fd < 0 || fstat(fd, ret_st) < 0)
        return fail(w, "open", name);
    *ret = steal_fd(&fd);
    return 0;
}

static int too_deep(struct work *w, const char *name)
{
    return err_set(w->e, SG_ERR_GONE, -EBUSY,
                   "'%.64s' is more than %d directories deep: a snapshot cannot hold that, move it "
                   "up or remove it",
                   name, DEPTH_MAX);
}

static int merge_dir(struct work *w, int upper, const char *name, int below, int to,
                     unsigned depth);

/* Takes an entry of the layer below that upper does not have: files as links. */
static int link_below(struct work *w, int from, const char *name, int to, unsigned depth)
{
    struct stat st;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(w, "stat", name);
    if (S_ISDIR(st.st_mode))
        return merge_dir(w, -1, name, from, to, depth);
    if (layer_is_whiteout(&st))
        return make_whiteout(w, name, to);
    if (linkat(from, name, to, name, 0) == 0) {
        w->bytes += (uint64_t)st.st_blocks * 512;
        return 0;
    }
    if (errno != EMLINK && errno != EXDEV)
        return fail(w, "link", name);
    return copy_other(w, from, name, &st, false, to);
}

static int take_upper(struct work *w, int upper, const char *name, int below, int to,
                      unsigned depth)
{
    struct stat st;

    if (fstatat(upper, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(w, "stat", name);
    if (S_ISDIR(st.st_mode))
        return merge_dir(w, upper, name, below, to, depth);
    return copy_other(w, upper, name, &st, true, to);
}

/* Takes an entry of below, unless upper has it too. */
static int take_below(struct work *w, int upper, const char *name, int below, int to,
                      unsigned depth)
{
    struct stat st;

    if (upper >= 0 && fstatat(upper, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    return upper < 0 || errno == ENOENT ? link_below(w, below, name, to, depth)
                                        : fail(w, "stat", name);
}

/* Takes all entries of one of two open directories into a third. */
static int take_all(struct work *w, int upper, int below, int to, unsigned depth, bool of_upper)
{
    AUTO(layer_closedir_p) DIR *d = layer_list(of_upper ? upper : below);
    const char *name;
    int r;

    while ((r = layer_next(d, &name)) > 0) {
        r = of_upper ? take_upper(w, upper, name, below, to, depth + 1)
                     : take_below(w, upper, name, below, to, depth + 1);
        if (r < 0)
            return r;
    }
    return r < 0 ? fail_with(w, r, "list", "a directory") : 0;
}

/* Merges the entries of two open directories into a third. One of the two may be -1. */
static int merge_entries(struct work *w, int upper, int below, int to, unsigned depth)
{
    int r = upper < 0 ? 0 : take_all(w, upper, below, to, depth, true);

    return r < 0 || below < 0 ? r : take_all(w, upper, below, to, depth, false);
}

/* Looks below a directory of upper: finds a directory to merge with, or a reason to be opaque. */
static int open_below(struct work *w, int below, const char *name, int *ret, struct stat *ret_st,
                      bool *opaque)
{
    int r;

    if (below < 0 || *opaque || fstatat(below, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (!S_ISDIR(ret_st->st_mode)) {
        *opaque = true;
        return 0;
    }
    r = open_dir(w, below, name, ret_st, ret);
    if (r == 0)
        *opaque = layer_is_opaque(*ret);
    return r;
}

/* Makes the directory of that name from those of upper and below; one of the two may be -1. */
static int merge_dir(struct work *w, int upper, const char *name, int below, int to, unsigned depth)
{
    AUTO(close_p) int up = -1, low = -1, out = -1;
    bool opaque = false, has_upper = upper >= 0;
    struct stat st = {0}, low_st = {0};
    int r = 0;

    if (depth > DEPTH_MAX)
        return too_deep(w, name);
    if (has_upper) {
        r = spend(w, DIR_BYTES);
        if (r == 0)
            r = open_dir(w, upper, name, &st, &up);
        opaque = r == 0 && layer_is_opaque(up);
    }
    if (r == 0)
        r = open_below(w, below, name, &low, &low_st, &opaque);
    if (r == 0)
        r = make_dir(w, to, name, opaque, &out);
    if (r == 0)
        r = merge_entries(w, up, low, out, depth);
    return r < 0 ? r
                 : copy_attributes(w, has_upper ? &st : &low_st, has_upper, has_upper ? up : low,
                                   out, name);
}

/* ---- the whole layer ------------------------------------------------------------------------- */

/* aside/tree becomes the layer; aside/links has the files with several names. */
static int write_tree(struct work *w, int aside)
{
    const struct layer_save *l = w->save;
    bool has_upper = l->upper >= 0;
    AUTO(close_p) int top = openat(has_upper ? l->upper : l->below, ".", LAYER_DIR_FLAGS), out = -1;
    struct stat st;
    int r;

    if (top < 0 || fstat(top, &st) < 0)
        return fail(w, "open", "/");
    if (mkdirat(aside, "links", 0700) < 0 ||
        (w->links = openat(aside, "links", LAYER_DIR_FLAGS)) < 0)
        return fail(w, "make", "links");
    r = make_dir(w, aside, "tree", false, &out);
    if (r == 0)
        r = merge_entries(w, has_upper ? top : -1, has_upper ? l->below : top, out, 0);
    return r < 0 ? r : copy_attributes(w, &st, has_upper, top, out, "/");
}

static int put_in_place(const struct layer_save *l, int aside, struct sg_error *e)
{
    if (l->durable && syncfs(aside) < 0)
        return err_errno(e, "write the snapshot to disk");
    if (layer_rename(aside, "tree", l->parent, l->name) < 0)
        return err_errno(e, "put the snapshot into its place");
    if (l->durable) {
        AUTO(close_p) int parent = openat(l->parent, ".", LAYER_DIR_FLAGS);
        if (parent < 0 || fsync(parent) < 0) {
            int r = err_errno(e, "write the snapshot to disk");
            layer_stack_remove(l->parent, l->name, NULL);
            return r;
        }
    }
    return 0;
}

int layer_save_write(const struct layer_save *l, uint64_t *ret_bytes, struct sg_error *e)
{
    struct work w = {.save = l, .links = -1, .e = e};
    AUTO(close_p) int aside = -1;
    int r;

    if (mkdirat(l->parent, l->aside, 0700) < 0 ||
        (aside = openat(l->parent, l->aside, LAYER_DIR_FLAGS)) < 0)
        r = err_errno(e, "make a directory for the snapshot");
    else
        r = write_tree(&w, aside);
    if (r == 0)
        r = put_in_place(l, aside, e);
    close_p(&w.links);
    layer_stack_remove(l->parent, l->aside, NULL);
    if (r == -ENOSPC || r == -EDQUOT)
        return err_set(e, SG_ERR_LIMIT, -ENOSPC,
                       "no space left for the snapshot: free some in the server's state directory");
    if (r == 0)
        *ret_bytes = w.bytes;
    return r;
}
