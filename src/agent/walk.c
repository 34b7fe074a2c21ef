#include "agent/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define TODO_MAX (8u * 1024 * 1024)

struct todo_tail {
    uint32_t depth, len; /* len: of the path and its NUL */
};

int walk_init(struct walk *w, int topfd, uint32_t max_depth)
{
    *w = (struct walk){.top = topfd, .max_depth = max_depth, .depth = 1};
    strbuf_init(&w->todo, TODO_MAX);
    w->dir = path_open_beneath(topfd, ".", O_RDONLY | O_DIRECTORY);
    return w->dir < 0 ? w->dir : dirents_init(&w->names);
}

void walk_done(struct walk *w)
{
    close_p(&w->top);
    close_p(&w->dir);
    strbuf_done(&w->todo);
    dirents_done(&w->names);
}

static int push(struct walk *w, const char *path)
{
    struct todo_tail tail = {w->depth + 1, (uint32_t)strlen(path) + 1};

    strbuf_add(&w->todo, path, tail.len);
    strbuf_add(&w->todo, &tail, sizeof(tail));
    return w->todo.truncated ? -E2BIG : 0;
}

/* Opens the next directory that is still there and readable. 1, or 0 if none is left. */
static int pop(struct walk *w)
{
    while (w->todo.len > 0) {
        struct todo_tail tail;

        memcpy(&tail, w->todo.buf + w->todo.len - sizeof(tail), sizeof(tail));
        w->todo.len -= sizeof(tail) + tail.len;
        memcpy(w->here, w->todo.buf + w->todo.len, tail.len);
        w->todo.buf[w->todo.len] = '\0';
        w->depth = tail.depth;
        w->dir = path_open_beneath(w->top, w->here, O_RDONLY | O_DIRECTORY);
        if (w->dir >= 0)
            return 1;
    }
    w->dir = -1;
    return 0;
}

static bool is_dir(int dirfd, const struct dirent_name *d)
{
    struct stat st;

    if (d->type != DT_UNKNOWN)
        return d->type == DT_DIR;
    return fstatat(dirfd, d->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int fill(struct walk *w, const struct dirent_name *d, struct walk_entry *ret)
{
    int n =
        snprintf(ret->path, sizeof(ret->path), "%s%s%s", w->here, w->here[0] ? "/" : "", d->name);

    if (n < 0 || (size_t)n >= sizeof(ret->path))
        return -ENAMETOOLONG;
    ret->dirfd = w->dir;
    ret->name = d->name;
    ret->is_dir = is_dir(w->dir, d);
    int r = ret->is_dir && w->depth < w->max_depth ? push(w, ret->path) : 0;
    return r < 0 ? r : 1;
}

int walk_next(struct walk *w, struct walk_entry *ret)
{
    for (;;) {
        struct dirent_name d;

        if (w->dir < 0 && pop(w) == 0)
            return 0;
        int r = dirents_next(&w->names, w->dir, &d);
        if (r == 1)
            return fill(w, &d, ret);
        close(w->dir);
        w->dir = -1;
        dirents_reset(&w->names);
        if (r < 0)
            return r;
    }
}
