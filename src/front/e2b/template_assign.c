/* POST /templates/tags: further tags for a build, or for a snapshot, which becomes a template by that.
 *
 *   target is a build of the template --> its tags
 *   target is a snapshot, or the tags have another template's name
 *       --> an entry of a build under that name, which was never run --> its tags
 *
 * Nothing is copied: the entry names the layer that the snapshot names, and the files stay as long as one of
 * them does. */
#include "front/builds/build.h"
#include "front/builds/log.h"
#include "front/e2b/build.h"
#include "front/e2b/template.h"
#include "lib/base/uuid.h"

#define ANSWER_MAX (1024u * 1024)

static int check_room(struct e2b_req *q, struct sg_error *e)
{
    uint64_t max = q->front->settings.tenant_build_size;

    return store_build_layers_named(q->front->store, q->tenant.id) < max
               ? 0
               : err_set(e, SG_ERR_LIMIT, -EDQUOT,
                         "your templates take up all that they may (tenant_build_size, %llu MiB): "
                         "delete some",
                         (unsigned long long)max >> 20);
}

/* Where a build has its log, this one has a line that says what it came from. */
static void log_origin(struct e2b_req *q, const struct template_found *of, const char *target,
                       const char *build)
{
    const char *what = of->build[0] ? "template" : "snapshot";
    const char *id = of->build[0] ? of->build : of->snapshot;
    struct build_log log;

    build_log_init(&log, q->front->store, build);
    snprintf(log.step, sizeof(log.step), "base");
    build_log_line(&log, BUILD_INFO,
                   "[base] FROM %s %s (%s): its files as they are, without a step", what, target,
                   id);
    build_log_done(&log);
}

/* The build is there: gives it files and tags. */
static int end_entry(struct e2b_req *q, const struct template_found *of, struct store_build *b,
                     struct sg_error *e)
{
    struct store *s = q->front->store;
    json_t *defaults = NULL;
    int r = template_defaults(s, of, &defaults, e);
    AUTO(free_p)
    char *text = defaults ? json_dumps(defaults, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    json_decref(defaults);
    if (r == 0 && !of->build[0])
        r = store_build_layer_share(s, q->tenant.id, of->snapshot, e);
    b->state = BUILD_READY;
    memcpy(b->base, of->base, sizeof(b->base));
    memcpy(b->layer, of->snapshot, sizeof(b->layer));
    return r < 0 ? r : store_build_end(s, b, text ? text : "", e);
}

static int add_entry(struct e2b_req *q, const struct template_found *of, const char *target,
                     const char *name, struct store_build *b, struct sg_error *e)
{
    struct store *s = q->front->store;
    struct store_template t;
    int r = check_room(q, e);

    if (r == 0)
        r = store_template_ensure(s, q->tenant.id, name, q->front->settings.tenant_templates, &t,
                                  e);
    if (r < 0)
        return r;
    uuid_random(b->id);
    memcpy(b->template_id, t.id, sizeof(b->template_id));
    b->cpus = of->cpus;
    b->memory_mib = of->memory_mib;
    r = store_build_add(s, b, BUILDS_KEPT, e);
    if (r < 0)
        return r;
    log_origin(q, of, target, b->id);
    r = end_entry(q, of, b, e);
    if (r < 0) {
        b->state = BUILD_ERROR;
        b->layer[0] = '\0';
        snprintf(b->reason, sizeof(b->reason), "%s", e->message);
        snprintf(b->reason_step, sizeof(b->reason_step), "base");
        store_build_end(s, b, "", NULL);
    }
    return r;
}

static int check_own(struct e2b_req *q, const struct template_ref *ref, struct sg_error *e)
{
    if (!ref->space[0] && template_is_builtin(ref->name))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "template '%s' belongs to the server and cannot be changed", ref->name);
    return template_ref_own(ref, q->tenant.name, e);
}

/* Finds what is to be tagged, and tags it under `as`, or under its own name if `as` has none. */
static int assign(struct e2b_req *q, const char *target, const struct template_ref *as,
                  struct store_build *b, struct sg_error *e)
{
    struct store *s = q->front->store;
    struct template_ref ref;
    struct template_found of;
    int r = template_ref_parse(target, &ref, e);

    if (r < 0)
        return err_wrap(e, r, "Invalid template ID");
    if (!ref.space[0] && template_is_builtin(ref.name))
        return check_own(q, &ref, e);
    r = template_find(s, &q->tenant, &ref, &of, e);
    if (r == 0 && of.foreign)
        r = err_set(e, SG_ERR_DENIED, -EPERM,
                    "template '%s' belongs to another team: build one of your own from it",
                    of.alias);
    if (r == 0)
        r = check_own(q, as, e);
    if (r < 0)
        return r;
    const char *name = as->name[0] ? as->name : of.alias[0] ? of.alias : of.id;
    if (!of.build[0] || strcmp(name, of.alias) != 0)
        return add_entry(q, &of, target, name, b, e);
    memcpy(b->id, of.build, sizeof(b->id));
    return store_tags_set(s, of.id, b->tags, b->id, e);
}

void template_tags_add(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf tags = strbuf_upto(STORE_TAGS_MAX - 1);
    struct e2b_req *q = e2b_of(req);
    const char *target = field_text(&q->in, "target", REF_TEXT_MAX, "");
    struct template_ref as = {.name = ""};
    struct store_build b = {.id = ""};
    struct sg_error e;
    struct reply reply;

    template_read_tags(&q->in, "tags", &as, &tags);
    if (tags.len == 0)
        fields_invalid(&q->in, "'tags' is empty");
    if (!e2b_read(q))
        return;
    snprintf(b.tags, sizeof(b.tags), "%s", tags.buf);
    if (assign(q, target, &as, &b, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    builds_sweep(q->front, q->tenant.id);
    struct json *j = reply_begin(&reply, ANSWER_MAX);
    jw_string(jw_key(j, "buildID"), b.id);
    template_put_texts(jw_key(j, "tags"), b.tags);
    reply_send(q, 201, &reply);
}
