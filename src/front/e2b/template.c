#include "front/e2b/template.h"

#include <openssl/sha.h>

#include "front/core/defaults.h"
#include "front/core/identity.h"
#include "front/e2b/shape.h"
#include "lib/base/uuid.h"

#define ANSWER_MAX  (1024u * 1024)
#define RELEASED_MS 1767225600000 /* 2026-01-01: built-in templates change only with the program */

/* The ids are fixed, so that a client may store them. */
static const struct builtin {
    const char *id, *alias;
} builtins[] = {
    {"sgbase00000000000000", TEMPLATE_BASE},
    {"sgcodeinterpreter001", TEMPLATE_INTERPRETER},
    {"sgmcpgateway00000001", GATEWAY_TEMPLATE},
};

static const struct builtin *find_builtin(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(builtins); i++)
        if (strcmp(builtins[i].id, name) == 0 || strcmp(builtins[i].alias, name) == 0)
            return &builtins[i];
    return NULL;
}

bool template_is_builtin(const char *name)
{
    return find_builtin(name) != NULL;
}

static void found_builtin(const struct builtin *b, struct template_found *ret)
{
    *ret = (struct template_found){
        .created_ms = RELEASED_MS, .updated_ms = RELEASED_MS, .public = true};
    snprintf(ret->id, sizeof(ret->id), "%s", b->id);
    snprintf(ret->alias, sizeof(ret->alias), "%s", b->alias);
    snprintf(ret->base, sizeof(ret->base), "%s", b->alias);
}

static void found_snapshot(const struct store_snapshot *snap, const struct store_tenant *tenant,
                           struct template_found *ret)
{
    *ret = (struct template_found){.created_ms = snap->created_ms, .updated_ms = snap->created_ms};
    memcpy(ret->id, snap->id, sizeof(ret->id));
    memcpy(ret->snapshot, snap->id, sizeof(ret->snapshot));
    memcpy(ret->alias, snap->name, sizeof(ret->alias));
    memcpy(ret->base, snap->base_template, sizeof(ret->base));
    memcpy(ret->owner, tenant->name, sizeof(ret->owner));
}

static void found_built(const struct store_tenant *tenant, const struct store_template *t,
                        const struct store_build *b, struct template_found *ret)
{
    *ret = (struct template_found){.created_ms = t->created_ms,
                                   .updated_ms = t->updated_ms,
                                   .public = t->public,
                                   .cpus = b->cpus,
                                   .memory_mib = b->memory_mib};
    memcpy(ret->id, t->id, sizeof(ret->id));
    memcpy(ret->alias, t->name, sizeof(ret->alias));
    memcpy(ret->owner, tenant->name, sizeof(ret->owner));
    memcpy(ret->base, b->base, sizeof(ret->base));
    memcpy(ret->snapshot, b->layer, sizeof(ret->snapshot));
    memcpy(ret->build, b->id, sizeof(ret->build));
}

int template_not_found(const struct template_ref *ref, struct sg_error *e)
{
    char text[REF_TEXT_MAX + 1];

    template_ref_text(ref, text);
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "template '%s' not found", text);
}

static int no_tag(const struct template_ref *ref, struct sg_error *e)
{
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "tag '%s' does not exist for template '%s'",
                   ref->tag, ref->name);
}

int template_find_built(struct store *s, const struct store_tenant *tenant,
                        const struct template_ref *ref, struct store_template *ret,
                        struct sg_error *e)
{
    bool may_be_own = !ref->space[0] || strcmp(ref->space, tenant->name) == 0;
    int r = may_be_own ? store_template_get(s, tenant->id, ref->name, ret, e) : -ENOENT;

    return r == -ENOENT ? template_not_found(ref, e) : r;
}

static int find_snapshot(struct store *s, const struct store_tenant *tenant,
                         const struct template_ref *ref, struct template_found *ret,
                         struct sg_error *e)
{
    char name_tag[2 * STORE_NAME_MAX + 2];
    struct store_snapshot snap;

    if (ref->space[0] && strcmp(ref->space, tenant->name) != 0)
        return template_not_found(ref, e);
    snprintf(name_tag, sizeof(name_tag), "%s:%s", ref->name, ref->tag);
    int r = store_snapshot_get(s, tenant->id, name_tag, &snap, e);
    if (r == -ENOENT)
        return template_not_found(ref, e);
    if (r == 0)
        found_snapshot(&snap, tenant, ret);
    return r;
}

/* Another tenant's, which is public: by TENANT/NAME, or by its id. */
static int find_public(struct store *s, const struct template_ref *ref, struct store_tenant *owner,
                       struct store_template *ret, struct sg_error *e)
{
    int r = ref->space[0] ? store_tenant_find(s, ref->space, owner, NULL)
                          : store_template_public(s, ref->name, ret, e);

    if (r == 0 && ref->space[0])
        r = store_template_get(s, owner->id, ref->name, ret, e);
    else if (r == 0)
        r = store_tenant_get(s, ret->tenant, owner);
    return r == -ENOENT || (r == 0 && !ret->public) ? template_not_found(ref, e) : r;
}

static int find_foreign(struct store *s, const struct template_ref *ref, struct template_found *ret,
                        struct sg_error *e)
{
    struct store_tenant owner;
    struct store_template t;
    struct store_build build;
    int r = find_public(s, ref, &owner, &t, e);

    if (r < 0)
        return r;
    r = store_build_by_tag(s, t.id, ref->tag, &build, e);
    if (r < 0)
        return r == -ENOENT ? no_tag(ref, e) : r;
    found_built(&owner, &t, &build, ret);
    ret->foreign = true;
    return 0;
}

static int find_own(struct store *s, const struct store_tenant *tenant,
                    const struct template_ref *ref, struct template_found *ret, struct sg_error *e)
{
    struct store_template t;
    struct store_build build;
    int r = template_find_built(s, tenant, ref, &t, e);

    if (r == -ENOENT)
        return find_snapshot(s, tenant, ref, ret, e);
    if (r == 0)
        r = store_build_by_tag(s, t.id, ref->tag, &build, e);
    if (r == 0)
        found_built(tenant, &t, &build, ret);
    if (r == -ENOENT && find_snapshot(s, tenant, ref, ret, NULL) == 0)
        return 0; /* of the same name, with that tag */
    return r == -ENOENT ? no_tag(ref, e) : r;
}

int template_find(struct store *s, const struct store_tenant *tenant,
                  const struct template_ref *ref, struct template_found *ret, struct sg_error *e)
{
    const struct builtin *b = ref->space[0] ? NULL : find_builtin(ref->name);
    struct sg_error why;

    if (b && strcmp(ref->tag, REF_DEFAULT_TAG) != 0)
        return no_tag(ref, e);
    if (b) {
        found_builtin(b, ret);
        return 0;
    }
    int r = find_own(s, tenant, ref, ret, &why);
    if (r == -ENOENT && (!ref->space[0] || strcmp(ref->space, tenant->name) != 0) &&
        find_foreign(s, ref, ret, e) == 0)
        return 0;
    if (r < 0 && e)
        *e = why;
    return r;
}

/* The operator's own worlds are those of this tenant, as with `sandglass world`. */
static int find_world(struct store *s, const char *name, struct store_snapshot *ret,
                      struct sg_error *e)
{
    struct store_tenant tenant;
    int r = store_tenant_find(s, "default", &tenant, e);

    return r < 0 ? r : store_snapshot_get(s, tenant.id, name, ret, e);
}

int template_stand(struct front *f, struct template_found *t, struct sg_error *e)
{
    const char *world = f->settings.world;
    bool automatic = strcmp(world, "auto") == 0;
    struct store_snapshot snap;

    if (!template_is_builtin(t->id) || strcmp(world, "host") == 0)
        return 0;
    int r = find_world(f->store, automatic ? TEMPLATE_INTERPRETER : world, &snap, e);
    if (r == -ENOENT && automatic)
        return 0;
    if (r == -ENOENT)
        return err_set(e, SG_ERR_UNSUPPORTED, r,
                       "the world '%s' is not there: its operator can make it with 'sandglass "
                       "world', or set 'world = host'",
                       world);
    if (r == 0)
        memcpy(t->snapshot, snap.id, sizeof(t->snapshot));
    return r;
}

int template_defaults(struct store *s, const struct template_found *t, json_t **ret,
                      struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    int r = 0;

    if (t->build[0])
        r = store_build_defaults(s, t->build, &text, e);
    else if (t->snapshot[0])
        r = store_snapshot_defaults(s, t->snapshot, &text, e);
    if (r == -ENOENT) /* it was deleted a moment ago */
        r = err_set(e, SG_ERR_NOT_FOUND, r, "template '%s' not found", t->alias);
    if (r == 0)
        *ret = defaults_load(text);
    return r;
}

/* The UUID of a template's build. E2B names builds by UUIDs, and programs parse them as such. We
 * have one build of each template, so its UUID follows from the template's id. */
void template_build_uuid(const char *id, char ret[STORE_BUILD_LEN + 1])
{
    unsigned char h[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)id, strlen(id), h);
    uuid_from_bytes(h, ret);
}

static void key_names(struct json *j, const char *key, const char *space, const char *alias)
{
    jw_array_begin(jw_key(j, key));
    if (alias[0]) {
        char name[2 * STORE_NAME_MAX + 2];

        snprintf(name, sizeof(name), "%s%s%s", space, space[0] ? "/" : "", alias);
        jw_string(j, name);
    }
    jw_array_end(j);
}

/* cpus, memory_mib: 0 for the server's settings. */
static void key_sizes(struct json *j, const struct settings *s, uint32_t cpus, uint32_t memory_mib)
{
    struct sg_limits limits = {.cpus_milli = s->sandbox_cpus_milli};

    jw_u64(jw_key(j, "cpuCount"), cpus ? cpus : spec_cpus(&limits));
    jw_u64(jw_key(j, "memoryMB"), memory_mib ? memory_mib : spec_mib(s->sandbox_memory));
    jw_u64(jw_key(j, "diskSizeMB"), spec_mib(s->sandbox_disk));
    jw_string(jw_key(j, "envdVersion"), FRONT_ENVD_VERSION);
}

/* Writes the fields that the list and the details share. Uses of a template are not counted. */
static void template_head(struct json *j, const struct template_found *t)
{
    jw_string(jw_key(j, "templateID"), t->id);
    jw_bool(jw_key(j, "public"), t->public);
    key_names(j, "aliases", "", t->alias);
    key_names(j, "names", t->owner, t->alias);
    shape_time_key(j, "createdAt", t->created_ms);
    shape_time_key(j, "updatedAt", t->updated_ms);
    jw_null(jw_key(j, "lastSpawnedAt"));
    jw_u64(jw_key(j, "spawnCount"), 0);
}

const char *template_build_status(enum store_build_state state)
{
    return state == BUILD_READY     ? "ready"
           : state == BUILD_ERROR   ? "error"
           : state == BUILD_RUNNING ? "building"
                                    : "waiting";
}

static void list_one(struct json *j, const struct settings *s, const struct template_found *t,
                     const char *build, const char *status, uint32_t builds)
{
    jw_object_begin(j);
    template_head(j, t);
    key_sizes(j, s, t->cpus, t->memory_mib);
    jw_string(jw_key(j, "buildID"), build);
    jw_u64(jw_key(j, "buildCount"), builds);
    jw_string(jw_key(j, "buildStatus"), status);
    jw_null(jw_key(j, "createdBy"));
    jw_object_end(j);
}

struct template_list {
    struct e2b_req *q;
    struct json j;
};

/* With its newest build. */
static bool list_built(const struct store_template *t, void *arg)
{
    struct template_list *l = arg;
    struct store *s = l->q->front->store;
    struct store_build b = {.id = ""};
    struct template_found found;
    uint32_t n = 0;

    store_build_newest(s, t->id, &b, NULL);
    store_builds_count(s, t->id, &n, NULL);
    found_built(&l->q->tenant, t, &b, &found);
    list_one(&l->j, &l->q->front->settings, &found, b.id, template_build_status(b.state), n);
    return true;
}

void templates_list(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct e2b_req *q = e2b_of(req);
    struct template_list l = {.q = q, .j.out = &out};
    struct sg_error e;

    jw_array_begin(&l.j);
    for (size_t i = 0; i < ARRAY_SIZE(builtins); i++) {
        struct template_found t;
        char uuid[STORE_BUILD_LEN + 1];

        found_builtin(&builtins[i], &t);
        template_build_uuid(t.id, uuid);
        list_one(&l.j, &q->front->settings, &t, uuid, "ready", 1);
    }
    int r = store_templates_each(q->front->store, q->tenant.id, list_built, &l, &e);
    jw_array_end(&l.j);
    if (r < 0)
        reply_sg_error(req, &e);
    else
        reply_json(req, 200, &out);
}

/* Finds the template that the URL names. False: answered. */
bool template_of_path(struct http_req *req, const char *invalid, struct template_ref *ref,
                      struct template_found *ret)
{
    struct e2b_req *q = e2b_of(req);
    struct sg_error e;
    int r = template_ref_parse(req->params[0], ref, &e);

    r = r < 0 ? err_wrap(&e, r, "%s", invalid)
              : template_find(q->front->store, &q->tenant, ref, ret, &e);
    if (r < 0)
        reply_sg_error(req, &e);
    return r == 0;
}

static void write_build(struct json *j, const struct settings *s, const struct store_build *b)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "buildID"), b->id);
    jw_string(jw_key(j, "status"), template_build_status(b->state));
    shape_time_key(j, "createdAt", b->created_ms);
    shape_time_key(j, "updatedAt", b->ended_ms ? b->ended_ms : b->created_ms);
    if (b->ended_ms)
        shape_time_key(j, "finishedAt", b->ended_ms);
    key_sizes(j, s, b->cpus, b->memory_mib);
    jw_object_end(j);
}

static bool add_build(const struct store_build *b, void *arg)
{
    struct template_list *l = arg;

    write_build(&l->j, &l->q->front->settings, b);
    return true;
}

/* A template that was built, also if no build of it is ready. False: it is none. */
static bool get_built(struct e2b_req *q, const struct template_ref *ref)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct template_list l = {.q = q, .j.out = &out};
    struct store_build b = {.id = ""};
    struct template_found found;
    struct store_template t;

    if (template_find_built(q->front->store, &q->tenant, ref, &t, NULL) < 0)
        return false;
    found_built(&q->tenant, &t, &b, &found);
    jw_object_begin(&l.j);
    template_head(&l.j, &found);
    jw_array_begin(jw_key(&l.j, "builds"));
    store_builds_each(q->front->store, t.id, add_build, &l, NULL);
    jw_array_end(&l.j);
    jw_object_end(&l.j);
    reply_json(q->http, 200, &out);
    return true;
}

void template_get(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct store_build b = {.state = BUILD_READY};
    struct template_ref ref;
    struct template_found t;
    struct reply r;

    if (template_ref_parse(req->params[0], &ref, NULL) == 0 && !template_is_builtin(ref.name) &&
        get_built(q, &ref))
        return;
    if (!template_of_path(req, "Invalid template ID", &ref, &t))
        return;
    struct json *j = reply_begin(&r, ANSWER_MAX);
    template_head(j, &t);
    template_build_uuid(t.id, b.id);
    b.created_ms = b.ended_ms = t.created_ms;
    jw_array_begin(jw_key(j, "builds"));
    write_build(j, &q->front->settings, &b);
    jw_array_end(j);
    reply_send(q, 200, &r);
}

static void reply_alias(struct e2b_req *q, const char *id, bool public)
{
    struct reply r;
    struct json *j = reply_begin(&r, ANSWER_MAX);

    jw_string(jw_key(j, "templateID"), id);
    jw_bool(jw_key(j, "public"), public);
    reply_send(q, 200, &r);
}

/* A template exists from the first request to build it on. */
void template_alias(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct template_ref ref;
    struct template_found t;
    struct store_template built;
    struct sg_error e;

    if (template_ref_parse(req->params[0], &ref, &e) == 0 && !template_is_builtin(ref.name) &&
        template_find_built(q->front->store, &q->tenant, &ref, &built, &e) == 0) {
        reply_alias(q, built.id, built.public);
        return;
    }
    if (template_ref_parse(req->params[0], &ref, &e) == 0 &&
        template_ref_own(&ref, q->tenant.name, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    if (template_of_path(req, "Invalid alias format", &ref, &t))
        reply_alias(q, t.id, t.public);
}
