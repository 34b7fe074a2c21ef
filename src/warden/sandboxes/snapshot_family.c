#include "warden/sandboxes/snapshot_family.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/log/log.h"
#include "warden/layers/marks.h"
#include "warden/processes/files_worker.h"
#include "warden/processes/task.h"
#include "warden/server.h"

#define OPEN_DIR  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define OPEN_PATH (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define GONE      "gone-"

static const char *prefix_of(const struct server *s)
{
    return s->files.userns >= 0 ? "user-" : "trusted-";
}

static const char *after(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

/* The world is the part of the name behind the dot. */
static int open_world(struct server *s, const char *name, struct world_source *ret,
                      struct sg_error *e)
{
    const char *dot = strchr(name, '.');
    char file[FILES_NAME];

    *ret = (struct world_source){.dir = -1};
    if (!dot)
        return 0;
    snprintf(ret->id, sizeof(ret->id), "%s", dot + 1);
    ret->dir = openat(s->state.worlds, ret->id, OPEN_PATH);
    if (ret->dir < 0 && errno == ENOENT) {
        world_gone_name(ret->id, file);
        ret->dir = openat(s->state.worlds, file, OPEN_PATH);
    }
    return ret->dir < 0 ? err_errno(e, "open '%s/worlds/%s', on which snapshots stand",
                                    s->state.path, ret->id)
                        : 0;
}

static int family_open(struct server *s, const char *name, struct family **ret, struct sg_error *e)
{
    AUTO(close_p) int fd = openat(s->state.snapshots, name, OPEN_DIR);
    struct world_source world;
    struct family *f;
    int r;

    if (fd < 0)
        return err_errno(e, "open '%s/layers/%.64s'", s->state.path, name);
    r = open_world(s, name, &world, e);
    if (r < 0)
        return r;
    f = NEW(struct family, .server = s, .dir = steal_fd(&fd), .world = world, .users = 1);
    snprintf(f->name, sizeof(f->name), "%s", name);
    *ret = f;
    return 0;
}

void world_gone_name(const char *id, char ret[FILES_NAME])
{
    snprintf(ret, FILES_NAME, GONE "%s", id);
}

struct family *family_of_worlds(struct server *s)
{
    return NEW(struct family, .server = s, .dir = fcntl(s->state.worlds, F_DUPFD_CLOEXEC, 0),
               .worlds = true, .world.dir = -1, .users = 1);
}

int family_make(struct server *s, const struct world_source *world, struct family **ret,
                struct sg_error *e)
{
    char id[ID_LEN + 1], name[FAMILY_NAME];

    id_random(id);
    snprintf(name, sizeof(name), "%s%s%s%s", prefix_of(s), id, world ? "." : "",
             world ? world->id : "");
    if (mkdirat(s->state.snapshots, name, 0700) < 0)
        return err_errno(e, "make '%s/layers/%s'", s->state.path, name);
    return family_open(s, name, ret, e);
}

struct family *family_use(struct family *f)
{
    f->users++;
    return f;
}

void family_release(struct family *f)
{
    if (--f->users > 0)
        return;
    if (!f->worlds)
        unlinkat(f->server->state.snapshots, f->name, AT_REMOVEDIR);
    close_p(&f->world.dir);
    close_p(&f->dir);
    free(f);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void on_removed(void *arg, const struct files_answer *a)
{
    struct family *f = arg;

    if (a->code < 0)
        log_line(LEVEL_WARN, "files in '%s/layers/%s' could not be removed: %s",
                 f->server->state.path, f->name, a->message);
    family_release(f);
}

void family_remove(struct family *f, const char *name)
{
    AUTO(free_p) struct files_order *o = xcalloc(1, sizeof(*o));
    char aside[ID_LEN + 8], id[ID_LEN + 1];
    struct sg_error e = {0};

    id_random(id);
    snprintf(aside, sizeof(aside), "old-%s", id);
    if (renameat(f->dir, name, f->dir, aside) < 0)
        return;
    files_order_init(o, FILES_REMOVE);
    files_order_add(o, f->dir, 0, aside, false);
    family_use(f);
    if (!files_worker_start(f->server, o, on_removed, f, &e)) {
        log_line(LEVEL_WARN, "%s", e.message);
        family_release(f);
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

struct converting {
    bool trusted, over;
    int status;
};

/* Runs in the child, which is root: no other can read and write both kinds of marks. */
static int convert(const int *fds, void *arg)
{
    const struct converting *c = arg;

    return marks_convert(fds[0], c->trusted);
}

static void on_converted(void *arg, int status)
{
    struct converting *c = arg;

    c->over = true;
    c->status = status;
}

/* There is nothing else to do yet, so it waits. */
static int change_marks(struct server *s, int dir, const char *name, struct sg_error *e)
{
    struct converting c = {.trusted = s->files.userns < 0};

    log_line(LEVEL_INFO, "the marks of the snapshots in 'layers/%s' are changed", name);
    task_start(s, &dir, 1, convert, on_converted, &c);
    while (!c.over && loop_turn(&s->loop) == 0)
        ;
    return c.status == 0 ? 0
                         : err_set(e, SG_ERR_INTERNAL, -EIO,
                                   "the marks of the snapshots in '%s/layers/%s' cannot be changed",
                                   s->state.path, name);
}

/* A snapshot, or something else, that is not in a family. It goes into a new one, whose marks may be
 * of the other kind until they are changed. ID.WORLD: a snapshot that stands on a world. */
static int adopt(struct server *s, int from, const char *name, const char *as, struct sg_error *e)
{
    bool trusted = s->files.userns < 0;
    const char *on = id_valid_on(as) ? as + ID_LEN : "";
    char id[ID_LEN + 1], family[FAMILY_NAME], file[FILES_NAME];
    AUTO(close_p) int dir = -1;

    id_random(id);
    snprintf(family, sizeof(family), "%s%s%s", trusted ? "user-" : "trusted-", id, on);
    snprintf(file, sizeof(file), "%.*s", (int)(strlen(as) - strlen(on)), as);
    if (mkdirat(s->state.snapshots, family, 0700) < 0 ||
        (dir = openat(s->state.snapshots, family, OPEN_DIR)) < 0 ||
        renameat(from, name, dir, file) < 0)
        return err_errno(e, "make a family of the snapshot '%.64s'", name);
    return 0;
}

/* Gives a family the marks of this server. A start that was interrupted does it again. */
static int take_over(struct server *s, const char *name, const char *id, struct sg_error *e)
{
    AUTO(close_p) int dir = openat(s->state.snapshots, name, OPEN_DIR);
    char as[FAMILY_NAME];
    int r = dir < 0 ? err_errno(e, "open '%s/layers/%.64s'", s->state.path, name)
                    : change_marks(s, dir, name, e);

    snprintf(as, sizeof(as), "%s%.*s", prefix_of(s), 2 * ID_LEN + 1, id);
    if (r == 0 && renameat(s->state.snapshots, name, s->state.snapshots, as) < 0)
        r = err_errno(e, "rename '%s/layers/%.64s'", s->state.path, name);
    return r;
}

static void load_family(struct server *s, const char *name, family_found found)
{
    struct family *f = NULL;
    struct sg_error e = {0};
    DIR *d = family_open(s, name, &f, &e) < 0 ? NULL : fdopendir(openat(f->dir, ".", OPEN_DIR));
    struct dirent *entry;

    while (d && (entry = readdir(d)) != NULL) {
        if (id_valid(entry->d_name))
            found(f, entry->d_name);
        else if (entry->d_name[0] != '.')
            family_remove(f, entry->d_name);
    }
    if (d)
        closedir(d);
    else
        log_line(LEVEL_WARN, "%s", e.message);
    if (f)
        family_release(f);
}

typedef int (*each_layer)(struct server *s, const char *name, family_found found,
                          struct sg_error *e);

static int each(struct server *s, each_layer fn, family_found found, struct sg_error *e)
{
    int fd = openat(s->state.snapshots, ".", OPEN_DIR), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        r = err_errno(e, "list '%s/layers'", s->state.path);
        close_p(&fd);
        return r;
    }
    while (r == 0 && (entry = readdir(d)) != NULL)
        if (entry->d_name[0] != '.')
            r = fn(s, entry->d_name, found, e);
    closedir(d);
    return r;
}

static bool is_family(const char *name)
{
    const char *user = after(name, "user-"), *trusted = after(name, "trusted-");

    return (user && id_valid_on(user)) || (trusted && id_valid_on(trusted));
}

static int adopt_one(struct server *s, const char *name, family_found found UNUSED,
                     struct sg_error *e)
{
    if (is_family(name))
        return 0;
    return adopt(s, s->state.snapshots, name, name, e);
}

static int convert_one(struct server *s, const char *name, family_found found UNUSED,
                       struct sg_error *e)
{
    const char *other = after(name, s->files.userns >= 0 ? "trusted-" : "user-");

    return other ? take_over(s, name, other, e) : 0;
}

static int load_one(struct server *s, const char *name, family_found found,
                    struct sg_error *e UNUSED)
{
    load_family(s, name, found);
    return 0;
}

int families_load(struct server *s, family_found found, struct sg_error *e)
{
    int r = 0;

    if (faccessat(s->state.dir, "work", F_OK, AT_SYMLINK_NOFOLLOW) == 0) /* an older version's */
        r = adopt(s, s->state.dir, "work", "old-work", e);
    if (r == 0)
        r = each(s, adopt_one, found, e);
    if (r == 0)
        r = each(s, convert_one, found, e);
    return r < 0 ? r : each(s, load_one, found, e);
}

void worlds_load(struct server *s, void (*gone)(struct server *s, const char *id))
{
    int fd = openat(s->state.worlds, ".", OPEN_DIR);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct family *f = family_of_worlds(s);
    const struct dirent *entry;

    while (d && (entry = readdir(d)) != NULL) {
        const char *id = after(entry->d_name, GONE);

        if (id && id_valid(id))
            gone(s, id);
        else if (after(entry->d_name, "old-"))
            family_remove(f, entry->d_name);
    }
    if (d)
        closedir(d);
    family_release(f);
}
