#include "warden/layers/scratch_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>

#include "lib/base/fd.h"
#include "warden/layers/attach.h"

#define FILES_DIR "files"
#define NAME_MAX_ (SCRATCH_PLACE_NAME + sizeof("/4294967295/" FILES_DIR))

static int fail(struct sg_error *e, const char *what)
{
    if (errno != EDQUOT)
        return err_errno(e, "%s", what);
    return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                   "the disks of the tenant's sandboxes are full: end some, or remove files or "
                   "checkpoints");
}

static int find_id(int top, const char *name, uint64_t *ret, struct sg_error *e)
{
    struct btrfs_ioctl_ino_lookup_args args = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
    AUTO(close_p) int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || ioctl(fd, BTRFS_IOC_INO_LOOKUP, &args) < 0)
        return err_errno(e, "ask for the number of a sandbox's disk");
    *ret = args.treeid;
    return 0;
}

/* From its first byte on it counts to the tenant's share. */
int scratch_place_make(struct scratch_share *h, struct scratch_place **ret, struct sg_error *e)
{
    struct scratch_store *s = h->store;
    uint64_t counts[sizeof(struct btrfs_qgroup_inherit) / sizeof(uint64_t) + 1] = {0};
    struct btrfs_qgroup_inherit *inherit = (struct btrfs_qgroup_inherit *)counts;
    struct btrfs_ioctl_vol_args_v2 args = {
        .flags = BTRFS_SUBVOL_QGROUP_INHERIT, .size = sizeof(counts), .qgroup_inherit = inherit};
    struct scratch_place p = {.share = h, .users = 1};
    int r;

    inherit->num_qgroups = 1;
    inherit->qgroups[0] = h->id;
    snprintf(p.name, sizeof(p.name), "s%llu", (unsigned long long)++s->n_places);
    snprintf(args.name, sizeof(args.name), "%s", p.name);
    if (ioctl(s->top, BTRFS_IOC_SUBVOL_CREATE_V2, &args) < 0)
        return fail(e, "make a sandbox's disk");
    r = find_id(s->top, p.name, &p.id, e);
    if (r < 0) {
        s->discard(s->discard_arg, s->top, 0, p.name);
        return r;
    }
    h->users++;
    *ret = NEW(struct scratch_place);
    **ret = p;
    return 0;
}

void scratch_place_release(struct scratch_place *p)
{
    const struct scratch_store *s = p->share->store;

    if (--p->users > 0)
        return;
    s->discard(s->discard_arg, s->top, 0, p->name);
    scratch_share_release(p->share);
    free(p);
}

int scratch_place_grow(const struct scratch_place *p, struct sg_error *e)
{
    uint64_t used = 0;
    int r = p->bytes == 0 ? 0 : scratch_quota_used(p->share->store, p->id, &used, e);

    return r < 0 || p->bytes == 0 ? r
                                  : scratch_quota_limit(p->share->store, p->id, used + p->bytes, e);
}

uint64_t scratch_place_copied(const struct scratch_place *p)
{
    const struct scratch_share *h = p->share;
    uint64_t used = 0;

    scratch_quota_used(h->store, p->id, &used, NULL);
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
        return fail(e, "fill a sandbox's disk");
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

void scratch_place_leave(struct scratch_place *p, uint32_t number, uint32_t owner)
{
    const struct scratch_store *s = p->share->store;
    char name[NAME_MAX_];

    if (p->users > 1) {
        AUTO(close_p)
        int outer = attach_open(s->top, name_of(p, number, "", name));
        if (outer >= 0)
            s->discard(s->discard_arg, outer, owner, FILES_DIR);
        if (p->n_left < SCRATCH_PLACE_LEFT)
            p->left[p->n_left++] = number;
    }
    scratch_place_release(p);
}

int scratch_place_open_figures(const struct scratch_place *p, int ret[SCRATCH_PLACE_FIGURES],
                               struct sg_error *e)
{
    static const char *const names[SCRATCH_PLACE_FIGURES] = {"referenced", "rsv_data",
                                                             "max_referenced"};

    for (size_t i = 0; i < SCRATCH_PLACE_FIGURES; i++) {
        ret[i] = scratch_quota_open_figure(p->share->store, p->id, names[i]);
        if (ret[i] < 0) {
            int r = err_errno(e, "open the figures of a sandbox's disk");
            while (i-- > 0)
                close_p(&ret[i]);
            return r;
        }
    }
    return 0;
}
