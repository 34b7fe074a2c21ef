/* Tokens that are kept like keys, what is counted of teams, and the status of the server. */
#include "store_place.h"

#include "front/store/node.h"
#include "front/store/team_metrics.h"

TAP_MAIN

struct bed {
    struct place place;
    struct store *s;
    struct store_tenant acme, beta;
};

static struct bed bed_make(void)
{
    struct bed b = {.place = place_make()};
    struct sg_error e;

    b.s = open_ok(&b.place);
    EXPECT(store_tenant_ensure(b.s, "acme", &b.acme, &e) == 0);
    EXPECT(store_tenant_ensure(b.s, "beta", &b.beta, &e) == 0);
    return b;
}

static void bed_remove(struct bed *b)
{
    store_close(b->s);
    place_remove(&b->place);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

TEST(a_token_is_of_one_kind)
{
    struct bed b = bed_make();
    char token[STORE_TOKEN_MAX_][STORE_TOKEN_MAX + 1];
    struct store_key info[STORE_TOKEN_MAX_];
    struct store_tenant t;
    struct sg_error e;

    for (enum store_token kind = 0; kind < STORE_TOKEN_MAX_; kind++) {
        const char *prefix = store_token_prefix(kind);

        EXPECT(store_token_create(b.s, kind, kind == STORE_ADMIN ? NULL : b.acme.id, "n",
                                  token[kind], &info[kind], &e) == 0);
        EXPECT(strncmp(token[kind], prefix, strlen(prefix)) == 0);
        EXPECT(strncmp(token[kind], info[kind].hint, strlen(prefix) + 4) == 0);
        EXPECT(info[kind].kind == kind && !strstr(token[kind], info[kind].hint));
    }
    for (int again = 0; again < 2; again++)
        for (enum store_token kind = 0; kind < STORE_TOKEN_MAX_; kind++)
            for (enum store_token as = 0; as < STORE_TOKEN_MAX_; as++) {
                int r = store_token_check(b.s, as, token[kind], &t);

                EXPECT(r == (as == kind ? 0 : -ENOENT));
                if (r == 0)
                    EXPECT_STR(t.name, kind == STORE_ADMIN ? "" : "acme");
            }
    /* The text after another prefix is another token. */
    char other[STORE_TOKEN_MAX + 1];
    snprintf(other, sizeof(other), "admin_%.44s", token[STORE_KEY]);
    EXPECT(store_token_check(b.s, STORE_ADMIN, other, &t) == -ENOENT);
    EXPECT(store_token_check(b.s, STORE_KEY, token[STORE_ADMIN] + strlen("admin_"), &t) == -ENOENT);
    bed_remove(&b);
}

static bool no_admin(const struct store_key *k, void *arg)
{
    *(bool *)arg = *(bool *)arg && k->kind == STORE_KEY && k->tenant[0];
    return true;
}

static bool any_admin(const struct store_key *k, void *arg)
{
    *(bool *)arg = *(bool *)arg || (k->kind == STORE_ADMIN && !k->tenant[0] && !k->tenant_name[0]);
    return true;
}

TEST(an_operator_s_token_is_listed_and_revoked_like_a_key)
{
    struct bed b = bed_make();
    struct store *front = open_ok(&b.place);
    char token[STORE_TOKEN_MAX + 1], key[STORE_KEY_LEN + 1];
    struct store_key info;
    bool own = true, all = false;
    struct store_tenant t;
    struct sg_error e;

    make_key(b.s, "acme", key, NULL);
    EXPECT(store_token_create(b.s, STORE_ADMIN, NULL, "ops", token, &info, &e) == 0);
    EXPECT(store_keys_each(b.s, b.acme.id, no_admin, &own, &e) == 0 && own);
    EXPECT(store_keys_each(b.s, NULL, any_admin, &all, &e) == 0 && all);
    EXPECT(store_token_check(front, STORE_ADMIN, token, &t) == 0);
    EXPECT(store_key_revoke(b.s, token, &e) == 0); /* by another process */
    EXPECT(store_token_check(front, STORE_ADMIN, token, &t) == -ENOENT);
    store_close(front);
    bed_remove(&b);
}

TEST(a_tenant_s_tokens_are_its_own)
{
    struct bed b = bed_make();
    char token[STORE_TOKEN_MAX + 1];
    struct store_key info;
    struct store_tenant t;
    struct sg_error e;
    uint32_t n = 9;

    EXPECT(store_token_create(b.s, STORE_KEY, b.acme.id, "old", token, &info, &e) == 0);
    EXPECT(store_token_rename(b.s, b.beta.id, STORE_KEY, info.id, "x", &e) == -ENOENT);
    EXPECT(store_token_rename(b.s, b.acme.id, STORE_ACCESS, info.id, "x", &e) == -ENOENT);
    EXPECT(store_token_rename(b.s, b.acme.id, STORE_KEY, info.id, "a\nb", &e) == -EINVAL);
    EXPECT(store_token_rename(b.s, b.acme.id, STORE_KEY, info.id, "new", &e) == 0);
    EXPECT(store_token_end(b.s, b.beta.id, STORE_KEY, info.id, &e) == -ENOENT);
    EXPECT(store_token_end(b.s, "", STORE_KEY, info.id, &e) == -ENOENT);
    EXPECT(store_token_check(b.s, STORE_KEY, token, &t) == 0);
    EXPECT(store_tokens_count(b.s, b.acme.id, STORE_KEY, &n, &e) == 0 && n == 1);
    EXPECT(store_token_end(b.s, b.acme.id, STORE_KEY, info.id, &e) == 0);
    EXPECT(store_token_check(b.s, STORE_KEY, token, &t) == -ENOENT);
    EXPECT(store_tokens_count(b.s, b.acme.id, STORE_KEY, &n, &e) == 0 && n == 0);
    EXPECT(store_token_end(b.s, b.acme.id, STORE_KEY, info.id, &e) == -ENOENT);
    EXPECT(store_token_rename(b.s, b.acme.id, STORE_KEY, info.id, "late", &e) == -ENOENT);
    EXPECT(store_token_create(b.s, STORE_KEY, "nosuchtenant", "", token, NULL, &e) == -ENOENT);
    bed_remove(&b);
}

TEST(tenants_by_id_or_name)
{
    struct bed b = bed_make();
    struct store_tenant t;

    EXPECT(store_tenant_named(b.s, b.acme.id, &t) == 0 && strcmp(t.name, "acme") == 0);
    EXPECT(store_tenant_named(b.s, "beta", &t) == 0 && strcmp(t.id, b.beta.id) == 0);
    EXPECT(store_tenant_named(b.s, "", &t) == -ENOENT);
    EXPECT(store_tenant_named(b.s, "gamma", &t) == -ENOENT);
    bed_remove(&b);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void add(struct store *s, const char *tenant, int64_t at, uint32_t peak, uint32_t started)
{
    struct store_team_metric m = {.at = at, .peak = peak, .started = started, .burst = started};
    struct sg_error e;
    int r = store_team_metrics_begin(s, &e);

    if (r == 0)
        r = store_team_metric_add(s, tenant, &m, &e);
    EXPECT(store_team_metrics_end(s, r, &e) == 0);
}

static void write_point(const struct store_team_metric *m, void *arg)
{
    char *text = arg;
    size_t n = strlen(text);

    snprintf(text + n, 256 - n, "%lld:%u/%u/%u ", (long long)m->at, m->peak, m->started, m->burst);
}

static void expect_points(struct store *s, const char *tenant, int64_t from, int64_t to,
                          int64_t step, const char *expected)
{
    char text[256] = "";
    struct sg_error e;

    EXPECT(store_team_metrics_each(s, tenant, from, to, step, write_point, text, &e) == 0);
    EXPECT_STR(text, expected);
}

TEST(metrics_of_a_team)
{
    struct bed b = bed_make();
    struct sg_error e;

    add(b.s, "acme", 600, 3, 2);
    add(b.s, "acme", 600, 2, 5); /* the same minute once more */
    add(b.s, "acme", 660, 7, 0);
    add(b.s, "acme", 1200, 1, 1);
    add(b.s, "beta", 600, 90, 90);
    expect_points(b.s, "acme", 0, 5000, 60, "600:3/7/5 660:7/0/0 1200:1/1/1 ");
    expect_points(b.s, "acme", 0, 5000, 300, "600:7/7/5 1200:1/1/1 ");
    expect_points(b.s, "acme", 601, 1199, 60, "660:7/0/0 ");
    expect_points(b.s, "none", 0, 5000, 60, "");
    EXPECT(store_team_metrics_thin(b.s, 600, 0, &e) == 0);
    expect_points(b.s, "acme", 0, 5000, 60, "600:3/7/5 660:7/0/0 1200:1/1/1 ");
    for (int again = 0; again < 2; again++) {
        EXPECT(store_team_metrics_thin(b.s, 900, 0, &e) == 0);
        expect_points(b.s, "acme", 0, 5000, 60, "600:7/7/5 1200:1/1/1 ");
        expect_points(b.s, "beta", 0, 5000, 60, "600:90/90/90 ");
    }
    EXPECT(store_team_metrics_thin(b.s, 900, 660, &e) == 0);
    expect_points(b.s, "acme", 0, 5000, 60, "1200:1/1/1 ");
    expect_points(b.s, "beta", 0, 5000, 60, "");
    bed_remove(&b);
}

TEST(status_of_the_server)
{
    struct bed b = bed_make();
    int64_t status = 7, since = 7;
    struct sg_error e;

    EXPECT(store_node_get(b.s, &status, &since, &e) == 0 && status == 0 && since == 0);
    EXPECT(store_node_set(b.s, 2, 12345, &e) == 0);
    EXPECT(store_node_get(b.s, &status, &since, &e) == 0 && status == 2 && since == 12345);
    bed_remove(&b);
}
