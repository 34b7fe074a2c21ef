/* sandglass volume: the volumes of a tenant, through E2B's API; and a volume as a tar, which is ours. */
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/text/json.h"
#include "cli/client/api.h"
#include "cli/client/client.h"
#include "cli/client/interrupt.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/url.h"
#include "cli/client/web.h"

#define REFUSAL_MAX  (1024u * 1024)
#define TRANSFER_MS  (3600u * 1000) /* the server ends a transfer that takes longer */
#define BODY_MAX     1024
#define CONTENT_ROOT "/tar?path=%2F"

/* ---- names ----------------------------------------------------------------------------------- */

static int check_name(const struct client_actions *o, const char *arg, struct sg_error *e)
{
    bool file = strcmp(o->action->name, "import") == 0 && o->n_args == 1;

    if (file || url_is_plain_name(arg))
        return 0;
    return err_invalid(e, "'%.64s' is no name of a volume: letters, digits, '-' and '_'", arg);
}

/* By its name, or else by its id: the answer about one volume, which has its token. */
static int find(struct client *c, const char *name, json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *list = NULL;
    int r = api_get(c, &list, e, "/volumes");
    const json_t *row = jr_find(list, "name", name);

    if (r < 0)
        return r;
    row = row ? row : jr_find(list, "volumeID", name);
    if (!row || !url_is_plain_name(jr_text(row, "volumeID")))
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "there is no volume '%.64s': 'sandglass volume ls' lists them", name);
    return api_get(c, ret, e, "/volumes/%s", jr_text(row, "volumeID"));
}

static int create(struct client *c, const char *name, json_t **ret, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(BODY_MAX);
    struct json j = {.out = &body};

    jw_object_begin(&j);
    jw_string(jw_key(&j, "name"), name);
    jw_object_end(&j);
    int r = api_call(c, "POST", &body, ret, e, "/volumes");
    if (r == 0 && !url_is_plain_name(jr_text(*ret, "volumeID")))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer has no id of a volume");
    return r;
}

/* ---- ls, create, rm -------------------------------------------------------------------------- */

static void add_row(struct table *t, const json_t *row)
{
    table_add(t, TABLE_PLAIN, jr_text(row, "name"));
    table_add(t, TABLE_PLAIN, jr_text(row, "volumeID"));
}

static const struct table_column columns[] = {{"NAME", TABLE_NAME}, {"ID", TABLE_TEXT}};
static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_row, "name"};

static int ls_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;
    AUTO(jr_free_p) json_t *list = NULL;
    int r = api_get(c, &list, e, "/volumes");

    return r < 0 ? r : show_list(&shown, list, o->json, o->quiet, e);
}

/* The token opens the volume's contents: it is not printed. */
static int show_made(const struct client_actions *o, json_t *made, struct sg_error *e)
{
    json_object_del(made, "token");
    if (o->json)
        return jr_print(made, e);
    if (!o->quiet)
        show_say(stdout, "%s", jr_text(made, "volumeID"));
    return 0;
}

static int create_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;
    AUTO(jr_free_p) json_t *made = NULL;
    int r = create(c, o->args[0], &made, e);

    return r < 0 ? r : show_made(o, made, e);
}

static int rm_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;
    int status = 0;

    for (size_t i = 0; i < o->n_args; i++) {
        AUTO(jr_free_p) json_t *row = NULL;
        int r = find(c, o->args[i], &row, e);

        if (r == 0)
            r = api_call(c, "DELETE", NULL, NULL, e, "/volumes/%s", jr_text(row, "volumeID"));
        if (r < 0) {
            int failed = client_fail(e);
            status = status ? status : failed;
        } else if (!o->quiet) {
            show_say(stdout, "%s", o->args[i]);
        }
    }
    return status;
}

/* ---- contents -------------------------------------------------------------------------------- */

/* Contents may be at another address than the rest, as in E2B's SDK. */
static void contents_of(const struct client *c, const struct client_actions *o,
                        const json_t *volume, struct strbuf *url, struct curl_slist **headers)
{
    AUTO(strbuf_wipe) struct strbuf bearer = strbuf_upto(WEB_TOKEN_MAX);
    const char *base = o->common.url ? NULL : getenv("E2B_VOLUME_API_URL");
    size_t len = base ? strlen(base) : 0;

    while (len > 0 && base[len - 1] == '/')
        len--;
    strbuf_init(url, API_PATH_MAX);
    if (len > 0)
        strbuf_add(url, base, len);
    else
        strbuf_addstr(url, c->settings.api_url);
    strbuf_addf(url, "/volumecontent/%s%s", jr_text(volume, "volumeID"), CONTENT_ROOT);
    strbuf_addf(&bearer, "Bearer %s", jr_text(volume, "token"));
    web_add_header(headers, "Authorization", bearer.buf);
}

struct transfer {
    CURL *easy;
    int fd;
    struct web_reply refusal;
    uint64_t bytes;
    int failure; /* error on our side; `error` is why */
    struct sg_error error;
};

static size_t write_piece(char *data, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    size_t len = size * n;
    int r;

    if (t->refusal.status == 0)
        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->refusal.status);
    if (t->refusal.status != 200) {
        strbuf_add(&t->refusal.body, data, len);
        return t->refusal.body.truncated ? 0 : len;
    }
    r = fd_write_all(t->fd, data, len);
    if (r < 0) {
        t->failure = err_code(&t->error, r, "write to standard output");
        return 0;
    }
    t->bytes += len;
    return len;
}

static int download(struct client *c, const struct client_actions *o, const json_t *volume,
                    struct sg_error *e)
{
    AUTO(web_headers_done) struct curl_slist *headers = NULL;
    AUTO(strbuf_done) struct strbuf url = {0};
    struct transfer t = {.easy = c->easy, .fd = STDOUT_FILENO};

    contents_of(c, o, volume, &url, &headers);
    strbuf_init(&t.refusal.body, REFUSAL_MAX);
    web_prepare(c->easy,
                &(struct web_request){.method = "GET", .url = url.buf, .headers = headers});
    curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, write_piece);
    curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, &t);
    int r = web_perform(c->easy, url.buf, e);
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &t.refusal.status);
    if (t.failure < 0) {
        *e = t.error;
        r = t.failure;
    } else if (r == 0 && t.refusal.status != 200) {
        r = api_refusal(&t.refusal, e);
    } else if (r < 0 && r != -EINTR && t.bytes > 0) {
        err_wrap(e, r, "the archive is not whole: do not keep it");
    }
    web_reply_done(&t.refusal);
    return r;
}

static int export_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;
    AUTO(jr_free_p) json_t *volume = NULL;

    if (isatty(STDOUT_FILENO))
        return err_invalid(e, "standard output is a terminal: sandglass volume export %s > FILE",
                           o->args[0]);
    interrupt_watch();
    int r = find(c, o->args[0], &volume, e);
    return r < 0 ? r : download(c, o, volume, e);
}

/* ---- import ---------------------------------------------------------------------------------- */

static int open_archive(const char *file, int *ret_fd, int64_t *ret_size, struct sg_error *e)
{
    bool piped = !file || strcmp(file, "-") == 0;
    AUTO(close_p)
    int fd = piped ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(file, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "cannot read '%.200s'", piped ? "standard input" : file);
    if (piped && isatty(fd))
        return err_invalid(e, "standard input is a terminal: sandglass volume import NAME < FILE");
    *ret_size = S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == 0 ? (int64_t)st.st_size : -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}

static size_t read_piece(char *to, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    ssize_t got;

    do
        got = read(t->fd, to, size * n);
    while (got < 0 && errno == EINTR && !interrupt_signal());
    if (got >= 0)
        return (size_t)got;
    t->failure = err_errno(&t->error, "cannot read the archive");
    return CURL_READFUNC_ABORT;
}

static int upload(struct client *c, const struct client_actions *o, const json_t *volume, int fd,
                  int64_t size, struct sg_error *e)
{
    AUTO(web_headers_done) struct curl_slist *headers = NULL;
    AUTO(web_reply_done) struct web_reply reply = {0};
    AUTO(strbuf_done) struct strbuf url = {0};
    struct transfer t = {.easy = c->easy, .fd = fd};

    contents_of(c, o, volume, &url, &headers);
    web_add_header(&headers, "Expect", "");
    web_add_header(&headers, "Content-Type", "application/x-tar");
    web_prepare_call(
        c->easy,
        &(struct web_request){
            .method = "PUT", .url = url.buf, .headers = headers, .more_ms = TRANSFER_MS},
        &reply);
    curl_easy_setopt(c->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(c->easy, CURLOPT_READFUNCTION, read_piece);
    curl_easy_setopt(c->easy, CURLOPT_READDATA, &t);
    curl_easy_setopt(c->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
    int r = web_perform(c->easy, url.buf, e);
    if (t.failure < 0) {
        *e = t.error;
        return t.failure;
    }
    if (r < 0)
        return r;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &reply.status);
    return reply.status >= 200 && reply.status <= 299 ? 0 : api_refusal(&reply, e);
}

/* The volume was made for this archive: without it, it goes again. */
static int give_up(struct client *c, const json_t *volume, int r, struct sg_error *e)
{
    struct sg_error why;

    interrupt_hold(true);
    int gone = api_call(c, "DELETE", NULL, NULL, &why, "/volumes/%s", jr_text(volume, "volumeID"));
    interrupt_hold(false);
    if (gone < 0)
        return err_wrap(e, r, "the volume '%s' is there, and not whole: remove it",
                        jr_text(volume, "name"));
    return r == -EINTR ? r : err_wrap(e, r, "no volume was made");
}

static int import_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;
    AUTO(jr_free_p) json_t *volume = NULL;
    AUTO(close_p) int fd = -1;
    int64_t size = -1;
    int r = open_archive(o->n_args > 1 ? o->args[1] : NULL, &fd, &size, e);

    interrupt_watch();
    if (r == 0)
        r = create(c, o->args[0], &volume, e);
    if (r < 0)
        return r;
    r = upload(c, o, volume, fd, size, e);
    return r < 0 ? give_up(c, volume, r, e) : show_made(o, volume, e);
}

/* ---- the command line ------------------------------------------------------------------------ */

enum action { LS, CREATE, EXPORT, IMPORT, RM };
#define OF(action) (1u << (action))

static const struct client_action actions[] = {
    [LS] = {"ls", "no arguments", 0, 0, ls_fn, NULL},
    [CREATE] = {"create", "NAME", 1, 1, create_fn, NULL},
    [EXPORT] = {"export", "NAME", 1, 1, export_fn, NULL},
    [IMPORT] = {"import", "NAME [FILE]", 1, 2, import_fn, NULL},
    [RM] = {"rm", "NAME...", 1, CLIENT_ARGS_MAX, rm_fn, NULL},
};

static const struct cli_option options[] = {
    {"quiet", 'q', NULL, "ls: print the names only; create, import, rm: print nothing",
     CLI_FLAG(client_actions, quiet), .actions = OF(LS) | OF(CREATE) | OF(IMPORT) | OF(RM)},
    {"json", 0, NULL, "print the server's answer, without the volume's token",
     CLI_FLAG(client_actions, json), .actions = OF(LS) | OF(CREATE) | OF(IMPORT)},
    CLIENT_OPTIONS,
};

const struct client_verb volume_verb = {
    .name = "volume",
    .usage = "ls [OPTION]...\ncreate [OPTION]... NAME\nexport [OPTION]... NAME|ID > FILE\n"
             "import [OPTION]... NAME [FILE]\nrm [OPTION]... NAME|ID...",
    .about =
        "Volumes are directories that sandboxes mount, and that outlive them. export writes one "
        "to standard\noutput, as a tar; import makes one of a tar, from FILE or standard "
        "input: all of it, or none.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), CLIENT_ACTIONS_SYNTAX},
    .options_size = sizeof(struct client_actions),
    .fn = client_actions_fn,
    .actions = actions,
    .n_actions = ARRAY_SIZE(actions),
    .check_argument = check_name,
};
