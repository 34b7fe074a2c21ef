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
#define MIB         (1024.0 * 1024.0)

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
    jw_object_end(&j);
    r = out.truncated ? -EFBIG : fd < 0 ? -errno : fd_write_all(fd, out.buf, out.len);
    explicit_bzero(out.buf, out.len);
    if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_code(e, r < 0 ? r : -errno, "write the request for an image");
    return steal_fd(&fd);
}

/* ---- the answer, read by a child ------------------------------------------------------------- */

static void show(const json_t *p)
{
    fprintf(stderr, "\rlayer %lld of %lld: %.1f of %.1f MiB ", (long long)jr_int(p, "layer"),
            (long long)jr_int(p, "of"), (double)jr_int(p, "bytes") / MIB,
            (double)jr_int(p, "total") / MIB);
}

static bool is_digest(const char *text)
{
    return strnlen(text, PULL_DIGEST) == PULL_DIGEST - 1 && strncmp(text, "sha256:", 7) == 0 &&
           strspn(text + 7, "0123456789abcdef") == PULL_DIGEST - 8;
}

static bool take_digest(const json_t *layer, const char *key, char ret[PULL_DIGEST])
{
    const char *text = jr_text(layer, key);

    snprintf(ret, PULL_DIGEST, "%s", text);
    return is_digest(text);
}

static void refuse(struct pulled *p, int code, const char *why)
{
    p->code = code;
    snprintf(p->message, sizeof(p->message), "%s", why);
}

static void take_result(const json_t *result, struct pulled *p)
{
    const json_t *layers = json_object_get(result, "layers");

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

static void take_line(const char *line, bool shows, struct pulled *p)
{
    json_t *all = json_loads(line, 0, NULL);
    const json_t *part;

    if ((part = json_object_get(all, "progress")) && shows)
        show(part);
    else if ((part = json_object_get(all, "result")))
        take_result(part, p);
    else if ((part = json_object_get(all, "error")))
        refuse(p, -EIO, jr_text(part, "message"));
    json_decref(all);
}

static _Noreturn void read_answer(int from, int to, bool shows)
{
    struct pulled p = {0};
    FILE *lines = fdopen(from, "r");
    char *line = xcalloc(1, LINE_MAX_);

    refuse(&p, -EIO, "the puller ended without an answer");
    worker_become_nobody();
    while (lines && fgets(line, LINE_MAX_, lines))
        take_line(line, shows, &p);
    if (shows)
        fprintf(stderr, "\r%*s\r", 60, "");
    _exit(fd_write_all(to, &p, sizeof(p)) < 0);
}

/* ---- both ------------------------------------------------------------------------------------ */

bool world_pulled_valid(const struct pulled *p)
{
    if (p->n > IMAGE_BLOBS || p->code > 0)
        return false;
    for (uint32_t i = 0; p->code == 0 && i < p->n; i++)
        if (!is_digest(p->layers[i].digest) || !is_digest(p->layers[i].diff_id))
            return false;
    return true;
}

static int take_answer(int from, struct pulled *ret, struct sg_error *e)
{
    size_t len = 0;

    for (ssize_t got = 1; got > 0 && len<sizeof(*ret); len += got> 0 ? (size_t)got : 0)
        got = read(from, (char *)ret + len, sizeof(*ret) - len);
    if (len < sizeof(*ret) || !world_pulled_valid(ret))
        return err_set(e, SG_ERR_INTERNAL, -EIO, "the answer of the puller could not be read");
    if (ret->code == 0)
        return 0;
    return err_set(e, SG_ERR_INVALID, ret->code, "%.*s", PULL_WORDS - 1, ret->message);
}

int world_pull(int dir, const struct pull_order *o, struct pulled *ret, struct sg_error *e)
{
    static const char *const args[] = {PULL_PROGRAM, NULL};
    AUTO(close_p) int request = write_request(o, e), from = -1;
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
        read_answer(w.out, ends[1], o->shows);
    close(ends[1]);
    r = reader < 0 ? err_errno(e, "start a child") : take_answer(from, ret, e);
    worker_wait(&w);
    while (reader > 0 && waitpid(reader, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}
