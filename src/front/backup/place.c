#include "front/backup/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int place_parent(const char *path, int *ret_dir, const char **ret_name, struct sg_error *e)
{
    AUTO(free_p) char *parent = xstrdup(path);
    char *slash = strrchr(parent, '/');
    const char *name = slash ? path + (slash - parent) + 1 : path;

    if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strlen(name) > 200)
        return err_invalid(e, "'%.200s' names no new directory", path);
    if (slash == parent)
        slash++;
    if (slash)
        *slash = '\0';
    int dir = open(slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_errno(e, "open '%.200s'", slash ? parent : ".");
    *ret_dir = dir;
    *ret_name = name;
    return 0;
}

int place_open(int dir, const char *name, struct sg_error *e)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? err_errno(e, "open '%.200s'", name) : fd;
}

int place_make(int dir, const char *name, mode_t mode, struct sg_error *e)
{
    if (mkdirat(dir, name, mode) < 0)
        return err_errno(e, "make the directory '%.200s'", name);
    return place_open(dir, name, e);
}

void place_name(const char *prefix, char ret[ID_LEN + 16])
{
    char id[ID_LEN + 1];

    id_random(id);
    snprintf(ret, ID_LEN + 16, "%.14s-%s", prefix, id);
}
