#include "front/main/world_import.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "wire/image.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define NOBODY  65534u
#define ASIDE   "new-"
#define FDS_MAX (IMAGE_LIST + 1)

struct making {
    int dir;
    char aside[ID_LEN + 8];
};

/* ---- workers --------------------------------------------------------------------------------- */

/* A copy of the program beside this one. The worker is nobody, who may neither reach the program by
 * its name nor have the right to execute it; of a copy in memory anybody who has it can execute. */
static int copy_program(struct sg_error *e)
{
    AUTO(close_p) int from = -1, to = memfd_create(IMAGE_PROGRAM, MFD_CLOEXEC | MFD_EXEC);
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash;

    path[n < 0 ? 0 : n] = '\0';
    slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) + sizeof(IMAGE_PROGRAM) + 1 > sizeof(path))
        return err_set(e, SG_ERR_INTERNAL, -ENOENT, "find the directory of this program");
    snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), IMAGE_PROGRAM);
    if (to < 0 && errno == EINVAL) /* before 6.3 every memfd was executable */
        to = memfd_create(IMAGE_PROGRAM, MFD_CLOEXEC);
    from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0 || to < 0)
        return err_errno(e, "open '%s', which comes with sandglass", path);
    while ((n = sendfile(to, from, NULL, 1 << 20)) > 0)
        ;
    return n < 0 ? err_errno(e, "copy '%s' into memory", path) : steal_fd(&to);
}

/* Runs in the child. fds: by their number in the worker; -1: none. */
static void become_worker(int program, char *const *args, const int *fds)
{
    int moved[FDS_MAX];
    char *none[] = {NULL};

    for (int i = 0; i < FDS_MAX; i++)
        moved[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, FDS_MAX + 1);
    program = fcntl(program, F_DUPFD_CLOEXEC, FDS_MAX + 1);
    for (int i = 0; i < FDS_MAX; i++)
        if (moved[i] >= 0)
            dup2(moved[i], i);
        else if (i != STDERR_FILENO)
            close(i);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(126);
    sys_close_range(FDS_MAX, ~0U, CLOSE_RANGE_CLOEXEC);
    fexecve(program, args, none);
    _exit(126);
}

static int judge(const struct image_report *report, bool whole, int status, const char *role,
                 struct sg_error *e)
{
    if (!whole || report->magic != IMAGE_MAGIC)
        return err_set(e, SG_ERR_INTERNAL, -EIO,
                       "the image worker '%s' ended without an answer (%s %d)", role,
                       WIFSIGNALED(status) ? "signal" : "status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (report->code == 0)
        return 0;
    return err_set(e, (enum sg_error_kind)report->kind, report->code, "%.*s",
                   (int)sizeof(report->message), report->message);
}

/* Runs one worker to its end. fds: as in wire/image.h, with room for its report at 1. */
static int run_worker(char *const *args, int fds[FDS_MAX], struct image_report *ret,
                      struct sg_error *e)
{
    AUTO(close_p) int program = copy_program(e), from = -1;
    int ends[2], status = 0;
    size_t len = 0;
    pid_t pid;

    if (program < 0)
        return program;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, "make a pipe");
    from = ends[0];
    fds[STDOUT_FILENO] = ends[1];
    pid = fork();
    if (pid == 0)
        become_worker(program, args, fds);
    close(ends[1]);
    if (pid < 0)
        return err_errno(e, "start an image worker");
    for (ssize_t n = 1; n > 0 && len<sizeof(*ret); len += n> 0 ? (size_t)n : 0)
        n = read(from, (char *)ret + len, sizeof(*ret) - len);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return judge(ret, len == sizeof(*ret), status, args[1], e);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A file that a worker writes: it has the descriptor, and no other right to it. */
static int make_file(const struct making *m, const char *name, struct sg_error *e)
{
    int fd = openat(m->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd < 0 ? err_errno(e, "make '%s' of a world", name) : fd;
}

#define NO_FDS             \
    {                      \
        -1, -1, -1, -1, -1 \
    }

static int unpack(int layer, int blob, int list, struct image_report *ret, struct sg_error *e)
{
    char *const args[] = {(char[]){IMAGE_PROGRAM}, (char[]){"unpack"}, NULL};
    int fds[FDS_MAX] = NO_FDS;

    fds[STDIN_FILENO] = layer;
    fds[IMAGE_OUT] = blob;
    fds[IMAGE_LIST] = list;
    return run_worker(args, fds, ret, e);
}

static int write_meta(int meta, int list, uint64_t blocks, struct image_report *ret,
                      struct sg_error *e)
{
    char count[24];
    char *const args[] = {(char[]){IMAGE_PROGRAM}, (char[]){"write"}, count, NULL};
    int fds[FDS_MAX] = NO_FDS;

    snprintf(count, sizeof(count), "%llu", (unsigned long long)blocks);
    lseek(list, 0, SEEK_SET);
    fds[IMAGE_OUT] = meta;
    fds[IMAGE_LIST] = list;
    return run_worker(args, fds, ret, e);
}

/* blocks: of the file, whatever the worker that wrote it said. */
static int check_meta(int meta, int blob, struct image_report *ret, struct sg_error *e)
{
    char count[24];
    char *const args[] = {(char[]){IMAGE_PROGRAM}, (char[]){"check"}, count, NULL};
    int fds[FDS_MAX] = NO_FDS;
    struct stat st;

    if (fstat(blob, &st) < 0)
        return err_errno(e, "stat the contents of a world");
    snprintf(count, sizeof(count), "%llu", (unsigned long long)st.st_size / IMAGE_BLOCK);
    lseek(meta, 0, SEEK_SET);
    fds[STDIN_FILENO] = meta;
    return run_worker(args, fds, ret, e);
}

static uint64_t size_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static int fill(struct making *m, int layer, struct world_imported *ret, struct sg_error *e)
{
    AUTO(close_p) int blob = make_file(m, "0", e), list = -1, meta = -1;
    struct image_report unpacked, written, checked;
    int r = blob < 0 ? blob : (list = make_file(m, "list-0", e));

    if (r >= 0)
        r = meta = make_file(m, "meta", e);
    if (r >= 0)
        r = unpack(layer, blob, list, &unpacked, e);
    if (r == 0)
        r = write_meta(meta, list, unpacked.blocks, &written, e);
    if (r == 0)
        r = check_meta(meta, blob, &checked, e);
    if (r < 0)
        return r;
    ret->files = checked.entries;
    ret->bytes = size_of(blob) + size_of(meta);
    ret->left_out = unpacked.left_out;
    return unlinkat(m->dir, "list-0", 0) < 0 ? err_errno(e, "remove the list of a world") : 0;
}

static void remove_all(int worlds, const char *name)
{
    int fd = openat(worlds, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (d && (entry = readdir(d)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(fd, entry->d_name, 0);
    if (d)
        closedir(d);
    unlinkat(worlds, name, AT_REMOVEDIR);
}

void world_discard(int worlds, const char *id)
{
    remove_all(worlds, id);
}

/* What runs that were killed have left. One that runs holds a lock on its directory. */
static void sweep(int worlds)
{
    int fd = openat(worlds, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (d && (entry = readdir(d)) != NULL) {
        AUTO(close_p) int one = -1;

        if (strncmp(entry->d_name, ASIDE, sizeof(ASIDE) - 1) != 0)
            continue;
        one = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (one >= 0 && flock(one, LOCK_EX | LOCK_NB) == 0)
            remove_all(worlds, entry->d_name);
    }
    if (d)
        closedir(d);
}

int world_import(int worlds, int layer, struct world_imported *ret, struct sg_error *e)
{
    struct making m = {.dir = -1};
    struct world_imported made = {0};
    int r;

    sweep(worlds);
    id_random(made.id);
    snprintf(m.aside, sizeof(m.aside), ASIDE "%s", made.id);
    if (mkdirat(worlds, m.aside, 0700) < 0)
        return err_errno(e, "make a directory for the world");
    m.dir = openat(worlds, m.aside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = m.dir < 0 || flock(m.dir, LOCK_EX) < 0 ? err_errno(e, "open the world's directory")
                                               : fill(&m, layer, &made, e);
    if (r == 0 &&
        (fsync(m.dir) < 0 || renameat(worlds, m.aside, worlds, made.id) < 0 || fsync(worlds) < 0))
        r = err_errno(e, "put the world in its place");
    if (r < 0)
        remove_all(worlds, m.aside);
    else
        *ret = made;
    close_p(&m.dir);
    return r;
}
