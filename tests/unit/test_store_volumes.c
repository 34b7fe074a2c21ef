/* The list of volumes: names, limits, and those that are being made or removed. */
#include "store_place.h"

#include "front/store/volumes.h"

TAP_MAIN

static void count(const struct store_volume *v, void *arg)
{
    (void)v;
    ++*(unsigned *)arg;
}

static unsigned listed(struct store *s, const char *tenant)
{
    struct sg_error e;
    unsigned n = 0;

    EXPECT(store_volumes_each(s, tenant, count, &n, &e) == 0);
    return n;
}

static unsigned loose(struct store *s)
{
    struct sg_error e;
    unsigned n = 0;

    EXPECT(store_loose_volumes_each(s, count, &n, &e) == 0);
    return n;
}

TEST(a_volume_is_loose_until_it_is_made_and_once_it_is_removed)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant acme, beta;
    struct store_volume v, again, found;
    struct sg_error e;

    EXPECT(store_tenant_ensure(s, "acme", &acme, &e) == 0);
    EXPECT(store_tenant_ensure(s, "beta", &beta, &e) == 0);
    EXPECT(store_volume_add(s, acme.id, "data", 2, &v, &e) == 0);
    EXPECT(listed(s, acme.id) == 0 && loose(s) == 1);
    EXPECT(store_volume_get(s, v.id, &found, &e) == -ENOENT);
    EXPECT(store_volume_add(s, acme.id, "data", 2, &again, &e) == -EEXIST);
    EXPECT(store_volume_made(s, &v, &e) == 0);
    EXPECT(listed(s, acme.id) == 1 && loose(s) == 0 && listed(s, beta.id) == 0);
    EXPECT(store_volume_named(s, acme.id, "data", &found, &e) == 0);
    EXPECT_STR(found.id, v.id);
    EXPECT(store_volume_named(s, beta.id, "data", &found, &e) == -ENOENT);
    EXPECT(store_volume_get(s, v.id, &found, &e) == 0);
    EXPECT_STR(found.tenant, acme.id);

    store_volume_gone(s, v.id); /* it is not loose */
    EXPECT(listed(s, acme.id) == 1);
    EXPECT(store_volume_loose(s, &v, &e) == 0);
    EXPECT(listed(s, acme.id) == 0 && loose(s) == 1);
    EXPECT(store_volume_add(s, acme.id, "data", 2, &again, &e) == 0); /* the name is free */
    EXPECT(store_volume_add(s, acme.id, "more", 2, &again, &e) == -EDQUOT);
    store_volume_gone(s, v.id);
    EXPECT(store_volume_add(s, acme.id, "more", 2, &again, &e) == 0);
    EXPECT(loose(s) == 2);
    store_close(s);
    place_remove(&p);
}
