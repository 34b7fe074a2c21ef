/* One request, in a child of the helper. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/volume/volume.h"
#include "lib/base/fd.h"

#define OUT_MAX   (VOLUME_RECORD_MAX + 2 * sizeof(struct volume_record) + 32768)
#define OUT_SEND  32768
#define READ_SIZE VOLUME_RECORD_MAX

static int flush(struct volume_serving *s)
{
    const char *p = s->out;
    size_t left = s->out_len;

    while (left > 0) {
        ssize_t n = send(s->sock, p, left, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return -EPIPE;
        if (n > 0) {
            p += n;
            left -= (size_t)n;
        }
    }
    s->out_len = 0;
    return 0;
}

/* Room for a record of that length. */
static int make_room(struct volume_serving *s, size_t len)
{
    return s->out_len + sizeof(struct volume_record) + len > OUT_MAX ? flush(s) : 0;
}

static void add(struct volume_serving *s, const void *p, size_t len)
{
    memcpy(s->out + s->out_len, p, len);
    s->out_len += len;
}

int volume_put(struct volume_serving *s, enum volume_record_kind kind, const void *p, size_t len)
{
    struct volume_record r = {.kind = kind, .len = (uint32_t)len};
    int ret = make_room(s, len);

    if (ret < 0)
        return ret;
    add(s, &r, sizeof(r));
    add(s, p, len);
    return kind == VOLUME_END || s->out_len >= OUT_SEND ? flush(s) : 0;
}

static int64_t ms_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

static enum volume_type type_of(mode_t mode)
{
    return S_ISREG(mode)   ? VOLUME_FILE
           : S_ISDIR(mode) ? VOLUME_DIRECTORY
           : S_ISLNK(mode) ? VOLUME_LINK
                           : VOLUME_OTHER;
}

int volume_put_entry(struct volume_serving *s, int fd, const char *path)
{
    char target[VOLUME_PATH_MAX];
    struct stat st;
    ssize_t n = 0;

    if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode) && (n = readlinkat(fd, "", target, sizeof(target) - 1)) < 0)
        return -errno;
    struct volume_entry e = {.type = type_of(st.st_mode),
                             .mode = st.st_mode & 07777,
                             .uid = st.st_uid,
                             .gid = st.st_gid,
                             .size = (uint64_t)st.st_size,
                             .atime_ms = ms_of(&st.st_atim),
                             .mtime_ms = ms_of(&st.st_mtim),
                             .ctime_ms = ms_of(&st.st_ctim),
                             .path_len = (uint32_t)strlen(path),
                             .target_len = (uint32_t)n};
    struct volume_record r = {.kind = VOLUME_ENTRY,
                              .len = (uint32_t)(sizeof(e) + e.path_len + e.target_len)};
    int ret = make_room(s, r.len);

    if (ret < 0)
        return ret;
    add(s, &r, sizeof(r));
    add(s, &e, sizeof(e));
    add(s, path, e.path_len);
    add(s, target, e.target_len);
    return s->out_len >= OUT_SEND ? flush(s) : 0;
}

/* ---- operations ------------------------------------------------------------------------------ */

static int do_stat(struct volume_serving *s)
{
    AUTO(close_p) int fd = volume_open(s->root, s->path, O_PATH | O_NOFOLLOW);

    return fd < 0 ? fd : volume_put_entry(s, fd, s->path);
}

static int do_read(struct volume_serving *s)
{
    AUTO(close_p) int fd = volume_open(s->root, s->path, O_RDONLY | O_NONBLOCK);
    char *buf = s->out + OUT_MAX;
    struct stat st;
    ssize_t n;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    int r = volume_put_entry(s, fd, s->path);
    while (r == 0 && (n = read(fd, buf, READ_SIZE)) != 0)
        r = n < 0 ? -errno : volume_put(s, VOLUME_DATA, buf, (size_t)n);
    return r;
}

static int do_usage(struct volume_serving *s)
{
    return volume_measure(s, s->q.depth);
}

static int (*const operations[VOLUME_OP_MAX_])(struct volume_serving *s) = {
    [VOLUME_STAT] = do_stat,
    [VOLUME_LIST] = volume_do_list,
    [VOLUME_READ] = do_read,
    [VOLUME_WRITE] = volume_do_write,
    [VOLUME_MKDIR] = volume_do_mkdir,
    [VOLUME_CHANGE] = volume_do_change,
    [VOLUME_REMOVE] = volume_do_remove,
    [VOLUME_USAGE] = do_usage,
    [VOLUME_EXPORT] = volume_do_export,
    [VOLUME_IMPORT] = volume_do_import,
};

int volume_receive(int sock, void *p, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = recv(sock, (char *)p + at, len - at, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return -ECANCELED;
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int volume_take_body(struct volume_serving *s, char *data,
                     int (*fn)(void *arg, const char *data, size_t len), void *arg)
{
    struct volume_record r = {0};
    int ret = 0;

    while (ret == 0) {
        ret = volume_receive(s->sock, &r, sizeof(r));
        if (ret == 0 && r.kind == VOLUME_END)
            return 0;
        if (ret == 0 && (r.kind != VOLUME_DATA || r.len > VOLUME_RECORD_MAX))
            return -EPROTO;
        if (ret == 0)
            ret = volume_receive(s->sock, data, r.len);
        if (ret == 0)
            ret = fn(arg, data, r.len);
    }
    return ret;
}

static void say_end(struct volume_serving *s, int r)
{
    struct volume_end end = {.code = r,
                             .used = atomic_load(&s->size->used),
                             .measured = atomic_load(&s->size->measured_ns) != 0};

    if (r < 0 && s->why[0])
        memcpy(end.message, s->why, sizeof(end.message));
    else if (r == -EOVERFLOW)
        snprintf(end.message, sizeof(end.message),
                 "the volume has directories more than 1,000 deep, which cannot be counted");
    else if (r < 0)
        snprintf(end.message, sizeof(end.message), "%s", strerror(-r));
    volume_put(s, VOLUME_END, &end, sizeof(end));
}

/* The front is not trusted more than its requests are sound: what is not is a bug of it. */
void volume_serve(int sock, int root, struct volume_size *size)
{
    struct volume_serving s = {.sock = sock, .root = root, .size = size};

    if (volume_receive(sock, &s.q, sizeof(s.q)) < 0 || s.q.path_len >= sizeof(s.path) ||
        volume_receive(sock, s.path, s.q.path_len) < 0 || !volume_request_sound(&s.q, s.path))
        return;
    s.out = xcalloc(1, OUT_MAX + READ_SIZE);
    say_end(&s, operations[s.q.op](&s));
    free(s.out);
}
