#include "warden/sandboxes/snapshot.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/log/log.h"
#include "warden/processes/files_worker.h"
#include "warden/providers/provider.h"
#include "warden/sandboxes/snapshot_family.h"
#include "warden/server.h"

struct snapshot {
    struct list link;
    struct family *family;
    char name[ID_LEN + 1]; /* "": without a name, or forgotten */
    char file[FILES_NAME]; /* its directory's name in the family */
    int dir;               /* -1: it is being written */
    unsigned users;        /* the name counts as one */
    /* That it is, or that it stands on; .dir -1: none. Its descriptor is `dir`, or the family's. */
    struct world_source world;
};

struct save {
    struct server *server;
    struct snapshot *snapshot; /* that is being written */
    struct snapshot *below;    /* or the one that is copied */
    struct files_worker *worker;
    char aside[FILES_NAME]; /* its directory's name while it is being written */
    save_done done;         /* NULL: cancelled */
    void *arg;
};

/* ---- the table ------------------------------------------------------------------------------- */

/* Takes the family over. */
static struct snapshot *snapshot_new(struct family *f, const char *name, const char *file)
{
    struct snapshot *l =
        NEW(struct snapshot, .family = f, .dir = -1, .users = 1, .world = f->world);

    snprintf(l->name, sizeof(l->name), "%s", name);
    snprintf(l->file, sizeof(l->file), "%s", file);
    list_push(&f->server->snapshots, &l->link);
    return l;
}

static int snapshot_open(struct snapshot *l, struct sg_error *e)
{
    l->dir = openat(l->family->dir, l->file, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return l->dir < 0 ? err_errno(e, "open the snapshot '%s'", l->file) : 0;
}

static void snapshot_free(struct snapshot *l)
{
    list_remove(&l->link);
    close_p(&l->dir);
    family_release(l->family);
    free(l);
}

static struct snapshot *find_name(struct server *s, const char *name)
{
    return LIST_FIND(struct snapshot, l, &s->snapshots, link, strcmp(l->name, name) == 0);
}

bool snapshot_is_world(const struct snapshot *l)
{
    return l->family->worlds;
}

const int *snapshot_dir(const struct snapshot *l)
{
    return snapshot_is_world(l) ? NULL : &l->dir;
}

int snapshot_tree(const struct snapshot *l, const char **ret_name)
{
    *ret_name = l->file;
    return snapshot_is_world(l) ? -1 : l->family->dir;
}

const struct world_source *snapshot_world(const struct snapshot *l)
{
    return l && l->world.dir >= 0 ? &l->world : NULL;
}

bool snapshot_is_named(const struct snapshot *l)
{
    return l->name[0] != '\0';
}

struct snapshot *snapshot_use(struct snapshot *l)
{
    l->users++;
    return l;
}

static bool is_needed(struct server *s, const char *world)
{
    return LIST_FIND(struct snapshot, l, &s->snapshots, link, strcmp(l->world.id, world) == 0);
}

/* Removes a world whose name was forgotten, unless something is it or stands on it. */
static void remove_world(struct server *s, const char *id)
{
    char file[FILES_NAME];
    struct family *f;

    if (!id[0] || is_needed(s, id))
        return;
    f = family_of_worlds(s);
    world_gone_name(id, file);
    family_remove(f, file);
    family_release(f);
}

void snapshot_release(struct snapshot *l)
{
    char world[ID_LEN + 1];
    struct server *s;

    if (!l || --l->users > 0)
        return;
    s = l->family->server;
    memcpy(world, l->world.id, sizeof(world));
    if (!snapshot_is_world(l))
        family_remove(l->family, l->file);
    snapshot_free(l);
    remove_world(s, world);
}

/* Worlds are made by others while the server runs, so each is looked for when it is first wanted. */
static struct snapshot *find_world(struct server *s, const char *name)
{
    struct snapshot *l;
    struct sg_error e;

    if (faccessat(s->state.worlds, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return NULL;
    l = snapshot_new(family_of_worlds(s), name, name);
    if (snapshot_open(l, &e) < 0) {
        log_line(LEVEL_WARN, "%s", e.message);
        snapshot_free(l);
        return NULL;
    }
    l->world.dir = l->dir;
    snprintf(l->world.id, sizeof(l->world.id), "%s", name);
    return l;
}

struct snapshot *snapshot_find(struct server *s, const char *name)
{
    struct snapshot *l = find_name(s, name);

    if (!l)
        return find_world(s, name);
    return l->dir >= 0 ? l : NULL;
}

static void work_name(char ret[FILES_NAME])
{
    char id[ID_LEN + 1];

    id_random(id);
    snprintf(ret, FILES_NAME, "work-%s", id);
}

/* A durable snapshot gets another file name at once, so that no later server finds it. */
void snapshot_forget(struct snapshot *l)
{
    char file[FILES_NAME];

    if (!l->name[0])
        return;
    if (snapshot_is_world(l))
        world_gone_name(l->name, file);
    else
        work_name(file);
    l->name[0] = '\0';
    if (renameat(l->family->dir, l->file, l->family->dir, file) == 0)
        memcpy(l->file, file, sizeof(l->file));
    snapshot_release(l);
}

static void on_found(struct family *f, const char *name)
{
    struct snapshot *l = snapshot_new(family_use(f), name, name);
    struct sg_error e;

    if (snapshot_open(l, &e) < 0) {
        log_line(LEVEL_WARN, "%s", e.message);
        snapshot_free(l);
    }
}

int snapshots_load(struct server *s, struct sg_error *e)
{
    int r = families_load(s, on_found, e);

    if (r == 0)
        worlds_load(s, remove_world);
    return r;
}

void snapshots_unload(struct server *s)
{
    LIST_EACH(struct snapshot, l, &s->snapshots, link) {
        if (!snapshot_is_world(l) && !id_valid(l->file))
            family_remove(l->family, l->file);
        snapshot_free(l);
    }
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* Removes what was written, however far the worker had come: nobody wants it, or the worker was
 * killed. */
static void save_undo(struct save *v)
{
    char world[ID_LEN + 1];

    memcpy(world, v->snapshot->world.id, sizeof(world));
    family_remove(v->snapshot->family, v->aside);
    family_remove(v->snapshot->family, v->snapshot->file);
    snapshot_free(v->snapshot);
    remove_world(v->server, world);
}

static void on_saved(void *arg, const struct files_answer *a)
{
    struct save *v = arg;
    struct sg_error e = {0};
    int r = a->code;

    if (r < 0)
        err_set(&e, (enum sg_error_kind)a->kind, r, "%s", a->message);
    snapshot_release(v->below);
    if (r == 0 && v->done)
        r = snapshot_open(v->snapshot, &e);
    if (r == 0 && v->done) {
        /* The name, if there is one, counts as a user, and the caller as another. */
        v->snapshot->users = v->snapshot->name[0] ? 2 : 1;
        v->done(v->arg, v->snapshot, a->bytes, NULL);
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
    files_worker_kill(v->worker);
}

/* A copy is made of one layer, whose files have the ids that they have on disk. */
static void view_of_copy(const struct save_order *o, struct files_request *q,
                         struct layer_stack_view *ret)
{
    q->most = o->most;
    ret->n = 1;
    ret->v[0].mount = o->copy_of->family->dir;
    ret->v[0].dir = o->copy_of->file;
}

static int save_start(struct server *s, struct save *v, const struct save_order *o,
                      struct sg_error *e)
{
    AUTO(free_p) struct files_order *order = xcalloc(1, sizeof(*order));
    struct files_request *q = &order->request;
    struct layer_stack_view view = {0};

    files_order_init(order, FILES_SAVE);
    if (o->copy_of)
        view_of_copy(o, q, &view);
    else if (o->from)
        OPS(o->from)->files->layers(o->from, &view);
    else
        s->provider->files->layers_of(o->stack, &view);
    files_order_tree(order, v->snapshot->family->dir, 0); /* the first: where it is made */
    if (files_order_add_view(order, &view) < 0)
        return err_set(e, SG_ERR_LIMIT, -E2BIG,
                       "the sandbox's files are on too many file systems for a snapshot");
    q->flags = o->durable ? FILES_DURABLE : 0;
    snprintf(q->below, sizeof(q->below), "%s",
             o->below && !snapshot_is_world(o->below) ? o->below->file : "");
    snprintf(q->aside, sizeof(q->aside), "%s", v->aside);
    snprintf(q->name, sizeof(q->name), "%s", v->snapshot->file);
    v->worker = files_worker_start(s, order, on_saved, v, e);
    return v->worker ? 0 : -EAGAIN;
}

static int save_family(struct server *s, const struct save_order *o, struct family **ret,
                       struct sg_error *e)
{
    if (o->copy_of)
        return family_make(s, snapshot_world(o->copy_of), ret, e);
    if (!o->below || snapshot_is_world(o->below))
        return family_make(s, snapshot_world(o->below), ret, e);
    *ret = family_use(o->below->family);
    return 0;
}

struct save *snapshot_save(struct server *s, const struct save_order *o, save_done done, void *arg,
                           struct sg_error *e)
{
    char file[FILES_NAME], id[ID_LEN + 1];
    struct family *family;
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
    if (save_family(s, o, &family, e) < 0)
        return NULL;
    work_name(file);
    id_random(id);
    v = NEW(struct save, .server = s,
            .snapshot = snapshot_new(family, o->name ? o->name : "",
                                     o->durable && o->name ? o->name : file),
            .done = done, .arg = arg);
    snprintf(v->aside, sizeof(v->aside), "new-%s", id);
    if (save_start(s, v, o, e) < 0) {
        snapshot_free(v->snapshot);
        free(v);
        return NULL;
    }
    if (o->below || o->copy_of)
        v->below = snapshot_use(o->copy_of ? o->copy_of : o->below);
    return v;
}
