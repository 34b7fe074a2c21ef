#include "cli/client/template_making.h"

#include <time.h>

#include "cli/client/api.h"
#include "cli/client/interrupt.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/url.h"
#include "cli/client/web.h"
#include "lib/command/when.h"

#define BODY_MAX     (2u * 1024 * 1024)
#define EVERY_MS     200 /* as E2B's SDKs ask */
#define UPLOAD_MAX_S 3600
#define FAILURES_MAX 10 /* in a row, of asking how far it is */
#define MIB          (1024u * 1024)

/* ---- the server ------------------------------------------------------------------------------ */

/* Takes the tree over. */
static int post(struct making *m, json_t *tree, json_t **ret, const char *path)
{
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(BODY_MAX);
    AUTO(free_p) char *text = json_dumps(tree, JSON_COMPACT);

    json_decref(tree);
    strbuf_addstr(&body, text ? text : "");
    return api_call(m->client, "POST", &body, ret, m->e, "%s", path);
}

int making_begin(struct making *m)
{
    const struct template_options *o = m->o;
    json_t *tree = json_pack("{s:s}", "name", m->name), *tags = json_array();

    for (size_t i = 0; i < o->n_tags; i++)
        json_array_append_new(tags, json_string(o->tags[i]));
    if (o->n_tags > 0)
        json_object_set(tree, "tags", tags);
    json_decref(tags);
    if (o->cpus)
        json_object_set_new(tree, "cpuCount", json_integer((json_int_t)o->cpus));
    if (o->memory)
        json_object_set_new(tree, "memoryMB", json_integer((json_int_t)(o->memory / MIB)));
    int r = post(m, tree, &m->made, "/v3/templates");
    if (r == 0 && (!url_is_plain_name(jr_text(m->made, "templateID")) ||
                   !url_is_plain_name(jr_text(m->made, "buildID"))))
        return err_set(m->e, SG_ERR_INTERNAL, -EPROTO, "the server's answer has no ids of a build");
    return r;
}

static size_t read_archive(char *to, size_t size, size_t n, void *arg)
{
    ssize_t got = read(*(int *)arg, to, size * n);

    return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

/* The address carries the right to send there: the key does not go along. */
static int put_archive(struct making *m, const char *url, json_t *extra, int fd, int64_t size)
{
    AUTO(web_headers_done) struct curl_slist *headers = NULL;
    AUTO(web_reply_done) struct web_reply reply = {0};
    struct web_request q = {.method = "PUT", .url = url, .more_ms = UPLOAD_MAX_S * 1000ull};
    CURL *easy = m->client->easy;
    const char *name;
    json_t *value;

    web_add_header(&headers, "Expect", "");
    web_add_header(&headers, "Content-Type", "application/gzip");
    json_object_foreach(extra, name, value)
    {
        if (json_is_string(value))
            web_add_header(&headers, name, json_string_value(value));
    }
    q.headers = headers;
    web_prepare_call(easy, &q, &reply);
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_archive);
    curl_easy_setopt(easy, CURLOPT_READDATA, &fd);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
    int r = web_perform(easy, url, m->e);
    if (r < 0)
        return r;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &reply.status);
    return reply.status >= 200 && reply.status <= 299 ? 0 : api_refusal(&reply, m->e);
}

int making_ask_upload(struct making *m, const char *hash, json_t **ret)
{
    return api_get(m->client, ret, m->e, "/templates/%s/files/%s", jr_text(m->made, "templateID"),
                   hash);
}

int making_upload(struct making *m, const json_t *answer, int fd, int64_t size)
{
    return put_archive(m, jr_text(answer, "url"), json_object_get(answer, "headers"), fd, size);
}

int making_start(struct making *m)
{
    AUTO(strbuf_done) struct strbuf path = strbuf_upto(API_PATH_MAX);
    json_t *tree = json_pack("{s:s, s:O, s:b}", "fromImage", m->recipe.from, "steps",
                             m->recipe.steps, "force", m->o->no_cache);

    if (m->recipe.start && m->recipe.start[0])
        json_object_set_new(tree, "startCmd", json_string(m->recipe.start));
    if (m->o->ready)
        json_object_set_new(tree, "readyCmd", json_string(m->o->ready));
    strbuf_addf(&path, "/v2/templates/%s/builds/%s", jr_text(m->made, "templateID"),
                jr_text(m->made, "buildID"));
    return post(m, tree, NULL, path.buf);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void show_entries(struct making *m, const json_t *entries)
{
    json_t *one;
    size_t i;

    json_array_foreach(entries, i, one)
    {
        int64_t ms = 0;

        when_parse_ms(jr_text(one, "timestamp"), &ms);
        if (strcmp(jr_text(one, "level"), "error") != 0) /* the reason says it again */
            build_view_entry(&m->view, jr_text(one, "step"), jr_text(one, "message"), ms);
    }
}

/* Says which line of the Dockerfile the failed step is, if there is one. */
static int failed(struct making *m, const json_t *reason)
{
    const char *message = jr_text(reason, "message");
    const struct recipe_vertex *v = build_view_vertex(&m->recipe, jr_text(reason, "step"));

    message = *message ? message : "the build failed, and the server does not say why";
    if (v && v->line > 0)
        return err_set(m->e, SG_ERR_INVALID, -ECANCELED, "%.200s: line %u: %.400s", m->file,
                       v->line, message);
    return err_set(m->e, SG_ERR_INVALID, -ECANCELED, "%.400s", message);
}

/* Asks once. *ret_over: the build has ended, and its log has been read. */
static int ask(struct making *m, size_t *offset, bool *ret_over)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    int r = api_get(m->client, &answer, m->e, "/templates/%s/builds/%s/status?logsOffset=%zu",
                    jr_text(m->made, "templateID"), jr_text(m->made, "buildID"), *offset);
    const char *status = jr_text(answer, "status");
    const json_t *entries = json_object_get(answer, "logEntries");

    if (r < 0)
        return r;
    show_entries(m, entries);
    *offset += json_array_size(entries);
    if (json_array_size(entries) > 0)
        return 0;
    *ret_over = strcmp(status, "ready") == 0 || strcmp(status, "error") == 0;
    return strcmp(status, "error") == 0 ? failed(m, json_object_get(answer, "reason")) : 0;
}

/* Whoever interrupts us wants no template: the server is to stop. Servers that cannot are left alone. */
static void cancel(struct making *m)
{
    interrupt_hold(true);
    api_call(m->client, "DELETE", NULL, NULL, NULL, "/templates/%s/builds/%s",
             jr_text(m->made, "templateID"), jr_text(m->made, "buildID"));
    interrupt_hold(false);
}

int making_wait(struct making *m)
{
    size_t offset = 0, before;
    unsigned failures = 0;
    bool over = false;
    int r = 0;

    while (!over) {
        before = offset;
        r = ask(m, &offset, &over);
        failures = r < 0 && !over ? failures + 1 : 0;
        if (r < 0 &&
            (over || r == -EINTR || r == -ENOENT || r == -EACCES || failures == FAILURES_MAX))
            break;
        build_view_tick(&m->view);
        if (!over && offset == before)
            nanosleep(&(struct timespec){.tv_nsec = EVERY_MS * 1000000L}, NULL);
    }
    build_view_end(&m->view, r < 0);
    if (r == -EINTR)
        cancel(m);
    return r;
}

/* ---- the end --------------------------------------------------------------------------------- */

int making_show(struct making *m)
{
    const char *tag = m->o->n_tags > 0 ? m->o->tags[0] : NULL;

    if (m->o->base.json) {
        json_object_set_new(m->made, "steps", json_integer((json_int_t)m->recipe.n_vertices));
        json_object_set_new(m->made, "cached", json_integer((json_int_t)m->view.n_cached));
        return jr_print(m->made, m->e);
    }
    /* As sandboxes name it. */
    show_say(stdout, "%s%s%s", m->name, tag ? ":" : "", tag ? tag : "");
    return 0;
}

void making_done(struct making *m)
{
    recipe_done(&m->recipe);
    json_decref(m->made);
}
