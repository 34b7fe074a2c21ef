#include "inside/broker/findings.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/fault.h"
#include "lib/base/fd.h"
#include "lib/text/json.h"
#include "inside/broker/twin.h"

/* Room for a path of 4096 bytes, each of them escaped. */
#define ONE_MAX    (32u << 10)
#define KERNEL_MAX (64u << 10)
#define KERNELS    (TWIN_REPORT_MAX / 2)
#define IN_THE_WAY (TWIN_REPORT_MAX / 2 - 256)

void findings_init(struct findings *f)
{
    *f = (struct findings){.kernels = strbuf_upto(KERNELS),
                           .in_the_way = strbuf_upto(IN_THE_WAY),
                           .files = strbuf_upto(KERNEL_MAX / 2),
                           .dropped = strbuf_upto(KERNEL_MAX / 2 - 256),
                           .written = strbuf_upto(TWIN_WRITTEN_MAX)};
}

void findings_done(struct findings *f)
{
    strbuf_done(&f->kernels);
    strbuf_done(&f->in_the_way);
    strbuf_done(&f->files);
    strbuf_done(&f->dropped);
    strbuf_done(&f->written);
}

/* Adds an object to the list, if there is room for all of it. */
static void put(struct findings *f, struct strbuf *list, const struct strbuf *one)
{
    if (one->truncated || list->len + 1 + one->len > list->max) {
        f->more++;
        return;
    }
    if (list->len > 0)
        strbuf_addch(list, ',');
    strbuf_add(list, one->buf, one->len);
}

static void begin(struct json *j, struct strbuf *one)
{
    strbuf_init(one, ONE_MAX);
    jw_init(j, one);
    jw_object_begin(j);
}

static void end(struct findings *f, struct json *j, struct strbuf *list, struct strbuf *one)
{
    jw_object_end(j);
    put(f, list, one);
}

static void text(struct json *j, const char *key, const char *value)
{
    jw_bytes(jw_key(j, key), value, strlen(value));
}

void findings_in_the_way(struct findings *f, const struct inspected *who, const char *what,
                         const char *holds, const char *remedy)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    char command[PROCFS_COMMAND_MAX];
    size_t len = who->dir < 0 ? 0 : procfs_command(who->dir, command);
    struct json j;

    if (f->n_in_the_way++ == 0)
        f->first = what;
    begin(&j, &out);
    jw_i64(jw_key(&j, "pid"), who->inside);
    jw_bytes(jw_key(&j, "command"), command, len);
    text(&j, "what", what);
    if (holds)
        text(&j, "holds", holds);
    text(&j, "remedy", remedy);
    end(f, &j, &f->in_the_way, &out);
}

void findings_kernel_begin(struct findings *f)
{
    strbuf_reset(&f->files);
    strbuf_reset(&f->dropped);
}

void findings_file(struct findings *f, int fd, const char *path, int64_t offset)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct json j;

    begin(&j, &out);
    jw_i64(jw_key(&j, "fd"), fd);
    text(&j, "path", path);
    jw_i64(jw_key(&j, "offset"), offset);
    end(f, &j, &f->files, &out);
}

void findings_dropped(struct findings *f, int fd, const char *what)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct json j;

    begin(&j, &out);
    jw_i64(jw_key(&j, "fd"), fd);
    text(&j, "what", what);
    end(f, &j, &f->dropped, &out);
}

void findings_kernel_end(struct findings *f, pid_t inside)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(KERNEL_MAX);

    strbuf_addf(&out, "{\"pid\":%d,\"files\":[%s],\"dropped\":[%s]}", inside, f->files.buf,
                f->dropped.buf);
    put(f, &f->kernels, &out);
}

void findings_written(struct findings *f, const char *path)
{
    strbuf_add(&f->written, path, strlen(path) + 1);
}

static int seal(const struct strbuf *text, int *ret_memfd, struct sg_error *e)
{
    AUTO(close_p) int fd = memfd_create("sandglass-report", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r;

    if (fd < 0)
        return err_errno(e, "make a memfd for a report");
    r = text->truncated ? -EFBIG : fd_write_all(fd, text->buf, text->len);
    if (r < 0)
        return err_internal(e, r, "write a report");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return err_errno(e, "seal a report");
    *ret_memfd = steal_fd(&fd);
    return 0;
}

int findings_report(struct findings *f, int *ret_memfd, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TWIN_REPORT_MAX);

    strbuf_addf(&out, "{\"kernels\":[%s],\"inTheWay\":[%s],\"more\":%zu}", f->kernels.buf,
                f->in_the_way.buf, f->more);
    return seal(&out, ret_memfd, e);
}

int findings_written_list(struct findings *f, int *ret_memfd, struct sg_error *e)
{
    return seal(&f->written, ret_memfd, e);
}
