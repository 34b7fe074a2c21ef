#include "warden/sandboxes/snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "lib/log/log.h"
#include "warden/providers/provider.h"
#include "warden/processes/task.h"
#include "warden/server.h"
#include "warden/host/child.h"
#include "warden/layers/layer_save.h"
#include "warden/layers/tree.h"

#define CHILD_MS 5000

struct snapshot {
    struct list link;
    char name[ID_LEN + 1]; /* "": without a name, or forgotten */
    char file[ID_LEN + 1]; /* its directory's name in layers/ or work/ */
    bool durable;
    int dir;        /* -1: it is being written */
    unsigned users; /* the name counts as one */
};

struct save {
    struct server *server;
    struct snapshot *snapshot; /* that is being written */
    struct snapshot *below;
    char aside[ID_LEN + 8]; /* its directory's name while it is being written */
    int pidfd, pipe;
    struct loop_source process;
    save_done done; /* NULL: cancelled */
    void *arg;
};

/* The child's answer. */
struct save_result {
    int32_t code, kind;
    uint64_t bytes;
    char message[256];
};

static int parent_of(const struct server *s, bool durable)
{
    return durable ? s->state.snapshots : s->state.work;
}

/* ---- removing -------------------------------------------------------------------------------- */

static int removal_work(const int *fds, void *arg)
{
    return tree_remove(fds[0], arg, NULL);
}

static void on_removed(void *arg, int status)
{
    (void)status; /* what is left, the next start removes */
    free(arg);
}

static void remove_dir(struct server *s, int parent, const char *name)
{
    task_start(s, &parent, 1, removal_work, on_removed, xstrdup(name));
}

/* Moves a directory aside and removes it. If the removal does not finish, the next start removes
 * it: no snapshot has such a name. */
static void set_aside(struct server *s, int parent, const char *name)
{
    char aside[ID_LEN + 8], id[ID_LEN + 1];

    id_random(id);
    snprintf(aside, sizeof(aside), "old-%s", id);
    if (renameat(parent, name, parent, aside) == 0)
        remove_dir(s, parent, aside);
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct snapshot *snapshot_new(struct server *s, const char *name, const char *file,
                                     bool durable)
{
    struct snapshot *l = xcalloc(1, sizeof(*l));

    *l = (struct snapshot){.durable = durable, .dir = -1, .users = 1};
    snprintf(l->name, sizeof(l->name), "%s", name);
    snprintf(l->file, sizeof(l->file), "%s", file);
    list_push(&s->snapshots, &l->link);
    return l;
}

static int snapshot_open(struct server *s, struct snapshot *l, struct sg_error *e)
{
    l->dir =
        openat(parent_of(s, l->durable), l->file, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (l->dir < 0)
        return err_errno(e, "open the layer '%s'", l->file);
    return 0;
}

static void snapshot_free(struct snapshot *l)
{
    list_remove(&l->link);
    close_p(&l->dir);
    free(l);
}

static struct snapshot *find_name(struct server *s, const char *name)
{
    return LIST_FIND(struct snapshot, l, &s->snapshots, link, strcmp(l->name, name) == 0);
}

struct snapshot *snapshot_find(struct server *s, const char *name)
{
    struct snapshot *l = find_name(s, name);

    return l && l->dir >= 0 ? l : NULL;
}

const int *snapshot_dir(const struct snapshot *l)
{
    return &l->dir;
}

struct snapshot *snapshot_use(struct snapshot *l)
{
    l->users++;
    return l;
}

void snapshot_release(struct server *s, struct snapshot *l)
{
    if (!l || --l->users > 0)
        return;
    set_aside(s, parent_of(s, l->durable), l->file);
    snapshot_free(l);
}

/* A durable snapshot gets another file name at once, so that no later server finds it. */
void snapshot_forget(struct server *s, struct snapshot *l)
{
    char file[ID_LEN + 1];

    if (!l->name[0])
        return;
    l->name[0] = '\0';
    id_random(file);
    if (l->durable && renameat(s->state.snapshots, l->file, s->state.work, file) == 0) {
        l->durable = false;
        snprintf(l->file, sizeof(l->file), "%s", file);
    }
    snapshot_release(s, l);
}

/* A name in layers/ that no snapshot can have was left by a server that was killed: it is
 * removed. */
static void load_one(struct server *s, const char *name)
{
    struct sg_error e;

    if (id_valid(name)) {
        struct snapshot *l = snapshot_new(s, name, name, true);
        if (snapshot_open(s, l, &e) < 0) {
            log_line(LEVEL_WARN, "%s", e.message);
            snapshot_free(l);
        }
    } else if (strncmp(name, "new-", 4) == 0 || strncmp(name, "old-", 4) == 0) {
        remove_dir(s, s->state.snapshots, name);
    }
}

int snapshots_load(struct server *s, struct sg_error *e)
{
    int fd = openat(s->state.snapshots, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

void snapshots_unload(struct server *s)
{
    LIST_EACH(struct snapshot, l, &s->snapshots, link)
        snapshot_free(l);
    if (s->state.dir >= 0)
        tree_remove(s->state.dir, "work", NULL);
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* Saves the layers of a stack one after the other. Each step but the last writes a temporary layer,
 * which is the next one's `below`. */
static int save_all(struct layer_save *l, const struct layer_stack_view *layer_stack, int work,
                    uint64_t *ret_bytes, struct sg_error *e)
{
    struct layer_save between = *l;
    char names[2][ID_LEN + 1], aside[ID_LEN + 8];
    int r = 0;

    l->upper = between.upper = -1;
    between.parent = work;
    between.durable = false;
    for (size_t i = 0; i < layer_stack->n && r == 0; i++) {
        bool last = i + 1 == layer_stack->n;
        struct layer_save *to = last ? l : &between;
        uint64_t bytes;

        to->below = between.below;
        to->upper = openat(layer_stack->v[i].mount, layer_stack->v[i].dir,
                           O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (to->upper < 0)
            return err_errno(e, "open the upper layer");
        if (last)
            break;
        id_random(names[i % 2]);
        snprintf(aside, sizeof(aside), "new-%s", names[i % 2]);
        between.aside = aside;
        between.name = names[i % 2];
        r = layer_save_write(&between, &bytes, e);
        close(to->upper);
        if (i > 0)
            tree_remove(work, names[(i + 1) % 2], NULL);
        between.below = openat(work, names[i % 2], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (r == 0)
        r = layer_save_write(l, ret_bytes, e);
    if (layer_stack->n > 1)
        tree_remove(work, names[(layer_stack->n - 2) % 2], NULL);
    return r;
}

static _Noreturn void save_child(struct layer_save *l, const struct layer_stack_view *layer_stack,
                                 int work, int out)
{
    struct save_result result = {0};
    struct sg_error e = {0};

    result.code = save_all(l, layer_stack, work, &result.bytes, &e);
    result.kind = (int32_t)e.kind;
    snprintf(result.message, sizeof(result.message), "%.255s", e.message);
    _exit(fd_write_all(out, &result, sizeof(result)) < 0);
}

/* Removes what was written, however far the child had come: nobody wants it, or the child was
 * killed. */
static void save_undo(struct save *v)
{
    int parent = parent_of(v->server, v->snapshot->durable);

    set_aside(v->server, parent, v->aside);
    set_aside(v->server, parent, v->snapshot->file);
    snapshot_free(v->snapshot);
}

static int save_outcome(struct save *v, uint64_t *ret_bytes, struct sg_error *e)
{
    struct save_result result;

    if (read(v->pipe, &result, sizeof(result)) != sizeof(result))
        return err_set(e, SG_ERR_LIMIT, -ECHILD,
                       "the process that wrote the snapshot was killed: try again");
    result.message[sizeof(result.message) - 1] = '\0';
    if (result.code < 0)
        return err_set(e, (enum sg_error_kind)result.kind, result.code, "%s", result.message);
    *ret_bytes = result.bytes;
    return 0;
}

static void on_saved(struct loop_source *src, uint32_t events)
{
    struct save *v = CONTAINER_OF(src, struct save, process);
    struct server *s = v->server;
    struct sg_error e = {0};
    uint64_t bytes = 0;
    int r = save_outcome(v, &bytes, &e);

    (void)events;
    loop_unwatch(&s->loop, &v->process);
    child_reap(&v->pidfd, NULL);
    close(v->pipe);
    snapshot_release(s, v->below);
    if (r == 0 && v->done)
        r = snapshot_open(s, v->snapshot, &e);
    if (r == 0 && v->done) {
        /* The name, if there is one, counts as a user, and the caller as another. */
        v->snapshot->users = v->snapshot->name[0] ? 2 : 1;
        v->done(v->arg, v->snapshot, bytes, NULL);
    } else {
        save_undo(v);
        if (v->done)
            v->done(v->arg, NULL, 0, &e);
    }
    free(v);
}

void snapshot_save_cancel(struct save *v)
{
    v->done = NULL;
    child_kill(v->pidfd);
}

/* Order of the descriptors that the child gets; the layers follow from SAVE_FIXED on. */
enum { SAVE_BELOW, SAVE_PARENT, SAVE_WORK, SAVE_OUT, SAVE_FIXED };

static int save_start(struct server *s, struct save *v, const struct save_order *o,
                      struct sg_error *e)
{
    struct layer_stack_view layer_stack = {0};
    int pipes[2], fds[SAVE_FIXED + LAYER_STACK_MAX];

    if (o->from)
        OPS(o->from)->files->layers(o->from, &layer_stack);
    else
        s->provider->files->layers_of(o->stack, &layer_stack);
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_errno(e, "make a pipe");
    fds[SAVE_BELOW] = o->below ? o->below->dir : -1;
    fds[SAVE_PARENT] = parent_of(s, o->durable);
    fds[SAVE_WORK] = s->state.work;
    fds[SAVE_OUT] = pipes[1];
    for (size_t i = 0; i < layer_stack.n; i++)
        fds[SAVE_FIXED + i] = layer_stack.v[i].mount;
    pid_t pid = task_fork(fds, SAVE_FIXED + layer_stack.n, &v->pidfd);
    if (pid == 0) {
        struct layer_save l = {.first_id = layer_stack.first_id,
                               .below = fds[SAVE_BELOW],
                               .parent = fds[SAVE_PARENT],
                               .aside = v->aside,
                               .name = v->snapshot->file,
                               .durable = o->durable};
        for (size_t i = 0; i < layer_stack.n; i++)
            layer_stack.v[i].mount = fds[SAVE_FIXED + i];
        save_child(&l, &layer_stack, fds[SAVE_WORK], fds[SAVE_OUT]);
    }
    close(pipes[1]);
    if (pid < 0) {
        close(pipes[0]);
        return err_errno(e, "start writing a snapshot");
    }
    v->pipe = pipes[0];
    loop_watch(&s->loop, &v->process, v->pidfd, EPOLLIN);
    return 0;
}

struct save *snapshot_save(struct server *s, const struct save_order *o, save_done done, void *arg,
                           struct sg_error *e)
{
    char file[ID_LEN + 1];
    struct save *v;

    if (!s->state.maps_ids || !s->provider->files) {
        err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                "the file system of the server's state directory cannot hold snapshots");
        return NULL;
    }
    if (o->name && find_name(s, o->name)) {
        err_set(e, SG_ERR_INVALID, -EEXIST, "there is a snapshot '%s' already", o->name);
        return NULL;
    }
    id_random(file);
    v = xcalloc(1, sizeof(*v));
    *v = (struct save){.server = s,
                       .snapshot = snapshot_new(s, o->name ? o->name : "",
                                                o->durable && o->name ? o->name : file, o->durable),
                       .pidfd = -1,
                       .pipe = -1,
                       .process = {.fd = -1, .fn = on_saved},
                       .done = done,
                       .arg = arg};
    snprintf(v->aside, sizeof(v->aside), "new-%s", file);
    if (save_start(s, v, o, e) < 0) {
        snapshot_free(v->snapshot);
        free(v);
        return NULL;
    }
    v->below = o->below ? snapshot_use(o->below) : NULL;
    return v;
}
