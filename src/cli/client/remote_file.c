#include "cli/client/remote_file.h"

#include <sys/stat.h>

#include "lib/base/fd.h"
#include "cli/client/payload.h"
#include "cli/client/web.h"
#include "cli/client/interrupt.h"
#include "cli/client/jr.h"
#include "cli/client/url.h"

#define REFUSAL_MAX (1024u * 1024)
#define STALLED_S   60L

/* ---- what is there --------------------------------------------------------------------------- */

/* Reads the type of an entry: protobuf's enum comes as its name or as its number. */
static enum remote_type type_of(const json_t *entry)
{
    static const char *const names[] = {"FILE_TYPE_UNSPECIFIED", "FILE_TYPE_FILE",
                                        "FILE_TYPE_DIRECTORY"};
    const json_t *type = json_object_get(entry, "type");

    for (size_t i = 1; i < ARRAY_SIZE(names); i++)
        if (strcmp(jr_text(entry, "type"), names[i]) == 0 ||
            (json_is_integer(type) && json_integer_value(type) == (json_int_t)i))
            return (enum remote_type)i;
    return REMOTE_OTHER;
}

static void take_entry(const json_t *entry, struct remote_entry *ret)
{
    *ret = (struct remote_entry){.type = type_of(entry),
                                 .is_link = *jr_text(entry, "symlinkTarget") != '\0',
                                 .size = jr_count(entry, "size"),
                                 .mode = (unsigned)jr_count(entry, "mode") & 0777,
                                 .name = jr_text(entry, "name")};
}

int remote_stat(struct remote *r, const char *path, struct remote_entry *ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;
    AUTO(strbuf_done) struct strbuf body = {0};

    payload_texts(&body, "path", path, NULL);
    int result = sandbox_call(r->sandbox, "filesystem.Filesystem/Stat", &body, &tree, e);
    if (result < 0)
        return result;
    take_entry(json_object_get(tree, "entry"), ret);
    ret->name = NULL;
    return 0;
}

int remote_list(struct remote *r, const char *path,
                int (*fn)(void *arg, const struct remote_entry *entry, struct sg_error *e),
                void *arg, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;
    AUTO(strbuf_done) struct strbuf body = {0};

    payload_list(&body, path, 1);
    int result = sandbox_call(r->sandbox, "filesystem.Filesystem/ListDir", &body, &tree, e);
    const json_t *entries = json_object_get(tree, "entries");
    for (size_t i = 0; result == 0 && i < json_array_size(entries); i++) {
        struct remote_entry entry;

        take_entry(json_array_get(entries, i), &entry);
        result = fn(arg, &entry, e);
    }
    return result;
}

int remote_make_dir(struct remote *r, const char *path, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body = {0};

    payload_texts(&body, "path", path, NULL);
    int result = sandbox_call(r->sandbox, "filesystem.Filesystem/MakeDir", &body, NULL, e);
    return result == -EEXIST ? 0 : result;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

struct transfer {
    struct remote *remote;
    const char *path;
    int fd;
    uint64_t left; /* bytes left of an upload whose size is known */
    bool sized;
    struct web_reply refusal;
    int failure; /* error on our side; `error` is why */
    struct sg_error error;
};

static size_t read_piece(char *buf, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    size_t room = size * n;
    ssize_t got;

    if (t->sized && room > t->left)
        room = (size_t)t->left;
    if (room == 0)
        return 0;
    do
        got = read(t->fd, buf, room);
    while (got < 0 && errno == EINTR && !interrupt_signal());
    if (got < 0)
        t->failure = err_errno(&t->error, "cannot read the source of '%.128s'", t->path);
    else if (got == 0 && t->sized)
        t->failure = err_set(&t->error, SG_ERR_INVALID, -EIO,
                             "the file for '%.128s' became shorter while it was copied", t->path);
    if (t->failure < 0)
        return CURL_READFUNC_ABORT;
    t->left -= t->sized ? (uint64_t)got : 0;
    progress_add(t->remote->progress, (uint64_t)got);
    return (size_t)got;
}

/* libcurl rewinds an upload when the connection that it had kept turns out to be dead. */
static int go_back(void *arg, curl_off_t offset, int origin)
{
    struct transfer *t = arg;
    off_t was = lseek(t->fd, 0, SEEK_CUR);

    if (was < 0 || lseek(t->fd, offset, origin) < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    t->left += (uint64_t)(was - offset);
    t->remote->progress->done -= (uint64_t)(was - offset);
    return CURL_SEEKFUNC_OK;
}

static size_t write_piece(char *data, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    size_t len = size * n;

    if (t->refusal.status == 0)
        curl_easy_getinfo(t->remote->sandbox->client->easy, CURLINFO_RESPONSE_CODE,
                          &t->refusal.status);
    if (t->fd < 0 || t->refusal.status != 200) {
        strbuf_add(&t->refusal.body, data, len);
        return t->refusal.body.truncated ? 0 : len;
    }
    int r = fd_write_all(t->fd, data, len);
    if (r < 0) {
        t->failure = err_code(&t->error, r, "cannot write the copy of '%.128s'", t->path);
        return 0;
    }
    progress_add(t->remote->progress, len);
    return len;
}

/* Ends a transfer that stalls, if our end is a file. A pipe or a terminal may take its time. */
static void watch_speed(CURL *easy, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, STALLED_S);
}

static void files_url(const struct remote *r, struct strbuf *url, const char *path)
{
    sandbox_api_url(r->sandbox, url, "files");
    url_add_query(url, "path", path);
    url_add_query(url, "username", r->user);
}

static int perform(struct transfer *t, const char *url, struct sg_error *e)
{
    CURL *easy = t->remote->sandbox->client->easy;
    int r = web_perform(easy, url, e);

    if (t->failure < 0) {
        *e = t->error;
        return t->failure;
    }
    if (r < 0)
        return r;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &t->refusal.status);
    return t->refusal.status == 200 ? 0 : sandbox_refusal(t->remote->sandbox, &t->refusal, e);
}

int remote_upload(struct remote *r, const char *path, int fd, uint64_t size, struct sg_error *e)
{
    AUTO(web_headers_done)
    struct curl_slist *headers = sandbox_headers(r->sandbox, "application/octet-stream");
    AUTO(strbuf_done) struct strbuf url = {0};
    CURL *easy = r->sandbox->client->easy;
    struct transfer source = {.remote = r, .path = path, .fd = fd, .left = size},
                    answer = {.remote = r, .path = path, .fd = -1};

    source.sized = size != REMOTE_SIZE_UNKNOWN;
    strbuf_init(&answer.refusal.body, REFUSAL_MAX);
    files_url(r, &url, path);
    if (!source.sized)
        web_add_header(&headers, "Transfer-Encoding", "chunked");
    struct web_request q = {.method = "POST", .url = url.buf, .headers = headers};
    web_prepare(easy, &q);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_piece);
    curl_easy_setopt(easy, CURLOPT_READDATA, &source);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, go_back);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, &source);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_piece);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer);
    if (source.sized)
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    else
        /* A stream cannot be sent twice, so avoid a kept connection, which may be dead. */
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    watch_speed(easy, fd);
    int result = perform(&answer, url.buf, e);
    if (source.failure < 0) {
        *e = source.error;
        result = source.failure;
    }
    web_reply_done(&answer.refusal);
    return result;
}

int remote_download(struct remote *r, const char *path, int fd, struct sg_error *e)
{
    AUTO(web_headers_done) struct curl_slist *headers = sandbox_headers(r->sandbox, NULL);
    AUTO(strbuf_done) struct strbuf url = {0};
    CURL *easy = r->sandbox->client->easy;
    struct transfer t = {.remote = r, .path = path, .fd = fd};

    strbuf_init(&t.refusal.body, REFUSAL_MAX);
    files_url(r, &url, path);
    struct web_request q = {.method = "GET", .url = url.buf, .headers = headers};
    web_prepare(easy, &q);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_piece);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &t);
    watch_speed(easy, fd);
    int result = perform(&t, url.buf, e);
    web_reply_done(&t.refusal);
    return result;
}
