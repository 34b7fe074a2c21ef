#include "inside/files/layer_diff.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/files/layer_file.h"
#include "lib/base/fd.h"
#include "lib/text/strbuf.h"
#include "wire/files.h"

#define DEPTH_MAX 128 /* of directories: each takes a descriptor for each layer that has it */

/* The directories of one name, uppermost first, as one overlay merges them. */
struct place {
    int fd;
    dev_t dev;
    ino_t ino;
};
struct view {
    struct place *v;
    size_t n;
};

struct names {
    char **v;
    size_t n, room;
};

struct work {
    const struct layer_diff *d;
    struct strbuf out;
    size_t n; /* changes in it */
    char path[PATH_MAX];
    size_t len;
    bool more, left_out;
    struct sg_error *e;
};

static int fail(struct work *w, const char *what, const char *name)
{
    return err_errno(w->e, "%s '%.64s'", what, name);
}

/* ---- views ----------------------------------------------------------------------------------- */

static void view_done(struct view *v)
{
    for (size_t i = 0; i < v->n; i++)
        close(v->v[i].fd);
    free(v->v);
    *v = (struct view){0};
}

/* Takes the descriptor over. */
static int view_add(struct work *w, struct view *v, int fd)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(w, "open a directory of", w->len ? w->path : "/");
    v->v[v->n++] = (struct place){.fd = fd, .dev = st.st_dev, .ino = st.st_ino};
    return 0;
}

static bool view_has(const struct view *v, const struct place *p)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->v[i].dev == p->dev && v->v[i].ino == p->ino)
            return true;
    return false;
}

static bool view_same(const struct view *a, const struct view *b)
{
    for (size_t i = 0; i < a->n && a->n == b->n; i++)
        if (a->v[i].dev != b->v[i].dev || a->v[i].ino != b->v[i].ino)
            return false;
    return a->n == b->n;
}

/* Where a name shows: an index, or v->n if it does not. */
static size_t view_find(const struct view *v, const char *name, struct stat *ret)
{
    size_t i;

    for (i = 0; i < v->n; i++)
        if (fstatat(v->v[i].fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0)
            return layer_is_whiteout(ret) ? v->n : i;
    return i;
}

/* The directory of that name, which shows from layer `i` on. */
static int view_enter(struct work *w, const struct view *v, size_t i, const char *name,
                      struct view *ret)
{
    bool opaque = false;
    int r = 0;

    *ret = (struct view){.v = xcalloc(v->n + 1, sizeof(*ret->v))};
    for (; i < v->n && r == 0 && !opaque; i++) {
        struct stat st;
        if (fstatat(v->v[i].fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!S_ISDIR(st.st_mode))
            break;
        r = view_add(w, ret, openat(v->v[i].fd, name, LAYER_DIR_FLAGS));
        opaque = r == 0 && layer_is_opaque(ret->v[ret->n - 1].fd);
    }
    return r;
}

static int view_open(struct work *w, const struct layer_diff_side *side, struct view *ret)
{
    int r = 0;

    *ret = (struct view){.v = xcalloc(side->n + 1, sizeof(*ret->v))};
    for (size_t i = side->n; i-- > 0 && r == 0;)
        r = view_add(w, ret, openat(side->dirs[i], ".", LAYER_DIR_FLAGS));
    return r;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void names_done(struct names *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
}

static int names_add(struct names *l, const char *name)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        char **v = reallocarray(l->v, room, sizeof(*v));
        if (!v)
            return -ENOMEM;
        l->v = v;
        l->room = room;
    }
    l->v[l->n] = strdup(name);
    return l->v[l->n] ? (l->n++, 0) : -ENOMEM;
}

/* Adds the names in those directories of one view that the other lacks. */
static int names_list(struct names *l, const struct view *of, const struct view *other)
{
    int r = 0;

    for (size_t i = 0; i < of->n && r == 0; i++) {
        const char *name;
        if (view_has(other, &of->v[i]))
            continue;
        AUTO(layer_closedir_p) DIR *d = layer_list(of->v[i].fd);
        while (r >= 0 && (r = layer_next(d, &name)) > 0)
            r = names_add(l, name);
    }
    return r;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- changes --------------------------------------------------------------------------------- */

static char type_of(const struct stat *st)
{
    return S_ISREG(st->st_mode)   ? 'f'
           : S_ISDIR(st->st_mode) ? 'd'
           : S_ISLNK(st->st_mode) ? 'l'
                                  : 'o';
}

static bool same_link(int one, int other, const char *name)
{
    char a[PATH_MAX], b[PATH_MAX];
    ssize_t n = readlinkat(one, name, a, sizeof(a)), m = readlinkat(other, name, b, sizeof(b));

    return n >= 0 && n == m && memcmp(a, b, (size_t)n) == 0;
}

struct found {
    const struct view *view;
    size_t at;
    struct stat st;
};

static bool same(const struct work *w, const struct found *a, const struct found *b,
                 const char *name)
{
    const struct stat *x = &a->st, *y = &b->st;

    if (x->st_dev == y->st_dev && x->st_ino == y->st_ino)
        return true;
    if ((x->st_mode & S_IFMT) != (y->st_mode & S_IFMT) ||
        (w->d->owners && (x->st_uid != y->st_uid || x->st_gid != y->st_gid)))
        return false;
    if (S_ISLNK(x->st_mode))
        return same_link(a->view->v[a->at].fd, b->view->v[b->at].fd, name);
    /* Snapshots have lost the set-uid and set-gid bits. */
    return (x->st_mode & 01777) == (y->st_mode & 01777) &&
           (!S_ISREG(x->st_mode) ||
            (x->st_size == y->st_size && x->st_mtim.tv_sec == y->st_mtim.tv_sec &&
             x->st_mtim.tv_nsec == y->st_mtim.tv_nsec));
}

/* 1: the page is full. */
static int put(struct work *w, char change, const struct stat *st)
{
    if (w->n == FILES_DIFF_PAGE) {
        w->more = true;
        return 1;
    }
    strbuf_addf(&w->out, "%c%c %llu %s", change, type_of(st),
                S_ISREG(st->st_mode) ? (unsigned long long)st->st_size : 0ull, w->path);
    strbuf_addch(&w->out, '\0');
    w->n++;
    return 0;
}

static int walk(struct work *w, const struct view *of, const struct view *against,
                const char *after, unsigned depth);

static int walk_into(struct work *w, const struct found *of, const struct found *against,
                     const char *name, const char *after, unsigned depth)
{
    AUTO(view_done) struct view a = {0}, b = {0};
    int r = view_enter(w, of->view, of->at, name, &a);

    if (r == 0 && against->at < against->view->n && S_ISDIR(against->st.st_mode))
        r = view_enter(w, against->view, against->at, name, &b);
    if (r == 0 && depth == DEPTH_MAX) {
        w->left_out |= !view_same(&a, &b);
        return 0;
    }
    return r < 0 || view_same(&a, &b) ? r : walk(w, &a, &b, after, depth + 1);
}

/* after: NULL, or a path from here: neither it nor what comes before it is told. */
static int look(struct work *w, const struct view *of, const struct view *against, const char *name,
                const char *after, unsigned depth)
{
    struct found x = {.view = of}, y = {.view = against};
    size_t len = after ? strcspn(after, "/") : 0;
    int order = after ? strncmp(name, after, len) : 1, r = 0;
    bool there, was;

    if (order == 0 && name[len])
        order = 1;
    if (order < 0)
        return 0;
    x.at = view_find(of, name, &x.st);
    y.at = view_find(against, name, &y.st);
    there = x.at < of->n;
    was = y.at < against->n;
    if (order > 0 && (there || was) && !(there && was && same(w, &x, &y, name)))
        r = put(w, !was ? 'A' : !there ? 'D' : 'M', there ? &x.st : &y.st);
    if (r != 0 || !there || !S_ISDIR(x.st.st_mode))
        return r;
    return walk_into(w, &x, &y, name, order == 0 && after[len] ? after + len + 1 : NULL, depth);
}

static int walk(struct work *w, const struct view *of, const struct view *against,
                const char *after, unsigned depth)
{
    AUTO(names_done) struct names l = {0};
    size_t len = w->len;
    int r = names_list(&l, of, against);

    if (r == 0)
        r = names_list(&l, against, of);
    if (r < 0)
        return err_code(w->e, r, "list a directory of '%.64s'", len ? w->path : "/");
    if (l.n > 1)
        qsort(l.v, l.n, sizeof(*l.v), by_name);
    for (size_t i = 0; i < l.n && r == 0; i++) {
        int n = snprintf(w->path + len, sizeof(w->path) - len, "/%s", l.v[i]);
        if (i > 0 && strcmp(l.v[i], l.v[i - 1]) == 0)
            continue;
        if (n < 0 || (size_t)n >= sizeof(w->path) - len) {
            w->left_out = true;
            continue;
        }
        w->len = len + (size_t)n;
        r = look(w, of, against, l.v[i], after, depth);
    }
    w->path[len] = '\0';
    w->len = len;
    return r;
}

/* ---- the list -------------------------------------------------------------------------------- */

static int read_after(int list, char ret[PATH_MAX])
{
    ssize_t n = pread(list, ret, PATH_MAX - 1, 0);

    if (n < 0)
        return -errno;
    ret[n] = '\0';
    return 0;
}

static int write_list(struct work *w)
{
    int list = w->d->list;
    char head[2] = {w->more ? 'm' : '.', w->left_out ? 'l' : '.'};
    int r = ftruncate(list, 0) < 0 || lseek(list, 0, SEEK_SET) < 0 ? -errno : 0;

    if (r == 0)
        r = fd_write_all(list, head, sizeof(head));
    if (r == 0)
        r = w->out.truncated ? -ENOMEM : fd_write_all(list, w->out.buf, w->out.len);
    return r < 0 ? err_code(w->e, r, "write the list of changes") : 0;
}

int layer_diff_write(const struct layer_diff *d, struct sg_error *e)
{
    AUTO(view_done) struct view of = {0}, against = {0};
    struct work w = {.d = d, .out = strbuf_upto(FILES_DIFF_MAX), .e = e};
    char after[PATH_MAX] = "";
    int r = read_after(d->list, after);

    if (r < 0)
        err_code(e, r, "read where the list of changes begins");
    if (r == 0)
        r = view_open(&w, &d->of, &of);
    if (r == 0)
        r = view_open(&w, &d->against, &against);
    if (r == 0)
        r = walk(&w, &of, &against, after[0] == '/' ? after + 1 : NULL, 0);
    if (r >= 0)
        r = write_list(&w);
    strbuf_done(&w.out);
    return r;
}
