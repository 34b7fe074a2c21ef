/* Lists a directory, as it is read: nothing of it is kept, so a directory of any size costs the
 * same memory. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/files/layer_file.h"
#include "inside/volume/volume.h"

struct listing {
    struct volume_serving *serving;
    char path[VOLUME_LISTED_MAX + 1];
};

static int list_dir(struct listing *l, int dir, size_t len, uint32_t depth);

/* What has gone since its name was read is left out. */
static int list_one(struct listing *l, int dir, const char *name, size_t len, uint32_t depth)
{
    AUTO(close_p) int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), sub = -1;
    size_t n = strlen(name);
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (len + 1 + n > VOLUME_LISTED_MAX)
        return -ENAMETOOLONG;
    l->path[len] = '/';
    memcpy(l->path + len + 1, name, n + 1);
    r = volume_put_entry(l->serving, fd, l->path);
    if (r < 0 || depth == 1 || !S_ISDIR(st.st_mode))
        return r;
    sub = openat(dir, name, LAYER_DIR_FLAGS);
    return sub < 0 ? 0 : list_dir(l, sub, len + 1 + n, depth - 1);
}

/* One level for each turn, VOLUME_DEPTH_MAX at most. */
static int list_dir(struct listing *l, int dir, size_t len, uint32_t depth)
{
    AUTO(layer_closedir_p) DIR *d = layer_list(dir);
    const char *name;
    int r = 0, got = 0;

    while (r == 0 && (got = layer_next(d, &name)) > 0)
        r = list_one(l, dir, name, len, depth);
    return r < 0 ? r : got;
}

int volume_do_list(struct volume_serving *s)
{
    AUTO(close_p) int dir = volume_open(s->root, s->path, O_RDONLY | O_DIRECTORY);
    AUTO(free_p) struct listing *l = xcalloc(1, sizeof(*l));
    size_t len = strcmp(s->path, "/") == 0 ? 0 : strlen(s->path);

    if (dir < 0)
        return dir;
    l->serving = s;
    memcpy(l->path, s->path, len);
    return list_dir(l, dir, len, s->q.depth);
}
