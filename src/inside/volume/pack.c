/* VOLUME_EXPORT: a directory of the volume as a tar, while programs may write to it.
 *
 * What has gone since its name was read is left out, and so are pipes and sockets. A file is as long as
 * it was when it was opened: zeros take the place of what it has lost since. Files with several names
 * are hard links in the tar, as long as there is room to remember them; beyond, each is a file. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/files/layer_file.h"
#include "inside/volume/volume.h"
#include "lib/base/map.h"
#include "lib/tar/tar_in.h"
#include "lib/tar/tar_out.h"

#define LEVELS_MAX     1000         /* each holds two descriptors: FILES_MAX of confine.c */
#define REMEMBERED_MAX (16u << 20)  /* bytes for files with several names */
#define PATH_BYTES     TAR_PATH_MAX /* what our own reader takes */

struct named {
    struct map_node by_inode;
    ino_t ino;
    struct timespec mtime; /* a number may be given to another file while we work */
    char path[];
};

struct pack {
    struct volume_serving *serving;
    struct tar_out tar;
    struct map named;
    size_t remembered;
    char *block;
    char path[PATH_BYTES];
};

static int put(void *arg, const void *data, size_t len)
{
    const struct pack *p = arg;

    return volume_put(p->serving, VOLUME_DATA, data, len);
}

static uint64_t hash_of(ino_t ino)
{
    return hash_bytes(0, &ino, sizeof(ino));
}

static struct named *find_named(struct pack *p, const struct stat *st)
{
    return MAP_FIND(struct named, n, &p->named, hash_of(st->st_ino), by_inode,
                    n->ino == st->st_ino && n->mtime.tv_sec == st->st_mtim.tv_sec &&
                        n->mtime.tv_nsec == st->st_mtim.tv_nsec);
}

static void remember(struct pack *p, const struct stat *st)
{
    size_t len = strlen(p->path) + 1, bytes = sizeof(struct named) + len;
    struct named *n;

    if (bytes > REMEMBERED_MAX - p->remembered)
        return;
    p->remembered += bytes;
    n = xcalloc(1, bytes);
    n->ino = st->st_ino;
    n->mtime = st->st_mtim;
    memcpy(n->path, p->path, len);
    map_add(&p->named, &n->by_inode, hash_of(st->st_ino));
}

static int put_entry(struct pack *p, char type, const struct stat *st, const char *link,
                     uint64_t size)
{
    const struct tar_out_entry entry = {.name = p->path,
                                        .link = link,
                                        .type = type,
                                        .mode = st->st_mode & 07777,
                                        .uid = st->st_uid,
                                        .gid = st->st_gid,
                                        .mtime = st->st_mtime,
                                        .size = size};

    return tar_out_entry(&p->tar, &entry);
}

static int put_content(struct pack *p, int fd, uint64_t size)
{
    bool ended = false;
    int r = 0;

    for (uint64_t left = size; r == 0 && left > 0;) {
        size_t want = left < VOLUME_RECORD_MAX ? (size_t)left : VOLUME_RECORD_MAX;
        ssize_t n = ended ? 0 : read(fd, p->block, want);

        if (n < 0)
            return -errno;
        if (n == 0) {
            ended = true;
            memset(p->block, 0, want);
            n = (ssize_t)want;
        }
        left -= (uint64_t)n;
        r = put(p, p->block, (size_t)n);
    }
    return r < 0 ? r : tar_out_pad(&p->tar, size);
}

/* Whether it is only that a program has put something else there, or nothing. */
static bool has_changed(int code)
{
    return code == ENOENT || code == ELOOP || code == ENOTDIR || code == ENXIO;
}

static int pack_file(struct pack *p, int dir, const char *name)
{
    AUTO(close_p)
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const struct named *known;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return has_changed(errno) ? 0 : -errno;
    if (!S_ISREG(st.st_mode))
        return 0;
    known = st.st_nlink > 1 ? find_named(p, &st) : NULL;
    if (known)
        return put_entry(p, '1', &st, known->path, 0);
    if (st.st_nlink > 1)
        remember(p, &st);
    int r = put_entry(p, '0', &st, "", (uint64_t)st.st_size);
    return r < 0 ? r : put_content(p, fd, (uint64_t)st.st_size);
}

static int pack_link(struct pack *p, int dir, const char *name, const struct stat *st)
{
    char target[VOLUME_PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

    if (n < 0)
        return errno == ENOENT || errno == EINVAL ? 0 : -errno;
    target[n] = '\0';
    return put_entry(p, '2', st, target, 0);
}

static int pack_dir(struct pack *p, int dir, size_t len, unsigned depth);

static int pack_sub(struct pack *p, int dir, const char *name, size_t len, unsigned depth)
{
    AUTO(close_p) int fd = openat(dir, name, LAYER_DIR_FLAGS);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return has_changed(errno) ? 0 : -errno;
    p->path[len] = '/';
    p->path[len + 1] = '\0';
    int r = put_entry(p, '5', &st, "", 0);
    return r < 0 ? r : pack_dir(p, fd, len, depth + 1);
}

static int pack_one(struct pack *p, int dir, const char *name, size_t len, unsigned depth)
{
    size_t n = strlen(name);
    struct stat st;

    if (len + n + 3 > sizeof(p->path)) {
        snprintf(p->serving->why, sizeof(p->serving->why),
                 "a path in it has more than %d bytes: '%.100s...'", PATH_BYTES - 2, p->path);
        return -ENAMETOOLONG;
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return has_changed(errno) ? 0 : -errno;
    p->path[len] = '/';
    memcpy(p->path + len + 1, name, n + 1);
    if (S_ISDIR(st.st_mode))
        return pack_sub(p, dir, name, len + 1 + n, depth);
    if (S_ISLNK(st.st_mode))
        return pack_link(p, dir, name, &st);
    return S_ISREG(st.st_mode) ? pack_file(p, dir, name) : 0;
}

/* One level for each turn, LEVELS_MAX at most. */
static int pack_dir(struct pack *p, int dir, size_t len, unsigned depth)
{
    AUTO(layer_closedir_p) DIR *d = depth > LEVELS_MAX ? NULL : layer_list(dir);
    const char *name;
    int r = 0, got = 0;

    if (depth > LEVELS_MAX)
        return -EOVERFLOW;
    while (r == 0 && (got = layer_next(d, &name)) > 0)
        r = pack_one(p, dir, name, len, depth);
    return r < 0 ? r : got;
}

int volume_do_export(struct volume_serving *s)
{
    AUTO(close_p) int dir = volume_open(s->root, s->path, O_RDONLY | O_DIRECTORY);
    AUTO(free_p) struct pack *p = xcalloc(1, sizeof(*p));
    AUTO(free_p) char *block = xcalloc(1, VOLUME_RECORD_MAX);
    struct stat st;

    if (dir < 0 || fstat(dir, &st) < 0)
        return dir < 0 ? dir : -errno;
    *p = (struct pack){.serving = s, .tar = {.put = put, .arg = p}, .block = block, .path = "./"};
    int r = put_entry(p, '5', &st, "", 0);
    if (r == 0)
        r = pack_dir(p, dir, 1, 1);
    return r < 0 ? r : tar_out_end(&p->tar);
}
