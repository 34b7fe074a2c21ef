#include "warden/layers/marks.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "lib/base/err.h"

#define DEPTH_MAX 2064 /* a snapshot is at most 2,048 deep */
#define OPEN_DIR  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Of saved files only these marks mean anything. */
static const char *const marks[][2] = {
    {"user.overlay.opaque", "trusted.overlay.opaque"},
    {"user.overlay.origin", "trusted.overlay.origin"},
};

static int mark_dir(int dir, bool trusted)
{
    char value[160];

    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        ssize_t n = fgetxattr(dir, marks[i][!trusted], value, sizeof(value));
        if (n >= 0 && fsetxattr(dir, marks[i][trusted], value, (size_t)n, XATTR_CREATE) < 0 &&
            errno != EEXIST)
            return -errno;
    }
    return 0;
}

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* Takes the descriptor over. */
static int mark_below(int dir, bool trusted, unsigned depth)
{
    AUTO(closedir_p) DIR *d = fdopendir(dir);
    struct dirent *entry;
    int r = d ? 0 : -errno;

    if (!d)
        close(dir);
    while (r == 0 && d && (entry = readdir(d)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int fd = openat(dir, entry->d_name, OPEN_DIR);
        if (fd < 0) /* no directory */
            continue;
        r = depth == 0 ? -ELOOP : mark_dir(fd, trusted);
        if (r == 0)
            r = mark_below(fd, trusted, depth - 1);
        else
            close(fd);
    }
    return r;
}

int marks_convert(int dir, bool trusted)
{
    int fd = openat(dir, ".", OPEN_DIR);

    return fd < 0 ? -errno : mark_below(fd, trusted, DEPTH_MAX);
}
