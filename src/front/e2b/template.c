#include "front/e2b/template.h"

#include <openssl/sha.h>

#include "front/e2b/shape.h"

#define ANSWER_MAX  (1024u * 1024)
#define UUID_LEN    36
#define RELEASED_MS 1767225600000 /* 2026-01-01: built-in templates change only with the program */

/* The ids are fixed, so that a client may store them. */
static const struct builtin {
    const char *id, *alias;
} builtins[] = {
    {"sgbase00000000000000", "base"},
    {"sgcodeinterpreter001", TEMPLATE_INTERPRETER},
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
    *ret = (struct template_found){.created_ms = RELEASED_MS};
    snprintf(ret->id, sizeof(ret->id), "%s", b->id);
    snprintf(ret->alias, sizeof(ret->alias), "%s", b->alias);
    snprintf(ret->base, sizeof(ret->base), "%s", b->alias);
}

static void found_snapshot(const struct store_snapshot *snap, struct template_found *ret)
{
    *ret = (struct template_found){.created_ms = snap->created_ms};
    memcpy(ret->id, snap->id, sizeof(ret->id));
    memcpy(ret->snapshot, snap->id, sizeof(ret->snapshot));
    memcpy(ret->alias, snap->name, sizeof(ret->alias));
    memcpy(ret->base, snap->base_template, sizeof(ret->base));
}

static int not_found(const struct template_ref *ref, struct sg_error *e)
{
    char text[REF_TEXT_MAX + 1];

    template_ref_text(ref, text);
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "template '%s' not found", text);
}

int template_find(struct store *s, const struct store_tenant *tenant,
                  const struct template_ref *ref, struct template_found *ret, struct sg_error *e)
{
    const struct builtin *b = ref->space[0] ? NULL : find_builtin(ref->name);
    char name_tag[2 * STORE_NAME_MAX + 2];
    struct store_snapshot snap;

    if (b && strcmp(ref->tag, REF_DEFAULT_TAG) != 0)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "tag '%s' does not exist for template '%s'",
                       ref->tag, ref->name);
    if (b) {
        found_builtin(b, ret);
        return 0;
    }
    if (ref->space[0] && strcmp(ref->space, tenant->name) != 0)
        return not_found(ref, e);
    snprintf(name_tag, sizeof(name_tag), "%s:%s", ref->name, ref->tag);
    int r = store_snapshot_get(s, tenant->id, name_tag, &snap, e);
    if (r == -ENOENT)
        return not_found(ref, e);
    if (r == 0)
        found_snapshot(&snap, ret);
    return r;
}

/* The UUID of a template's build. E2B names builds by UUIDs, and programs parse them as such. We
 * have one build of each template, so its UUID follows from the template's id. */
static void build_uuid(const char *id, char ret[UUID_LEN + 1])
{
    unsigned char h[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)id, strlen(id), h);
    h[6] = (h[6] & 0x0f) | 0x80; /* version 8: a custom scheme */
    h[8] = (h[8] & 0x3f) | 0x80;
    snprintf(ret, UUID_LEN + 1,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", h[0], h[1],
             h[2], h[3], h[4], h[5], h[6], h[7], h[8], h[9], h[10], h[11], h[12], h[13], h[14],
             h[15]);
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

static void key_sizes(struct json *j, const struct settings *s)
{
    struct sg_limits limits = {.cpus_milli = s->sandbox_cpus_milli};

    jw_u64(jw_key(j, "cpuCount"), shape_cpus(&limits));
    jw_u64(jw_key(j, "memoryMB"), shape_mib(s->sandbox_memory));
    jw_u64(jw_key(j, "diskSizeMB"), shape_mib(s->sandbox_disk));
    jw_string(jw_key(j, "envdVersion"), FRONT_ENVD_VERSION);
}

/* Writes the fields that the list and the details share. Uses of a template are not counted. */
static void template_head(struct json *j, const struct template_found *t, const char *tenant_name)
{
    bool public = t->snapshot[0] == '\0';

    jw_string(jw_key(j, "templateID"), t->id);
    jw_bool(jw_key(j, "public"), public);
    key_names(j, "aliases", "", t->alias);
    key_names(j, "names", public ? "" : tenant_name, t->alias);
    shape_time_key(j, "createdAt", t->created_ms);
    shape_time_key(j, "updatedAt", t->created_ms);
    jw_null(jw_key(j, "lastSpawnedAt"));
    jw_u64(jw_key(j, "spawnCount"), 0);
}

void templates_list(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};

    jw_array_begin(&j);
    for (size_t i = 0; i < ARRAY_SIZE(builtins); i++) {
        struct template_found t;
        char uuid[UUID_LEN + 1];

        found_builtin(&builtins[i], &t);
        build_uuid(t.id, uuid);
        jw_object_begin(&j);
        template_head(&j, &t, "");
        key_sizes(&j, &front_of(req)->settings);
        jw_string(jw_key(&j, "buildID"), uuid);
        jw_u64(jw_key(&j, "buildCount"), 1);
        jw_string(jw_key(&j, "buildStatus"), "ready");
        jw_null(jw_key(&j, "createdBy"));
        jw_object_end(&j);
    }
    jw_array_end(&j);
    reply_json(req, 200, &out);
}

/* Finds the template that the URL names. False: answered. */
static bool template_of_path(struct http_req *req, const char *invalid, struct template_ref *ref,
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

void template_get(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct template_ref ref;
    struct template_found t;
    char uuid[UUID_LEN + 1];
    struct reply r;

    if (!template_of_path(req, "Invalid template ID", &ref, &t))
        return;
    struct json *j = reply_begin(&r, ANSWER_MAX);
    build_uuid(t.id, uuid);
    template_head(j, &t, q->tenant.name);
    jw_array_begin(jw_key(j, "builds"));
    jw_object_begin(j);
    jw_string(jw_key(j, "buildID"), uuid);
    jw_string(jw_key(j, "status"), "ready");
    shape_time_key(j, "createdAt", t.created_ms);
    shape_time_key(j, "updatedAt", t.created_ms);
    shape_time_key(j, "finishedAt", t.created_ms);
    key_sizes(j, &q->front->settings);
    jw_object_end(j);
    jw_array_end(j);
    reply_send(q, 200, &r);
}

void template_alias(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct template_ref ref;
    struct template_found t;
    struct sg_error e;
    struct reply r;

    if (template_ref_parse(req->params[0], &ref, &e) == 0 &&
        template_ref_own(&ref, q->tenant.name, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    if (!template_of_path(req, "Invalid alias format", &ref, &t))
        return;
    struct json *j = reply_begin(&r, ANSWER_MAX);
    jw_string(jw_key(j, "templateID"), t.id);
    jw_bool(jw_key(j, "public"), t.snapshot[0] == '\0');
    reply_send(q, 200, &r);
}

/* ---- tags ------------------------------------------------------------------------------------ */

struct tag_list {
    struct json *j;
    const struct template_found *t;
};

static void write_tag(struct json *j, const char *tag, const char *id, int64_t created_ms)
{
    char uuid[UUID_LEN + 1];

    build_uuid(id, uuid);
    jw_object_begin(j);
    jw_string(jw_key(j, "tag"), tag);
    jw_string(jw_key(j, "buildID"), uuid);
    shape_time_key(j, "createdAt", created_ms);
    jw_object_end(j);
}

/* All snapshots of one name are tags of one template. */
static bool same_template(const struct store_snapshot *snap, const struct template_found *t)
{
    return t->alias[0] ? strcmp(snap->name, t->alias) == 0 : strcmp(snap->id, t->id) == 0;
}

static bool add_tag(const struct store_snapshot *snap, void *arg)
{
    struct tag_list *l = arg;

    if (same_template(snap, l->t))
        write_tag(l->j, snap->tag, snap->id, snap->created_ms);
    return true;
}

void template_tags(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct e2b_req *q = e2b_of(req);
    struct template_ref ref;
    struct template_found t;
    struct sg_error e;
    struct json j = {.out = &out};
    struct tag_list list = {.j = &j, .t = &t};
    int r = 0;

    if (!template_of_path(req, "Invalid template ID", &ref, &t))
        return;
    jw_array_begin(&j);
    if (t.snapshot[0])
        r = store_snapshots_each(q->front->store, q->tenant.id, STORE_NEWEST, add_tag, &list, &e);
    else
        write_tag(&j, REF_DEFAULT_TAG, t.id, t.created_ms);
    jw_array_end(&j);
    if (r < 0)
        reply_sg_error(req, &e);
    else
        reply_json(req, 200, &out);
}

/* ---- delete ---------------------------------------------------------------------------------- */

#define DELETE_AT_ONCE 64

struct victims {
    const struct template_ref *ref;
    char ids[DELETE_AT_ONCE][ID_LEN + 1];
    size_t n;
};

static bool add_victim(const struct store_snapshot *snap, void *arg)
{
    struct victims *v = arg;
    bool named = strcmp(snap->name, v->ref->name) == 0 || strcmp(snap->id, v->ref->name) == 0;

    if (named && (!v->ref->tagged || strcmp(snap->tag, v->ref->tag) == 0))
        memcpy(v->ids[v->n++], snap->id, sizeof(snap->id));
    return v->n < DELETE_AT_ONCE;
}

/* Deletes the names first, so that nobody can begin to use a layer that is about to go. */
static int delete_victims(struct e2b_req *q, const struct victims *v, struct sg_error *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < v->n; i++) {
        r = store_snapshot_remove(q->front->store, q->tenant.id, v->ids[i], e);
        if (r == 0)
            sandbox_forget_snapshot(q->front, v->ids[i]);
    }
    return r;
}

/* With a tag, deletes that snapshot; without one, all snapshots of the name: the whole template.
 * Sandboxes that were made from it keep their files. */
static int delete_snapshots(struct e2b_req *q, const struct template_ref *ref, struct sg_error *e)
{
    struct victims v;
    size_t deleted = 0;
    int r;

    do {
        v = (struct victims){.ref = ref};
        r = store_snapshots_each(q->front->store, q->tenant.id, STORE_NEWEST, add_victim, &v, e);
        if (r == 0)
            r = delete_victims(q, &v, e);
        deleted += v.n;
    } while (r == 0 && v.n == DELETE_AT_ONCE);
    return r < 0 || deleted > 0 ? r : not_found(ref, e);
}

void template_delete(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct template_ref ref;
    struct sg_error e;
    int r = template_ref_parse(req->params[0], &ref, &e);

    if (r < 0) {
        reply_error(req, 400, "Invalid template ID: %s", e.message);
        return;
    }
    if (!ref.space[0] && template_is_builtin(ref.name)) {
        reply_error(req, 403, "template '%s' belongs to the server and cannot be deleted",
                    ref.name);
        return;
    }
    if (template_ref_own(&ref, q->tenant.name, NULL) < 0)
        r = not_found(&ref, &e);
    else
        r = delete_snapshots(q, &ref, &e);
    if (r < 0)
        reply_sg_error(req, &e);
    else
        reply_empty(req, 204);
}
