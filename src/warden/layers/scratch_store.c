#include "warden/layers/scratch_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "lib/base/fd.h"
#include "warden/layers/attach.h"
#include "warden/layers/scratch_ops.h"

#define SHARE_EMPTY (1u << 20) /* bytes: all of it is gone, or soon will be */

/* In the order in which they are tried. */
static const struct scratch_ops *const kinds[] = {&scratch_projects, &scratch_xfs, &scratch_btrfs};

static int open_as(const struct scratch_ops *ops, const struct scratch_store_spec *spec,
                   struct scratch_store **ret, struct sg_error *e)
{
    struct scratch_store *s =
        NEW(struct scratch_store, .ops = ops, .mount = -1, .top = -1, .figures = -1,
            .maker = spec->maker, .discard = spec->discard, .discard_arg = spec->discard_arg);
    int r = ops->open(s, spec, e);

    if (r == 0 && fchmod(s->top, 0700) < 0)
        r = err_errno(e, "open the scratch store");
    if (r < 0)
        scratch_store_close(s);
    else
        *ret = s;
    return r;
}

/* What is said if there is none: of each kind that this host could have, why not. */
int scratch_store_open(const struct scratch_store_spec *spec, struct scratch_store **ret,
                       struct sg_error *e)
{
    struct sg_error all = {0}, one;
    int r = -ENOTSUP;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        one = (struct sg_error){0};
        r = open_as(kinds[i], spec, ret, &one);
        if (r == 0)
            return 0;
        if (r == -EOPNOTSUPP && i + 1 < ARRAY_SIZE(kinds))
            continue;
        if (all.message[0])
            err_set(e, one.kind, r, "%s; %s", all.message, one.message);
        else
            *e = one;
        all = *e;
        if (r == -ENOSPC)
            break;
    }
    return r;
}

const char *scratch_store_kind(const struct scratch_store *s)
{
    return s->ops->name;
}

void scratch_store_close(struct scratch_store *s)
{
    struct scratch_share *h;
    struct scratch_place *p;

    if (!s)
        return;
    while ((h = LIST_POP(struct scratch_share, &s->shares, link)))
        free(h);
    while ((p = LIST_POP(struct scratch_place, &s->leaving, link)))
        free(p);
    attach_let_go(s->mount);
    close_p(&s->top);
    close_p(&s->mount);
    close_p(&s->figures);
    free(s);
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* Bytes of all its places, with those that other bounds have left aside. */
static int used_of(const struct scratch_share *h, uint64_t *ret, struct sg_error *e)
{
    const struct scratch_ops *ops = h->store->ops;
    uint64_t sum = 0;

    if (ops->make_share)
        return ops->used(h->store, h->id, ret, e);
    LIST_EACH(const struct scratch_place, p, &h->places, link) {
        uint64_t used = 0;
        int r = ops->used(h->store, p->id, &used, e);
        if (r < 0)
            return r;
        sum += used;
    }
    *ret = sum;
    return 0;
}

static bool is_free(const struct scratch_share *h)
{
    uint64_t used;

    return h->users == 0 && used_of(h, &used, NULL) == 0 && used < SHARE_EMPTY;
}

static int make_share(struct scratch_store *s, struct scratch_share **ret, struct sg_error *e)
{
    uint64_t id = 0;
    int r = s->ops->make_share ? s->ops->make_share(s, &id, e) : 0;

    if (r < 0)
        return r;
    *ret = NEW(struct scratch_share, .store = s, .id = id);
    list_push(&s->shares, &(*ret)->link);
    return 0;
}

/* The share of a tenant that has left is another's then: so there are no more than tenants at a
 * time. */
int scratch_share_open(struct scratch_store *s, const char *tenant, uint32_t sandboxes,
                       struct scratch_share **ret, struct sg_error *e)
{
    struct scratch_share *h =
        LIST_FIND(struct scratch_share, at, &s->shares, link, strcmp(at->tenant, tenant) == 0);

    if (!h)
        h = LIST_FIND(struct scratch_share, at, &s->shares, link, is_free(at));
    if (!h) {
        int r = make_share(s, &h, e);
        if (r < 0)
            return r;
    }
    if (strcmp(h->tenant, tenant) != 0)
        h->most = 0;
    snprintf(h->tenant, sizeof(h->tenant), "%s", tenant);
    h->sandboxes = sandboxes;
    h->users++;
    *ret = h;
    return 0;
}

void scratch_share_release(struct scratch_share *h)
{
    if (h)
        h->users--;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What is free for all tenants. A directory of the state directory has what is free there, but no more than the
 * store may have. */
static int free_of(const struct scratch_store *s, uint64_t *ret, struct sg_error *e)
{
    uint64_t used = 0, left;
    struct statfs fs;

    if (fstatfs(s->top, &fs) < 0)
        return err_errno(e, "stat the scratch store");
    left = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    if (s->mount < 0) {
        LIST_EACH(const struct scratch_share, h, &s->shares, link)
            used += h->used;
        left = least(left, used < s->bytes ? s->bytes - used : 0);
    }
    *ret = left;
    return 0;
}

static int hold_places(struct scratch_share *h, uint64_t bytes, struct sg_error *e)
{
    int r = used_of(h, &h->used, e);

    h->limit = bytes;
    LIST_EACH(struct scratch_place, p, &h->places, link)
        r = r < 0 ? r : scratch_place_hold(p, e);
    return r;
}

static int hold(struct scratch_share *h, struct sg_error *e)
{
    const struct scratch_store *s = h->store;
    uint64_t bytes = least(h->most, s->bytes / 5 * 4), slack = h->limit / 16, left = 0;
    int r = free_of(s, &left, e);

    if (r < 0 || h->most == 0)
        return r;
    bytes = least(bytes, left * 4);
    if (!s->ops->make_share)
        return hold_places(h, bytes, e);
    if (bytes + slack >= h->limit && bytes <= h->limit + slack)
        return 0;
    r = s->ops->limit(s, h->id, bytes, e);
    if (r == 0)
        h->limit = bytes;
    return r;
}

int scratch_share_raise(struct scratch_share *h, uint64_t bytes, struct sg_error *e)
{
    if (h->sandboxes * bytes <= h->most)
        return 0;
    h->most = h->sandboxes * bytes;
    return hold(h, e);
}

void scratch_store_share_out(struct scratch_store *s)
{
    if (!s)
        return;
    scratch_places_sweep(s);
    LIST_EACH(struct scratch_share, h, &s->shares, link)
        hold(h, NULL);
}
