#include "front/main/world_import.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "front/main/world_share.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"

#define ASIDE      "new-"
#define ASIDE_NAME (ID_LEN + 8)
#define OPEN_DIR   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static void aside_name(const char *id, char ret[ASIDE_NAME])
{
    snprintf(ret, ASIDE_NAME, ASIDE "%s", id);
}

/* ---- workers --------------------------------------------------------------------------------- */

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
    return err_set(e, (enum sg_error_kind)report->kind, report->code < 0 ? report->code : -EIO,
                   "%.*s", (int)sizeof(report->message), report->message);
}

/* args: from the role on. A worker's own line about an error is ours to print. */
static int start(const char *const *args, const int *fds, size_t n, struct worker *ret,
                 struct sg_error *e)
{
    AUTO(close_p) int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int with[WORKER_FDS_MAX];

    memcpy(with, fds, n * sizeof(*fds));
    with[STDERR_FILENO] = quiet;
    return worker_start(args, with, n, ret, e);
}

static int finish(struct worker *w, const char *role, struct image_report *ret, struct sg_error *e)
{
    size_t len = 0;

    for (ssize_t got = 1; got > 0 && len<sizeof(*ret); len += got> 0 ? (size_t)got : 0)
        got = read(w->out, (char *)ret + len, sizeof(*ret) - len);
    return judge(ret, len == sizeof(*ret), worker_wait(w), role, e);
}

/* Runs one worker to its end. */
static int run(const char *const *args, const int *fds, size_t n, struct image_report *ret,
               struct sg_error *e)
{
    struct worker w;
    int r = start(args, fds, n, &w, e);

    return r < 0 ? r : finish(&w, args[1], ret, e);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A file that a worker writes: it has the descriptor, and no other right to it. */
static int make_file(const struct world_making *m, const char *name, struct sg_error *e)
{
    int fd = openat(m->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd < 0 ? err_errno(e, "make '%s' of a world", name) : fd;
}

static uint64_t size_of(const struct world_making *m, const char *name)
{
    struct stat st;

    return fstatat(m->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

static int check_digest(const struct image_report *report, const char *diff_id, struct sg_error *e)
{
    char text[2 * IMAGE_DIGEST + 1];

    if (!diff_id[0])
        return 0;
    for (size_t i = 0; i < IMAGE_DIGEST; i++)
        snprintf(text + 2 * i, 3, "%02x", report->diff_id[i]);
    return strcmp(text, diff_id) == 0
               ? 0
               : err_invalid(e, "a layer is %s when it is unpacked, and its image says %s", text,
                             diff_id);
}

static int too_large(const struct world_making *m, struct sg_error *e)
{
    return err_set(e, SG_ERR_LIMIT, -EFBIG, "its layers have more than %llu bytes, unpacked",
                   (unsigned long long)m->bytes_max);
}

/* A layer that is unpacked beside others may have all that is left; the end of each looks again. */
static int limit_of(const struct world_making *m, char ret[32], struct sg_error *e)
{
    if (m->bytes_max && m->bytes >= m->bytes_max)
        return too_large(m, e);
    snprintf(ret, 32, "bytes=%llu", (unsigned long long)(m->bytes_max - m->bytes));
    return 0;
}

int world_add_begin(struct world_making *m, int layer, const char *diff_id, struct sg_error *e)
{
    AUTO(close_p) int blob = -1, list = -1;
    char name[16], list_name[24], limit[32];
    const char *args[] = {IMAGE_PROGRAM, "unpack", m->bytes_max ? limit : NULL, NULL};
    size_t i = m->begun;
    int r;

    if (i == IMAGE_BLOBS)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "the image has more than %u layers", IMAGE_BLOBS);
    snprintf(name, sizeof(name), "%zu", i);
    snprintf(list_name, sizeof(list_name), "list-%zu", i);
    r = limit_of(m, limit, e);
    if (r == 0)
        r = blob = make_file(m, name, e);
    if (r >= 0)
        r = list = make_file(m, list_name, e);
    if (r < 0)
        return r;
    const int fds[] = {layer, -1, -1, blob, list};
    r = start(args, fds, ARRAY_SIZE(fds), &m->workers[i], e);
    if (r < 0)
        return r;
    snprintf(m->diff_ids[i], sizeof(m->diff_ids[i]), "%s", diff_id ? diff_id : "");
    m->lists[i] = steal_fd(&list);
    m->begun++;
    return 0;
}

int world_add_end(struct world_making *m, struct sg_error *e)
{
    size_t i = m->n++;
    struct image_report report;
    uint64_t on_disk;
    char name[24];
    int r = finish(&m->workers[i], "unpack", &report, e);

    if (r == 0)
        r = check_digest(&report, m->diff_ids[i], e);
    if (r < 0)
        return r;
    snprintf(name, sizeof(name), "%zu", i);
    on_disk = size_of(m, name);
    world_share(m->worlds, m->dir, name);
    m->bytes += report.bytes > on_disk ? report.bytes : on_disk;
    m->blocks[i] = report.blocks;
    m->left_out += report.left_out;
    snprintf(name, sizeof(name), "list-%zu", i);
    if (unlinkat(m->dir, name, 0) < 0)
        return err_errno(e, "remove the list of a layer");
    /* Layers that were unpacked side by side had the same room each. */
    return m->bytes_max && m->bytes > m->bytes_max ? too_large(m, e) : 0;
}

int world_add(struct world_making *m, int layer, const char *diff_id, struct sg_error *e)
{
    int r = world_add_begin(m, layer, diff_id, e);

    return r < 0 ? r : world_add_end(m, e);
}

struct numbers {
    const char *args[IMAGE_BLOBS + 3];
    char text[IMAGE_BLOBS][24];
};

static void numbers_of(struct numbers *n, const char *role, const uint64_t *v, size_t count)
{
    n->args[0] = IMAGE_PROGRAM;
    n->args[1] = role;
    for (size_t i = 0; i < count; i++) {
        snprintf(n->text[i], sizeof(n->text[i]), "%llu", (unsigned long long)v[i]);
        n->args[i + 2] = n->text[i];
    }
    n->args[count + 2] = NULL;
}

static int write_meta(const struct world_making *m, int meta, struct sg_error *e)
{
    int fds[IMAGE_LIST + IMAGE_BLOBS] = {-1, -1, -1, meta};
    struct image_report report;
    struct numbers n;

    for (size_t i = 0; i < m->n; i++) {
        lseek(m->lists[i], 0, SEEK_SET);
        fds[IMAGE_LIST + i] = m->lists[i];
    }
    numbers_of(&n, "write", m->blocks, m->n);
    return run(n.args, fds, IMAGE_LIST + m->n, &report, e);
}

/* The blobs' blocks are those of the files, whatever the worker that wrote these said. */
static int check_meta(const struct world_making *m, int meta, struct world_made *ret,
                      struct sg_error *e)
{
    const int fds[] = {meta, -1, -1};
    struct image_report report = {0};
    uint64_t blocks[IMAGE_BLOBS];
    struct numbers n;
    char name[16];
    int r;

    ret->bytes = size_of(m, "meta");
    for (size_t i = 0; i < m->n; i++) {
        snprintf(name, sizeof(name), "%zu", i);
        blocks[i] = size_of(m, name) / IMAGE_BLOCK;
        ret->bytes += blocks[i] * IMAGE_BLOCK;
    }
    lseek(meta, 0, SEEK_SET);
    numbers_of(&n, "check", blocks, m->n);
    r = run(n.args, fds, ARRAY_SIZE(fds), &report, e);
    ret->files = report.entries;
    return r;
}

/* ---- directories ----------------------------------------------------------------------------- */

static void remove_all(int at, const char *name)
{
    int fd = openat(at, name, OPEN_DIR);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (d && (entry = readdir(d)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) < 0 && errno == EISDIR)
            remove_all(fd, entry->d_name); /* one level: what is pulled */
    }
    if (d)
        closedir(d);
    unlinkat(at, name, AT_REMOVEDIR);
}

void world_discard(int worlds, const char *id)
{
    remove_all(worlds, id);
}

/* A run that goes on holds a lock on its directory. */
void worlds_sweep(int worlds)
{
    int fd = openat(worlds, ".", OPEN_DIR);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (d && (entry = readdir(d)) != NULL) {
        AUTO(close_p) int one = -1;

        if (strncmp(entry->d_name, ASIDE, sizeof(ASIDE) - 1) != 0)
            continue;
        one = openat(fd, entry->d_name, OPEN_DIR);
        if (one >= 0 && flock(one, LOCK_EX | LOCK_NB) == 0)
            remove_all(worlds, entry->d_name);
    }
    if (d)
        closedir(d);
}

/* Whoever is not root cannot ask; the server is told then when it mounts the world. */
static int check_kernel(struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("erofs");

    return fs >= 0 || errno != ENODEV
               ? 0
               : err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                         "templates with files of their own need a kernel with EROFS");
}

static int make_aside(struct world_making *m, struct sg_error *e)
{
    char aside[ASIDE_NAME];

    aside_name(m->id, aside);
    if (mkdirat(m->worlds, aside, 0700) < 0)
        return err_errno(e, "make a directory for the world");
    m->dir = openat(m->worlds, aside, OPEN_DIR);
    if (m->dir < 0 || flock(m->dir, LOCK_EX) < 0)
        return err_errno(e, "open the directory of the world");
    return 0;
}

/* Whoever sweeps may take the directory between its making and its lock for one that was left. */
static bool was_swept(const struct world_making *m)
{
    char aside[ASIDE_NAME];
    struct stat there, ours;

    aside_name(m->id, aside);
    return m->dir < 0 ? faccessat(m->worlds, aside, F_OK, AT_SYMLINK_NOFOLLOW) < 0
                      : fstat(m->dir, &ours) < 0 ||
                            fstatat(m->worlds, aside, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
                            there.st_ino != ours.st_ino;
}

int world_begin(struct world_making *m, int worlds, const char *id, struct sg_error *e)
{
    int r = check_kernel(e);

    *m = (struct world_making){.worlds = worlds, .dir = -1};
    if (r < 0)
        return r;
    worlds_sweep(worlds);
    if (id)
        snprintf(m->id, sizeof(m->id), "%s", id);
    else
        id_random(m->id);
    for (;;) {
        r = make_aside(m, e);
        if (!was_swept(m))
            return r;
        close_p(&m->dir);
    }
}

static void close_all(struct world_making *m)
{
    for (size_t i = m->n; i < m->begun; i++) {
        worker_kill(&m->workers[i]);
        worker_wait(&m->workers[i]);
    }
    for (size_t i = 0; i < m->begun; i++)
        close_p(&m->lists[i]);
    m->n = m->begun = 0;
    close_p(&m->dir);
}

int world_finish(struct world_making *m, struct world_made *ret, struct sg_error *e)
{
    AUTO(close_p) int meta = make_file(m, "meta", e);
    struct world_made made = {.left_out = m->left_out};
    char aside[ASIDE_NAME];
    int r = meta < 0 ? meta : write_meta(m, meta, e);

    if (r == 0)
        r = check_meta(m, meta, &made, e);
    if (r < 0)
        return r;
    aside_name(m->id, aside);
    if (fsync(m->dir) < 0 || renameat(m->worlds, aside, m->worlds, m->id) < 0 ||
        fsync(m->worlds) < 0)
        return err_errno(e, "put the world in its place");
    memcpy(made.id, m->id, sizeof(made.id));
    *ret = made;
    close_all(m);
    return 0;
}

void world_abandon(struct world_making *m)
{
    char aside[ASIDE_NAME];

    if (m->dir < 0)
        return;
    close_all(m);
    aside_name(m->id, aside);
    remove_all(m->worlds, aside);
}
