/* Snapshots: the files of a sandbox under a name, from which other sandboxes can be made. If
 * nothing is in the way, the kernels are kept too, as a checkpoint of the same name: as long as the
 * server lives, a sandbox made from the snapshot then has their variables. `state` says which it
 * is: "warm" (with kernels) or "files". */
#include "lib/base/clock.h"
#include "front/e2b/page.h"
#include "front/e2b/sandbox.h"
#include "front/e2b/shape.h"
#include "front/e2b/template.h"
#include "front/core/checkpoint.h"
#include "front/core/identity.h"

#define ANSWER_MAX (1024u * 1024)

/* Writes a snapshot; its name is "team/name:tag", or "id:default" if it has none. report: on its
 * kernels, or NULL. */
static void write_info(struct json *j, struct e2b_req *q, const struct store_snapshot *s,
                       const json_t *report)
{
    const char *tenant_name = q->tenant.name;
    const struct checkpoint *warm = checkpoint_find(q->front, q->tenant.id, s->id);
    char name[2 * STORE_NAME_MAX + 2], id[3 * STORE_NAME_MAX + 4];

    snprintf(name, sizeof(name), "%s/%s", tenant_name, s->name);
    snprintf(id, sizeof(id), "%s:%s", s->name[0] ? name : s->id, s->tag);
    jw_object_begin(j);
    jw_string(jw_key(j, "snapshotID"), id);
    jw_array_begin(jw_key(j, "names"));
    if (s->name[0])
        jw_string(j, name);
    jw_array_end(j);
    jw_string(jw_key(j, "state"), warm && warm->kernels ? "warm" : "files");
    report_put(j, report);
    jw_object_end(j);
}

/* ---- create ---------------------------------------------------------------------------------- */

struct saving {
    struct e2b_req *q;
    struct sandbox *sandbox;
    struct store_snapshot snap;
    json_t *report; /* on the kernels, and on what was in the way of a copy */
};

static void saving_free(struct saving *s)
{
    json_decref(s->report);
    sandbox_unref(s->sandbox);
    free(s);
}

/* Adds the snapshot to the store, which makes it exist. If that fails, its files are deleted. Also
 * deletes the files of a snapshot that lost its name to this one. */
static int write_down(struct front *f, struct store_snapshot *snap, const json_t *defaults,
                      struct sg_error *e)
{
    AUTO(free_p) char *text = defaults ? json_dumps(defaults, JSON_COMPACT) : NULL;
    char replaced[ID_LEN + 1];

    snap->defaults = text;
    int r = store_snapshot_add(f->store, snap, replaced, e);

    if (r < 0)
        sandbox_forget_snapshot(f, snap->id);
    else if (replaced[0])
        sandbox_forget_snapshot(f, replaced);
    return r;
}

/* The snapshot is kept even if nobody waits for the answer: its name and its sandbox find it. */
static void on_saved(void *arg, int r, const struct sg_error *e, uint64_t bytes)
{
    struct saving *s = arg;
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct sg_error failed;
    struct json j = {.out = &out};

    s->snap.bytes = bytes;
    if (r == 0) {
        r = write_down(s->q->front, &s->snap, s->sandbox->spec.defaults, &failed);
        e = &failed;
    }
    if (e2b_done(s->q, r, e)) {
        write_info(&j, s->q, &s->snap, s->report);
        reply_json(s->q->http, 201, &out);
    }
    saving_free(s);
}

/* Whether the files can still be saved after kernels could not be copied. */
static bool files_are_left(int r)
{
    return r == -EBUSY || r == -EOPNOTSUPP || r == -EDQUOT || r == -ENOMEM || r == -EPIPE;
}

static void on_checkpoint(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                          const json_t *report)
{
    struct saving *s = arg;

    s->report = report ? json_deep_copy(report) : json_object();
    if (!json_object_get(s->report, "kernels"))
        json_object_set_new(s->report, "kernels", json_array());
    if (r < 0 && files_are_left(r) && s->sandbox->state != SANDBOX_ENDED &&
        !shape_is_paused(s->sandbox))
        sandbox_snapshot(s->sandbox, s->snap.id, true, on_saved, s);
    else
        on_saved(s, r, e, r < 0 ? 0 : checkpoint_disk_bytes(c));
}

/* Reads a name, which may have the tenant's own namespace only. */
static int parse_own(const struct e2b_req *q, const char *name, struct template_ref *ret,
                     struct sg_error *e)
{
    int r = template_ref_parse(name, ret, e);

    return r < 0 ? err_wrap(e, r, "Invalid name") : template_ref_own(ret, q->tenant.name, e);
}

/* Reads the name that the client asked for. */
static int parse_name(struct e2b_req *q, struct store_snapshot *snap, struct sg_error *e)
{
    const char *name = field_text(&q->in, "name", REF_TEXT_MAX, NULL);
    struct store_template t;
    struct store_build built;
    struct template_ref ref;

    snprintf(snap->tag, sizeof(snap->tag), "%s", REF_DEFAULT_TAG);
    if (!name)
        return q->in.r;
    int r = parse_own(q, name, &ref, e);
    if (r < 0)
        return r;
    if (template_is_builtin(ref.name))
        return err_invalid(e, "Invalid name: '%s' is a template that comes with the server",
                           ref.name);
    if (store_template_get(q->front->store, q->tenant.id, ref.name, &t, NULL) == 0 &&
        store_build_by_tag(q->front->store, t.id, ref.tag, &built, NULL) == 0)
        return err_set(e, SG_ERR_GONE, -EBUSY, "the name '%s:%s' is taken by a template of yours",
                       ref.name, ref.tag); /* which would hide the snapshot */
    memcpy(snap->name, ref.name, sizeof(snap->name));
    memcpy(snap->tag, ref.tag, sizeof(snap->tag));
    return 0;
}

/* The built-in template that the sandbox goes back to. Its own may have been deleted, or tagged
 * otherwise. */
static void name_base(const struct sandbox *b, struct store_snapshot *snap)
{
    const char *base = b->spec.interpreter ? TEMPLATE_INTERPRETER
                       : b->spec.gateway   ? GATEWAY_TEMPLATE
                                           : TEMPLATE_BASE;

    snprintf(snap->base_template, sizeof(snap->base_template), "%s", base);
}

static int check_room(struct e2b_req *q, struct sg_error *e)
{
    uint32_t n = 0, limit = q->front->settings.tenant_snapshots;
    int r = store_snapshots_count(q->front->store, q->tenant.id, &n, e);

    if (r == 0 && n >= limit)
        return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                       "you have reached the maximum number of snapshots: the limit is %u; delete "
                       "one first",
                       limit);
    return r;
}

void snapshot_create(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    struct store_snapshot snap = {.created_ms = clock_wall_ms()};

    if (!b)
        return;
    fields_check(&q->in, parse_name(q, &snap, &q->wrong));
    fields_check(&q->in, check_room(q, &q->wrong));
    if (!e2b_read(q))
        return;
    if (shape_is_paused(b)) {
        reply_error(q->http, 409,
                    "Sandbox '%s' is paused and cannot be snapshotted; resume it "
                    "first",
                    b->id);
        return;
    }
    struct checkpoint_ask ask = {.kind = CHECKPOINT_SNAPSHOT, .durable = true};
    name_base(b, &snap);
    id_random(snap.id);
    memcpy(snap.tenant, q->tenant.id, sizeof(snap.tenant));
    memcpy(snap.sandbox_id, b->id, sizeof(snap.sandbox_id));
    struct saving *s = NEW(struct saving, .q = q, .sandbox = sandbox_ref(b), .snap = snap);
    ask.name = s->snap.id;
    e2b_wait(q);
    sandbox_checkpoint(b, &ask, on_checkpoint, s);
}

/* ---- list ------------------------------------------------------------------------------------ */

struct listing {
    struct e2b_req *q;
    struct json j;
    struct page page;
    struct template_ref ref;
    bool by_name;
    char sandbox_id[ID_LEN + 1]; /* "": of all sandboxes */
    bool by_sandbox;
};

static bool add_one(const struct store_snapshot *s, void *arg)
{
    struct listing *l = arg;

    if (l->by_sandbox && strcmp(s->sandbox_id, l->sandbox_id) != 0)
        return true;
    if (l->by_name && strcmp(s->name, l->ref.name) != 0 && strcmp(s->id, l->ref.name) != 0)
        return true;
    if (l->by_name && l->ref.tagged && strcmp(s->tag, l->ref.tag) != 0)
        return true;
    if (!page_take(&l->page, s->seq))
        return false;
    write_info(&l->j, l->q, s, NULL);
    return true;
}

static void parse_filters(struct listing *l)
{
    struct e2b_req *q = l->q;
    const char *name = http_query_get(q->http, "name"),
               *sandbox_id = http_query_get(q->http, "sandboxID");

    l->by_sandbox = sandbox_id != NULL;
    if (sandbox_id && e2b_short_id(sandbox_id, l->sandbox_id) < 0)
        fields_invalid(&q->in, "Invalid sandbox ID");
    l->by_name = name != NULL;
    if (name)
        fields_check(&q->in, parse_own(q, name, &l->ref, &q->wrong));
}

void snapshot_list(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct e2b_req *q = e2b_of(req);
    struct listing l = {.q = q, .j.out = &out};
    struct sg_error e;

    parse_filters(&l);
    if (!page_of_request(q, PAGE_SNAPSHOTS, false, &l.page))
        return;
    jw_array_begin(&l.j);
    if (store_snapshots_each(q->front->store, q->tenant.id, page_from(&l.page), add_one, &l, &e) <
        0)
        reply_sg_error(req, &e);
    else
        page_reply(q, &l.page, &l.j);
}
