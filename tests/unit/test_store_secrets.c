/* The tenants' secrets in the store: sealed texts, which it hands back as they were. */
#include "store_place.h"

#include "front/store/secrets.h"

TAP_MAIN

struct shop {
    struct place place;
    struct store *store;
    struct store_tenant acme, beta;
};

static struct shop shop_open(void)
{
    struct shop s = {.place = place_make()};
    struct sg_error e;

    s.store = open_ok(&s.place);
    EXPECT(store_tenant_ensure(s.store, "acme", &s.acme, &e) == 0);
    EXPECT(store_tenant_ensure(s.store, "beta", &s.beta, &e) == 0);
    return s;
}

static void shop_close(struct shop *s)
{
    store_close(s->store);
    place_remove(&s->place);
}

/* A copy of what was found. */
struct copy {
    struct store_vault v;
    char metadata[256], sealed[256];
};

static void take(const struct store_vault *v, void *arg)
{
    struct copy *c = arg;

    c->v = *v;
    snprintf(c->metadata, sizeof(c->metadata), "%s", v->metadata);
    snprintf(c->sealed, sizeof(c->sealed), "%s", v->sealed);
}

TEST(a_secret_is_found_by_id_and_by_name)
{
    struct shop s = shop_open();
    char id[STORE_VAULT_ID_LEN + 1];
    struct copy by_id = {0}, by_name = {0};
    struct sg_error e;

    EXPECT(store_vault_add(s.store, s.acme.id, "key", "{\"a\":\"b\"}", "c2VhbGVk", id, &e) == 0);
    EXPECT(strlen(id) == STORE_VAULT_ID_LEN && strncmp(id, "sec_", 4) == 0 && id_valid(id + 4));
    EXPECT(store_vault_get(s.store, s.acme.id, id, take, &by_id, &e) == 0);
    EXPECT(store_vault_get(s.store, s.acme.id, "key", take, &by_name, &e) == 0);
    EXPECT_STR(by_id.v.id, id);
    EXPECT_STR(by_name.v.id, id);
    EXPECT_STR(by_id.v.name, "key");
    EXPECT_STR(by_id.metadata, "{\"a\":\"b\"}");
    EXPECT_STR(by_id.sealed, "c2VhbGVk");
    EXPECT(by_id.v.version == 1 && by_id.v.created_ms > 0);
    EXPECT(by_id.v.updated_ms == by_id.v.created_ms);
    store_close(s.store);
    s.store = open_ok(&s.place); /* it outlives the server */
    EXPECT(store_vault_get(s.store, s.acme.id, "key", take, &by_name, &e) == 0);
    EXPECT_STR(by_name.sealed, "c2VhbGVk");
    shop_close(&s);
}

TEST(an_update_is_a_new_version)
{
    struct shop s = shop_open();
    char id[STORE_VAULT_ID_LEN + 1];
    struct copy c = {0};
    struct sg_error e;

    EXPECT(store_vault_add(s.store, s.acme.id, "key", "{\"a\":\"b\"}", "one", id, &e) == 0);
    EXPECT(store_vault_update(s.store, s.acme.id, id, NULL, "two", &e) == 0);
    EXPECT(store_vault_get(s.store, s.acme.id, id, take, &c, &e) == 0);
    EXPECT(c.v.version == 2 && c.v.updated_ms >= c.v.created_ms);
    EXPECT_STR(c.sealed, "two");
    EXPECT_STR(c.metadata, "{\"a\":\"b\"}");
    EXPECT(store_vault_update(s.store, s.acme.id, id, "{}", "three", &e) == 0);
    EXPECT(store_vault_get(s.store, s.acme.id, id, take, &c, &e) == 0 && c.v.version == 3);
    EXPECT_STR(c.metadata, "{}");
    EXPECT(store_vault_update(s.store, s.acme.id, "sec_x", "{}", "four", &e) == -ENOENT);
    shop_close(&s);
}

TEST(names_are_a_tenants_own)
{
    struct shop s = shop_open();
    char a[STORE_VAULT_ID_LEN + 1], b[STORE_VAULT_ID_LEN + 1], c[STORE_VAULT_ID_LEN + 1] = "";
    struct copy found = {0};
    struct sg_error e;

    EXPECT(store_vault_add(s.store, s.acme.id, "key", "{}", "acme's", a, &e) == 0);
    EXPECT(store_vault_add(s.store, s.beta.id, "key", "{}", "beta's", b, &e) == 0);
    EXPECT(store_vault_add(s.store, s.acme.id, "key", "{}", "again", c, &e) == -EEXIST && !c[0]);
    EXPECT(store_vault_get(s.store, s.acme.id, "key", take, &found, &e) == 0);
    EXPECT_STR(found.sealed, "acme's");
    EXPECT(store_vault_get(s.store, s.acme.id, b, take, &found, &e) == -ENOENT);
    EXPECT(store_vault_update(s.store, s.acme.id, b, NULL, "taken", &e) == -ENOENT);
    EXPECT(store_vault_remove(s.store, s.acme.id, b, &e) == -ENOENT);
    EXPECT(store_vault_get(s.store, s.beta.id, b, take, &found, &e) == 0);
    EXPECT_STR(found.sealed, "beta's");
    shop_close(&s);
}

TEST(what_was_removed_is_gone_and_its_name_free)
{
    struct shop s = shop_open();
    char id[STORE_VAULT_ID_LEN + 1], again[STORE_VAULT_ID_LEN + 1];
    struct copy c = {0};
    struct sg_error e;

    EXPECT(store_vault_add(s.store, s.acme.id, "key", "{}", "one", id, &e) == 0);
    EXPECT(store_vault_remove(s.store, s.acme.id, "key", &e) == 0);
    EXPECT(store_vault_remove(s.store, s.acme.id, "key", &e) == -ENOENT);
    EXPECT(e.kind == SG_ERR_NOT_FOUND);
    EXPECT(store_vault_get(s.store, s.acme.id, id, take, &c, &e) == -ENOENT);
    EXPECT(store_vault_add(s.store, s.acme.id, "key", "{}", "two", again, &e) == 0);
    EXPECT(strcmp(id, again) != 0);
    EXPECT(store_vault_get(s.store, s.acme.id, "key", take, &c, &e) == 0 && c.v.version == 1);
    shop_close(&s);
}

struct walk {
    char names[64];
    int64_t last;
    unsigned left;
};

static bool walk_one(const struct store_vault *v, void *arg)
{
    struct walk *w = arg;
    size_t len = strlen(w->names);

    EXPECT(!v->sealed);
    snprintf(w->names + len, sizeof(w->names) - len, "%s ", v->name);
    w->last = v->seq;
    return --w->left > 0;
}

TEST(the_list_is_newest_first_page_by_page)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct shop s = shop_open();
    struct walk w = {.left = 3};
    char id[STORE_VAULT_ID_LEN + 1];
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        EXPECT(store_vault_add(s.store, s.acme.id, names[i], "{}", "x", id, &e) == 0);
    EXPECT(store_vault_add(s.store, s.beta.id, "other", "{}", "x", id, &e) == 0);
    EXPECT(store_vault_each(s.store, s.acme.id, STORE_NEWEST, walk_one, &w, &e) == 0);
    EXPECT_STR(w.names, "d c b ");
    w = (struct walk){.left = 3, .last = w.last};
    EXPECT(store_vault_each(s.store, s.acme.id, w.last, walk_one, &w, &e) == 0);
    EXPECT_STR(w.names, "a ");
    shop_close(&s);
}

TEST(a_tenant_has_so_many_and_no_more)
{
    struct shop s = shop_open();
    char id[STORE_VAULT_ID_LEN + 1], sql[512];
    struct sg_error e;

    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
             "INSERT INTO vault (id, tenant, name, version, metadata, sealed, created_ms, "
             "updated_ms) SELECT 'sec_' || i, '%s', 'n' || i, 1, '{}', 'x', 1, 1 FROM n",
             STORE_VAULT_MAX - 1, s.acme.id);
    run_sql(&s.place, sql);
    EXPECT(store_vault_add(s.store, s.acme.id, "last", "{}", "x", id, &e) == 0);
    EXPECT(store_vault_add(s.store, s.acme.id, "over", "{}", "x", id, &e) == -EDQUOT);
    EXPECT(e.kind == SG_ERR_LIMIT);
    EXPECT(store_vault_add(s.store, s.beta.id, "other", "{}", "x", id, &e) == 0);
    EXPECT(store_vault_remove(s.store, s.acme.id, "n5", &e) == 0);
    EXPECT(store_vault_add(s.store, s.acme.id, "over", "{}", "x", id, &e) == 0);
    shop_close(&s);
}
