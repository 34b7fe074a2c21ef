#include "warden/layers/scratch_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "warden/layers/attach.h"
#include "warden/layers/scratch_ops.h"

#define FILES_DIR "files"
#define NAME_MAX_ (SCRATCH_PLACE_NAME + sizeof("/4294967295/" FILES_DIR))

int scratch_place_failed(const char *what, struct sg_error *e)
{
    if (errno != EDQUOT)
        return err_errno(e, "%s", what);
    return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                   "the disks of the tenant's sandboxes are full: end some, or remove files or "
                   "checkpoints");
}

int scratch_place_make(struct scratch_share *h, struct scratch_place **ret, struct sg_error *e)
{
    struct scratch_store *s = h->store;
    struct scratch_place p = {.share = h, .users = 1};
    int r;

    scratch_places_sweep(s);
    snprintf(p.name, sizeof(p.name), "s%llu", (unsigned long long)++s->n_places);
    r = s->ops->make_place(h, p.name, &p.id, e);
    if (r < 0)
        return r;
    h->users++;
    *ret = NEW(struct scratch_place);
    **ret = p;
    list_push(&h->places, &(*ret)->link);
    return 0;
}

void scratch_place_release(struct scratch_place *p)
{
    struct scratch_store *s = p->share->store;

    if (--p->users > 0)
        return;
    list_remove(&p->link);
    scratch_share_release(p->share);
    if (s->ops->removes_whole) {
        s->discard(s->discard_arg, s->top, 0, p->name);
        free(p);
    } else {
        p->share = NULL;
        list_append(&s->leaving, &p->link);
    }
}

int scratch_place_hold(struct scratch_place *p, struct sg_error *e)
{
    const struct scratch_share *h = p->share;
    uint64_t used = 0, limit = p->limit, left = h->used < h->limit ? h->limit - h->used : 0;
    int r = p->limit == 0 ? 0 : h->store->ops->used(h->store, p->id, &used, e);

    if (r < 0 || p->limit == 0)
        return r;
    if (h->limit > 0 && used + left < limit)
        limit = used + left;
    if (limit == p->held)
        return 0;
    r = h->store->ops->limit(h->store, p->id, limit, e);
    if (r == 0)
        p->held = limit;
    return r;
}

int scratch_place_grow(struct scratch_place *p, struct sg_error *e)
{
    const struct scratch_store *s = p->share->store;
    uint64_t used = 0;
    int r = p->bytes == 0 ? 0 : s->ops->used(s, p->id, &used, e);

    if (r < 0 || p->bytes == 0)
        return r;
    p->limit = used + p->bytes;
    return s->ops->make_share ? s->ops->limit(s, p->id, p->limit, e) : scratch_place_hold(p, e);
}

uint64_t scratch_place_copied(const struct scratch_place *p)
{
    const struct scratch_share *h = p->share;
    uint64_t used = 0;

    h->store->ops->used(h->store, p->id, &used, NULL);
    return h->most > 0 ? used + h->most / h->sandboxes : 0;
}

static const char *name_of(const struct scratch_place *p, uint32_t number, const char *in,
                           char ret[NAME_MAX_])
{
    snprintf(ret, NAME_MAX_, "%s/%u%s", p->name, number, in);
    return ret;
}

/* Removes directories that are empty by now. */
static void sweep(struct scratch_place *p)
{
    char name[NAME_MAX_];
    size_t n = p->n_left;

    p->n_left = 0;
    for (size_t i = 0; i < n; i++)
        if (unlinkat(p->share->store->top, name_of(p, p->left[i], "", name), AT_REMOVEDIR) < 0 &&
            errno == ENOTEMPTY)
            p->left[p->n_left++] = p->left[i];
}

static int make_dir(const struct scratch_place *p, uint32_t number, uint32_t owner, int *ret_mount,
                    struct sg_error *e)
{
    int top = p->share->store->top;
    char outer[NAME_MAX_], inner[NAME_MAX_];

    name_of(p, number, "", outer);
    name_of(p, number, "/" FILES_DIR, inner);
    if (mkdirat(top, outer, 0755) < 0 || fchownat(top, outer, owner, owner, 0) < 0 ||
        mkdirat(top, inner, 0755) < 0 || fchownat(top, inner, owner, owner, 0) < 0)
        return scratch_place_failed("fill a sandbox's disk", e);
    *ret_mount = attach_open(top, inner);
    return *ret_mount < 0 ? err_errno(e, "open a sandbox's disk") : 0;
}

int scratch_place_enter(struct scratch_place *p, uint64_t bytes, uint32_t owner,
                        uint32_t *ret_number, int *ret_mount, struct sg_error *e)
{
    AUTO(close_p) int mount = -1;
    uint32_t number = ++p->n_made;
    int r;

    sweep(p);
    r = scratch_share_raise(p->share, bytes, e);
    p->users++;
    p->bytes += bytes;
    if (r == 0)
        r = make_dir(p, number, owner, &mount, e);
    if (r == 0)
        r = scratch_place_grow(p, e);
    if (r < 0) {
        p->bytes -= bytes;
        scratch_place_leave(p, number, owner);
        return r;
    }
    *ret_number = number;
    *ret_mount = steal_fd(&mount);
    return 0;
}

/* Without its limit the others would have the room of the one that rests. */
void scratch_place_rest(struct scratch_place *p, uint64_t bytes)
{
    p->bytes -= bytes;
    if (bytes > 0 && p->users > 1)
        scratch_place_grow(p, NULL);
}

/* Its files are removed in some time by a worker that has their ids. */
static void discard_files(const struct scratch_store *s, const char *dir, uint32_t owner)
{
    AUTO(close_p) int outer = attach_open(s->top, dir);

    if (outer >= 0)
        s->discard(s->discard_arg, outer, owner, FILES_DIR);
}

void scratch_place_leave(struct scratch_place *p, uint32_t number, uint32_t owner)
{
    const struct scratch_store *s = p->share->store;
    char name[NAME_MAX_];

    if (p->users > 1 || !s->ops->removes_whole) {
        discard_files(s, name_of(p, number, "", name), owner);
        if (p->n_left < SCRATCH_PLACE_LEFT)
            p->left[p->n_left++] = number;
    }
    scratch_place_release(p);
}

int scratch_place_open_figures(const struct scratch_place *p, int ret[SCRATCH_PLACE_FIGURES],
                               struct sg_error *e)
{
    const struct scratch_store *s = p->share->store;
    int r = s->ops->open_figures ? s->ops->open_figures(s, p->id, ret, e) : 0;

    return r < 0 ? r : s->ops->open_figures ? SCRATCH_PLACE_FIGURES : 0;
}

/* ---- places that go -------------------------------------------------------------------------- */

static bool is_gone(const struct scratch_store *s, const struct scratch_place *p)
{
    char name[NAME_MAX_];

    for (uint32_t number = 1; number <= p->n_made; number++)
        unlinkat(s->top, name_of(p, number, "", name), AT_REMOVEDIR);
    return unlinkat(s->top, p->name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

void scratch_places_sweep(struct scratch_store *s)
{
    LIST_EACH(struct scratch_place, p, &s->leaving, link)
        if (is_gone(s, p)) {
            list_remove(&p->link);
            free(p);
        }
}

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

static DIR *list_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d)
        close_p(&fd);
    return d;
}

/* A directory in the place belongs to the ids of its files. */
static void leave_scratches(struct scratch_store *s, struct scratch_place *p)
{
    AUTO(closedir_p) DIR *d = list_dir(s->top, p->name);
    const struct dirent *entry;
    char name[NAME_MAX_];
    struct stat st;

    while (d && (entry = readdir(d)) != NULL) {
        uint32_t number = (uint32_t)strtoul(entry->d_name, NULL, 10);
        name_of(p, number, "", name);
        if (number == 0 || fstatat(s->top, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        discard_files(s, name, st.st_uid);
        if (number > p->n_made)
            p->n_made = number;
    }
}

int scratch_places_left(struct scratch_store *s, struct sg_error *e)
{
    AUTO(closedir_p) DIR *d = list_dir(s->top, ".");
    const struct dirent *entry;

    if (!d)
        return err_errno(e, "list the disks of sandboxes in the state directory");
    while ((entry = readdir(d)) != NULL) {
        unsigned long long number = strtoull(entry->d_name + 1, NULL, 10);
        if (entry->d_name[0] != 's' || number == 0)
            continue;
        struct scratch_place *p = NEW(struct scratch_place);
        snprintf(p->name, sizeof(p->name), "s%llu", number);
        leave_scratches(s, p);
        list_append(&s->leaving, &p->link);
        if (number > s->n_places)
            s->n_places = number;
    }
    return 0;
}
