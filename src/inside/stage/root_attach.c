/* Mounts at places that their owner chose: those of `sandglass run`, and volumes.
 *
 * A volume may be attached while programs run, and when another root takes the place of the one it
 * is in (root_move.c). So what is on the way to its place may be hostile: it is opened step by step,
 * without following a link, and mounts are attached to what was opened. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "inside/agent/agent.h"
#include "inside/stage/stage.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"

/* Attached mounts. `top` is the mount's own root: what is bound to the next root. */
static struct attached {
    int top, next; /* next: the same in a root that is being made; -1 */
    char target[LINE_TARGET_MAX];
} attached[ROOT_ATTACHED_MAX];
static size_t n_attached;

/* What the agent makes belongs to whom the directory does that it is in, not to the agent, whom
 * nobody inside can stand in for. */
static int give_to_owner(int dir, int made)
{
    struct stat up, st;

    if (fstat(dir, &up) < 0 || fstat(made, &st) < 0)
        return -1;
    return st.st_uid != AGENT_UID ? 0 : fchownat(made, "", up.st_uid, up.st_gid, AT_EMPTY_PATH);
}

int root_make_target(int root, const char *target, bool is_dir, uint64_t resolve, int *ret_fd,
                     struct sg_error *e)
{
    struct open_how how = {.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | resolve};
    AUTO(close_p) int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);
    char part[NAME_MAX + 1];
    const char *p = target;

    for (;;) {
        size_t len;
        while (*p == '/')
            p++;
        len = strcspn(p, "/");
        if (len == 0)
            break;
        if (len > NAME_MAX)
            return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG,
                           "mount target '%s' has a too long name", target);
        memcpy(part, p, len);
        part[len] = '\0';
        p += len;
        bool last = p[strspn(p, "/")] == '\0', made = false;
        if (last && !is_dir) {
            int fd = openat(dir, part, O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
            close_p(&fd);
        } else if (!(made = mkdirat(dir, part, 0755) == 0) && errno != EEXIST) {
            return err_errno(e, "make the mount target '%s'", target);
        }
        how.flags = O_PATH | O_CLOEXEC | (last && !is_dir ? 0 : O_DIRECTORY);
        int next = sys_openat2(dir, part, &how);
        if (next < 0 && errno == ELOOP)
            return err_set(
                e, SG_ERR_INVALID, -ELOOP,
                "mount target '%s' leads through a symbolic link: name the real directory", target);
        if (next < 0)
            return err_errno(e, "open the mount target '%s'", target);
        int r = made ? give_to_owner(dir, next) : 0;
        close(dir);
        dir = next;
        if (r < 0)
            return err_errno(e, "make the mount target '%s'", target);
    }
    *ret_fd = steal_fd(&dir);
    return 0;
}

/* Opens what lies on a place now. */
static int open_top(int root, const char *target, int *ret, struct sg_error *e)
{
    return root_make_target(root, target, true, 0, ret, e);
}

int root_attach(int tree, const char *target, struct sg_error *e)
{
    AUTO(close_p) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), at = -1;
    struct attached *a = &attached[n_attached];
    int r;

    if (n_attached == ROOT_ATTACHED_MAX || strlen(target) >= sizeof(a->target))
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "too many mounts");
    r = root_make_target(root, target, true, RESOLVE_NO_XDEV, &at, e);
    if (r < 0)
        return r;
    if (syscall(SYS_move_mount, tree, "", at, "",
                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return err_errno(e, "mount '%s'", target);
    *a = (struct attached){.top = -1, .next = -1};
    snprintf(a->target, sizeof(a->target), "%s", target);
    r = open_top(root, target, &a->top, e);
    n_attached += r == 0;
    return r;
}

static int bind_again(struct attached *a, int new_root, struct sg_error *e)
{
    AUTO(close_p) int at = -1;
    char from[32], to[32];
    int r = root_make_target(new_root, a->target, true, RESOLVE_NO_XDEV, &at, e);

    if (r < 0)
        return r;
    snprintf(from, sizeof(from), "/proc/self/fd/%d", a->top);
    snprintf(to, sizeof(to), "/proc/self/fd/%d", at);
    if (mount(from, to, NULL, MS_BIND, NULL) < 0)
        return err_errno(e, "attach '%s' to the new root", a->target);
    return open_top(new_root, a->target, &a->next, e);
}

int root_attach_again(int new_root, struct sg_error *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_attached; i++)
        r = bind_again(&attached[i], new_root, e);
    return r;
}

void root_attached_moved(bool moved)
{
    for (size_t i = 0; i < n_attached; i++) {
        struct attached *a = &attached[i];

        if (moved) {
            close_p(&a->top);
            a->top = steal_fd(&a->next);
        }
        close_p(&a->next);
    }
}
