#include "front/e2b/template.h"

#include "front/builds/build.h"
#include "front/core/copies.h"
#include "front/e2b/shape.h"

#define ANSWER_MAX (1024u * 1024)

/* ---- own templates --------------------------------------------------------------------------- */

/* Finds a template that the tenant has built, to change it. */
static int find_own(struct e2b_req *q, const struct template_ref *ref, struct store_template *ret,
                    struct sg_error *e)
{
    if (!ref->space[0] && template_is_builtin(ref->name))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "template '%s' belongs to the server and cannot be changed", ref->name);
    int r = template_ref_own(ref, q->tenant.name, NULL);
    if (r == 0)
        r = store_template_get(q->front->store, q->tenant.id, ref->name, ret, e);
    return r == -ENOENT || r == -EINVAL ? template_not_found(ref, e) : r;
}

static int find_own_text(struct e2b_req *q, const char *text, struct template_ref *ref,
                         struct store_template *ret, struct sg_error *e)
{
    int r = template_ref_parse(text, ref, e);

    return r < 0 ? err_wrap(e, r, "Invalid template ID") : find_own(q, ref, ret, e);
}

bool template_own_of_path(struct http_req *req, struct store_template *ret)
{
    struct template_ref ref;
    struct sg_error e;
    int r = find_own_text(e2b_of(req), req->params[0], &ref, ret, &e);

    if (r < 0)
        reply_sg_error(req, &e);
    return r == 0;
}

/* Who else used it goes on; copies that others had of it are removed. */
static int publish(struct e2b_req *q, const struct store_template *t, bool public,
                   struct sg_error *e)
{
    int r = public == t->public ? 0 : store_template_publish(q->front->store, t->id, public, e);

    if (r == 0 && !public)
        copies_tidy(q->front);
    return r;
}

void template_update(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    char name[2 * STORE_NAME_MAX + 2];
    struct store_template t;
    struct sg_error e;
    struct reply r;

    if (!template_own_of_path(req, &t))
        return;
    bool public = field_flag(&q->in, "public", t.public);
    if (!e2b_read(q))
        return;
    if (publish(q, &t, public, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    struct json *j = reply_begin(&r, ANSWER_MAX);
    snprintf(name, sizeof(name), "%s/%s", q->tenant.name, t.name);
    jw_array_begin(jw_key(j, "names"));
    jw_string(j, name);
    jw_array_end(j);
    reply_send(q, 200, &r);
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* A tag has the form that it has behind a name. */
static int parse_tag(const char *text, bool may_name, struct template_ref *ret, struct sg_error *e)
{
    char whole[REF_TEXT_MAX + 1];
    bool named = may_name && strchr(text, ':');
    int n = snprintf(whole, sizeof(whole), "%s%s", named ? "" : "x:", text);

    if (n < 0 || (size_t)n >= sizeof(whole))
        return err_invalid(e, "Invalid tag: it is too long");
    int r = template_ref_parse(whole, ret, e);
    if (r == 0 && !named)
        ret->name[0] = '\0';
    return r;
}

void template_read_tags(struct fields *in, const char *field, struct template_ref *of,
                        struct strbuf *out)
{
    const json_t *tags = field_array(in, field, STORE_TEMPLATE_TAGS), *tag;
    size_t i;

    json_array_foreach(tags, i, tag)
    {
        const char *text = json_is_string(tag) ? json_string_value(tag) : "";
        struct template_ref ref;

        fields_check(in, parse_tag(text, of != NULL, &ref, in->e));
        if (!fields_ok(in))
            return;
        if (of && i > 0 && (strcmp(of->name, ref.name) != 0 || strcmp(of->space, ref.space) != 0))
            fields_invalid(in, "Invalid tags: they are of more than one template");
        else if (of)
            *of = ref;
        strbuf_addf(out, "%s%s", out->len > 0 ? " " : "", ref.tag);
    }
    if (out->truncated)
        fields_invalid(in, "'%s' has more than %u bytes", field, (unsigned)out->max);
}

void template_put_texts(struct json *j, const char *texts)
{
    jw_array_begin(j);
    for (const char *p = texts; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");

        jw_bytes(j, p, len);
        p += len;
    }
    jw_array_end(j);
}

void template_tags_remove(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf tags = strbuf_upto(STORE_TAGS_MAX - 1);
    struct e2b_req *q = e2b_of(req);
    const char *name = field_text(&q->in, "name", REF_TEXT_MAX, "");
    struct template_ref ref;
    struct store_template t;
    struct sg_error e;

    template_read_tags(&q->in, "tags", NULL, &tags);
    if (!e2b_read(q))
        return;
    int r = find_own_text(q, name, &ref, &t, &e);
    if (r == 0)
        r = store_tags_remove(q->front->store, t.id, tags.buf, &e);
    if (r < 0) {
        reply_sg_error(req, &e);
        return;
    }
    builds_sweep(q->front, q->tenant.id);
    reply_empty(req, 204);
}

struct tag_list {
    struct json *j;
    struct store *store;
    const char *id, *name; /* of the template; name "": it has none */
};

static void write_tag(struct json *j, const char *tag, const char *build, int64_t created_ms)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "tag"), tag);
    jw_string(jw_key(j, "buildID"), build);
    shape_time_key(j, "createdAt", created_ms);
    jw_object_end(j);
}

/* The same of a template whose builds have no entries. */
static void write_tag_of(struct json *j, const char *tag, const char *id, int64_t created_ms)
{
    char uuid[STORE_BUILD_LEN + 1];

    template_build_uuid(id, uuid);
    write_tag(j, tag, uuid, created_ms);
}

static void add_built_tag(const char *tag, const char *build, int64_t created_ms, void *arg)
{
    write_tag(arg, tag, build, created_ms);
}

/* All snapshots of one name are tags of one template; so is one whose id is the name. A build's tag comes
 * first. */
static bool add_tag(const struct store_snapshot *snap, void *arg)
{
    struct tag_list *l = arg;
    bool same = l->name[0] ? strcmp(snap->name, l->name) == 0 || strcmp(snap->id, l->name) == 0
                           : strcmp(snap->id, l->id) == 0;
    struct store_build b;

    if (same && store_build_by_tag(l->store, l->id, snap->tag, &b, NULL) < 0)
        write_tag_of(l->j, snap->tag, snap->id, snap->created_ms);
    return true;
}

static int put_snapshot_tags(struct e2b_req *q, const char *id, const char *name, struct json *j,
                             struct sg_error *e)
{
    struct tag_list list = {.j = j, .store = q->front->store, .id = id, .name = name};

    return store_snapshots_each(q->front->store, q->tenant.id, STORE_NEWEST, add_tag, &list, e);
}

/* Writes the tags of a template that was built. -ENOENT: the URL names no such template. */
static int put_built_tags(struct e2b_req *q, struct json *j, struct sg_error *e)
{
    struct template_ref ref;
    struct store_template t;
    int r = template_ref_parse(q->http->params[0], &ref, e);

    if (r < 0 || template_is_builtin(ref.name))
        return -ENOENT;
    r = template_find_built(q->front->store, &q->tenant, &ref, &t, e);
    if (r == 0)
        r = store_tags_each(q->front->store, t.id, add_built_tag, j, e);
    return r < 0 ? r : put_snapshot_tags(q, t.id, t.name, j, e);
}

static int put_tags(struct e2b_req *q, const struct template_found *t, struct json *j,
                    struct sg_error *e)
{
    if (t->snapshot[0] && !t->foreign)
        return put_snapshot_tags(q, t->id, t->alias, j, e);
    write_tag_of(j, REF_DEFAULT_TAG, t->id, t->created_ms);
    return 0;
}

void template_tags(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct e2b_req *q = e2b_of(req);
    struct template_ref ref;
    struct template_found t;
    struct sg_error e;
    struct json j = {.out = &out};

    jw_array_begin(&j);
    int r = put_built_tags(q, &j, &e);
    if (r == -ENOENT) {
        if (!template_of_path(req, "Invalid template ID", &ref, &t))
            return;
        r = put_tags(q, &t, &j, &e);
    }
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

/* Deletes a template that was built, or only a tag of it. Builds of it that are under way end. -ENOENT: it
 * has no such tag. */
static int delete_built(struct e2b_req *q, const struct template_ref *ref, struct sg_error *e)
{
    struct store *s = q->front->store;
    struct store_template t;
    struct store_build b;
    int r = find_own(q, ref, &t, e);

    if (r == 0 && ref->tagged) {
        r = store_build_by_tag(s, t.id, ref->tag, &b, e);
        if (r == 0)
            r = store_tags_remove(s, t.id, ref->tag, e);
        else if (r == -ENOENT)
            err_set(e, SG_ERR_NOT_FOUND, r, "tag '%s' does not exist for template '%s'", ref->tag,
                    ref->name);
    } else if (r == 0) {
        builds_cancel(q->front, t.id, NULL);
        r = store_template_remove(s, t.id, e);
    }
    if (r == 0)
        builds_sweep(q->front, q->tenant.id);
    return r;
}

/* With a tag, deletes that snapshot; without one, all snapshots of the name: the whole template.
 * Sandboxes that were made from it keep their files. Returns how many. */
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
    return r < 0 ? r : (int)deleted;
}

/* Whether the name is the id of a snapshot, which names nothing but that. */
static bool is_snapshot_id(struct e2b_req *q, const struct template_ref *ref)
{
    struct store_snapshot snap;

    return !ref->tagged &&
           store_snapshot_get(q->front->store, q->tenant.id, ref->name, &snap, NULL) == 0 &&
           strcmp(snap.id, ref->name) == 0;
}

/* A name may be that of a template and of snapshots: without a tag all of it goes. */
static int delete_all(struct e2b_req *q, const struct template_ref *ref, struct sg_error *e)
{
    int r = is_snapshot_id(q, ref) ? template_not_found(ref, e) : delete_built(q, ref, e);

    if (template_ref_own(ref, q->tenant.name, NULL) < 0 || (r < 0 && r != -ENOENT) ||
        (r == 0 && ref->tagged))
        return r;
    int n = delete_snapshots(q, ref, e);
    return n == 0 ? r : n < 0 ? n : 0;
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
    if (delete_all(q, &ref, &e) < 0)
        reply_sg_error(req, &e);
    else
        reply_empty(req, 204);
}
