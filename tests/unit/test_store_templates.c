/* Templates in the store: builds and their states, tags that move, the cache of layers and what is
 * swept out of it, logs, uploads. */
#include "store_place.h"

#include "front/store/copy.h"
#include "front/store/db.h"
#include "front/store/worlds.h"
#include "lib/text/strbuf.h"

TAP_MAIN

static struct store *open_store(struct store_tenant *a, struct store_tenant *b)
{
    struct store *s = NULL;
    struct sg_error e = {0};

    EXPECT(db_open_memory(&s, &e) == 0);
    EXPECT(store_tenant_ensure(s, "acme", a, &e) == 0);
    EXPECT(store_tenant_ensure(s, "beta", b, &e) == 0);
    return s;
}

static void add_build(struct store *s, const char *template_id, const char *id)
{
    struct store_build b = {.cpus = 2};
    struct sg_error e = {0};

    snprintf(b.id, sizeof(b.id), "%s", id);
    snprintf(b.template_id, sizeof(b.template_id), "%s", template_id);
    snprintf(b.tags, sizeof(b.tags), "default v1");
    EXPECT(store_build_add(s, &b, 3, &e) == 0);
}

static int end_build(struct store *s, const char *template_id, const char *id, const char *layer,
                     enum store_build_state state)
{
    struct store_build b;
    struct sg_error e = {0};

    EXPECT(store_build_get(s, template_id, id, &b, &e) == 0);
    b.state = state;
    snprintf(b.layer, sizeof(b.layer), "%s", layer);
    snprintf(b.reason, sizeof(b.reason), "%s", state == BUILD_ERROR ? "why" : "");
    return store_build_end(s, &b, "{\"user\":\"root\"}", &e);
}

static const char *tagged(struct store *s, const char *template_id, const char *tag)
{
    static struct store_build b;

    return store_build_by_tag(s, template_id, tag, &b, NULL) == 0 ? b.id : "(none)";
}

static unsigned swept;
static const char *kept = "";

static bool is_kept(const char *id, void *arg)
{
    (void)arg;
    return strcmp(id, kept) == 0;
}

static void count_swept(const char *id, void *arg)
{
    (void)id, (void)arg;
    swept++;
}

static uint64_t sweep_bytes = UINT64_MAX;

static unsigned sweep(struct store *s, const char *tenant, uint32_t keep)
{
    swept = 0;
    EXPECT(store_build_layers_sweep(s, tenant, keep, sweep_bytes, is_kept, count_swept, NULL,
                                    NULL) == 0);
    return swept;
}

TEST(templates)
{
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct store_template t, again;
    struct sg_error e = {0};

    EXPECT(store_template_ensure(s, a.id, "mine", 1, &t, &e) == 0);
    EXPECT(store_template_ensure(s, a.id, "mine", 1, &again, &e) == 0);
    EXPECT_STR(t.id, again.id);
    EXPECT(store_template_ensure(s, a.id, "other", 1, &again, &e) == -EDQUOT);
    EXPECT(store_template_ensure(s, b.id, "mine", 1, &again, &e) == 0);
    EXPECT(strcmp(t.id, again.id) != 0);
    EXPECT(store_template_get(s, b.id, t.id, &again, &e) == -ENOENT);
    EXPECT(store_template_get(s, a.id, t.id, &again, &e) == 0);
    add_build(s, t.id, "b1");
    end_build(s, t.id, "b1", "", BUILD_READY);
    EXPECT(store_template_remove(s, t.id, &e) == 0);
    EXPECT(store_template_get(s, a.id, "mine", &again, &e) == -ENOENT);
    store_close(s);
}

TEST(builds_and_tags)
{
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct store_template t;
    struct store_build build;
    struct sg_error e = {0};
    char *defaults = NULL;

    store_template_ensure(s, a.id, "mine", 10, &t, &e);
    add_build(s, t.id, "b1");
    EXPECT(store_build_state(s, "b1", BUILD_QUEUED, &e) == 0);
    EXPECT(store_build_state(s, "b1", BUILD_QUEUED, &e) == -EALREADY);
    EXPECT(store_build_state(s, "b1", BUILD_RUNNING, &e) == 0);
    EXPECT(store_build_layer_add(s, a.id, NULL, "layer000000000000001", 5, &e) == 0);
    EXPECT_STR(tagged(s, t.id, "v1"), "(none)");
    EXPECT(end_build(s, t.id, "b1", "layer000000000000001", BUILD_READY) == 0);
    EXPECT(end_build(s, t.id, "b1", "", BUILD_ERROR) == -EALREADY);
    EXPECT_STR(tagged(s, t.id, "v1"), "b1");
    EXPECT_STR(tagged(s, t.id, "default"), "b1");
    EXPECT(store_build_defaults(s, "b1", &defaults, &e) == 0);
    EXPECT_STR(defaults, "{\"user\":\"root\"}");
    free(defaults);
    EXPECT(sweep(s, a.id, 0) == 0);
    add_build(s, t.id, "b2");
    EXPECT(end_build(s, t.id, "b2", "", BUILD_ERROR) == 0);
    EXPECT_STR(tagged(s, t.id, "v1"), "b1");
    add_build(s, t.id, "b3");
    EXPECT(end_build(s, t.id, "b3", "", BUILD_READY) == 0);
    EXPECT_STR(tagged(s, t.id, "v1"), "b3");
    EXPECT(sweep(s, a.id, 0) == 1); /* no tag names b1 any more */
    EXPECT(store_build_get(s, t.id, "b1", &build, &e) == 0 && build.layer[0] == '\0');
    EXPECT(store_tags_set(s, t.id, "x y", "b1", &e) == 0);
    EXPECT_STR(tagged(s, t.id, "y"), "b1");
    EXPECT(store_tags_remove(s, t.id, "x none", &e) == 0);
    EXPECT_STR(tagged(s, t.id, "x"), "(none)");
    store_close(s);
}

TEST(entries_are_forgotten)
{
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct store_template t;
    struct store_build build;
    struct sg_error e = {0};
    char id[8];
    uint32_t n = 0;

    store_template_ensure(s, a.id, "mine", 10, &t, &e);
    add_build(s, t.id, "tagged");
    end_build(s, t.id, "tagged", "", BUILD_READY);
    add_build(s, t.id, "running");
    store_build_state(s, "running", BUILD_RUNNING, &e);
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof(id), "b%d", i);
        add_build(s, t.id, id);
        end_build(s, t.id, id, "", BUILD_ERROR);
    }
    EXPECT(store_builds_count(s, t.id, &n, &e) == 0 && n < 8);
    EXPECT(store_build_get(s, t.id, "tagged", &build, &e) == 0);
    EXPECT(store_build_get(s, t.id, "b9", &build, &e) == 0);
    EXPECT(store_builds_abandon(s, "died", &e) == 0);
    EXPECT(store_build_get(s, t.id, "running", &build, &e) == 0);
    EXPECT(build.state == BUILD_ERROR);
    EXPECT_STR(build.reason, "died");
    EXPECT(store_build_get(s, t.id, "tagged", &build, &e) == 0 && build.state == BUILD_READY);
    store_close(s);
}

static void join(const struct store_log *line, void *arg)
{
    strbuf_addf(arg, "%u %s %s,", line->level, line->step, line->message);
}

static size_t lines_of(struct store *s, const char *build)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(4096);

    store_build_log_each(s, build, &(struct store_log_query){.limit = 9}, join, &text, NULL);
    return text.len;
}

/* Builds of others do not count, however many there are. */
TEST(what_is_kept_of_a_template)
{
    struct store_log line = {.step = "1", .message = "m"};
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct store_template mine, other;
    struct store_build build;
    struct sg_error e = {0};
    char id[16];
    uint32_t n = 0;

    store_template_ensure(s, a.id, "mine", 10, &mine, &e);
    store_template_ensure(s, b.id, "other", 10, &other, &e);
    add_build(s, mine.id, "first");
    end_build(s, mine.id, "first", "", BUILD_ERROR);
    for (int i = 0; i < STORE_BUILDS_NEW + 10; i++) {
        snprintf(id, sizeof(id), "o%d", i);
        add_build(s, other.id, id);
    }
    EXPECT(store_builds_count(s, other.id, &n, &e) == 0);
    EXPECT(n > STORE_BUILDS_NEW && n < STORE_BUILDS_NEW + 5);
    add_build(s, mine.id, "second");
    EXPECT(store_build_get(s, mine.id, "first", &build, &e) == 0);
    for (int i = 0; i < STORE_BUILD_LOGS + 5; i++) {
        snprintf(id, sizeof(id), "m%d", i);
        add_build(s, mine.id, id);
        EXPECT(store_build_log_add(s, id, &line, &e) == 0);
        EXPECT(end_build(s, mine.id, id, "", BUILD_READY) == 0);
        EXPECT(store_tags_set(s, mine.id, id, id, &e) == 0); /* keeps it, and its own log goes */
    }
    EXPECT(store_build_get(s, mine.id, "m0", &build, &e) == 0);
    EXPECT(lines_of(s, "m0") == 0);
    snprintf(id, sizeof(id), "m%d", STORE_BUILD_LOGS + 4);
    EXPECT(lines_of(s, id) > 0);
    store_close(s);
}

TEST(cache)
{
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct sg_error e = {0};
    char layer[ID_LEN + 1];

    EXPECT(store_build_layer_add(s, a.id, "k1", "layer000000000000001", 7, &e) == 0);
    EXPECT(store_build_layer_add(s, a.id, "k2", "layer000000000000002", 7, &e) == 0);
    EXPECT(store_build_layer_add(s, a.id, "k3", "layer000000000000003", 7, &e) == 0);
    EXPECT(store_build_layer_get(s, b.id, "k1", layer, &e) == -ENOENT);
    EXPECT(store_build_layer_get(s, a.id, "k1", layer, &e) == 0);
    EXPECT_STR(layer, "layer000000000000001");
    EXPECT(sweep(s, a.id, 2) == 1); /* k2: k1 was used since */
    EXPECT(store_build_layer_get(s, a.id, "k2", layer, &e) == -ENOENT);
    EXPECT(store_build_layer_add(s, a.id, "k3", "layer000000000000004", 7, &e) == 0);
    EXPECT(sweep(s, a.id, 2) == 1); /* the first one of k3 */
    EXPECT(sweep(s, b.id, 0) == 0);
    EXPECT(sweep(s, a.id, 0) == 2);
    for (int i = 0; i < 200; i++) {
        snprintf(layer, sizeof(layer), "layer%015d", i);
        EXPECT(store_build_layer_add(s, a.id, NULL, layer, 7, &e) == 0);
    }
    kept = "layer000000000000003";
    EXPECT(sweep(s, a.id, 0) == 199);
    kept = "";
    EXPECT(sweep(s, a.id, 0) == 1);
    store_close(s);
}

static void count_loose(const char *id UNUSED, void *arg)
{
    (*(unsigned *)arg)++;
}

static void add_snapshot(struct store *s, const char *tenant, const char *id)
{
    struct store_snapshot snap = {.bytes = 7};
    char replaced[ID_LEN + 1];
    struct sg_error e = {0};

    snprintf(snap.id, sizeof(snap.id), "%s", id);
    snprintf(snap.tenant, sizeof(snap.tenant), "%s", tenant);
    EXPECT(store_snapshot_add(s, &snap, replaced, &e) == 0);
}

/* A template that was made of a snapshot has its layer: the files go with the last name. */
TEST(a_layer_with_two_names)
{
    static const char *const layers[] = {"layer000000000000001", "layer000000000000002"};
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct store_template t;
    struct sg_error e = {0};
    unsigned loose = 0;

    store_template_ensure(s, a.id, "mine", 1, &t, &e);
    for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
        add_snapshot(s, a.id, layers[i]);
    EXPECT(store_build_layer_share(s, b.id, layers[0], &e) == 0); /* it is not b's */
    EXPECT(store_build_layer_bytes(s, layers[0]) == 0);
    for (int twice = 0; twice < 2; twice++)
        EXPECT(store_build_layer_share(s, a.id, layers[0], &e) == 0);
    EXPECT(store_build_layer_bytes(s, layers[0]) == 7);
    add_build(s, t.id, "b1");
    EXPECT(end_build(s, t.id, "b1", layers[0], BUILD_READY) == 0);
    EXPECT(store_snapshot_remove(s, a.id, layers[0], &e) == 0);
    EXPECT(store_layer_named(s, layers[0]));
    EXPECT(sweep(s, a.id, 0) == 0);
    EXPECT(store_template_remove(s, t.id, &e) == 0);
    EXPECT(sweep(s, a.id, 0) == 1);
    EXPECT(!store_layer_named(s, layers[0]));

    EXPECT(store_build_layer_share(s, a.id, layers[1], &e) == 0);
    EXPECT(sweep(s, a.id, 0) == 1); /* no build names it */
    EXPECT(store_layer_named(s, layers[1]));
    EXPECT(store_snapshot_remove(s, a.id, layers[1], &e) == 0);
    EXPECT(!store_layer_named(s, layers[1]));
    EXPECT(store_loose_snapshots_each(s, count_loose, &loose, &e) == 0 && loose == 2);
    store_close(s);
}

static void find_world(const struct store_world *w, void *arg)
{
    struct store_world *found = arg;

    if (strcmp(w->id, found->id) == 0)
        *found = *w;
}

static void count_dropped(const char *id UNUSED, void *arg)
{
    (*(unsigned *)arg)++;
}

TEST(layers_beyond_what_a_tenant_may_have)
{
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct store_template t;
    struct sg_error e = {0};
    char layer[ID_LEN + 1];

    EXPECT(store_template_ensure(s, a.id, "mine", 1, &t, &e) == 0);
    add_build(s, t.id, "b1");
    EXPECT(store_build_layer_add(s, a.id, NULL, "layer000000000000001", 100, &e) == 0);
    EXPECT(end_build(s, t.id, "b1", "layer000000000000001", BUILD_READY) == 0);
    EXPECT(store_build_layer_add(s, a.id, "k1", "layer000000000000002", 30, &e) == 0);
    EXPECT(store_build_layer_add(s, a.id, "k2", "layer000000000000003", 30, &e) == 0);
    EXPECT(store_build_layer_add(s, b.id, "k1", "layer000000000000004", 900, &e) == 0);
    EXPECT(store_build_layers_named(s, a.id) == 100);
    EXPECT(store_build_layers_named(s, b.id) == 0);
    sweep_bytes = 160;
    EXPECT(sweep(s, a.id, 10) == 0);
    sweep_bytes = 159;
    EXPECT(sweep(s, a.id, 10) == 1);
    EXPECT(store_build_layer_get(s, a.id, "k1", layer, &e) == -ENOENT);
    sweep_bytes = 1;
    EXPECT(sweep(s, a.id, 10) == 1);
    EXPECT(sweep(s, a.id, 10) == 0); /* what a template is made of stays */
    EXPECT(store_build_layer_get(s, b.id, "k1", layer, &e) == 0);
    sweep_bytes = UINT64_MAX;
    store_close(s);
}

/* Who may have what a layer has, and what becomes of the copies that others have of it. */
TEST(copies_of_public_templates)
{
    static const char layer[] = "layer000000000000001", copy[] = "layer000000000000002";
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct store_template t, other;
    struct sg_error e = {0};
    char id[ID_LEN + 1];

    EXPECT(store_template_ensure(s, a.id, "mine", 9, &t, &e) == 0 && !t.public);
    add_build(s, t.id, "b1");
    EXPECT(store_build_layer_add(s, a.id, NULL, layer, 7, &e) == 0);
    EXPECT(end_build(s, t.id, "b1", layer, BUILD_READY) == 0);
    EXPECT(store_layer_owner(s, a.id, layer) == LAYER_OWN);
    EXPECT(store_layer_owner(s, b.id, layer) == LAYER_FOREIGN);
    EXPECT(store_layer_owner(s, b.id, copy) == LAYER_OWN); /* of no build */
    EXPECT(store_template_public(s, t.id, &other, &e) == -ENOENT);
    EXPECT(store_template_publish(s, t.id, true, &e) == 0);
    EXPECT(store_template_public(s, t.id, &other, &e) == 0 && other.public);
    EXPECT(store_layer_owner(s, b.id, layer) == LAYER_PUBLIC);
    EXPECT(store_copy_get(s, b.id, layer, id, &e) == -ENOENT);
    EXPECT(store_copy_add(s, b.id, layer, copy, 9, &e) == 0);
    EXPECT(store_copy_get(s, b.id, layer, id, &e) == 0);
    EXPECT_STR(id, copy);
    EXPECT(store_copies_bytes(s, b.id) == 9 && store_copies_bytes(s, a.id) == 0);
    EXPECT(sweep(s, b.id, 9) == 0); /* it is in use */
    EXPECT(store_copy_expire(s, 1, id, &e) == 0);
    EXPECT(store_copy_expire(s, INT64_MAX, id, &e) == 1);
    EXPECT_STR(id, copy);
    EXPECT(store_copy_get(s, b.id, layer, id, &e) == -ENOENT);
    EXPECT(store_copy_add(s, b.id, layer, copy, 9, &e) == 0);
    EXPECT(store_copy_trim(s, a.id, id, &e) == 0);
    EXPECT(store_copy_trim(s, b.id, id, &e) == 1 && store_copies_bytes(s, b.id) == 0);
    EXPECT(store_copy_add(s, b.id, layer, copy, 9, &e) == 0);
    EXPECT(store_template_publish(s, t.id, false, &e) == 0);
    EXPECT(store_layer_owner(s, b.id, layer) == LAYER_FOREIGN);
    EXPECT(store_copy_expire(s, 1, id, &e) == 1);
    EXPECT(store_copy_expire(s, 1, id, &e) == 0);
    store_close(s);
}

TEST(images)
{
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    char config[] = "{\"Env\":[]}";
    struct store_image made = {.layer = "layer000000000000001",
                               .name = "debian:12",
                               .digest = "sha256:d",
                               .config = config,
                               .fetched_ms = 5};
    struct store_world w = {.id = "layer000000000000001"};
    struct store_image found = {.layer = ""};
    struct sg_error e = {0};
    unsigned dropped = 0;

    EXPECT(store_image_add(s, a.id, "k1", &made, 7, &e) == 0);
    EXPECT(store_image_get(s, b.id, "k1", &found, &e) == -ENOENT);
    EXPECT(store_image_get(s, a.id, "k2", &found, &e) == -ENOENT);
    EXPECT(store_image_get(s, a.id, "k1", &found, &e) == 0);
    EXPECT_STR(found.layer, made.layer);
    EXPECT_STR(found.digest, "sha256:d");
    EXPECT_STR(found.config, config);
    EXPECT(found.fetched_ms == 5);
    free(found.config);
    EXPECT(store_worlds_each(s, find_world, &w, &e) == 0);
    EXPECT(w.fetched && w.templates[0] == '\0');
    EXPECT_STR(w.name, "debian:12");
    EXPECT_STR(w.tenant, a.name);
    EXPECT(store_world_drop(s, w.id, &e) == 0);
    EXPECT(store_image_get(s, a.id, "k1", &found, &e) == -ENOENT);
    for (int i = 0; i < 2; i++)
        EXPECT(store_dropped_each(s, count_dropped, &dropped, &e) == 0);
    EXPECT(dropped == 1);
    EXPECT(store_image_add(s, a.id, "k1", &made, 7, &e) == 0); /* nothing is left of the first */
    EXPECT(sweep(s, a.id, 0) == 1);
    EXPECT(store_image_add(s, a.id, "k1", &made, 7, &e) == 0);
    store_close(s);
}

/* A build may end while `sandglass world` removes what it stood on: the template has its files, or the
 * build has failed. */
TEST(images_that_go_while_a_build_ends)
{
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    char config[] = "{}";
    struct store_image made = {
        .layer = "layer000000000000001", .name = "debian:12", .digest = "", .config = config};
    struct store_template t;
    struct store_build build;
    struct sg_error e = {0};

    EXPECT(store_template_ensure(s, a.id, "mine", 1, &t, &e) == 0);
    EXPECT(store_image_add(s, a.id, "k1", &made, 7, &e) == 0);
    add_build(s, t.id, "b1");
    EXPECT(store_world_drop(s, made.layer, &e) == 0);
    EXPECT(end_build(s, t.id, "b1", made.layer, BUILD_READY) == -ESTALE);
    EXPECT(end_build(s, t.id, "b1", "", BUILD_ERROR) == 0);
    EXPECT_STR(tagged(s, t.id, "default"), "(none)");
    EXPECT(store_image_add(s, a.id, "k1", &made, 7, &e) == 0);
    add_build(s, t.id, "b2");
    EXPECT(end_build(s, t.id, "b2", made.layer, BUILD_READY) == 0);
    EXPECT(store_world_drop(s, made.layer, &e) == -EBUSY);
    EXPECT(store_build_by_tag(s, t.id, "default", &build, &e) == 0);
    EXPECT_STR(build.layer, made.layer);
    EXPECT(store_build_layer_bytes(s, made.layer) == 7);
    store_close(s);
}

TEST(logs)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(4096);
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct store_template t;
    struct sg_error e = {0};

    store_template_ensure(s, a.id, "mine", 10, &t, &e);
    add_build(s, t.id, "b1");
    for (unsigned i = 0; i < 4; i++) {
        char message[8];
        struct store_log line = {.ms = 100 + i, .level = i % 2, .step = "1", .message = message};

        snprintf(message, sizeof(message), "m%u", i);
        EXPECT(store_build_log_add(s, "b1", &line, &e) == 0);
    }
    store_build_log_each(s, "b1", &(struct store_log_query){.offset = 1, .limit = 2}, join, &text,
                         &e);
    EXPECT_STR(text.buf, "1 1 m1,0 1 m2,");
    strbuf_reset(&text);
    store_build_log_each(s, "b1", &(struct store_log_query){.limit = 9, .level = 1}, join, &text,
                         &e);
    EXPECT_STR(text.buf, "1 1 m1,1 1 m3,");
    strbuf_reset(&text);
    store_build_log_each(s, "b1",
                         &(struct store_log_query){.limit = 2, .backward = true, .at_ms = 102},
                         join, &text, &e);
    EXPECT_STR(text.buf, "0 1 m2,1 1 m1,");
    store_close(s);
}

TEST(uploads)
{
    struct store_tenant a, b;
    struct store *s = open_store(&a, &b);
    struct store_upload u = {.file = "file0000000000000001", .digest = "d1", .bytes = 10}, got;
    struct sg_error e = {0};
    char old[ID_LEN + 1];

    EXPECT(store_upload_add(s, a.id, "h1", &u, old, &e) == 0 && old[0] == '\0');
    memcpy(u.file, "file0000000000000002", sizeof(u.file));
    EXPECT(store_upload_add(s, a.id, "h1", &u, old, &e) == 0);
    EXPECT_STR(old, "file0000000000000001");
    EXPECT(store_upload_get(s, b.id, "h1", &got, &e) == -ENOENT);
    EXPECT(store_upload_get(s, a.id, "h1", &got, &e) == 0 && got.bytes == 10);
    memcpy(u.file, "file0000000000000003", sizeof(u.file));
    EXPECT(store_upload_add(s, a.id, "h2", &u, old, &e) == 0);
    EXPECT(store_upload_trim(s, a.id, "h2", 20, 2, &got, &e) == 0);
    EXPECT(store_upload_trim(s, a.id, "h2", 19, 2, &got, &e) == 1);
    EXPECT_STR(got.file, "file0000000000000002");
    EXPECT(store_upload_trim(s, a.id, "h2", 5, 0, &got, &e) == 0); /* never the one just come */
    EXPECT(store_upload_is_file(s, "file0000000000000003"));
    EXPECT(!store_upload_is_file(s, "file0000000000000002"));
    memcpy(u.file, "file0000000000000004", sizeof(u.file));
    EXPECT(store_upload_add(s, a.id, "h3", &u, old, &e) == 0);
    EXPECT(store_upload_trim(s, a.id, "h3", 100, 1, &got, &e) == 1);
    EXPECT(store_upload_trim(s, a.id, "h3", 100, 1, &got, &e) == 0);
    EXPECT_STR(got.file, "file0000000000000003");
    store_close(s);
}

static bool not_copied(const char *id, void *arg)
{
    (void)arg;
    return strcmp(id, "layer000000000000001") != 0;
}

/* A layer whose files are not in a backup: no tag leads to a template without its files. */
TEST(a_backup_without_a_layer)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_facts facts;
    struct store_template t;
    struct store_tenant a;
    struct sg_error e = {0};
    char layer[ID_LEN + 1];

    EXPECT(store_tenant_ensure(s, "acme", &a, &e) == 0);
    EXPECT(store_template_ensure(s, a.id, "mine", 10, &t, &e) == 0);
    EXPECT(store_build_layer_add(s, a.id, "k1", "layer000000000000001", 5, &e) == 0);
    EXPECT(store_build_layer_add(s, a.id, "k2", "layer000000000000002", 5, &e) == 0);
    add_build(s, t.id, "lost");
    end_build(s, t.id, "lost", "layer000000000000001", BUILD_READY);
    EXPECT(store_tags_set(s, t.id, "old", "lost", &e) == 0);
    add_build(s, t.id, "kept");
    end_build(s, t.id, "kept", "layer000000000000002", BUILD_READY);
    store_close(s);
    EXPECT(store_copied_open(p.dir, &s, &facts, &e) == 0);
    EXPECT(store_copied_snapshots(s, not_copied, NULL, &e) == 0);
    store_close(s);
    s = open_ok(&p);
    EXPECT_STR(tagged(s, t.id, "old"), "(none)");
    EXPECT_STR(tagged(s, t.id, "v1"), "kept");
    EXPECT(store_build_layer_get(s, a.id, "k1", layer, &e) == -ENOENT);
    EXPECT(store_build_layer_get(s, a.id, "k2", layer, &e) == 0);
    store_close(s);
    place_remove(&p);
}
