#include "serve/layer.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/sys.h"
#include "order/log.h"
#include "provider/process.h"
#include "serve/server.h"
#include "warden/child.h"
#include "warden/layer_save.h"
#include "warden/tree.h"

#define CHILD_MS 5000

struct layer {
    struct layer *next;
    char name[ID_LEN + 1]; /* "": it has none, or none any more */
    char file[ID_LEN + 1]; /* in layers/ or work/ */
    bool durable;
    int dir;        /* -1: it is being written */
    unsigned users; /* the name counts as one */
};

/* A child that removes a directory. */
struct removal {
    struct server *server;
    struct event_source process;
    int pidfd;
};

struct save {
    struct server *server;
    struct layer *layer; /* what it will be */
    struct layer *below;
    char aside[ID_LEN + 8]; /* its file while it is being written */
    int pidfd, pipe;
    struct event_source process;
    save_done done; /* NULL: cancelled */
    void *arg;
};

/* What the child says. */
struct save_result {
    int32_t code, kind;
    uint64_t bytes;
    char message[256];
};

static int parent_of(const struct server *s, bool durable)
{
    return durable ? s->state.layers : s->state.work;
}

/* ---- children
 * -------------------------------------------------------------------------------------- */

/* Like fork, but nothing that is open here stays open there, but for these: a copy of a lock or of
 * a line would outlive its sandbox. They are moved to 3 and up. */
static pid_t fork_with(int *fds, size_t n, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = CLONE_PIDFD, .pidfd = (uintptr_t)ret_pidfd, .exit_signal = SIGCHLD};
    pid_t parent = getpid(), pid = sys_clone3(&args);

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGTERM, SIG_DFL);
    for (size_t i = 0; i < n; i++)
        fds[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 1000);
    sys_close_range(3, 999, 0);
    for (size_t i = 0; i < n; i++)
        fds[i] = fds[i] < 0 ? -1 : dup3(fds[i], (int)(3 + i), O_CLOEXEC);
    sys_close_range(1000, ~0U, 0);
    return 0;
}

/* ---- removing
 * --------------------------------------------------------------------------------------- */

static void on_removed(struct event_source *src, uint32_t events)
{
    struct removal *r = CONTAINER_OF(src, struct removal, process);

    (void)events;
    reactor_unwatch(&r->server->reactor, &r->process);
    child_reap(&r->pidfd);
    free(r);
}

/* If it cannot be done now, the next start does it. */
static void remove_dir(struct server *s, int parent, const char *name)
{
    struct removal *r = xcalloc(1, sizeof *r);
    int fds[] = {parent};

    *r = (struct removal){.server = s, .pidfd = -1, .process = {.fd = -1, .fn = on_removed}};
    pid_t pid = fork_with(fds, 1, &r->pidfd);
    if (pid == 0)
        _exit(tree_remove(fds[0], name, NULL) < 0);
    if (pid < 0) {
        log_line(LEVEL_WARN, "cannot remove a layer now: %s", strerror(errno));
        free(r);
        return;
    }
    reactor_watch(&s->reactor, &r->process, r->pidfd, EPOLLIN);
}

/* Under a name that no layer has, and that the next start removes. */
static void set_aside(struct server *s, int parent, const char *name)
{
    char aside[ID_LEN + 8], id[ID_LEN + 1];

    id_random(id);
    snprintf(aside, sizeof aside, "old-%s", id);
    if (renameat(parent, name, parent, aside) == 0)
        remove_dir(s, parent, aside);
}

/* ---- the table
 * -------------------------------------------------------------------------------------- */

static struct layer *layer_new(struct server *s, const char *name, const char *file, bool durable)
{
    struct layer *l = xcalloc(1, sizeof *l);

    *l = (struct layer){.next = s->layers, .durable = durable, .dir = -1, .users = 1};
    snprintf(l->name, sizeof l->name, "%s", name);
    snprintf(l->file, sizeof l->file, "%s", file);
    s->layers = l;
    return l;
}

static int layer_open(struct server *s, struct layer *l, struct sg_error *e)
{
    l->dir =
        openat(parent_of(s, l->durable), l->file, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (l->dir < 0)
        return err_errno(e, "open the layer '%s'", l->file);
    return 0;
}

static void layer_free(struct server *s, struct layer *l)
{
    for (struct layer **p = &s->layers; *p; p = &(*p)->next)
        if (*p == l) {
            *p = l->next;
            break;
        }
    close_p(&l->dir);
    free(l);
}

static struct layer *find_name(struct server *s, const char *name)
{
    for (struct layer *l = s->layers; l; l = l->next)
        if (strcmp(l->name, name) == 0)
            return l;
    return NULL;
}

struct layer *layer_find(struct server *s, const char *name)
{
    struct layer *l = find_name(s, name);

    return l && l->dir >= 0 ? l : NULL;
}

const int *layer_dir(const struct layer *l)
{
    return &l->dir;
}

struct layer *layer_use(struct layer *l)
{
    l->users++;
    return l;
}

void layer_release(struct server *s, struct layer *l)
{
    if (!l || --l->users > 0)
        return;
    set_aside(s, parent_of(s, l->durable), l->file);
    layer_free(s, l);
}

/* A durable one gets another file name at once, so that no later server finds it. */
void layer_forget(struct server *s, struct layer *l)
{
    char file[ID_LEN + 1];

    if (!l->name[0])
        return;
    l->name[0] = '\0';
    id_random(file);
    if (l->durable && renameat(s->state.layers, l->file, s->state.work, file) == 0) {
        l->durable = false;
        snprintf(l->file, sizeof l->file, "%s", file);
    }
    layer_release(s, l);
}

/* A name in layers/ that is no layer's is what a server left that was killed. */
static void load_one(struct server *s, const char *name)
{
    struct sg_error e;

    if (id_valid(name)) {
        struct layer *l = layer_new(s, name, name, true);
        if (layer_open(s, l, &e) < 0) {
            log_line(LEVEL_WARN, "%s", e.message);
            layer_free(s, l);
        }
    } else if (strncmp(name, "new-", 4) == 0 || strncmp(name, "old-", 4) == 0) {
        remove_dir(s, s->state.layers, name);
    }
}

int layers_load(struct server *s, struct sg_error *e)
{
    int fd = openat(s->state.layers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        int r = err_errno(e, "list '%s/layers'", s->state.path);
        close_p(&fd);
        return r;
    }
    while ((entry = readdir(d)) != NULL)
        load_one(s, entry->d_name);
    closedir(d);
    return 0;
}

void layers_unload(struct server *s)
{
    while (s->layers)
        layer_free(s, s->layers);
    if (s->state.dir >= 0)
        tree_remove(s->state.dir, "work", NULL);
}

/* ---- saving
 * ------------------------------------------------------------------------------------------ */

static _Noreturn void save_child(const struct layer_save *l, int out)
{
    struct save_result result = {0};
    struct sg_error e = {0};

    result.code = layer_save_write(l, &result.bytes, &e);
    result.kind = (int32_t)e.kind;
    snprintf(result.message, sizeof result.message, "%.255s", e.message);
    _exit(fd_write_all(out, &result, sizeof result) < 0);
}

/* Nobody wants it, or its writer was killed, wherever that had come to. */
static void save_undo(struct save *v)
{
    int parent = parent_of(v->server, v->layer->durable);

    set_aside(v->server, parent, v->aside);
    set_aside(v->server, parent, v->layer->file);
    layer_free(v->server, v->layer);
}

static int save_outcome(struct save *v, uint64_t *ret_bytes, struct sg_error *e)
{
    struct save_result result;

    if (read(v->pipe, &result, sizeof result) != sizeof result)
        return err_set(e, SG_ERR_INTERNAL, -ECHILD, "what was writing the snapshot has ended");
    result.message[sizeof result.message - 1] = '\0';
    if (result.code < 0)
        return err_set(e, (enum sg_error_kind)result.kind, result.code, "%s", result.message);
    *ret_bytes = result.bytes;
    return 0;
}

static void on_saved(struct event_source *src, uint32_t events)
{
    struct save *v = CONTAINER_OF(src, struct save, process);
    struct server *s = v->server;
    struct sg_error e = {0};
    uint64_t bytes = 0;
    int r = save_outcome(v, &bytes, &e);

    (void)events;
    reactor_unwatch(&s->reactor, &v->process);
    child_reap(&v->pidfd);
    close(v->pipe);
    layer_release(s, v->below);
    if (r == 0 && v->done)
        r = layer_open(s, v->layer, &e);
    if (r == 0 && v->done) {
        /* One use for the name, if it has one, and one for the caller. */
        v->layer->users = v->layer->name[0] ? 2 : 1;
        v->done(v->arg, v->layer, bytes, NULL);
    } else {
        save_undo(v);
        if (v->done)
            v->done(v->arg, NULL, 0, &e);
    }
    free(v);
}

void layer_save_cancel(struct save *v)
{
    v->done = NULL;
    child_kill(v->pidfd);
}

static int save_start(struct server *s, struct save *v, const struct save_order *o,
                      struct sg_error *e)
{
    uint32_t first_id = 0;
    int pipes[2], upper = o->from ? instance_upper(o->from, &first_id) : -1;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_errno(e, "make a pipe");
    int fds[] = {upper, o->below ? o->below->dir : -1, parent_of(s, o->durable), pipes[1]};
    pid_t pid = fork_with(fds, ARRAY_SIZE(fds), &v->pidfd);
    if (pid == 0) {
        struct layer_save l = {.upper = fds[0],
                               .first_id = first_id,
                               .below = fds[1],
                               .parent = fds[2],
                               .aside = v->aside,
                               .name = v->layer->file,
                               .durable = o->durable};
        save_child(&l, fds[3]);
    }
    close(pipes[1]);
    if (pid < 0) {
        close(pipes[0]);
        return err_errno(e, "start writing a snapshot");
    }
    v->pipe = pipes[0];
    reactor_watch(&s->reactor, &v->process, v->pidfd, EPOLLIN);
    return 0;
}

struct save *layer_save(struct server *s, const struct save_order *o, save_done done, void *arg,
                        struct sg_error *e)
{
    char file[ID_LEN + 1];
    struct save *v;

    if (!s->state.maps_ids) {
        err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                "the file system of the server's state directory cannot hold snapshots");
        return NULL;
    }
    if (o->name && find_name(s, o->name)) {
        err_set(e, SG_ERR_INVALID, -EEXIST, "there is a snapshot '%s' already", o->name);
        return NULL;
    }
    id_random(file);
    v = xcalloc(1, sizeof *v);
    *v = (struct save){.server = s,
                       .layer = layer_new(s, o->name ? o->name : "",
                                          o->durable && o->name ? o->name : file, o->durable),
                       .pidfd = -1,
                       .pipe = -1,
                       .process = {.fd = -1, .fn = on_saved},
                       .done = done,
                       .arg = arg};
    snprintf(v->aside, sizeof v->aside, "new-%s", file);
    if (save_start(s, v, o, e) < 0) {
        layer_free(s, v->layer);
        free(v);
        return NULL;
    }
    v->below = o->below ? layer_use(o->below) : NULL;
    return v;
}
