#include "inside/agent/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define BYTES_MAX    (8u * 1024 * 1024)
#define NAMES_A_STEP 128

/* One directory on the way down. Each name is stored as a byte that says whether it is a directory,
 * the name, and a NUL. */
struct walk_level {
    struct walk_level *above;
    struct strbuf text;
    const char **sorted; /* NULL: the names are still being read */
    size_t n, next;
    size_t here_len; /* length of the path of the level above */
    bool enter;      /* the last entry is a directory, and the walk goes into it next */
};

static int level_push(struct walk *w)
{
    struct walk_level *l = xcalloc(1, sizeof(*l));

    strbuf_init(&l->text, BYTES_MAX);
    l->above = w->level;
    w->level = l;
    w->depth++;
    dirents_reset(&w->names);
    w->dir = path_open_beneath(w->top, w->here[0] ? w->here : ".", O_RDONLY | O_DIRECTORY);
    return w->dir;
}

static void level_pop(struct walk *w)
{
    struct walk_level *l = w->level;

    w->level = l->above;
    w->depth--;
    w->here[l->here_len] = '\0';
    w->bytes -= l->text.len;
    strbuf_done(&l->text);
    free(l->sorted);
    free(l);
    close_p(&w->dir);
    w->dir = -1;
}

int walk_init(struct walk *w, int topfd, uint32_t max_depth, bool dirs_only)
{
    *w = (struct walk){.top = topfd, .dir = -1, .max_depth = max_depth, .dirs_only = dirs_only};
    int r = dirents_init(&w->names);

    return r < 0 ? r : level_push(w) < 0 ? w->dir : 0;
}

void walk_done(struct walk *w)
{
    while (w->level)
        level_pop(w);
    close_p(&w->top);
    dirents_done(&w->names);
}

void walk_move(struct walk *w, int topfd)
{
    close_p(&w->top);
    w->top = topfd;
}

static bool is_dir(int dirfd, const struct dirent_name *d)
{
    struct stat st;

    if (d->type != DT_UNKNOWN)
        return d->type == DT_DIR;
    return fstatat(dirfd, d->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Stores a name. 0 or -E2BIG. */
static int keep_name(struct walk *w, const struct dirent_name *d)
{
    struct walk_level *l = w->level;
    bool dir = is_dir(w->dir, d);
    size_t before = l->text.len;

    if (w->dirs_only && !dir)
        return 0;
    strbuf_addch(&l->text, dir ? 'd' : '-');
    strbuf_add(&l->text, d->name, strlen(d->name) + 1);
    w->bytes += l->text.len - before;
    l->n++;
    return l->text.truncated || w->bytes > BYTES_MAX ? -E2BIG : 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a + 1, *(const char *const *)b + 1);
}

static int sort_names(struct walk_level *l)
{
    const char *p = l->text.buf;

    l->sorted = calloc(l->n + 1, sizeof(*l->sorted));
    if (!l->sorted)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        l->sorted[i] = p;
        p += strlen(p) + 1;
    }
    qsort(l->sorted, l->n, sizeof(*l->sorted), by_name);
    return 0;
}

static int read_names(struct walk *w)
{
    struct dirent_name d;

    for (unsigned i = 0; i < NAMES_A_STEP; i++) {
        int r = dirents_next(&w->names, w->dir, &d);

        if (r == 0)
            r = sort_names(w->level);
        else if (r == 1 && keep_name(w, &d) == 0)
            continue;
        else if (r == 1)
            r = -E2BIG;
        return r < 0 ? r : WALK_BUSY;
    }
    return WALK_BUSY;
}

/* Goes into the directory of the last entry. If it is gone, or closed to the user, it counts as
 * empty. */
static int go_down(struct walk *w)
{
    const char *name = w->level->sorted[w->level->next - 1] + 1;
    size_t len = strlen(w->here);

    w->level->enter = false;
    snprintf(w->here + len, sizeof(w->here) - len, "%s%s", len ? "/" : "", name);
    close_p(&w->dir);
    level_push(w);
    w->level->here_len = len;
    if (w->dir < 0)
        level_pop(w);
    return WALK_BUSY;
}

/* Comes back from a directory below. If this directory cannot be found again, the rest of it is
 * lost. */
static int come_back(struct walk *w)
{
    w->dir = path_open_beneath(w->top, w->here[0] ? w->here : ".", O_RDONLY | O_DIRECTORY);
    if (w->dir < 0)
        level_pop(w);
    return WALK_BUSY;
}

static int tell_next(struct walk *w, struct walk_entry *ret)
{
    struct walk_level *l = w->level;
    const char *name = l->sorted[l->next++];
    int n =
        snprintf(ret->path, sizeof(ret->path), "%s%s%s", w->here, w->here[0] ? "/" : "", name + 1);

    if (n < 0 || (size_t)n >= sizeof(ret->path))
        return -ENAMETOOLONG;
    ret->dirfd = w->dir;
    ret->name = name + 1;
    ret->is_dir = name[0] == 'd';
    l->enter = ret->is_dir && w->depth < w->max_depth;
    return 1;
}

int walk_next(struct walk *w, struct walk_entry *ret)
{
    struct walk_level *l = w->level;

    if (!l)
        return 0;
    if (w->dir < 0)
        return come_back(w);
    if (!l->sorted)
        return read_names(w);
    if (l->enter)
        return go_down(w);
    if (l->next < l->n)
        return tell_next(w, ret);
    level_pop(w);
    return w->level ? WALK_BUSY : 0;
}
