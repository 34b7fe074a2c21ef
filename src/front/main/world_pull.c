#include "front/main/world_pull.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "front/main/worker.h"
#include "lib/base/fd.h"
#include "lib/json/values.h"
#include "lib/text/json.h"

#define REQUEST_MAX (64u * 1024)
#define LINE_MAX_   (1u << 20)

/* ---- the request ----------------------------------------------------------------------------- */

static int write_request(const struct pull_order *o, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(REQUEST_MAX);
    AUTO(close_p) int fd = memfd_create("request", MFD_CLOEXEC);
    struct json j = {.out = &out};
    int r;

    jw_object_begin(&j);
    jw_string(jw_key(&j, "from"), o->archive >= 0 ? "archive" : "registry");
    if (o->image)
        jw_string(jw_key(&j, "image"), o->image);
    if (o->user) {
        jw_object_begin(jw_key(&j, "credentials"));
        jw_string(jw_key(&j, "type"), "registry");
        jw_string(jw_key(&j, "username"), o->user);
        jw_string(jw_key(&j, "password"), o->secret);
        jw_object_end(&j);
    }
    if (o->insecure) {
        jw_object_begin(jw_key(&j, "registries"));
        jw_string(jw_key(&j, o->insecure), "http");
        jw_object_end(&j);
    }
    jw_bool(jw_key(&j, "sync"), false);
    jw_object_end(&j);
    r = out.truncated ? -EFBIG : fd < 0 ? -errno : fd_write_all(fd, out.buf, out.len);
    explicit_bzero(out.buf, out.len);
    if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_code(e, r < 0 ? r : -errno, "write the request for an image");
    return steal_fd(&fd);
}

/* ---- the answer, read by a child ------------------------------------------------------------- */

static bool is_digest(const char *text)
{
    return strnlen(text, PULL_DIGEST) == PULL_DIGEST - 1 && strncmp(text, "sha256:", 7) == 0 &&
           strspn(text + 7, "0123456789abcdef") == PULL_DIGEST - 8;
}

static bool take_digest(const json_t *object, const char *key, char ret[PULL_DIGEST])
{
    const char *text = jr_text(object, key);

    snprintf(ret, PULL_DIGEST, "%s", text);
    return is_digest(text);
}

static void refuse(struct pulled *p, int code, const char *why)
{
    p->code = code;
    snprintf(p->message, sizeof(p->message), "%s", why);
}

/* A config that is too long is left out whole. */
static void take_config(const json_t *config, struct pulled *p)
{
    size_t len =
        json_is_object(config) ? json_dumpb(config, p->config, sizeof(p->config), JSON_COMPACT) : 0;

    p->config_len = len <= sizeof(p->config) ? (uint32_t)len : 0;
}

static void take_result(const json_t *result, struct pulled *p)
{
    const json_t *layers = json_object_get(result, "layers");

    take_config(json_object_get(result, "config"), p);
    if (!take_digest(result, "digest", p->digest)) {
        refuse(p, -EINVAL, "the image is named by another digest than SHA-256");
        return;
    }
    p->n = (uint32_t)json_array_size(layers);
    p->code = 0;
    if (p->n == 0 || p->n > IMAGE_BLOBS) {
        refuse(p, -E2BIG, "the image has no layers, or too many");
        return;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const json_t *layer = json_array_get(layers, i);

        if (!take_digest(layer, "digest", p->layers[i].digest) ||
            !take_digest(layer, "diffId", p->layers[i].diff_id)) {
            refuse(p, -EINVAL, "the image names a layer by another digest than SHA-256");
            return;
        }
    }
}

/* The codes of pull/fault.h that a build must tell from others. */
static int code_of(const char *word)
{
    static const struct {
        const char *word;
        int code;
    } codes[] = {{"network", -ENETUNREACH}, {"timeout", -ETIMEDOUT}, {"busy", -EBUSY}};

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (strcmp(codes[i].word, word) == 0)
            return codes[i].code;
    return -EIO;
}

static void take_progress(const json_t *part, struct pulled *p)
{
    p->what = PULLED_PROGRESS;
    p->layer = (uint32_t)jr_int(part, "layer");
    p->of = (uint32_t)jr_int(part, "of");
    p->layer_bytes = (uint64_t)jr_int(part, "bytes");
    p->layer_total = (uint64_t)jr_int(part, "total");
}

static void take_line(const char *line, struct pulled *p)
{
    json_t *all = json_loads(line, 0, NULL);
    const json_t *part;

    p->what = PULLED_END;
    if ((part = json_object_get(all, "progress"))) {
        take_progress(part, p);
    } else if ((part = json_object_get(all, "layer"))) {
        take_progress(part, p);
        p->what = PULLED_LAYER;
        take_digest(part, "digest", p->layers[0].digest);
        take_digest(part, "diffId", p->layers[0].diff_id);
    } else if ((part = json_object_get(all, "waiting"))) {
        p->what = PULLED_WAITING;
        snprintf(p->message, sizeof(p->message), "%s", jr_text(part, "why"));
    } else if ((part = json_object_get(all, "result"))) {
        take_result(part, p);
    } else if ((part = json_object_get(all, "error"))) {
        refuse(p, code_of(jr_text(part, "code")), jr_text(part, "message"));
    }
    json_decref(all);
}

static _Noreturn void read_answer(int from, int to)
{
    struct pulled p = {0};
    FILE *lines = fdopen(from, "r");
    char *line = xcalloc(1, LINE_MAX_);
    int r = 0;

    worker_become_nobody();
    refuse(&p, -EIO, "the puller ended without an answer");
    while (r == 0 && lines && fgets(line, LINE_MAX_, lines)) {
        take_line(line, &p);
        if (p.what != PULLED_END)
            r = fd_write_all(to, &p, sizeof(p));
    }
    if (p.what != PULLED_END)
        refuse(&p, -EIO, "the puller ended without an answer");
    p.what = PULLED_END;
    _exit(r < 0 || fd_write_all(to, &p, sizeof(p)) < 0);
}

/* ---- both ------------------------------------------------------------------------------------ */

bool world_pulled_valid(const struct pulled *p)
{
    if (p->n > IMAGE_BLOBS || p->code > 0 || p->config_len > PULL_CONFIG ||
        p->what > PULLED_LAYER || !memchr(p->message, '\0', PULL_WORDS))
        return false;
    if (p->what == PULLED_END && p->code == 0 && !is_digest(p->digest))
        return false;
    uint32_t n = p->what == PULLED_LAYER ? 1 : p->code == 0 ? p->n : 0;
    for (uint32_t i = 0; i < n; i++)
        if (!is_digest(p->layers[i].digest) || !is_digest(p->layers[i].diff_id))
            return false;
    return true;
}

static bool take_one(int from, struct pulled *ret)
{
    size_t len = 0;

    for (ssize_t got = 1; got > 0 && len<sizeof(*ret); len += got> 0 ? (size_t)got : 0)
        got = read(from, (char *)ret + len, sizeof(*ret) - len);
    return len == sizeof(*ret) && world_pulled_valid(ret);
}

static int take_answer(int from, const struct pull_order *o, struct pulled *ret, struct sg_error *e)
{
    bool read = take_one(from, ret);
    int r = 0;

    for (; read && ret->what != PULLED_END; read = take_one(from, ret)) {
        r = o->tell ? o->tell(ret, o->arg, e) : 0;
        if (r < 0)
            return r;
    }
    if (!read)
        return err_set(e, SG_ERR_INTERNAL, -EIO, "the answer of the puller could not be read");
    if (ret->code == 0)
        return 0;
    return err_set(e, SG_ERR_INVALID, ret->code, "%s", ret->message);
}

int world_pull(int dir, const struct pull_order *o, struct pulled *ret, struct sg_error *e)
{
    static const char *const args[] = {PULL_PROGRAM, NULL};
    AUTO(close_p) int made = o->request > 0 ? -1 : write_request(o, e), from = -1;
    int request = o->request > 0 ? o->request : made;
    struct worker w;
    int ends[2], r;
    pid_t reader;

    if (request < 0)
        return request;
    const int fds[] = {request, -1, -1, dir, o->archive};
    r = worker_start(args, fds, ARRAY_SIZE(fds), &w, e);
    if (r < 0)
        return r;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        r = err_errno(e, "make a pipe");
        worker_wait(&w);
        return r;
    }
    from = ends[0];
    reader = fork();
    if (reader == 0)
        read_answer(w.out, ends[1]);
    close(ends[1]);
    r = reader < 0 ? err_errno(e, "start a child") : take_answer(from, o, ret, e);
    close_p(&from);
    if (r < 0)
        worker_kill(&w);
    worker_wait(&w);
    while (reader > 0 && waitpid(reader, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}
