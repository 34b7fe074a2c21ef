/* Agents in a root directory that is built as the warden's side does it, and further ones to be
 * moved into. */
#pragma once

#include "lib/ipc/ipc.h"
#include "agent_host.h"
#include "lib/base/sys.h"
#include "inside/agent/view.h"

#define ROOT_IDS 300000000u

static int root_fds[2] = {-1, -1}; /* of the next agent: its root, and /usr */

/* A detached tmpfs with what a root needs, and a file /marker that tells it from others. */
static inline int root_make(const char *marker)
{
    static const char *const dirs[] = {"dev",  "etc",       "home",          "home/user",    "proc",
                                       "root", "run",       "run/shm",       "sys",          "tmp",
                                       "usr",  "usr/local", "home/user/sub", "usr/local/lib"};
    static const char *const links[][2] = {
        {"bin", "usr/bin"}, {"sbin", "usr/sbin"}, {"lib", "usr/lib"}, {"lib64", "usr/lib64"}};
    int fs = sys_fsopen("tmpfs");

    EXPECT(fs >= 0 && sys_fsconfig_create(fs) == 0);
    int root = sys_fsmount(fs, 0);
    EXPECT(root >= 0);
    close(fs);
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        uint32_t id = ROOT_IDS + (strncmp(dirs[i], "home/", 5) == 0 ? 1000 : 0);
        EXPECT(mkdirat(root, dirs[i], 0755) == 0 && fchownat(root, dirs[i], id, id, 0) == 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        EXPECT(symlinkat(links[i][1], root, links[i][0]) == 0);
    EXPECT(fchownat(root, "", ROOT_IDS, ROOT_IDS, AT_EMPTY_PATH) == 0);
    EXPECT(fchmodat(root, "tmp", 01777, 0) == 0 && fchmodat(root, "run/shm", 01777, 0) == 0);
    const char *const marked[] = {"marker", "usr/local/marker", "run/shm/marker",
                                  "home/user/marker"};
    for (size_t i = 0; i < ARRAY_SIZE(marked); i++) {
        int fd = openat(root, marked[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        EXPECT(fd >= 0 && fd_write_all(fd, marker, strlen(marker)) == 0);
        close(fd);
    }
    return root;
}

static inline bool root_outside(void)
{
    struct sg_error e = {0};

    if (root_prepare(&e) == 0)
        return true;
    printf("# %s\n", e.message);
    return false;
}

static inline bool root_inside(void)
{
    struct stage_setup setup = {.magic = STAGE_MAGIC};
    struct spawn_request q = {.magic = STAGE_MAGIC};
    static struct view_fds view = VIEW_NONE;
    struct sg_error e = {0};

    umask(022);
    if (root_build(&q, &view, &e) == 0 && root_enter(&setup, root_fds, 0, &e) == 0)
        return true;
    printf("# %s\n", e.message);
    return false;
}

/* An agent on a line, with a root that is marked so. */
static inline void host_start_rooted(struct agent_host *h, const char *marker)
{
    root_fds[0] = root_make(marker);
    root_fds[1] = sys_open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    EXPECT(root_fds[1] >= 0);
    host_outside = root_outside;
    host_inside = root_inside;
    host_twins = true;
    host_start_line(h);
    host_twins = false;
    host_outside = host_inside = NULL;
    close(root_fds[0]);
    close(root_fds[1]);
}

/* Sends a root, and returns what the agent says: a code. Takes the descriptor over. */
static inline int root_send(struct agent_host *h, int root, int32_t flags)
{
    struct line_message m = {.what = LINE_ROOT, .code = flags};
    struct pollfd p = {.fd = h->line, .events = POLLIN};
    bool never = false;

    EXPECT(ipc_send(h->line, &m, sizeof(m), &root, 1) == 0);
    close(root);
    for (int i = 0; i < 500 && poll(&p, 1, 0) == 0; i++)
        host_wait(h, &never, 10);
    EXPECT(recv(h->line, &m, sizeof(m), MSG_DONTWAIT) == (ssize_t)sizeof(m));
    EXPECT(m.what == LINE_ROOT);
    return m.code;
}
