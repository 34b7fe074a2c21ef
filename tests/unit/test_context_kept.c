/* What a context keeps of its sandbox: sealed, changed with its network, applied again. */
#include "tap.h"

#include "context_rig.h"

#include "lib/vault/vault.h"

/* ---- sealing --------------------------------------------------------------------------------- */

static struct sandbox_spec spec_new(void)
{
    struct sandbox_spec s;

    sandbox_spec_init(&s);
    s.envs = json_object();
    return s;
}

static char *seal(const struct vault_key *k, const struct sandbox_spec *s)
{
    struct sg_error e;
    char *text = NULL;

    EXPECT(kept_seal(k, "tenant", "context", s, &text, &e) == 0);
    return text;
}

static int apply_to(const struct vault_key *k, const char *tenant, const char *context,
                    const char *text)
{
    struct sandbox_spec s = spec_new();
    struct sg_error e;
    bool said;
    int r = kept_apply(k, tenant, context, text, &s, &said, &e);

    if (r < 0)
        EXPECT(!s.metadata && json_object_size(s.envs) == 0 && !s.network);
    sandbox_spec_done(&s);
    return r;
}

/* Of several pieces, so that these can be cut and moved. */
static struct sandbox_spec long_spec(void)
{
    struct sandbox_spec s = spec_new();
    AUTO(free_p) char *value = xcalloc(1, 50001);

    memset(value, 'v', 50000);
    s.metadata = json_pack("{s:s}", "user", "ann");
    json_object_set_new(s.envs, "LONG", json_string(value));
    s.network = json_pack("{s:[s]}", "allowOut", "allowed.example");
    s.allow_internet = 0;
    s.network_said = true;
    return s;
}

TEST(what_is_sealed_comes_back)
{
    struct vault_key *k = vault_key_new();
    struct sandbox_spec from = long_spec(), to = spec_new();
    AUTO(free_p) char *text = seal(k, &from);
    struct sg_error e;
    bool said;

    EXPECT(!strstr(text, "allowed") && !strstr(text, "vvvv"));
    EXPECT(kept_apply(k, "tenant", "context", text, &to, &said, &e) == 0 && !said);
    EXPECT(json_equal(to.metadata, from.metadata) && json_equal(to.envs, from.envs));
    EXPECT(json_equal(to.network, from.network) && to.allow_internet == 0);
    EXPECT(to.traffic_token[0] == '\0');
    sandbox_spec_done(&to);

    /* What is said anew counts, each for itself. */
    to = spec_new();
    json_object_set_new(to.envs, "LONG", json_string("short"));
    EXPECT(kept_apply(k, "tenant", "context", text, &to, &said, &e) == 0 && said);
    EXPECT_STR(json_string_value(json_object_get(to.envs, "LONG")), "short");
    EXPECT(json_equal(to.metadata, from.metadata) && json_equal(to.network, from.network));
    sandbox_spec_done(&to);
    sandbox_spec_done(&from);

    /* A private one stays private, with a token of its own; nothing at all is not kept. */
    from = spec_new();
    AUTO(free_p) char *nothing = seal(k, &from);
    EXPECT(nothing == NULL);
    from.network_said = true;
    token_random(from.traffic_token);
    AUTO(free_p) char *private = seal(k, &from);
    to = spec_new();
    EXPECT(kept_apply(k, "tenant", "context", private, &to, &said, &e) == 0);
    EXPECT(to.traffic_token[0] && strcmp(to.traffic_token, from.traffic_token) != 0);
    sandbox_spec_done(&to);
    sandbox_spec_done(&from);
    vault_key_free(k);
}

TEST(only_its_key_tenant_and_context_open_it)
{
    struct vault_key *k = vault_key_new(), *another = vault_key_new();
    struct sandbox_spec from = long_spec();
    AUTO(free_p) char *text = seal(k, &from);

    EXPECT(apply_to(k, "tenant", "context", text) == 0);
    EXPECT(apply_to(another, "tenant", "context", text) == -EBADMSG);
    EXPECT(apply_to(k, "other", "context", text) == -EBADMSG);
    EXPECT(apply_to(k, "tenant", "other", text) == -EBADMSG);
    EXPECT(apply_to(k, "tenant/context", "", text) == -EBADMSG);
    sandbox_spec_done(&from);
    vault_key_free(k);
    vault_key_free(another);
}

TEST(what_was_cut_moved_or_changed_does_not_open)
{
    struct vault_key *k = vault_key_new();
    struct sandbox_spec from = long_spec();
    AUTO(free_p) char *text = seal(k, &from);
    size_t len = strlen(text), second = strcspn(text, ".") + 1;
    AUTO(free_p) char *moved = xcalloc(1, 2 * len + 2);

    EXPECT(second < len);
    EXPECT(apply_to(k, "tenant", "context", "") == -EBADMSG);
    EXPECT(apply_to(k, "tenant", "context", "...") == -EBADMSG);
    EXPECT(apply_to(k, "tenant", "context", text + second) == -EBADMSG); /* without the first */
    for (size_t cut = 4; cut < len; cut += 997) { /* less could be padding alone */
        snprintf(moved, len + 1, "%.*s", (int)(len - cut), text);
        EXPECT(apply_to(k, "tenant", "context", moved) == -EBADMSG);
    }
    snprintf(moved, 2 * len + 2, "%s.%.*s", text + second, (int)(second - 1), text);
    EXPECT(apply_to(k, "tenant", "context", moved) == -EBADMSG);
    snprintf(moved, 2 * len + 2, "%s.%s", text, text);
    EXPECT(apply_to(k, "tenant", "context", moved) == -EBADMSG);
    snprintf(moved, 2 * len + 2, "%s", text);
    moved[len / 2] = moved[len / 2] == 'A' ? 'B' : 'A';
    EXPECT(apply_to(k, "tenant", "context", moved) == -EBADMSG);
    sandbox_spec_done(&from);
    vault_key_free(k);
}

TEST(what_is_too_large_is_refused)
{
    struct vault_key *k = vault_key_new();
    AUTO(free_p) char *value = xcalloc(1, CTX_KEPT_MAX + 1), *text = NULL;
    struct sandbox_spec s = spec_new();
    struct sg_error e;

    memset(value, 'v', CTX_KEPT_MAX);
    json_object_set_new(s.envs, "LONG", json_string(value));
    EXPECT(kept_seal(k, "tenant", "context", &s, &text, &e) == -E2BIG && !text);
    EXPECT(strstr(e.message, "larger"));
    sandbox_spec_done(&s);
    vault_key_free(k);
}

/* ---- a network that changes ------------------------------------------------------------------ */

struct changed {
    bool came;
    int r;
    char message[sizeof(((struct sg_error *)0)->message)];
};

static void on_changed(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct changed *c = arg;

    (void)b;
    EXPECT(!c->came);
    c->came = true;
    c->r = r;
    snprintf(c->message, sizeof(c->message), "%s", r < 0 ? e->message : "");
}

static void change_begin(struct changed *c, const char *sandbox_id, const char *allowed)
{
    struct sandbox *b = sandbox_find(&server.front, sandbox_id);

    *c = (struct changed){0};
    if (!b)
        server_fail("the sandbox is gone");
    context_set_network(b, json_pack("{s:[s], s:[s]}", "allowOut", allowed, "denyOut", "0.0.0.0/0"),
                        -1, on_changed, c);
}

static int change(const char *sandbox_id, const char *allowed)
{
    static struct changed c;

    change_begin(&c, sandbox_id, allowed);
    turn_until(&c.came);
    return c.r;
}

/* "": none. */
static const char *allowed_of(const char *sandbox_id)
{
    const struct sandbox *b = sandbox_find(&server.front, sandbox_id);
    const json_t *list = b ? json_object_get(b->spec.network, "allowOut") : NULL;

    return json_array_size(list) > 0 ? json_string_value(json_array_get(list, 0)) : "";
}

/* The sandbox that takes the place of this one. */
static struct asked *replaced(const char *sandbox_id, const char *conversation)
{
    sandbox_kill(sandbox_find(&server.front, sandbox_id), NULL, NULL);
    struct asked *a = obtain(conversation, "main");
    EXPECT(a->r == 0 && a->replaced);
    return a;
}

TEST(a_replaced_sandbox_has_the_network_that_was_set_last)
{
    begin();
    struct asked *a = obtain("changed", "main");
    EXPECT(change(a->sandbox_id, "one.example") == 0);
    EXPECT_STR(allowed_of(a->sandbox_id), "one.example");
    a = replaced(a->sandbox_id, "changed");
    EXPECT(!a->kept_lost);
    EXPECT_STR(allowed_of(a->sandbox_id), "one.example");
    EXPECT(change(a->sandbox_id, "two.example") == 0);
    EXPECT_STR(allowed_of(replaced(a->sandbox_id, "changed")->sandbox_id), "two.example");
}

TEST(a_change_that_cannot_be_kept_is_taken_back)
{
    struct changed c;

    begin();
    struct asked *a = obtain("refused", "main");
    EXPECT(change(a->sandbox_id, "one.example") == 0);
    shaky.keep_fails = -EAGAIN;
    change_begin(&c, a->sandbox_id, "two.example");
    turn_until(&c.came);
    EXPECT(c.r == -EAGAIN && strstr(c.message, "was not changed") &&
           strstr(c.message, "the test said"));
    EXPECT_STR(allowed_of(a->sandbox_id), "one.example");
    EXPECT_STR(allowed_of(replaced(a->sandbox_id, "refused")->sandbox_id), "one.example");
}

TEST(a_change_that_was_kept_unheard_is_taken_back_too)
{
    begin();
    struct asked *a = obtain("unheard", "main");
    EXPECT(change(a->sandbox_id, "one.example") == 0);
    shaky.keep_fails = -EAGAIN;
    shaky.kept_unheard = true;
    EXPECT(change(a->sandbox_id, "two.example") == -EAGAIN);
    EXPECT_STR(allowed_of(a->sandbox_id), "one.example");
    EXPECT_STR(allowed_of(replaced(a->sandbox_id, "unheard")->sandbox_id), "one.example");
}

TEST(changes_at_the_same_time_come_one_after_the_other)
{
    struct changed c[3];

    begin();
    struct asked *a = obtain("several", "main");
    shaky.keep_fails = -EAGAIN; /* of the first */
    change_begin(&c[0], a->sandbox_id, "one.example");
    change_begin(&c[1], a->sandbox_id, "two.example");
    change_begin(&c[2], a->sandbox_id, "three.example");
    turn_until(&c[2].came);
    EXPECT(c[0].came && c[0].r == -EAGAIN && c[1].came && c[1].r == 0 && c[2].r == 0);
    EXPECT_STR(allowed_of(a->sandbox_id), "three.example");
    EXPECT_STR(allowed_of(replaced(a->sandbox_id, "several")->sandbox_id), "three.example");
}

TEST(a_sandbox_that_ends_meanwhile_keeps_nothing)
{
    struct changed c;

    begin();
    struct asked *a = obtain("ending", "main");
    EXPECT(change(a->sandbox_id, "one.example") == 0);
    change_begin(&c, a->sandbox_id, "two.example");
    sandbox_kill(sandbox_find(&server.front, a->sandbox_id), NULL, NULL);
    turn_until(&c.came);
    /* Whichever was faster: what is kept is what was answered. */
    a = obtain("ending", "main");
    EXPECT(a->replaced);
    EXPECT_STR(allowed_of(a->sandbox_id), c.r == 0 ? "two.example" : "one.example");
}

/* ---- a server without the key ---------------------------------------------------------------- */

TEST(without_the_key_the_answer_says_so)
{
    struct asked first = {0}, second = {0};

    begin();
    struct contexts *t = server.front.contexts;
    struct asked *a = obtain("keyless", "main");
    EXPECT(change(a->sandbox_id, "one.example") == 0 && !a->kept_lost);
    struct vault_key *own = t->key;
    t->key = vault_key_new();
    sandbox_kill(sandbox_find(&server.front, a->sandbox_id), NULL, NULL);
    ask_path(&first, "keyless", "main", 60000);
    ask_path(&second, "keyless", "main", 60000);
    turn_until(&second.came);
    EXPECT(first.r == 0 && first.replaced && first.kept_lost);
    EXPECT(second.r == 0 && !second.replaced && !second.kept_lost);
    EXPECT_STR(allowed_of(first.sandbox_id), "");
    /* It stays for the server that has it. */
    vault_key_free(t->key);
    t->key = own;
    a = replaced(first.sandbox_id, "keyless");
    EXPECT(!a->kept_lost);
    EXPECT_STR(allowed_of(a->sandbox_id), "one.example");
}

TAP_MAIN
