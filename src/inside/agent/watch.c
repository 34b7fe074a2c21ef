/* OP_FILE_WATCH: inotify, one instance per stream.
 *
 * To watch a directory, the agent enters it and watches ".": inotify only takes names, and would
 * follow any link in them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "inside/agent/entry.h"
#include "inside/agent/serve.h"
#include "inside/agent/staged.h"
#include "inside/agent/walk.h"
#include "inside/stage/confine.h"

#define WATCHES_MAX    4096
#define ENTRIES_A_TURN 256
#define READS_A_TURN   64
#define TODO_MAX       (1u * 1024 * 1024)
#define EVENTS \
    (IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF)

struct watched {
    int wd;
    bool old;   /* it is in a former root: only events from before the move are still expected */
    char *path; /* path below the top */
};

struct watcher {
    struct op op;
    struct loop_source src;
    int fd;
    bool recursive, entries, paused;
    bool ready;       /* EVENT_WATCHING was sent */
    bool asked;       /* EVENT_CAUGHT_UP is to be sent */
    uint32_t replace; /* cookie of a staged file that is being renamed over an existing file */
    struct watched *watched;
    size_t n, cap, n_old;
    bool walking; /* a walk below `base` is under way */
    struct walk walk;
    char base[OPS_PATH_MAX];
    struct strbuf todo; /* directories that appeared, each ending in NUL */
    char path[OPS_PATH_MAX];
};

/* Appends the entry of the file as it is now. If the file is gone again, the change comes
 * without. */
static void put_change_entry(const struct watcher *w, uint32_t what, const char *path,
                             struct strbuf *out)
{
    bool wanted = what == WATCH_CREATE || what == WATCH_WRITE || what == WATCH_CHMOD;
    char full[OPS_PATH_MAX];
    AUTO(strbuf_done) struct strbuf entry = strbuf_upto(ENTRY_MAX);
    bool known = wanted && path_join(full, w->path, path) == 0 && entry_put_path(&entry, full) == 0;

    wire_put_u32(out, known);
    if (known)
        strbuf_add(out, entry.buf, entry.len);
}

/* Call it with the permissions of the user, except for WATCH_OVERFLOW. */
static void send_change(struct watcher *w, uint32_t what, const char *path)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(OPS_PATH_MAX + ENTRY_MAX + 64);

    wire_put_u32(&out, what);
    wire_put_str(&out, path);
    if (w->entries)
        put_change_entry(w, what, path, &out);
    if (!out.truncated)
        chan_event(w->op.agent->chan, w->op.stream, EVENT_CHANGE, out.buf, out.len);
}

static void remember(struct watcher *w, int wd, const char *path)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->watched[i].wd == wd)
            return; /* found twice, by an event and by the walk */
    w->watched = xgrow(w->watched, w->n, &w->cap, sizeof(*w->watched));
    w->watched[w->n++] = (struct watched){.wd = wd, .path = xstrdup(path)};
}

static void forget(struct watcher *w, size_t i)
{
    w->n_old -= w->watched[i].old;
    free(w->watched[i].path);
    w->watched[i] = w->watched[--w->n];
}

/* Opens a directory of the tree. The top is opened anew each time: an open descriptor would keep a
 * removed directory alive, and inotify would not report its removal. */
static int open_below(const struct watcher *w, const char *path)
{
    AUTO(close_p) int top = -1;
    int r = path_open_dir(w->path, false, &top);

    if (r < 0)
        return r;
    return path_open_beneath(top, path[0] ? path : ".", O_PATH | O_DIRECTORY);
}

/* Call it with the permissions of the user. Leaves the agent in the directory: the caller must
 * return to the root. */
static int watch_dir(struct watcher *w, const char *path)
{
    AUTO(close_p) int dir = open_below(w, path);

    if (dir < 0)
        return dir;
    if (w->n - w->n_old == WATCHES_MAX)
        return -E2BIG;
    if (fchdir(dir) < 0)
        return -errno;
    int wd = inotify_add_watch(w->fd, ".", EVENTS | IN_ONLYDIR);
    if (wd < 0)
        return -errno;
    remember(w, wd, path);
    return 0;
}

/* Begins to watch `path` and, if asked for, what is below it. */
static int watch_tree(struct watcher *w, const char *path)
{
    int r = watch_dir(w, path);

    if (r < 0 || !w->recursive)
        return r;
    int top = open_below(w, path);
    if (top < 0)
        return top;
    w->walking = true;
    snprintf(w->base, sizeof(w->base), "%s", path);
    return walk_init(&w->walk, top, UINT32_MAX, !w->ready);
}

/* Errors for a directory that went away after it was seen, before it could be watched. */
static bool is_gone(int r)
{
    return r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ELOOP;
}

/* 1: more to do, 0: this walk has ended. */
static int walk_some(struct watcher *w)
{
    struct walk_entry entry;
    char path[OPS_PATH_MAX];

    for (unsigned i = 0; i < ENTRIES_A_TURN && (!w->ready || op_may_send(&w->op)); i++) {
        int r = walk_next(&w->walk, &entry);
        if (r <= 0)
            return r;
        if (r == WALK_BUSY || staged_kind_of(entry.name) != STAGED_NOT)
            continue;
        r = path_join(path, w->base, entry.path);
        /* the contents of a new directory were made before anybody could see it happen */
        if (r == 0 && w->ready)
            send_change(w, WATCH_CREATE, path);
        if (r == 0 && entry.is_dir)
            r = watch_dir(w, path);
        if (r < 0 && !is_gone(r))
            return r;
    }
    return 1;
}

static int next_tree(struct watcher *w)
{
    char path[OPS_PATH_MAX];

    if (w->todo.len == 0)
        return 0;
    snprintf(path, sizeof(path), "%s", w->todo.buf);
    strbuf_consume(&w->todo, strlen(path) + 1);
    int r = watch_tree(w, path);
    return r < 0 && !is_gone(r) ? r : 1;
}

static void stop_walking(struct watcher *w)
{
    if (w->walking)
        walk_done(&w->walk);
    w->walking = false;
}

static void watch_failed(struct watcher *w, int r)
{
    struct sg_error e = {0};

    if (r == -E2BIG || r == -ENAMETOOLONG || r == -ENOSPC)
        err_set(&e, SG_ERR_LIMIT, -E2BIG,
                "'%.300s' holds more than %d directories: watch a smaller part of it", w->path,
                WATCHES_MAX);
    else
        path_error(&e, r, "watch", w->path);
    op_fail(&w->op, &e);
}

/* All changes until the question have been told, also those in directories that are new. */
static void answer_if_caught_up(struct watcher *w)
{
    if (!w->asked || !w->ready || w->walking || w->todo.len > 0)
        return;
    w->asked = false;
    chan_event(w->op.agent->chan, w->op.stream, EVENT_CAUGHT_UP, NULL, 0);
}

/* If there is no room for more watches, later changes are missed: says so, and goes on with the
 * rest. */
static void watch_turn(struct op *op)
{
    struct watcher *w = CONTAINER_OF(op, struct watcher, op);
    int r = confine_fs_begin(op->as);

    if (r == 0) {
        r = w->walking ? walk_some(w) : next_tree(w);
        confine_fs_end();
    }
    if (chdir("/") < 0)
        r = -errno;
    if (r < 0 && !w->ready) {
        watch_failed(w, r);
        return;
    }
    if (r < 0)
        send_change(w, WATCH_OVERFLOW, "");
    if (r <= 0)
        stop_walking(w);
    if (!w->walking && !w->ready) {
        loop_watch(&op->agent->loop, &w->src, w->fd, EPOLLIN);
        w->ready = true;
        chan_event(op->agent->chan, op->stream, EVENT_WATCHING, NULL, 0);
    }
    if ((w->walking || w->todo.len > 0) && op_may_send(op))
        op_again(op);
    answer_if_caught_up(w);
}

static uint32_t change_of(uint32_t mask)
{
    if (mask & (IN_CREATE | IN_MOVED_TO))
        return WATCH_CREATE;
    if (mask & IN_MODIFY)
        return WATCH_WRITE;
    if (mask & (IN_DELETE | IN_DELETE_SELF))
        return WATCH_REMOVE;
    return mask & IN_MOVED_FROM ? WATCH_RENAME : WATCH_CHMOD;
}

/* A directory was moved away: drops the watches below it. If it arrives elsewhere in the tree, it
 * is found there again. */
static void drop_tree(struct watcher *w, const char *path)
{
    size_t len = strlen(path);

    for (size_t i = w->n; i-- > 0;)
        if (strncmp(w->watched[i].path, path, len) == 0 &&
            (w->watched[i].path[len] == '/' || w->watched[i].path[len] == '\0')) {
            inotify_rm_watch(w->fd, w->watched[i].wd);
            forget(w, i);
        }
}

static void follow_dirs(struct watcher *w, uint32_t mask, const char *path)
{
    if (!w->recursive || !(mask & IN_ISDIR))
        return;
    if (mask & IN_MOVED_FROM)
        drop_tree(w, path);
    if (!(mask & (IN_CREATE | IN_MOVED_TO)))
        return;
    strbuf_add(&w->todo, path, strlen(path) + 1);
    if (w->todo.truncated) {
        strbuf_reset(&w->todo);
        send_change(w, WATCH_OVERFLOW, "");
    }
    op_again(&w->op);
}

/* The last change that was sent, to leave out repetitions. */
struct last_change {
    uint32_t what;
    char path[OPS_PATH_MAX];
};

/* Whether the event comes from staging: a file is written aside, then renamed. Only the final file
 * counts. */
static bool is_staging(struct watcher *w, const struct inotify_event *ev, const char *name)
{
    enum staged_kind kind = staged_kind_of(name);
    bool arrives = w->replace != 0 && ev->cookie == w->replace && (ev->mask & IN_MOVED_TO);

    if (kind == STAGED_REPLACES && (ev->mask & IN_MOVED_FROM))
        w->replace = ev->cookie;
    if (arrives)
        w->replace = 0;
    return arrives || kind != STAGED_NOT;
}

static void take_event(struct watcher *w, const struct inotify_event *ev, struct last_change *last)
{
    const char *name = ev->len > 0 ? ev->name : "";
    char path[OPS_PATH_MAX];
    size_t i;

    if (ev->mask & IN_Q_OVERFLOW) {
        send_change(w, WATCH_OVERFLOW, "");
        return;
    }
    for (i = 0; i < w->n && w->watched[i].wd != ev->wd; i++)
        ;
    if (i == w->n || path_join(path, w->watched[i].path, name) < 0)
        return;
    if (ev->mask & IN_IGNORED) {
        forget(w, i);
        return;
    }
    if (is_staging(w, ev, name))
        return;
    /* the directory above reports a directory's own changes; only the top has none */
    if (name[0] == '\0' && (path[0] != '\0' || !(ev->mask & IN_DELETE_SELF)))
        return;
    uint32_t what = change_of(ev->mask);
    if (what != last->what || strcmp(path, last->path) != 0)
        send_change(w, what, path);
    last->what = what;
    memcpy(last->path, path, strlen(path) + 1);
    follow_dirs(w, ev->mask, path);
}

/* 1: there were some, 0: none are left. */
static int take_some(struct watcher *w)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(w->op.as);
    _Alignas(struct inotify_event) char buf[4096];
    struct last_change last = {0};

    if (entered < 0)
        return entered;
    ssize_t n = read(w->fd, buf, sizeof(buf));
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *ev = (const void *)(buf + at);

        take_event(w, ev, &last);
        at += (ssize_t)(sizeof(*ev) + ev->len);
    }
    return n > 0;
}

static void on_inotify(struct loop_source *src, uint32_t events UNUSED)
{
    struct watcher *w = CONTAINER_OF(src, struct watcher, src);
    int r;

    if (!op_may_send(&w->op)) {
        loop_unwatch(&w->op.agent->loop, src);
        w->paused = true;
        return;
    }
    r = take_some(w);
    if (r < 0)
        watch_failed(w, r);
}

/* Programs can change files as fast as changes are read, so not all of the queue is waited for. */
static void watch_control(struct op *op, uint8_t what, struct wire_reader *r UNUSED)
{
    struct watcher *w = CONTAINER_OF(op, struct watcher, op);
    int some = 1;

    if (what != CONTROL_CATCH_UP)
        return;
    for (unsigned i = 0; i < READS_A_TURN && some > 0 && w->ready && op_may_send(op); i++)
        some = take_some(w);
    if (some < 0) {
        watch_failed(w, some);
        return;
    }
    w->asked = true;
    answer_if_caught_up(w);
}

static void watch_resume(struct op *op)
{
    struct watcher *w = CONTAINER_OF(op, struct watcher, op);

    if (w->paused)
        loop_watch(&op->agent->loop, &w->src, w->fd, EPOLLIN);
    w->paused = false;
    if (w->walking || w->todo.len > 0)
        op_again(op);
}

static void watch_destroy(struct op *op)
{
    struct watcher *w = CONTAINER_OF(op, struct watcher, op);

    loop_unwatch(&op->agent->loop, &w->src);
    stop_walking(w);
    close_p(&w->fd);
    strbuf_done(&w->todo);
    while (w->n > 0)
        forget(w, w->n - 1);
    free(w->watched);
}

static const struct op_ops watch_ops = {
    .control = watch_control, .resume = watch_resume, .turn = watch_turn, .destroy = watch_destroy};

/* ---- another root ---------------------------------------------------------------------------- */

/* Stops a watch in the old root. Events that inotify already has come first, then IN_IGNORED.
 * False: the watch was stopped before. */
static bool let_go(struct watcher *w, size_t i)
{
    if (w->watched[i].old)
        return false;
    inotify_rm_watch(w->fd, w->watched[i].wd);
    w->watched[i].old = true;
    w->n_old++;
    return true;
}

/* Watches the same tree in the new root. */
static int watch_same(struct watcher *w)
{
    size_t n = w->n;
    int r = 0, top;

    for (size_t i = 0; i < n; i++) {
        int res = let_go(w, i) ? watch_dir(w, w->watched[i].path) : 0;

        if (res < 0 && !is_gone(res))
            r = res;
    }
    if (!w->walking)
        return r;
    top = open_below(w, w->base);
    if (top < 0)
        stop_walking(w);
    else
        walk_move(&w->walk, top);
    return r;
}

/* Watches other files. What is there now is not reported as a change. */
static int watch_anew(struct watcher *w)
{
    bool ready = w->ready;
    int r;

    for (size_t i = 0; i < w->n; i++)
        let_go(w, i);
    stop_walking(w);
    strbuf_reset(&w->todo);
    w->ready = false;
    r = watch_tree(w, "");
    if (r >= 0 && w->walking)
        while ((r = walk_some(w)) > 0)
            ;
    if (ready)
        stop_walking(w);
    w->ready = ready;
    return r;
}

void file_watch_moved(struct agent *a, bool same)
{
    LIST_EACH(struct op, op, &a->ops, link) {
        struct watcher *w = CONTAINER_OF(op, struct watcher, op);
        int r;

        if (op->ops != &watch_ops)
            continue;
        r = confine_fs_begin(op->as);
        if (r == 0) {
            r = same ? watch_same(w) : watch_anew(w);
            confine_fs_end();
        }
        if (chdir("/") < 0)
            abort();
        if (r < 0 && w->ready) /* otherwise the walk under way finds out */
            send_change(w, is_gone(r) ? WATCH_REMOVE : WATCH_OVERFLOW, "");
    }
}

/* ---- the operation --------------------------------------------------------------------------- */

static int watch_open(struct watcher *w)
{
    int r;

    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->fd < 0)
        return -errno;
    r = confine_fs_begin(w->op.as);
    if (r < 0)
        return r;
    r = watch_tree(w, "");
    confine_fs_end();
    if (chdir("/") < 0)
        r = -errno;
    return r;
}

int file_watch_start(struct request *q)
{
    uint32_t flags = wire_get_u32(q->r);
    int res = request_done(q);

    if (res < 0)
        return res;
    struct watcher *w = op_new(q, &watch_ops, sizeof(*w));
    w->src = (struct loop_source){.fd = -1, .fn = on_inotify};
    w->fd = -1;
    w->recursive = (flags & FILE_RECURSIVE) != 0;
    w->entries = (flags & FILE_ENTRIES) != 0;
    strbuf_init(&w->todo, TODO_MAX);
    memcpy(w->path, q->path, sizeof(w->path));
    path_trim(w->path);
    res = watch_open(w);
    if (res < 0)
        watch_failed(w, res);
    else
        watch_turn(&w->op);
    return 0;
}
