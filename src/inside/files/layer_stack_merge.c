#include "inside/files/layer_stack_merge.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "inside/files/layer_file.h"
#include "inside/files/layer_stack_origin.h"

#define DEPTH_MAX 100 /* of an upper layer: each level takes a descriptor */

/* ---- inode numbers --------------------------------------------------------------------------- */

struct inode_set {
    ino_t *v;
    size_t n, room;
};
#define INODES_NONE ((struct inode_set){0})

static void inodes_done(struct inode_set *s)
{
    free(s->v);
    *s = INODES_NONE;
}

static int inodes_add(struct inode_set *s, ino_t number)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        ino_t *v = reallocarray(s->v, room, sizeof(*v));
        if (!v)
            return -ENOMEM;
        s->v = v;
        s->room = room;
    }
    s->v[s->n++] = number;
    return 0;
}

static int compare(const void *a, const void *b)
{
    ino_t x = *(const ino_t *)a, y = *(const ino_t *)b;

    return (x > y) - (x < y);
}

/* Call it after the last was added, and before the first inodes_has. */
static void inodes_sort(struct inode_set *s)
{
    if (s->n > 1)
        qsort(s->v, s->n, sizeof(*s->v), compare);
}

static bool inodes_has(const struct inode_set *s, ino_t number)
{
    return s->n > 0 && bsearch(&number, s->v, s->n, sizeof(*s->v), compare) != NULL;
}

/* ---- files that sandboxes have copied up ----------------------------------------------------- */

struct look {
    unsigned char uuid[ORIGIN_UUID];
    struct inode_set *set;
};

static int look_at_file(const struct look *l, int dir, const char *name)
{
    AUTO(close_p) int fd = layer_open_file(dir, name);
    struct origin o;

    if (fd < 0 || origin_get(fd, &o) < 0 || !origin_is_on(&o, l->uuid))
        return 0;
    return inodes_add(l->set, origin_inode(&o));
}

static int look_into(const struct look *l, int dir, unsigned depth)
{
    AUTO(layer_closedir_p) DIR *d = layer_list(dir);
    const char *name;
    int r = 0;

    while (r == 0 && layer_next(d, &name) > 0) {
        AUTO(close_p) int in = -1;
        struct stat st;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(st.st_mode))
            r = look_at_file(l, dir, name);
        else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX &&
                 (in = openat(dir, name, LAYER_DIR_FLAGS)) >= 0)
            r = look_into(l, in, depth + 1);
    }
    return r;
}

/* Adds the origins, on the scratch, of all files in an upper layer that a running sandbox has copied
 * up: the sandbox shows their inode numbers (layer_stack_origin.h). It changes that layer meanwhile,
 * and may want to lead this code astray: files that lie very deep are left out. */
static int add_used(int scratch, int upper, struct inode_set *s, struct sg_error *e)
{
    AUTO(close_p) int here = openat(scratch, ".", LAYER_DIR_FLAGS);
    AUTO(close_p) int top = openat(upper, ".", LAYER_DIR_FLAGS);
    struct look l = {.set = s};
    int r;

    if (here < 0 || top < 0)
        return err_errno(e, "open an upper layer");
    r = origin_file_system(here, l.uuid);
    if (r == -ENOTTY)
        return 0; /* the kernel is too old for origins */
    if (r == 0)
        r = look_into(&l, top, 0);
    return r < 0 ? err_code(e, r, "read an upper layer") : 0;
}

/* ---- the merge ------------------------------------------------------------------------------- */

/* One directory on the way from the top to the present one. */
struct level {
    struct level *up;
    size_t n, *who; /* the layers that are merged here, uppermost first */
    char *dirs;     /* names of directories in it still to be merged, each ended by \0 */
    size_t len, room;
    bool sealed; /* here, nothing below the layers shows */
};

struct work {
    const struct layer_stack_merge *m;
    int *src; /* of each layer, uppermost first: its directory, as deep as it goes */
    int out;
    int kept; /* the kept origins; -1: none */
    struct level *level;
    struct inode_set used, linked;
    struct sg_error *e;
};

static int fail(struct work *w, int r, const char *what, const char *name)
{
    return err_code(w->e, r, "%s '%.64s' of frozen files", what, name);
}

/* ---- directories that wait ------------------------------------------------------------------- */

static int put_off(struct level *l, const char *name)
{
    size_t len = strlen(name) + 1;

    if (l->room - l->len < len) {
        size_t room = 2 * l->room + 2 * NAME_MAX;
        char *dirs = realloc(l->dirs, room);
        if (!dirs)
            return -ENOMEM;
        l->dirs = dirs;
        l->room = room;
    }
    memcpy(l->dirs + l->len, name, len);
    l->len += len;
    return 0;
}

/* Takes the last of the names off the list. */
static const char *take_up(struct level *l)
{
    if (l->len == 0)
        return NULL;
    for (l->len--; l->len > 0 && l->dirs[l->len - 1]; l->len--)
        ;
    return l->dirs + l->len;
}

/* ---- files and links ------------------------------------------------------------------------- */

static int copy_file(struct work *w, int from, const char *name)
{
    AUTO(close_p) int in = layer_open_file(from, name);
    AUTO(close_p) int out = -1;
    struct origin o;
    struct stat st;
    int r;

    if (in < 0 || fstat(in, &st) < 0)
        return fail(w, -errno, "open", name);
    out = layer_make_file(w->out, name);
    if (out < 0)
        return fail(w, -errno, "make", name);
    r = layer_copy_data(in, out, st.st_size);
    if (r == 0 && origin_get(in, &o) == 0)
        r = origin_set(out, &o);
    if (r == 0)
        r = layer_copy_looks(&st, in, out);
    return r < 0 ? fail(w, r, "copy", name) : 0;
}

static int take_file(struct work *w, int from, const char *name, const struct stat *st)
{
    if (layer_is_whiteout(st)) {
        int r = w->level->sealed ? 0 : layer_expect_whiteouts(w->out);
        if (r < 0 || w->level->sealed)
            return r < 0 ? fail(w, r, "prepare for a whiteout", name) : 0;
    }
    if (S_ISREG(st->st_mode) && st->st_nlink == 1) {
        if (inodes_has(&w->used, st->st_ino) || origin_is_kept(w->kept, st->st_ino))
            return copy_file(w, from, name);
        if (inodes_add(&w->linked, st->st_ino) < 0)
            return fail(w, -ENOMEM, "link", name);
    }
    return linkat(from, name, w->out, name, 0) < 0 ? fail(w, -errno, "link", name) : 0;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* Whether one of the first n layers here also has the name. */
static bool is_hidden(const struct work *w, size_t n, const char *name)
{
    struct stat st;

    for (size_t i = 0; i < n; i++)
        if (fstatat(w->src[w->level->who[i]], name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

static int take_entries_of(struct work *w, size_t i)
{
    int from = w->src[w->level->who[i]];
    AUTO(layer_closedir_p) DIR *d = layer_list(from);
    const char *name;
    struct stat st;
    int r;

    while ((r = layer_next(d, &name)) > 0) {
        if (is_hidden(w, i, name))
            continue;
        if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return fail(w, -errno, "stat", name);
        if (S_ISDIR(st.st_mode))
            r = put_off(w->level, name) < 0 ? fail(w, -ENOMEM, "remember", name) : 0;
        else
            r = take_file(w, from, name, &st);
        if (r < 0)
            return r;
    }
    return r < 0 ? fail(w, r, "list", "a directory") : 0;
}

static int take_entries(struct work *w)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < w->level->n; i++)
        r = take_entries_of(w, i);
    return r;
}

static struct level *level_new(struct work *w)
{
    struct level *l = xcalloc(1, sizeof(*l));

    l->who = xcalloc(w->m->n, sizeof(*l->who));
    l->up = w->level;
    return l;
}

static void level_drop(struct work *w)
{
    struct level *l = w->level;

    w->level = l->up;
    free(l->who);
    free(l->dirs);
    free(l);
}

/* Enters the directory of that name, in all layers here in which it shows. */
static int go_down(struct work *w, const char *name, bool *ret_opaque)
{
    struct level *up = w->level, *l = level_new(w);

    w->level = l;
    for (size_t i = 0; i < up->n && !*ret_opaque; i++) {
        size_t s = up->who[i];
        struct stat st;
        int fd;
        if (fstatat(w->src[s], name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!S_ISDIR(st.st_mode)) {
            *ret_opaque = true;
            break;
        }
        fd = openat(w->src[s], name, LAYER_DIR_FLAGS);
        if (fd < 0)
            return fail(w, -errno, "open", name);
        close(w->src[s]);
        w->src[s] = fd;
        l->who[l->n++] = s;
        *ret_opaque = layer_is_opaque(fd);
    }
    return 0;
}

static int enter_dir(struct work *w, const char *name)
{
    bool opaque = false;
    int r = go_down(w, name, &opaque), fd;

    if (r < 0)
        return r;
    if (mkdirat(w->out, name, 0700) < 0 || (fd = openat(w->out, name, LAYER_DIR_FLAGS)) < 0)
        return fail(w, -errno, "make", name);
    close(w->out);
    w->out = fd;
    w->level->sealed = opaque || w->level->up->sealed;
    if (opaque && (r = layer_set_mark(fd, MARK_OPAQUE, "y", 1)) < 0)
        return fail(w, r, "make an opaque", name);
    return take_entries(w);
}

static int one_up(struct work *w, int *fd)
{
    int up = openat(*fd, "..", LAYER_DIR_FLAGS);

    if (up < 0)
        return fail(w, -errno, "open", "..");
    close(*fd);
    *fd = up;
    return 0;
}

/* Goes up by "..", which is safe: nobody writes to a layer, nor to the new one, so no directory
 * moves. */
static int leave_dir(struct work *w)
{
    int from = w->src[w->level->who[0]], r;
    struct stat st;

    r = fstat(from, &st) < 0 ? -errno : layer_copy_looks(&st, from, w->out);
    if (r < 0)
        return fail(w, r, "copy owner, mode and time of", "a directory");
    for (size_t i = 0; r == 0 && w->level->up && i < w->level->n; i++)
        r = one_up(w, &w->src[w->level->who[i]]);
    if (r == 0 && w->level->up)
        r = one_up(w, &w->out);
    level_drop(w);
    return r;
}

/* ---- the whole merge ------------------------------------------------------------------------- */

static int begin(struct work *w)
{
    const struct layer_stack_merge *m = w->m;

    w->level = level_new(w);
    for (size_t i = 0; i < m->n; i++) {
        const char *dir = m->dirs[m->n - 1 - i];
        w->src[i] = openat(m->scratch, dir, LAYER_DIR_FLAGS);
        if (w->src[i] < 0)
            return fail(w, -errno, "open", dir);
        w->level->who[w->level->n++] = i;
    }
    if (mkdirat(m->scratch, m->aside, 0700) < 0 ||
        (w->out = openat(m->scratch, m->aside, LAYER_DIR_FLAGS)) < 0)
        return fail(w, -errno, "make", m->aside);
    return take_entries(w);
}

static int find_used(struct work *w, struct inode_set *ret)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < w->m->n_uppers; i++)
        r = add_used(w->m->scratch, w->m->uppers[i], ret, w->e);
    inodes_sort(ret);
    return r;
}

/* Checks again which files are copied up: a file that was linked here, and that a sandbox has
 * copied up since the first look, would have another number now. */
static int look_again(struct work *w)
{
    AUTO(inodes_done) struct inode_set now = INODES_NONE;
    int r = find_used(w, &now);

    inodes_sort(&w->linked);
    for (size_t i = 0; r == 0 && i < now.n; i++)
        if (inodes_has(&w->linked, now.v[i]))
            r = err_set(w->e, SG_ERR_INTERNAL, -EAGAIN, "files were opened while they were merged");
    return r;
}

static int make_tree(struct work *w)
{
    char name[NAME_MAX + 1];
    int r = find_used(w, &w->used);

    if (r == 0)
        r = begin(w);
    while (r == 0 && w->level) {
        const char *next = take_up(w->level);
        if (next)
            snprintf(name, sizeof(name), "%s", next);
        r = next ? enter_dir(w, name) : leave_dir(w);
    }
    return r < 0 ? r : look_again(w);
}

int layer_stack_merge(const struct layer_stack_merge *m, struct sg_error *e)
{
    AUTO(free_p) int *src = xcalloc(m->n, sizeof(*src));
    struct work w = {.m = m, .src = src, .out = -1, .kept = -1, .e = e};
    int r;

    for (size_t i = 0; i < m->n; i++)
        src[i] = -1;
    origin_open_kept(m->scratch, &w.kept);
    r = make_tree(&w);
    if (r == 0 && (r = layer_rename(m->scratch, m->aside, m->scratch, m->name)) < 0)
        fail(&w, r, "put in place", m->name);
    if (r < 0)
        layer_stack_remove(m->scratch, m->aside, NULL);
    while (w.level)
        level_drop(&w);
    for (size_t i = 0; i < m->n; i++)
        close_p(&src[i]);
    close_p(&w.out);
    close_p(&w.kept);
    inodes_done(&w.used);
    inodes_done(&w.linked);
    return r;
}
