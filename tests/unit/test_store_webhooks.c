/* Tenants' webhooks in the store, how far each has come, and the events that they get. */
#include "store_place.h"

#include "front/store/events.h"
#include "front/store/webhooks.h"

TAP_MAIN

#define ID      "00000000-0000-4000-8000-00000000000"
#define SANDBOX "aaaaaaaaaaaaaaaaaaaa"

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

static struct store_hook hook(const struct store_tenant *t, char last)
{
    struct store_hook h = {.name = "mine",
                           .url = "https://a.test/",
                           .events = "sandbox.lifecycle.created",
                           .secret = "shh",
                           .enabled = true};

    snprintf(h.id, sizeof(h.id), ID "%c", last);
    memcpy(h.tenant, t->id, sizeof(h.tenant));
    return h;
}

struct seen {
    int n;
    char ids[64], name[64], secret[64];
    bool enabled;
};

static void see(const struct store_hook *h, void *arg)
{
    struct seen *s = arg;

    s->ids[s->n++] = h->id[UUID_LEN - 1];
    s->enabled = h->enabled;
    snprintf(s->name, sizeof(s->name), "%s", h->name);
    snprintf(s->secret, sizeof(s->secret), "%s", h->secret);
}

TEST(each_tenant_has_its_own)
{
    struct shop s = shop_open();
    struct store_hook a = hook(&s.acme, '1'), b = hook(&s.beta, '2'), c = hook(&s.acme, '3');
    struct seen acme = {0}, all = {0}, one = {0};
    struct sg_error e;

    EXPECT(store_hook_add(s.store, &a, &e) == 0 && store_hook_add(s.store, &b, &e) == 0);
    EXPECT(store_hook_add(s.store, &c, &e) == 0);
    EXPECT(store_hooks_each(s.store, s.acme.id, see, &acme, &e) == 0);
    EXPECT_STR(acme.ids, "13");
    EXPECT(store_hooks_each(s.store, NULL, see, &all, &e) == 0);
    EXPECT_STR(all.ids, "123");
    EXPECT(store_hook_get(s.store, s.acme.id, ID "2", see, &one, &e) == -ENOENT && one.n == 0);
    memcpy(b.tenant, s.acme.id, sizeof(b.tenant));
    EXPECT(store_hook_set(s.store, &b, &e) == -ENOENT);
    EXPECT(store_hook_remove(s.store, s.acme.id, ID "2", &e) == -ENOENT);
    a.name = "yours";
    a.secret = "other";
    a.enabled = false;
    EXPECT(store_hook_set(s.store, &a, &e) == 0);
    EXPECT(store_hook_get(s.store, s.acme.id, ID "1", see, &one, &e) == 0);
    EXPECT_STR(one.name, "yours");
    EXPECT_STR(one.secret, "other");
    EXPECT(!one.enabled);
    shop_close(&s);
}

TEST(there_is_a_limit)
{
    struct shop s = shop_open();
    struct store_hook h = hook(&s.acme, '0'), other = hook(&s.beta, 'x');
    struct sg_error e;

    for (int i = 0; i < STORE_WEBHOOKS_MAX; i++) {
        h.id[UUID_LEN - 1] = (char)('a' + i);
        EXPECT(store_hook_add(s.store, &h, &e) == 0);
    }
    h.id[UUID_LEN - 1] = 'z';
    EXPECT(store_hook_add(s.store, &h, &e) == -EDQUOT && strstr(e.message, "delete one first"));
    EXPECT(store_hook_add(s.store, &other, &e) == 0);
    EXPECT(store_hook_remove(s.store, s.acme.id, ID "a", &e) == 0);
    EXPECT(store_hook_add(s.store, &h, &e) == 0);
    shop_close(&s);
}

TEST(each_has_its_progress_and_takes_it_along)
{
    struct shop s = shop_open();
    struct store_hook h = hook(&s.acme, '1');
    struct store_webhook w = {.done = 9, .n = 1, .open[0] = {7, 2}}, own = {.done = 4}, got;
    struct sg_error e;

    EXPECT(store_hook_add(s.store, &h, &e) == 0);
    EXPECT(store_webhook_get(s.store, h.id, &got, &e) == -ENOENT);
    EXPECT(store_webhook_set(s.store, h.id, &w, &e) == 0);
    EXPECT(store_webhook_set(s.store, "", &own, &e) == 0);
    store_close(s.store);
    s.store = open_ok(&s.place);
    EXPECT(store_webhook_get(s.store, h.id, &got, &e) == 0);
    EXPECT(got.done == 9 && got.n == 1 && got.open[0].event == 7 && got.open[0].tries == 2);
    EXPECT(store_webhook_get(s.store, "", &got, &e) == 0 && got.done == 4 && got.n == 0);
    EXPECT(store_hook_remove(s.store, s.acme.id, h.id, &e) == 0);
    EXPECT(store_webhook_get(s.store, h.id, &got, &e) == -ENOENT);
    EXPECT(store_webhook_get(s.store, "", &got, &e) == 0);
    shop_close(&s);
}

static void join(const char *e2b, void *arg)
{
    char *text = arg;

    text[strlen(text)] = e2b[0];
}

static const char *listed(struct shop *s, struct store_e2b_query q)
{
    static char text[64];
    struct sg_error e;

    memset(text, 0, sizeof(text));
    q.tenant = q.tenant ? q.tenant : s->acme.id;
    q.limit = q.limit ? q.limit : 100;
    EXPECT(store_events_e2b(s->store, &q, join, text, &e) == 0);
    return text;
}

TEST(events_in_e2bs_form)
{
    struct shop s = shop_open();
    const struct store_event events[] = {
        {1, 1, s.acme.id, "sandbox.created", "{}", SANDBOX, "a"},
        {2, 1, s.acme.id, "egress.blocked", "{}", SANDBOX, NULL},
        {3, 1, s.acme.id, "sandbox.ended", "{}", SANDBOX, "b"},
        {4, 1, s.beta.id, "sandbox.created", "{}", "b", "c"},
        {5, 1, s.acme.id, "sandbox.created", "{}", "other", "d"},
    };
    struct sg_error e;

    EXPECT(store_events_write(s.store, events, 5, &e) == 0);
    EXPECT_STR(listed(&s, (struct store_e2b_query){.limit = 10}), "dba");
    EXPECT_STR(listed(&s, (struct store_e2b_query){.oldest_first = true}), "abd");
    EXPECT_STR(listed(&s, (struct store_e2b_query){.limit = 1, .offset = 1}), "b");
    EXPECT_STR(listed(&s, (struct store_e2b_query){.sandbox = SANDBOX}), "ba");
    EXPECT_STR(listed(&s, (struct store_e2b_query){.sandbox = SANDBOX, .oldest_first = true}),
               "ab");
    EXPECT_STR(listed(&s, (struct store_e2b_query){.kinds = " sandbox.created "}), "da");
    EXPECT_STR(listed(&s, (struct store_e2b_query){.kinds = " sandbox.create "}), "");
    EXPECT_STR(listed(&s, (struct store_e2b_query){.tenant = s.beta.id}), "c");
    EXPECT_STR(listed(&s, (struct store_e2b_query){.sandbox = "b"}), "");
    shop_close(&s);
}
