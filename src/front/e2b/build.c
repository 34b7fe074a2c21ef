/* Builds of templates, as E2B's SDKs and command line ask for them:
 *
 *   build_create --> 202 ids --> build_files, a PUT for each COPY --> build_start --> 202
 *       --> build_status, again and again, until the build is ready or has failed */
#include "front/e2b/build.h"

#include "front/builds/build.h"
#include "front/builds/fetch.h"
#include "front/builds/steps.h"
#include "front/builds/upload.h"
#include "front/e2b/shape.h"
#include "front/e2b/template.h"
#include "lib/base/clock.h"
#include "lib/base/uuid.h"
#include "lib/text/parse.h"

#define ANSWER_MAX   (4u * 1024 * 1024)
#define CPUS_MAX     1024
#define MEMORY_MAX   (8u * 1024 * 1024) /* MiB */
#define COMMAND_MAX  (64u * 1024)
#define LOG_PAGE     100
#define REGISTRY_MAX (64u * 1024)

/* ---- create ---------------------------------------------------------------------------------- */

static int read_name(struct e2b_req *q, struct template_ref *ret, struct sg_error *e)
{
    const char *name = field_text(&q->in, "name", REF_TEXT_MAX, NULL);
    const char *alias = field_text(&q->in, "alias", REF_TEXT_MAX, NULL);

    if (!name && !alias)
        return err_invalid(e, "'name' is missing: a template needs one");
    int r = template_ref_parse(name ? name : alias, ret, e);
    if (r < 0)
        return err_wrap(e, r, "Invalid template name");
    if (template_is_builtin(ret->name))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "the name '%s' is taken by a template that comes with the server",
                       ret->name);
    return template_ref_own(ret, q->tenant.name, e);
}

/* A snapshot's name means the snapshot; a template of the same name would hide it. */
static int check_free(struct e2b_req *q, const struct template_ref *ref, struct sg_error *e)
{
    struct store_template t;
    struct store_snapshot snap;

    if (store_template_get(q->front->store, q->tenant.id, ref->name, &t, NULL) == 0 ||
        store_snapshot_get(q->front->store, q->tenant.id, ref->name, &snap, NULL) < 0)
        return 0;
    return err_set(e, SG_ERR_GONE, -EBUSY, "the name '%s' is taken by a snapshot of yours",
                   ref->name);
}

/* A template gets at most what the server gives to any sandbox. Returns what was asked for and is
 * more, as a sentence for the log; or "". */
static const char *limit_sizes(const struct settings *s, struct store_build *b, char ret[128])
{
    uint32_t cpus = s->sandbox_cpus_milli / 1000, memory = (uint32_t)(s->sandbox_memory >> 20);

    ret[0] = '\0';
    cpus = cpus ? cpus : 1;
    if (b->cpus > cpus || b->memory_mib > memory)
        snprintf(ret, 128, "sandboxes of this server have at most %u processors and %u MiB", cpus,
                 memory);
    b->cpus = b->cpus < cpus ? b->cpus : 0;
    b->memory_mib = b->memory_mib < memory ? b->memory_mib : 0;
    return ret;
}

static void log_limits(struct store *s, const char *build, const char *text)
{
    struct store_log line = {.ms = clock_wall_ms(), .level = 2, .step = "base", .message = text};

    if (text[0])
        store_build_log_add(s, build, &line, NULL);
}

static void reply_created(struct e2b_req *q, const struct store_template *t,
                          const struct store_build *b)
{
    char name[2 * STORE_NAME_MAX + 2];
    struct reply r;
    struct json *j = reply_begin(&r, ANSWER_MAX);

    snprintf(name, sizeof(name), "%s/%s", q->tenant.name, t->name);
    jw_string(jw_key(j, "templateID"), t->id);
    jw_string(jw_key(j, "buildID"), b->id);
    jw_bool(jw_key(j, "public"), t->public);
    template_put_texts(jw_key(j, "names"), name);
    template_put_texts(jw_key(j, "tags"), b->tags);
    template_put_texts(jw_key(j, "aliases"), t->name);
    reply_send(q, 202, &r);
}

void build_create(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf tags = strbuf_upto(STORE_TAGS_MAX - 1);
    struct e2b_req *q = e2b_of(req);
    struct store_build b = {.id = ""};
    struct template_ref ref = {.name = ""};
    struct store_template t;
    struct sg_error e;
    char limits[128];

    fields_check(&q->in, read_name(q, &ref, &q->wrong));
    if (ref.tagged)
        strbuf_addstr(&tags, ref.tag);
    template_read_tags(&q->in, "tags", NULL, &tags);
    b.cpus = (uint32_t)field_count(&q->in, "cpuCount", 1, CPUS_MAX, 0);
    b.memory_mib = (uint32_t)field_count(&q->in, "memoryMB", 16, MEMORY_MAX, 0);
    fields_check(&q->in, check_free(q, &ref, &q->wrong));
    if (!e2b_read(q))
        return;
    if (tags.len == 0)
        strbuf_addstr(&tags, REF_DEFAULT_TAG);
    int r = store_template_ensure(q->front->store, q->tenant.id, ref.name,
                                  q->front->settings.tenant_templates, &t, &e);
    uuid_random(b.id);
    snprintf(b.tags, sizeof(b.tags), "%s", tags.buf);
    if (r == 0) {
        memcpy(b.template_id, t.id, sizeof(b.template_id));
        limit_sizes(&q->front->settings, &b, limits);
        r = store_build_add(q->front->store, &b, BUILDS_KEPT, &e);
    }
    if (r == 0)
        log_limits(q->front->store, b.id, limits);
    if (r < 0)
        reply_sg_error(req, &e);
    else
        reply_created(q, &t, &b);
}

/* ---- files ----------------------------------------------------------------------------------- */

void build_files(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    const char *hash = req->params[1];
    char url[UPLOAD_URL_MAX];
    struct store_template t;
    struct store_upload u;
    struct sg_error e;
    struct reply r;

    if (!template_own_of_path(req, &t))
        return;
    if (!upload_hash_valid(hash)) {
        reply_error(req, 400, "Invalid files hash: it is not 64 hexadecimal digits");
        return;
    }
    if (upload_address(req, q->tenant.id, hash, url, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    AUTO(close_p) int fd = -1;
    if (store_upload_get(q->front->store, q->tenant.id, hash, &u, NULL) == 0)
        fd = upload_open(q->front->store, &u);
    struct json *j = reply_begin(&r, ANSWER_MAX);
    jw_bool(jw_key(j, "present"), fd >= 0);
    jw_string(jw_key(j, "url"), url);
    reply_send(q, 201, &r);
}

/* ---- start ----------------------------------------------------------------------------------- */

static const char *without(const char *text, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(text, prefix, len) == 0 ? text + len : text;
}

/* The template that an image stands for: one of ours for those of E2B, else the one that the operator
 * has made of it, under the image's name. */
static const char *template_of_image(const char *image)
{
    static const struct {
        const char *image, *name;
    } known[] = {{"e2bdev/base", TEMPLATE_BASE}, {"e2bdev/code-interpreter", TEMPLATE_INTERPRETER}};

    image = without(image, "docker.io/");
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        size_t len = strlen(known[i].image);
        if (strncmp(image, known[i].image, len) == 0 &&
            (image[len] == '\0' || image[len] == ':' || image[len] == '@'))
            return known[i].name;
    }
    return without(image, "library/");
}

static int find_base(struct e2b_req *q, const char *name, struct build_plan *p, struct sg_error *e)
{
    struct template_ref ref;
    struct template_found found;
    int r = template_ref_parse(name, &ref, e);

    if (r < 0)
        return err_wrap(e, r, "Invalid template reference");
    r = template_find(q->front->store, &q->tenant, &ref, &found, e);
    if (r == 0)
        r = template_stand(q->front, &found, e);
    if (r == 0)
        r = template_defaults(q->front->store, &found, &p->defaults, e);
    if (r < 0)
        return r;
    memcpy(p->base, found.base, sizeof(p->base));
    memcpy(p->layer, found.snapshot, sizeof(p->layer));
    p->layer_own = found.build[0] != '\0' && !found.foreign;
    return 0;
}

static bool is_known_image(const char *image)
{
    const char *name = template_of_image(image);

    return strcmp(name, TEMPLATE_BASE) == 0 || strcmp(name, TEMPLATE_INTERPRETER) == 0;
}

/* Credentials for the registry; the puller looks at what is in them. */
static json_t *read_registry(struct e2b_req *q)
{
    struct fields of = field_object(&q->in, "fromImageRegistry");

    if (!of.object)
        return NULL;
    if (json_dumpb(of.object, NULL, 0, JSON_COMPACT) > REGISTRY_MAX)
        fields_invalid(&q->in, "fromImageRegistry is longer than %u KiB", REGISTRY_MAX >> 10);
    return json_deep_copy(of.object);
}

/* An image that the operator has fetched is a template under the image's name. Who sends credentials
 * means the registry's own. */
static void read_image(struct e2b_req *q, const char *image, struct build_plan *p)
{
    const char *name = template_of_image(image);
    struct sg_error e;

    p->credentials = read_registry(q);
    if (!fields_ok(&q->in))
        return;
    snprintf(p->from, sizeof(p->from), "template %.180s", name);
    if (!fetch_is_upload(image) && (!p->credentials || is_known_image(image)) &&
        find_base(q, name, p, &e) == 0)
        return;
    snprintf(p->from, sizeof(p->from), "%.190s", image);
    memcpy(p->base, TEMPLATE_BASE, sizeof(TEMPLATE_BASE));
    p->image = xstrdup(image);
}

/* What cannot be used as a base fails the build, not the request: SDKs show it with its line. */
static void read_base(struct e2b_req *q, struct build_plan *p)
{
    const char *image = field_text(&q->in, "fromImage", STORE_IMAGE_MAX, NULL);
    const char *template = field_text(&q->in, "fromTemplate", REF_TEXT_MAX, NULL);
    const char *name = template ? template : TEMPLATE_BASE;
    struct sg_error e;

    if (image && template)
        fields_invalid(&q->in, "fromImage and fromTemplate exclude each other");
    if (!fields_ok(&q->in))
        return;
    if (image) {
        read_image(q, image, p);
        return;
    }
    snprintf(p->from, sizeof(p->from), "template %.180s", name);
    if (find_base(q, name, p, &e) < 0)
        snprintf(p->refusal, sizeof(p->refusal), "%.255s", e.message);
}

static char *read_command(struct fields *in, const char *field)
{
    const char *text = field_text(in, field, COMMAND_MAX, NULL);

    return text && text[0] ? xstrdup(text) : NULL;
}

static bool read_plan(struct e2b_req *q, struct build_plan *p)
{
    p->tenant = q->tenant;
    p->force = field_flag(&q->in, "force", false);
    p->start = read_command(&q->in, "startCmd");
    p->ready = read_command(&q->in, "readyCmd");
    const json_t *steps = field_array(&q->in, "steps", STEPS_MAX);
    fields_check(&q->in, steps_check(steps, &q->wrong));
    p->steps = steps_copy(steps);
    read_base(q, p);
    return e2b_read(q);
}

/* Finds the build that the URL names. False: answered. */
static bool build_of_path(struct http_req *req, struct store_template *ret_template,
                          struct store_build *ret)
{
    struct e2b_req *q = e2b_of(req);
    struct sg_error e;

    if (!template_own_of_path(req, ret_template))
        return false;
    int r = store_build_get(q->front->store, ret_template->id, req->params[1], ret, &e);
    if (r == -ENOENT)
        err_set(&e, SG_ERR_NOT_FOUND, r, "build '%.64s' not found", req->params[1]);
    if (r < 0)
        reply_sg_error(req, &e);
    return r == 0;
}

void build_start(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct build_plan p = {.force = false};
    struct store_template t;
    struct sg_error e;

    if (!build_of_path(req, &t, &p.row))
        return;
    memcpy(p.name, t.name, sizeof(p.name));
    if (!read_plan(q, &p)) {
        build_plan_done(&p);
        return;
    }
    if (build_submit(q->front, &p, &e) == 0) {
        reply_empty(req, 202);
        return;
    }
    build_plan_done(&p);
    reply_sg_error(req, &e);
}

void build_cancel(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct store_template t;
    struct store_build b;

    if (!build_of_path(req, &t, &b))
        return;
    if (builds_cancel(q->front, t.id, b.id) == 0)
        reply_error(req, 409, "build '%s' is not under way", b.id);
    else
        reply_empty(req, 204);
}

/* ---- status, logs ---------------------------------------------------------------------------- */

static const char *const levels[] = {"debug", "info", "warn", "error"};

static void write_entry(const struct store_log *line, void *arg)
{
    struct json *j = arg;

    jw_object_begin(j);
    shape_time_key(j, "timestamp", line->ms);
    jw_string(jw_key(j, "level"), levels[line->level]);
    jw_string(jw_key(j, "message"), line->message);
    if (line->step[0])
        jw_string(jw_key(j, "step"), line->step);
    jw_object_end(j);
}

static void write_text(const struct store_log *line, void *arg)
{
    jw_string(arg, line->message);
}

static unsigned read_level(struct e2b_req *q)
{
    const char *text = http_query_get(q->http, "level");

    for (unsigned i = 0; text && i < ARRAY_SIZE(levels); i++)
        if (strcmp(levels[i], text) == 0)
            return i;
    if (text)
        fields_invalid(&q->in, "Invalid level: it is debug, info, warn or error");
    return 0;
}

static uint64_t read_number(struct e2b_req *q, const char *name, uint64_t max, uint64_t fallback)
{
    const char *text = http_query_get(q->http, name);
    uint64_t v = fallback;

    if (text && parse_u64(name, text, 0, INT64_MAX, &v, NULL) < 0)
        fields_invalid(&q->in, "Invalid %s: it is not a number", name);
    return v < max ? v : max;
}

static void write_reason(struct json *j, const struct store_build *b)
{
    jw_object_begin(jw_key(j, "reason"));
    jw_string(jw_key(j, "message"), b->reason);
    jw_string(jw_key(j, "step"), b->reason_step);
    jw_array_begin(jw_key(j, "logEntries"));
    jw_array_end(j);
    jw_object_end(j);
}

void build_status(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct store_log_query which = {.offset = read_number(q, "logsOffset", INT64_MAX, 0),
                                    .limit = (uint32_t)read_number(q, "limit", LOG_PAGE, LOG_PAGE),
                                    .level = read_level(q)};
    struct store_template t;
    struct store_build b;
    struct reply r;

    if (!e2b_read(q) || !build_of_path(req, &t, &b))
        return;
    if (b.state == BUILD_READY || b.state == BUILD_ERROR)
        http_await_changes(req); /* who is told so need not build again after a power cut */
    struct json *j = reply_begin(&r, ANSWER_MAX);
    jw_string(jw_key(j, "templateID"), t.id);
    jw_string(jw_key(j, "buildID"), b.id);
    jw_string(jw_key(j, "status"), template_build_status(b.state));
    jw_array_begin(jw_key(j, "logs"));
    store_build_log_each(q->front->store, b.id, &which, write_text, j, NULL);
    jw_array_end(j);
    jw_array_begin(jw_key(j, "logEntries"));
    store_build_log_each(q->front->store, b.id, &which, write_entry, j, NULL);
    jw_array_end(j);
    if (b.state == BUILD_ERROR)
        write_reason(j, &b);
    reply_send(q, 200, &r);
}

void build_logs(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    const char *direction = http_query_get(req, "direction");
    bool back = direction && strcmp(direction, "backward") == 0;
    struct store_log_query which = {
        .limit = (uint32_t)read_number(q, "limit", LOG_PAGE, LOG_PAGE),
        .level = read_level(q),
        .backward = back,
        .at_ms = (int64_t)read_number(q, "cursor", INT64_MAX, back ? INT64_MAX : 0)};
    struct store_template t;
    struct store_build b;
    struct reply r;

    if (direction && !back && strcmp(direction, "forward") != 0)
        fields_invalid(&q->in, "Invalid direction: it is forward or backward");
    if (!e2b_read(q) || !build_of_path(req, &t, &b))
        return;
    struct json *j = reply_begin(&r, ANSWER_MAX);
    jw_array_begin(jw_key(j, "logs"));
    store_build_log_each(q->front->store, b.id, &which, write_entry, j, NULL);
    jw_array_end(j);
    reply_send(q, 200, &r);
}
