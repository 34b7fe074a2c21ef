/* sandglass agents start, extend, stop. */
#include <fcntl.h>
#include <sys/mman.h>

#include "lib/text/base64.h"
#include "lib/base/fd.h"
#include "lib/text/json.h"
#include "cli/shared/acp_source.h"
#include "lib/command/ui.h"
#include "cli/client/agents.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/url.h"

#define SOURCE_MAX (12u * 1024 * 1024) /* with so much, its base64 still fits into a request */
#define BODY_MAX   (18u * 1024 * 1024)
#define ENV_HINT   "split it, or put the values into a file of the source"
#define START_MS   180000 /* time to make a sandbox and unpack the source in it */

/* ---- what is sent ---------------------------------------------------------------------------- */

static void put_env(struct json *j, const struct env_list *env)
{
    jw_object_begin(jw_key(j, "env"));
    for (size_t i = 0; i < env->n; i++) {
        const char *equals = strchr(env->v[i], '=');
        AUTO(free_p) char *name = strndup(env->v[i], (size_t)(equals - env->v[i]));

        jw_string(jw_key(j, name ? name : ""), equals + 1);
    }
    jw_object_end(j);
}

/* Writes --network: "block", "open", or names with commas between, which allow nothing else. */
static void put_network(struct json *j, const char *network)
{
    jw_key(j, "network");
    if (strcmp(network, "block") == 0 || strcmp(network, "open") == 0) {
        jw_string(j, network);
        return;
    }
    jw_object_begin(j);
    jw_array_begin(jw_key(j, "allowOut"));
    for (const char *p = network;; p += strcspn(p, ",") + 1) {
        size_t len = strcspn(p, ",");

        jw_bytes(j, p, len);
        if (!p[len])
            break;
    }
    jw_array_end(j);
    jw_object_end(j);
}

static void put_text(struct json *j, const char *key, const char *text)
{
    if (!text)
        return;
    jw_string(jw_key(j, key), text);
}

/* Loads the source: a directory becomes a tar in memory, an archive is read as it is. */
static int load_source(const struct acp_source *s, char **ret, size_t *ret_len, struct sg_error *e)
{
    AUTO(close_p) int memory = -1;
    struct acp_tar_count count;
    int from = s->fd, r = 0;

    if (s->kind == ACP_SOURCE_DIRECTORY) {
        from = memory = memfd_create("source", MFD_CLOEXEC);
        r = memory < 0 ? err_errno(e, "cannot keep a tar in memory")
                       : acp_tar_write(s->fd, s->path, memory, &count, e);
        if (r == 0 && count.left_out > 0)
            ui_note("left out of the source: '%s'%s, no file, directory or link",
                    count.first_left_out, count.left_out > 1 ? " and others" : "");
        if (r == 0 && lseek(memory, 0, SEEK_SET) < 0)
            r = err_errno(e, "cannot read the tar");
    }
    if (r < 0)
        return r;
    r = fd_read_all(from, SOURCE_MAX, ret, ret_len);
    if (r == -EFBIG)
        return err_set(e, SG_ERR_INVALID, r,
                       "the source '%.128s' is over %u MiB: put it into a sandbox with 'sandglass "
                       "cp', and start the agent there with --sandbox",
                       s->path, SOURCE_MAX >> 20);
    return r < 0 ? err_code(e, r, "cannot read '%.128s'", s->path) : 0;
}

static int put_source(struct json *j, const struct agents_options *o, struct sg_error *e)
{
    AUTO(acp_source_close) struct acp_source source = {.fd = -1};
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(BODY_MAX);
    AUTO(free_p) char *data = NULL;
    size_t len = 0;
    int r;

    if (!o->source)
        return 0;
    r = acp_source_open(o->source, &source, e);
    if (r == 0)
        r = load_source(&source, &data, &len, e);
    if (r < 0)
        return r;
    base64_encode(&text, data, len);
    jw_object_begin(jw_key(j, "source"));
    put_text(j, "type", source.kind == ACP_SOURCE_BUNDLE ? "bundle" : "tar");
    put_text(j, "data", text.buf);
    put_text(j, "into", o->into);
    jw_object_end(j);
    return 0;
}

static int make_body(const struct agents_options *o, struct strbuf *body, struct sg_error *e)
{
    AUTO(env_list_done) struct env_list env = {0};
    struct json j = {.out = body};
    int r = env_load(&o->env_files, &o->env, ENV_HINT, &env, e);

    if (r < 0)
        return r;
    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "command"));
    for (size_t i = 0; i < o->base.n_args; i++)
        jw_string(&j, o->base.args[i]);
    jw_array_end(&j);
    if (env.n > 0)
        put_env(&j, &env);
    put_text(&j, "template", o->template);
    put_text(&j, "sandboxId", o->sandbox);
    put_text(&j, "conversationId", o->conversation);
    put_text(&j, "pathId", o->conversation ? o->path ? o->path : "main" : NULL);
    put_text(&j, "user", o->user);
    put_text(&j, "cwd", o->cwd);
    if (o->network)
        put_network(&j, o->network);
    if (o->timeout_s)
        jw_u64(jw_key(&j, "timeout"), o->timeout_s);
    if (o->serve_fs)
        jw_bool(jw_key(&j, "serveFs"), true);
    r = put_source(&j, o, e);
    if (r < 0)
        return r;
    jw_object_end(&j);
    return body->truncated
               ? err_set(e, SG_ERR_INVALID, -E2BIG, "command, variables and source are too long")
               : 0;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int print_id(const json_t *answer, const struct agents_options *o, struct sg_error *e)
{
    const char *id = jr_text(answer, "agentId");

    if (o->base.json)
        return jr_print(answer, e);
    if (url_is_plain_name(id))
        puts(id);
    return 0;
}

int agents_start_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(BODY_MAX);
    struct api_request q = {.method = "POST", .body = &body, .more_ms = START_MS};

    if (make_body(o, &body, e) < 0)
        return ui_usage("agents", e->message);
    int r = api_ask(c, &q, &answer, e, "/v1/agents");
    return r < 0 ? r : print_id(answer, o, e);
}

int agents_extend_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(64);

    strbuf_addf(&body, "{\"timeout\":%llu}", (unsigned long long)o->timeout_s);
    int r = api_call(c, "POST", &body, &answer, e, "/v1/agents/%s/timeout", o->base.args[0]);
    return r < 0 ? r : print_id(answer, o, e);
}

int agents_stop_fn(struct client *c, void *options, struct sg_error *e)
{
    return client_delete_each(c, options, "/v1/agents/", NULL, NULL, e);
}
