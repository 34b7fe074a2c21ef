/* A new root directory, which comes over the line. There are two cases. The warden has frozen the
 * files of this sandbox, and the sandbox goes on with a layer of its own over them. Or the sandbox
 * gets the files of another sandbox, or its own of an earlier time; then nothing that runs may stay
 * (LINE_ROOT_CLEAR).
 *
 * Files that the agent has open for reading in the old root are read to their end there. But the
 * agent must not be writing a file: it would end up in a place that nobody sees. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "inside/agent/disk.h"
#include "inside/agent/kernels.h"
#include "inside/agent/launch.h"
#include "inside/agent/path.h"
#include "inside/stage/confine.h"

static bool writes(const struct agent *a)
{
    return LIST_FIND(const struct op, op, &a->ops, link, op->ops->writes);
}

/* Whether a program was started since the host was told that cells are held. The broker may not
 * have stopped it with the others, and it would be left behind in the old root. */
static bool started_any(const struct agent *a)
{
    return !a->kernels.hold || a->kernels.launches != launch_count();
}

static int move_root(struct agent *a, int root, bool clear, bool bare)
{
    int r = writes(a) || (!clear && started_any(a)) ? -EBUSY : 0;

    if (r == 0 && clear) {
        kernels_clear(a);
        r = reaper_kill_everybody(&a->reaper);
    }
    if (r == 0)
        r = root_move(root, bare, NULL);
    if (r == 0)
        file_watch_moved(a, !clear);
    return r;
}

void root_came(struct agent *a, const int *fds, size_t n, int how)
{
    bool clear = how & LINE_ROOT_CLEAR, bare = how & LINE_ROOT_BARE;
    int r = move_root(a, fds[0], clear, bare);

    line_told(&a->line, LINE_ROOT, r);
    close(fds[0]);
    if (r == 0 && n > 1)
        disk_use_figures(fds + 1);
    for (size_t i = 1; r < 0 && i < n; i++)
        close(fds[i]);
}

/* Whether the path, or as much of it as is there, lies in the cover, which is a file system of its
 * own. */
static bool is_covered(const struct agent_user *as, const char *path)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(as);
    AUTO(close_p) int fd = -1;
    char part[OPS_PATH_MAX];
    struct stat cover, st;

    if (entered < 0 || stat("/usr", &cover) < 0)
        return false;
    snprintf(part, sizeof(part), "%s", path);
    while ((fd = path_open(AT_FDCWD, part, O_PATH, 0)) < 0 && part[0] != '\0')
        *strrchr(part, '/') = '\0';
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == cover.st_dev;
}

int root_written(const struct agent_user *as, const char *path, struct sg_error *e)
{
    if ((as->uid != 0 && !as->as_root) || root_usr != ROOT_USR_COVERED)
        return 0;
    return strcmp(path, "/") == 0 || is_covered(as, path) ? root_uncover(e) : 0;
}
