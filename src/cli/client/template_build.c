/* sandglass template build: a directory with a Dockerfile becomes a template.
 *
 *   Dockerfile --> recipe, files hashed --> POST template --> files that the server has not --> POST build
 *       --> status, again and again, until it is ready or has failed */
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/client/api.h"
#include "cli/client/build_view.h"
#include "cli/client/context.h"
#include "cli/client/interrupt.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/template.h"
#include "cli/client/url.h"
#include "cli/client/web.h"
#include "lib/base/fd.h"
#include "lib/command/exit_status.h"
#include "lib/command/ui.h"
#include "lib/command/when.h"
#include "lib/text/parse.h"

#define BODY_MAX     (2u * 1024 * 1024)
#define EVERY_MS     200 /* as E2B's SDKs ask */
#define UPLOAD_MAX_S 3600
#define FAILURES_MAX 10 /* in a row, of asking how far it is */
#define MIB          (1024u * 1024)
#define NAME_MAX_    64

struct making {
    struct client *client;
    const struct template_options *o;
    const char *dir;
    char file[PATH_MAX]; /* the Dockerfile, for messages */
    char name[NAME_MAX_ + 1];
    struct recipe recipe;
    struct context context;
    struct context_files *files; /* of each COPY */
    struct build_view view;
    json_t *made; /* the server's answer: ids, names, tags */
    struct sg_error *e;
};

/* ---- what is here ---------------------------------------------------------------------------- */

void template_name_of(const char *dir, char *ret, size_t cap)
{
    char real[PATH_MAX];
    size_t n = 0;

    if (!realpath(dir, real))
        snprintf(real, sizeof(real), "%s", dir);
    for (const char *p = basename(real); *p && n + 1 < cap; p++) {
        char c = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
        bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';

        if (good || n > 0)
            ret[n++] = good ? c : '-';
    }
    while (n > 0 && ret[n - 1] == '-')
        n--;
    ret[n] = '\0';
}

static int choose_name(struct making *m)
{
    if (m->o->name && strlen(m->o->name) > NAME_MAX_)
        return err_invalid(m->e, "--name '%.80s' is too long", m->o->name);
    if (m->o->name)
        snprintf(m->name, sizeof(m->name), "%s", m->o->name);
    else
        template_name_of(m->dir, m->name, sizeof(m->name));
    return m->name[0]
               ? 0
               : err_invalid(
                     m->e,
                     "the directory's name makes no name for a template: give one with --name");
}

static int read_recipe(struct making *m)
{
    const struct template_options *o = m->o;
    AUTO(free_p) char *text = NULL;
    const char *unused;
    size_t len;

    snprintf(m->file, sizeof(m->file), "%s%s", o->file ? o->file : m->dir,
             o->file ? "" : "/Dockerfile");
    int r = file_read(AT_FDCWD, m->file, DOCKERFILE_MAX, &text, &len);
    if (r < 0)
        return err_code(m->e, r, "cannot read '%.200s'", m->file);
    r = recipe_read(text, (const char *const *)o->build_args, o->n_build_args, &m->recipe, &unused,
                    m->e);
    if (r < 0)
        return err_wrap(m->e, r, "%.200s", m->file);
    if (unused)
        ui_note("--build-arg %.*s: no ARG of that name", (int)strcspn(unused, "="), unused);
    if (o->start) {
        free(m->recipe.start);
        m->recipe.start = xstrdup(o->start);
    }
    return 0;
}

static int read_files(struct making *m)
{
    const struct recipe *recipe = &m->recipe;
    char ignore[NAME_MAX + 1] = "";
    const char *slash = strrchr(m->file, '/');
    uint64_t bytes = 0;
    size_t n = 0;
    char size[32];

    if (recipe->n_copies == 0)
        return 0;
    snprintf(ignore, sizeof(ignore), "%.200s.dockerignore", slash ? slash + 1 : m->file);
    int r = context_open(m->dir, ignore, &m->context, m->e);
    m->files = xcalloc(recipe->n_copies, sizeof(*m->files));
    for (size_t i = 0; r == 0 && i < recipe->n_copies; i++) {
        const struct recipe_copy *copy = &recipe->copies[i];

        r = context_collect(&m->context, copy, &m->files[i], m->e);
        if (r < 0)
            return err_wrap(m->e, r, "%.200s", m->file);
        json_t *step = json_array_get(recipe->steps, copy->step);
        json_array_set_new(json_object_get(step, "args"), 0, json_string(m->files[i].source));
        json_object_set_new(step, "filesHash", json_string(m->files[i].hash));
        bytes += m->files[i].bytes;
        n += m->files[i].n;
    }
    if (r == 0)
        build_view_say(&m->view, "[internal] load build context: %zu files, %s", n,
                       format_size(bytes, size, sizeof(size)));
    return r;
}

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

static int make_template(struct making *m)
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

/* Sends the archive. The address carries the right to do so: the key does not go there. */
static int put_archive(struct making *m, const char *url, json_t *extra, int fd, uint64_t size)
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

static int upload(struct making *m, const struct context_files *f)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(close_p) int fd = -1;
    uint64_t size;
    char text[32];
    int r = api_get(m->client, &answer, m->e, "/templates/%s/files/%s",
                    jr_text(m->made, "templateID"), f->hash);

    if (r < 0 || jr_flag(answer, "present"))
        return r;
    r = context_pack(f, &fd, &size, m->e);
    if (r < 0)
        return r;
    build_view_say(&m->view, "[internal] transfer files of line %u: %s", f->copy->line,
                   format_size(size, text, sizeof(text)));
    r = put_archive(m, jr_text(answer, "url"), json_object_get(answer, "headers"), fd, size);
    return r < 0 ? err_wrap(m->e, r, "the files of line %u could not be sent", f->copy->line) : 0;
}

static int start(struct making *m)
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

/* Says which line of the Dockerfile the failed step is. */
static int failed(struct making *m, const json_t *reason)
{
    const char *message = jr_text(reason, "message");
    const struct recipe_vertex *v = build_view_vertex(&m->recipe, jr_text(reason, "step"));

    message = *message ? message : "the build failed, and the server does not say why";
    if (v)
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

static int wait_for_end(struct making *m)
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

/* ---- all of it ------------------------------------------------------------------------------- */

static int make(struct making *m)
{
    int r = choose_name(m);

    if (r == 0)
        r = read_recipe(m);
    if (r < 0)
        return r;
    build_view_init(&m->view, &m->recipe, m->o->base.quiet);
    for (size_t i = 0; i < json_array_size(m->recipe.left_out); i++)
        build_view_say(&m->view, "%s has no meaning here and is left out",
                       json_string_value(json_array_get(m->recipe.left_out, i)));
    r = read_files(m);
    if (r == 0)
        r = make_template(m);
    for (size_t i = 0; r == 0 && i < m->recipe.n_copies; i++)
        r = upload(m, &m->files[i]);
    if (r == 0)
        r = start(m);
    return r < 0 ? r : wait_for_end(m);
}

static int show_made(struct making *m)
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

int template_build(struct client *c, void *options, struct sg_error *e)
{
    struct template_options *o = options;
    struct making m = {.client = c, .o = o, .dir = o->base.args[0], .context.fd = -1, .e = e};

    interrupt_watch();
    int r = make(&m);
    if (r == 0)
        r = show_made(&m);
    for (size_t i = 0; m.files && i < m.recipe.n_copies; i++)
        context_files_done(&m.files[i]);
    free(m.files);
    context_done(&m.context);
    recipe_done(&m.recipe);
    json_decref(m.made);
    for (size_t i = 0; i < o->n_build_args; i++)
        free(o->build_args[i]);
    o->n_build_args = 0;
    return r;
}
