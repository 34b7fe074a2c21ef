#include "inside/files/layer_stack_carry.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "inside/files/layer_file.h"
#include "inside/files/layer_stack_origin.h"
#include "lib/base/sys.h"

#define FILE_STEPS   64 /* cost of copying a file, mostly for keeping its origin */
#define SEARCH_FILES 4096
#define SEARCH_DEPTH 64

/* A directory in all layers that an overlay would look into: newest first, -1: not in that
 * layer. */
struct place {
    size_t n;
    int fd[CARRY_LAYERS_MAX];
};

static void place_done(struct place *p)
{
    for (size_t i = 0; i < p->n; i++)
        close_p(&p->fd[i]);
    p->n = 0;
}

static int place_open_top(const struct carry_stack *s, struct place *ret, struct sg_error *e)
{
    for (size_t i = s->n; i-- > 0;) {
        int fd = openat(s->v[i].mount, s->v[i].dir, LAYER_DIR_FLAGS);
        if (fd < 0)
            return err_errno(e, "open a frozen layer");
        ret->fd[ret->n++] = fd;
    }
    return 0;
}

static bool take(uint32_t *steps, uint32_t n)
{
    if (n > *steps)
        return false;
    *steps -= n;
    return true;
}

/* How many layers have the directory. */
static uint32_t place_width(const struct place *p)
{
    uint32_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        n += p->fd[i] >= 0;
    return n;
}

/* The index of the layer whose entry the overlay shows; -1: none, or a whiteout. */
static int place_find(const struct place *p, const char *name, struct stat *ret)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->fd[i] >= 0 && fstatat(p->fd[i], name, ret, AT_SYMLINK_NOFOLLOW) == 0)
            return layer_is_whiteout(ret) ? -1 : (int)i;
    return -1;
}

/* Enters a directory; the uppermost layer that has it decides its looks. False: there is none. An
 * entry of that name that is no directory, even a whiteout, hides the layers below it. */
static bool place_enter(struct place *p, const char *name)
{
    bool over = false, found = false;

    for (size_t i = 0; i < p->n; i++) {
        AUTO(close_p) int up = p->fd[i];
        p->fd[i] = -1;
        if (over || up < 0)
            continue;
        p->fd[i] = openat(up, name, LAYER_DIR_FLAGS);
        if (p->fd[i] < 0 && errno == ENOENT)
            continue;
        found |= p->fd[i] >= 0;
        over = p->fd[i] < 0 || layer_is_opaque(p->fd[i]);
    }
    return found;
}

/* The cost of place_enter: a directory of each layer is opened, looked at and closed; the uppermost
 * is kept, with its looks. */
static uint32_t enter_steps(const struct place *p)
{
    return 3 * place_width(p) + 4;
}

static int place_uppermost(const struct place *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->fd[i] >= 0)
            return p->fd[i];
    return -1;
}

/* Cuts the next part off a path; NULL: that was the last. */
static char *next_part(char **path)
{
    char *part;

    while (**path == '/')
        (*path)++;
    part = *path;
    *path += strcspn(part, "/");
    if (**path)
        *(*path)++ = '\0';
    return *part ? part : NULL;
}

struct carry {
    const struct carry_stack *from;
    char *parts[CARRY_PARTS_MAX];              /* of the path; the last is the file */
    struct timespec times[CARRY_PARTS_MAX][2]; /* of their parent directories */
    size_t n;
    int dirs[CARRY_PARTS_MAX]; /* as the overlay shows them: the copies get their looks */
    size_t n_dirs;
    struct place last; /* the file's directory */
    size_t layer;      /* the one of `last` that has the file */
};

static void carry_done(struct carry **c)
{
    for (size_t i = 0; i < (*c)->n_dirs; i++)
        close((*c)->dirs[i]);
    place_done(&(*c)->last);
    free(*c);
}

static int fail(struct carry *c, int r, size_t part, struct sg_error *e)
{
    return err_in_the_way(e, err_code(e, r, "copy the open file '%.64s', at '%.64s'",
                                      c->parts[c->n - 1], c->parts[part]));
}

/* ---- the origin ------------------------------------------------------------------------------ */

/* 1: the origin is the file of this path; 0: it is not; -1: it is, but has several links, and then
 * the overlay does not show its number. */
static int compare_origin(const struct origin *o, int dir, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS};
    AUTO(close_p) int fd = sys_openat2(dir, path, &how);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != origin_inode(o) || !origin_is_of(o, fd))
        return 0;
    return st.st_nlink == 1 ? 1 : -1;
}

/* Looks for the origin under the name that its copy has, in all layers of a scratch, also in those
 * that were merged since. */
static int find_by_name(const struct carry *c, const struct origin *o, int scratch)
{
    AUTO(layer_closedir_p) DIR *d = layer_list(scratch);
    char path[PATH_MAX];
    const char *layer;
    int r = 0;

    while (r == 0 && layer_next(d, &layer) > 0) {
        size_t len = (size_t)snprintf(path, sizeof(path), "%s", layer);
        for (size_t i = 0; i < c->n && len < sizeof(path); i++)
            len += (size_t)snprintf(path + len, sizeof(path) - len, "/%s", c->parts[i]);
        if (len < sizeof(path))
            r = compare_origin(o, scratch, path);
    }
    return r;
}

/* Looks for the origin of a file that was renamed. *left: how many entries to look at. */
static int search(const struct origin *o, int dir, unsigned depth, unsigned *left)
{
    AUTO(layer_closedir_p) DIR *d = layer_list(dir);
    const char *name;
    int r = 0;

    while (r == 0 && *left > 0 && layer_next(d, &name) > 0) {
        AUTO(close_p) int in = -1;
        struct stat st;
        (*left)--;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (st.st_ino == origin_inode(o))
            r = compare_origin(o, dir, name);
        else if (S_ISDIR(st.st_mode) && depth > 0 && (in = openat(dir, name, LAYER_DIR_FLAGS)) >= 0)
            r = search(o, in, depth - 1, left);
    }
    return r;
}

/* Whether the overlay shows the origin that a frozen copy names: it must exist and have one link. A
 * kept one does. An origin that is on no file system of the layers is on one that nobody writes
 * to. */
static bool is_shown(const struct carry *c, const struct origin *o)
{
    for (size_t i = 0; i < c->from->n; i++) {
        int scratch = c->from->v[i].mount;
        AUTO(close_p) int dir = openat(scratch, ".", LAYER_DIR_FLAGS), kept = -1;
        unsigned char uuid[ORIGIN_UUID];
        unsigned left = SEARCH_FILES;
        if (dir < 0 || origin_file_system(dir, uuid) < 0 || !origin_is_on(o, uuid))
            continue;
        origin_open_kept(scratch, &kept);
        if (origin_is_kept(kept, origin_inode(o)))
            return true;
        int r = find_by_name(c, o, dir);
        if (r == 0)
            r = search(o, dir, SEARCH_DEPTH, &left);
        if (r <= 0)
            return false;
        origin_keep(scratch, origin_inode(o));
        return true;
    }
    return true;
}

/* Without an origin the file is right too, except for its number. */
static int give_origin(const struct carry *c, size_t layer, int in, const struct stat *st, int out)
{
    struct origin o;

    if (st->st_nlink != 1)
        return 0;
    if (origin_get(in, &o) < 0 || !is_shown(c, &o)) {
        if (origin_make(in, &o) < 0)
            return 0;
        origin_keep(c->from->v[c->from->n - 1 - layer].mount, st->st_ino);
    }
    return origin_set(out, &o);
}

/* ---- copying --------------------------------------------------------------------------------- */

static int fill_file(struct carry *c, size_t layer, int in, int out)
{
    struct stat st;
    int r;

    if (fstat(in, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EIO;
    r = layer_copy_data(in, out, st.st_size);
    if (r == 0)
        r = give_origin(c, layer, in, &st, out);
    return r < 0 ? r : layer_copy_looks(&st, in, out);
}

static int copy_file(struct carry *c, int to)
{
    const char *name = c->parts[c->n - 1];
    AUTO(close_p) int in = layer_open_file(c->last.fd[c->layer], name), out = -1;
    int r;

    if (in < 0)
        return -errno;
    out = layer_make_file(to, name);
    if (out < 0)
        return errno == EEXIST ? 0 : -errno;
    r = fill_file(c, c->layer, in, out);
    if (r == 0)
        r = layer_set_mark(to, MARK_IMPURE, "y", 1);
    if (r < 0)
        unlinkat(to, name, 0);
    return r;
}

/* Makes the copy of a directory in `to`, and enters it. If it exists, it was made for another
 * file. */
static int enter_copy(struct carry *c, size_t part, int *to)
{
    int from = c->dirs[part], fd;
    bool fresh = mkdirat(*to, c->parts[part], 0700) == 0;
    struct stat st;

    if ((!fresh && errno != EEXIST) || (fd = openat(*to, c->parts[part], LAYER_DIR_FLAGS)) < 0)
        return -errno;
    close(*to);
    *to = fd;
    if (fstat(fresh ? from : fd, &st) < 0)
        return -errno;
    c->times[part + 1][0] = st.st_atim;
    c->times[part + 1][1] = st.st_mtim;
    return fresh ? layer_copy_looks(&st, from, fd) : 0;
}

/* Sets the directories' times again, from the deepest up. ".." is safe: nobody else sees the new
 * layer yet, so no directory has been moved. */
static int put_times_back(struct carry *c, int *to, size_t depth)
{
    for (size_t i = depth + 1; i-- > 0;) {
        int up = -1;
        if (futimens(*to, c->times[i]) < 0 ||
            (i > 0 && (up = openat(*to, "..", LAYER_DIR_FLAGS)) < 0))
            return -errno;
        close_p(to);
        *to = up;
    }
    return 0;
}

static int copy_path(struct carry *c, int *to, struct sg_error *e)
{
    struct stat st;
    size_t i = 0;
    int r = 0, back;

    if (fstat(*to, &st) < 0)
        return fail(c, -errno, 0, e);
    c->times[0][0] = st.st_atim;
    c->times[0][1] = st.st_mtim;
    for (; r == 0 && i + 1 < c->n; i++) {
        r = enter_copy(c, i, to);
        if (r < 0)
            return fail(c, r, i, e);
    }
    if (r == 0)
        r = copy_file(c, *to);
    back = put_times_back(c, to, i);
    return r < 0 || (r = back) < 0 ? fail(c, r, i, e) : 0;
}

/* ---- the cost -------------------------------------------------------------------------------- */

static bool pay_looks(int fd, struct carry_budget *left)
{
    static char names[LAYER_XATTR_MAX];
    ssize_t n = flistxattr(fd, names, sizeof(names));

    for (const char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
        ssize_t len = fgetxattr(fd, p, NULL, 0);
        if (len < 0 || (uint64_t)len > left->bytes || !take(&left->steps, 2))
            return false;
        left->bytes -= (uint64_t)len;
    }
    return n >= 0 || errno == ENOTSUP;
}

static bool pay_file(struct carry *c, const struct stat *st, struct carry_budget *left)
{
    AUTO(close_p) int fd = layer_open_file(c->last.fd[c->layer], c->parts[c->n - 1]);
    uint64_t bytes = (uint64_t)st->st_blocks * 512;

    if (fd < 0 || bytes > left->bytes || left->files == 0 || !take(&left->steps, FILE_STEPS) ||
        !pay_looks(fd, left) || bytes > left->bytes)
        return false;
    left->bytes -= bytes;
    left->files--;
    return true;
}

static bool keep_dir(struct carry *c, struct carry_budget *left)
{
    int fd = fcntl(place_uppermost(&c->last), F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return false;
    c->dirs[c->n_dirs++] = fd;
    return pay_looks(fd, left);
}

/* Walks to the file. False: the file does not exist, or the budget is too small. */
static bool find_file(struct carry *c, struct carry_budget *left)
{
    struct stat st;
    int i;

    for (size_t k = 0; k + 1 < c->n; k++)
        if (!take(&left->steps, enter_steps(&c->last)) || !place_enter(&c->last, c->parts[k]) ||
            !keep_dir(c, left))
            return false;
    i = take(&left->steps, place_width(&c->last)) ? place_find(&c->last, c->parts[c->n - 1], &st)
                                                  : -1;
    if (i < 0 || !S_ISREG(st.st_mode))
        return false;
    c->layer = (size_t)i;
    return pay_file(c, &st, left);
}

static bool take_apart(struct carry *c, char *path)
{
    char *part;

    while ((part = next_part(&path)) != NULL) {
        if (c->n == CARRY_PARTS_MAX || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
            return false;
        c->parts[c->n++] = part;
    }
    return c->n > 0;
}

int layer_stack_carry(const struct carry_stack *from, int scratch, const char *upper,
                      const char *path, struct carry_budget *left, struct sg_error *e)
{
    AUTO(free_p) char *copy = xstrdup(path);
    AUTO(carry_done) struct carry *c = xcalloc(1, sizeof(*c));
    AUTO(close_p) int to = -1;
    int r;

    c->from = from;
    if (left->files == 0 || !take_apart(c, copy) || !take(&left->steps, (uint32_t)from->n))
        return 0;
    r = place_open_top(from, &c->last, e);
    if (r < 0 || !find_file(c, left))
        return r;
    to = openat(scratch, upper, LAYER_DIR_FLAGS);
    if (to < 0)
        return err_errno(e, "open a sandbox's upper layer");
    return copy_path(c, &to, e);
}
