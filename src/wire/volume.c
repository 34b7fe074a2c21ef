#include "wire/volume.h"

#include <string.h>

/* Leaves out the last name of a path that is being put together. */
static size_t without_last(const char *path, size_t n)
{
    while (n > 0 && path[--n] != '/')
        ;
    return n;
}

int volume_path(const char *given, size_t len, char ret[VOLUME_PATH_MAX])
{
    char path[VOLUME_PATH_MAX];
    size_t n = 0;

    if (memchr(given, '\0', len))
        return -EINVAL;
    for (size_t i = 0; i < len;) {
        const char *slash = memchr(given + i, '/', len - i);
        size_t part = slash ? (size_t)(slash - given) - i : len - i;

        if (part == 2 && memcmp(given + i, "..", 2) == 0) {
            n = without_last(path, n);
        } else if (part > 0 && !(part == 1 && given[i] == '.')) {
            if (part > 255 || n + 1 + part >= sizeof(path))
                return -ENAMETOOLONG;
            path[n++] = '/';
            memcpy(path + n, given + i, part);
            n += part;
        }
        i += part + 1;
    }
    if (n == 0)
        path[n++] = '/';
    memcpy(ret, path, n);
    ret[n] = '\0';
    return 0;
}

bool volume_request_sound(const struct volume_request *q, const char *path)
{
    char plain[VOLUME_PATH_MAX];
    const uint32_t flags =
        VOLUME_FORCE | VOLUME_HAS_UID | VOLUME_HAS_GID | VOLUME_HAS_MODE | VOLUME_KEEP;

    return q->magic == VOLUME_MAGIC && q->op < VOLUME_OP_MAX_ && (q->flags & ~flags) == 0 &&
           q->path_len > 0 && q->path_len < VOLUME_PATH_MAX &&
           (q->op != VOLUME_LIST || (q->depth >= 1 && q->depth <= VOLUME_DEPTH_MAX)) &&
           (!(q->flags & VOLUME_HAS_UID) || q->uid <= VOLUME_ID_MAX) &&
           (!(q->flags & VOLUME_HAS_GID) || q->gid <= VOLUME_ID_MAX) &&
           (!(q->flags & VOLUME_HAS_MODE) || q->mode <= 07777) &&
           volume_path(path, q->path_len, plain) == 0 && strlen(plain) == q->path_len &&
           memcmp(plain, path, q->path_len) == 0;
}

int64_t volume_take(const void *p, size_t len, struct volume_record *ret)
{
    struct volume_record r;

    if (len < sizeof(r))
        return 0;
    memcpy(&r, p, sizeof(r));
    if (r.kind < VOLUME_ENTRY || r.kind > VOLUME_END || r.len > VOLUME_RECORD_MAX)
        return -EPROTO;
    if (len < sizeof(r) + r.len)
        return 0;
    *ret = r;
    return (int64_t)(sizeof(r) + r.len);
}

int volume_entry_read(const void *p, size_t len, struct volume_entry *ret, const char **ret_path,
                      const char **ret_target)
{
    const char *at = p;
    struct volume_entry e;

    if (len < sizeof(e))
        return -EPROTO;
    memcpy(&e, at, sizeof(e));
    if (e.type >= VOLUME_TYPE_MAX_ || e.path_len == 0 || e.path_len > VOLUME_LISTED_MAX ||
        e.target_len >= VOLUME_PATH_MAX || len != sizeof(e) + e.path_len + e.target_len)
        return -EPROTO;
    *ret = e;
    *ret_path = at + sizeof(e);
    *ret_target = at + sizeof(e) + e.path_len;
    return 0;
}

int volume_end_read(const void *p, size_t len, struct volume_end *ret)
{
    if (len != sizeof(*ret))
        return -EPROTO;
    memcpy(ret, p, sizeof(*ret));
    ret->message[sizeof(ret->message) - 1] = '\0';
    return ret->code > 0 ? -EPROTO : 0;
}
