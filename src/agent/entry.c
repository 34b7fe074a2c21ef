/* Entries, OP_FILE_STAT and OP_FILE_MKDIR. */
#include "agent/entry.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/path.h"
#include "agent/serve.h"
#include "warden/stage/confine.h"

#define ENTRY_MAX (3 * OPS_PATH_MAX)

static uint32_t entry_type(mode_t mode)
{
    if (S_ISREG(mode))
        return ENTRY_FILE;
    if (S_ISDIR(mode))
        return ENTRY_DIR;
    return S_ISLNK(mode) ? ENTRY_SYMLINK : ENTRY_OTHER;
}

static void put_owner(struct strbuf *out, uint32_t id)
{
    const struct agent_user *user = agent_user_by_uid(id); /* groups have the same names and ids */
    char number[16];

    snprintf(number, sizeof(number), "%u", id);
    wire_put_str(out, user ? user->name : number);
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

int entry_put(struct strbuf *out, int dirfd, const char *name, const char *path)
{
    char target[OPS_PATH_MAX] = "";
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dirfd, name, target, sizeof(target) - 1);
        if (n < 0)
            return -errno;
        target[n] = '\0';
    }
    wire_put_str(out, last_component(path));
    wire_put_str(out, path);
    wire_put_u32(out, entry_type(st.st_mode));
    wire_put_u32(out, st.st_mode & 07777);
    wire_put_u32(out, st.st_uid);
    wire_put_u32(out, st.st_gid);
    put_owner(out, st.st_uid);
    put_owner(out, st.st_gid);
    wire_put_u64(out, (uint64_t)st.st_size);
    wire_put_u64(out, (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec);
    wire_put_str(out, target);
    return out->truncated ? -ENOMEM : 0;
}

static int stat_as(const struct agent_user *as, const char *path, struct strbuf *out)
{
    int r = confine_fs_begin(as);

    if (r < 0)
        return r;
    AUTO(close_p) int fd = path_open(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0);
    r = fd < 0 ? fd : entry_put(out, fd, "", path);
    confine_fs_end();
    return r;
}

int file_stat(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e)
{
    const struct agent_user *as;
    char path[OPS_PATH_MAX];
    struct strbuf out;
    int res = request_target(r, &as, path, e);

    if (res == 0)
        res = request_done(r, e);
    if (res < 0)
        return res;
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/';)
        path[--len] = '\0';

    strbuf_init(&out, ENTRY_MAX);
    res = stat_as(as, path, &out);
    if (res == 0)
        chan_end(a->chan, s, 0, NULL, out.buf, out.len);
    else
        path_error(e, res, "look at", path);
    strbuf_done(&out);
    return res;
}

static int mkdir_as(const struct agent_user *as, const char *path, mode_t mode, bool parents)
{
    AUTO(close_p) int dir = -1;
    char name[NAME_MAX + 1];
    struct stat st;
    int r = confine_fs_begin(as);

    if (r < 0)
        return r;
    r = path_open_parent(path, parents, &dir, name);
    if (r == 0 && mkdirat(dir, name, mode & 01777) < 0)
        r = -errno;
    if (r == -EEXIST && parents && fstatat(dir, name, &st, 0) == 0 && S_ISDIR(st.st_mode))
        r = 0;
    confine_fs_end();
    return r == -EINVAL ? -EEXIST : r; /* "/" and the like are always there */
}

int file_mkdir(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e)
{
    const struct agent_user *as;
    char path[OPS_PATH_MAX];
    int res = request_target(r, &as, path, e);

    if (res < 0)
        return res;
    uint32_t mode = wire_get_u32(r), flags = wire_get_u32(r);
    res = request_done(r, e);
    if (res < 0)
        return res;
    res = mkdir_as(as, path, mode, (flags & FILE_PARENTS) != 0);
    if (res < 0)
        return path_error(e, res, "make the directory", path);
    chan_end(a->chan, s, 0, NULL, NULL, 0);
    return 0;
}
