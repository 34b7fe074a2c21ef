/* Makes a backup. */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "front/backup/manifest.h"
#include "front/backup/place.h"
#include "lib/base/clock.h"
#include "lib/base/fds.h"
#include "lib/base/fd.h"

#define COPY_PREFIX "backup" /* of the database's copy, which is made beside the database */
#define FILE_MAX    UINT64_MAX

struct writing {
    int state, to;
    struct map same;
    struct manifest m;
    const struct backup_watch *watch;
    const char *what;
    bool volumes;
    struct sg_error *e;
};

static void on_bytes(void *arg, uint64_t bytes)
{
    struct writing *w = arg;

    w->watch->progress(w->watch->arg, w->what, bytes);
}

/* ---- the database ---------------------------------------------------------------------------- */

/* Copies the database in a child process, as the user who owns the file: whatever that user has put
 * into the directory cannot make root write elsewhere. */
static _Noreturn void copy_as_owner(int front, const struct stat *owner, const char *name, int told)
{
    struct sg_error e = {0};
    int r = 0;

    if (fchdir(front) < 0)
        r = err_errno(&e, "enter 'front'");
    if (r == 0 && owner->st_uid != geteuid() &&
        (setgroups(0, NULL) < 0 || setresgid(owner->st_gid, owner->st_gid, owner->st_gid) < 0 ||
         setresuid(owner->st_uid, owner->st_uid, owner->st_uid) < 0))
        r = err_errno(&e, "become user %u, who owns the database", owner->st_uid);
    if (r == 0)
        r = store_copy(".", name, &e);
    if (r < 0 && write(told, e.message, strlen(e.message)) < 0)
        _exit(2);
    _exit(r < 0);
}

static int copy_database(int front, const char *name, struct sg_error *e)
{
    AUTO(free_p) char *message = NULL;
    int ends[2], status = 0;
    struct stat owner;

    if (fstat(front, &owner) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, "copy the database");
    pid_t pid = fork();
    if (pid == 0)
        copy_as_owner(front, &owner, name, ends[1]);
    close(ends[1]);
    if (pid > 0)
        fd_read_all(ends[0], 4096, &message, NULL);
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return err_errno(e, "copy the database");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(e, SG_ERR_INTERNAL, -EIO, "%.400s",
                   message && message[0] ? message : "the copy of the database was interrupted");
}

/* Removes the copies of earlier backups that were killed. */
static void remove_stale(int front)
{
    AUTO(tree_names_free) struct tree_names names = {0};

    tree_names(front, &names);
    for (size_t i = 0; i < names.n; i++)
        if (strncmp(names.at[i], COPY_PREFIX "-", strlen(COPY_PREFIX) + 1) == 0)
            unlinkat(front, names.at[i], 0);
}

/* Whether a backup takes this file: keys, certificates, and the record of what left sandboxes. */
static bool is_kept_file(const char *name)
{
    static const char *const ends[] = {".key", ".pem", ".pub", ".jsonl"};
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (len > strlen(ends[i]) && strcmp(name + len - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* The length of the whole lines in a file that another process appends to. */
static uint64_t whole_lines(int dir, const char *name)
{
    AUTO(close_p) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    char c = '\0';

    while (size > 0 && pread(fd, &c, 1, size - 1) == 1 && c != '\n')
        size--;
    return size > 0 ? (uint64_t)size : 0;
}

static int copy_files(int from, int to, struct sg_error *e)
{
    AUTO(tree_names_free) struct tree_names names = {0};
    int r = tree_names(from, &names);

    if (r < 0)
        return err_code(e, r, "list the files of the server");
    for (size_t i = 0; r == 0 && i < names.n; i++) {
        const char *name = names.at[i];
        bool lines = strstr(name, ".jsonl") != NULL;
        struct tree_sum sum;

        if (!is_kept_file(name))
            continue;
        r = tree_file(from, name, to, name, lines ? whole_lines(from, name) : FILE_MAX, &sum, e);
        if (r == -ENOENT) /* the guard may remove the oldest file of the record at any time */
            r = 0;
    }
    return r;
}

static int sum_part(struct writing *w, const char *path)
{
    AUTO(close_p) int dir = place_open(w->to, path, w->e);
    struct tree_pass pass = {.from = dir, .to = -1};
    struct tree_sum sum;
    int r = dir < 0 ? dir : tree_pass(&pass, &sum, w->e);

    if (r == 0)
        manifest_add(&w->m, path, &sum);
    return r;
}

static int write_front(struct writing *w, int from, int to)
{
    char name[ID_LEN + 16];
    struct tree_sum sum;

    remove_stale(from);
    place_name(COPY_PREFIX, name);
    w->what = "database";
    int r = copy_database(from, name, w->e);
    if (r == 0)
        r = tree_file(from, name, to, "server.db", FILE_MAX, &sum, w->e);
    unlinkat(from, name, 0);
    if (r == 0)
        on_bytes(w, sum.bytes);
    return r < 0 ? r : copy_files(from, to, w->e);
}

/* Copies each tenant's own record, after the common record: the common one notes how far the
 * tenants' had come. */
static int copy_tenants(int from, int to, struct sg_error *e)
{
    AUTO(tree_names_free) struct tree_names names = {0};
    int r = tree_names(from, &names);

    if (r < 0)
        return err_code(e, r, "list the tenants of the record");
    for (size_t i = 0; r == 0 && i < names.n; i++) {
        if (!id_valid(names.at[i]))
            continue;
        AUTO(close_p) int one = place_open(from, names.at[i], e);
        AUTO(close_p) int copy = one < 0 ? -1 : place_make(to, names.at[i], 0700, e);
        r = copy < 0 ? -EIO : copy_files(one, copy, e);
    }
    return r;
}

static int write_guard(struct writing *w)
{
    AUTO(close_p) int from = place_open(w->state, "guard", w->e);
    AUTO(close_p) int to = from < 0 ? -1 : place_make(w->to, "guard", 0700, w->e);
    AUTO(close_p)
    int audit =
        to < 0 ? -1 : openat(from, "audit", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(close_p) int to_audit = to < 0 ? -1 : place_make(to, "audit", 0700, w->e);

    if (to_audit < 0)
        return -EIO;
    int r = copy_files(from, to, w->e);
    if (r == 0 && audit >= 0)
        r = copy_files(audit, to_audit, w->e);
    if (r == 0 && audit >= 0)
        r = copy_tenants(audit, to_audit, w->e);
    return r < 0 ? r : sum_part(w, "guard");
}

/* ---- layers ---------------------------------------------------------------------------------- */

struct snapshots {
    struct writing *w;
    int from, to;
    int worlds, to_worlds;
};

static void leave_out(struct writing *w, const char *what, const char *id, const char *why)
{
    struct backup_report *r = &w->m.report;

    if (r->n_left < BACKUP_LEFT_MAX) {
        r->left[r->n_left].what = what;
        snprintf(r->left[r->n_left].id, sizeof(r->left[0].id), "%s", id);
        snprintf(r->left[r->n_left].why, sizeof(r->left[0].why), "%.150s", why);
    }
    r->n_left++;
}

static bool same_dir(int fd, int parent, const char *name)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && fstatat(parent, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Opens the directory of STATE/layers that has the snapshot (warden/sandboxes/snapshot.h); -1: none
 * has it. In a backup, all are side by side: the server that it is restored to sorts them again.
 * ret_world: that it stands on, or "". */
static int open_family(int layers, const char *id, char ret_world[ID_LEN + 1])
{
    AUTO(tree_names_free) struct tree_names names = {0};

    tree_names(layers, &names);
    for (size_t i = 0; i < names.n; i++) {
        AUTO(close_p)
        int family = openat(layers, names.at[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (names.at[i][0] != '.' && family >= 0 &&
            faccessat(family, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            const char *dot = strchr(names.at[i], '.');

            snprintf(ret_world, ID_LEN + 1, "%s", dot ? dot + 1 : "");
            return steal_fd(&family);
        }
    }
    return -1;
}

/* Its template may have been deleted, while snapshots stand on it (warden/sandboxes/snapshot.h). */
static int open_world(int worlds, const char *id)
{
    char gone[ID_LEN + 8];
    int fd = openat(worlds, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    snprintf(gone, sizeof(gone), "gone-%s", id);
    return fd >= 0 ? fd : openat(worlds, gone, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Copies a world, unless it was copied already; others may stand on it too. */
static int write_world(const struct snapshots *l, const char *id, struct sg_error *e)
{
    AUTO(close_p) int from = open_world(l->worlds, id), to = -1;
    struct tree_pass pass = {.from = from, .same = &l->w->same, .progress = on_bytes, .arg = l->w};
    char path[ID_LEN + 16];
    struct tree_sum sum;
    int r;

    if (from < 0)
        return err_errno(e, "open the world '%s'", id);
    if (faccessat(l->to_worlds, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    l->w->what = "worlds";
    r = pass.to = to = place_make(l->to_worlds, id, 0700, e);
    if (r >= 0)
        r = tree_pass(&pass, &sum, e);
    if (r < 0) {
        tree_drop(l->to_worlds, id);
        return r;
    }
    snprintf(path, sizeof(path), "worlds/%s", id);
    manifest_add(&l->w->m, path, &sum);
    return 0;
}

/* A template that is itself a world. */
static bool write_template(const struct snapshots *l, const char *id)
{
    struct sg_error e = {0};

    if (faccessat(l->worlds, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (write_world(l, id, &e) < 0) {
        leave_out(l->w, "snapshot", id, e.message);
        return false;
    }
    l->w->m.report.n_snapshots++;
    return true;
}

/* Copies the layer of a snapshot. One tenant's files must not prevent the backup of all others: a
 * layer that cannot be copied is left out and reported. A snapshot that was deleted since the
 * database was copied does not count as left out. */
static bool write_snapshot(const char *id, void *arg)
{
    struct snapshots *l = arg;
    struct sg_error e = {0};
    char world[ID_LEN + 1] = "", name[2 * ID_LEN + 2], path[2 * ID_LEN + 16];
    AUTO(close_p) int family = open_family(l->from, id, world);
    AUTO(close_p)
    int from = openat(family, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(close_p) int to = -1;

    if (from < 0)
        return write_template(l, id);
    snprintf(name, sizeof(name), "%s%s%s", id, world[0] ? "." : "", world);
    int r = world[0] ? write_world(l, world, &e) : 0;
    if (r == 0)
        r = to = place_make(l->to, name, 0700, &e);
    struct tree_pass pass = {
        .from = from, .to = to, .same = &l->w->same, .progress = on_bytes, .arg = l->w};
    struct tree_sum sum;

    l->w->what = "snapshots";
    if (r >= 0)
        r = tree_pass(&pass, &sum, &e);
    bool still = same_dir(from, family, id);
    if (r == 0 && still) {
        snprintf(path, sizeof(path), "layers/%s", name);
        manifest_add(&l->w->m, path, &sum);
        l->w->m.report.n_snapshots++;
        return true;
    }
    tree_drop(l->to, name);
    if (still)
        leave_out(l->w, "snapshot", id, e.message);
    return false;
}

static int write_snapshots(struct writing *w, struct store *copy)
{
    AUTO(close_p) int from = place_open(w->state, "layers", w->e);
    AUTO(close_p) int to = from < 0 ? -1 : place_make(w->to, "layers", 0700, w->e);
    /* A server of an older version has none. */
    AUTO(close_p)
    int worlds = openat(w->state, "worlds", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(close_p) int to_worlds = to < 0 ? -1 : place_make(w->to, "worlds", 0700, w->e);
    struct snapshots l = {.w = w, .from = from, .to = to, .worlds = worlds, .to_worlds = to_worlds};

    if (to_worlds < 0)
        return -EIO;
    int r = store_copied_snapshots(copy, write_snapshot, &l, w->e);
    w->m.report.facts.snapshots = w->m.report.n_snapshots;
    return r;
}

/* ---- volumes --------------------------------------------------------------------------------- */

struct volumes {
    struct writing *w;
    int from, to;
};

/* Copies the files, then takes the checksum of the copy. */
static int copy_volume(struct writing *w, int from, int to, struct tree_sum *ret,
                       struct sg_error *e)
{
    struct map links = {0}, seen = {0};
    struct tree_pass pass = {
        .from = from, .to = to, .same = &links, .live = true, .progress = on_bytes, .arg = w};
    struct tree_pass again = {.from = to, .to = -1, .same = &seen};
    struct tree_sum live;
    int r = tree_pass(&pass, &live, e);

    if (r == 0)
        r = tree_pass(&again, ret, e);
    if (r == 0)
        w->m.report.torn += live.torn;
    tree_links_free(&links);
    tree_links_free(&seen);
    return r;
}

/* As with snapshots: one that cannot be copied is left out, and one that was removed meanwhile, or is
 * missing after a power failure, does not count as left out. */
static bool write_volume(const char *tenant, const char *id, void *arg)
{
    struct volumes *v = arg;
    char name[2 * ID_LEN + 2], path[sizeof(name) + sizeof(PART_VOLUMES)];
    struct tree_sum sum;
    struct sg_error e = {0};

    snprintf(name, sizeof(name), "%s/%s", tenant, id);
    AUTO(close_p)
    int from = openat(v->from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), to = -1;
    if (from < 0)
        return false;
    v->w->what = "volumes";
    int r = mkdirat(v->to, tenant, 0700) < 0 && errno != EEXIST
                ? err_errno(&e, "make the directory '%s'", tenant)
                : 0;
    if (r == 0)
        r = to = place_make(v->to, name, 0700, &e);
    if (r >= 0)
        r = copy_volume(v->w, from, to, &sum, &e);
    bool still = same_dir(from, v->from, name);
    if (r == 0 && still) {
        snprintf(path, sizeof(path), PART_VOLUMES "/%s", name);
        manifest_add(&v->w->m, path, &sum);
        v->w->m.report.n_volumes++;
        return true;
    }
    tree_drop(v->to, name);
    if (still)
        leave_out(v->w, "volume", id, e.message);
    return false;
}

static int write_volumes(struct writing *w, struct store *copy)
{
    struct backup_report *report = &w->m.report;
    /* A server of an older version has none. */
    AUTO(close_p)
    int from = openat(w->state, PART_VOLUMES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(close_p) int to = place_make(w->to, PART_VOLUMES, 0700, w->e);
    struct volumes v = {.w = w, .from = from, .to = to};

    if (to < 0)
        return to;
    report->volumes_left = w->volumes ? 0 : report->facts.volumes;
    int r = store_copied_volumes(copy, w->volumes ? write_volume : NULL, &v, w->e);
    report->facts.volumes = report->n_volumes;
    return r;
}

static int write_named(struct writing *w, const char *front)
{
    struct store *copy = NULL;
    int r = store_copied_open(front, &copy, &w->m.report.facts, w->e);

    if (r == 0)
        r = write_snapshots(w, copy);
    if (r == 0)
        r = write_volumes(w, copy);
    store_close(copy);
    return r;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int write_parts(struct writing *w)
{
    AUTO(close_p) int front = place_open(w->state, "front", w->e);
    AUTO(close_p) int to = front < 0 ? -1 : place_make(w->to, "front", 0700, w->e);
    char path[64];

    if (to < 0)
        return -EIO;
    int r = write_front(w, front, to);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
    if (r == 0)
        r = write_named(w, path);
    if (r == 0)
        r = sum_part(w, "front");
    if (r == 0)
        r = write_guard(w);
    if (r == 0)
        r = manifest_write(&w->m, w->to, w->e);
    if (r == 0 && syncfs(w->to) < 0)
        r = err_errno(w->e, "write the backup to disk");
    return r;
}

static int write_aside(const char *state, int parent, const char *aside, bool volumes,
                       const struct backup_watch *watch, struct backup_report *ret,
                       struct sg_error *e)
{
    struct writing w = {.state = -1, .to = -1, .watch = watch, .volumes = volumes, .e = e};

    snprintf(w.m.report.version, sizeof(w.m.report.version), "%s", SG_VERSION);
    clock_text(clock_wall_ms(), w.m.report.created);
    int r = w.state = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r < 0)
        return err_errno(e, "open the state directory '%.200s'", state);
    r = w.to = place_make(parent, aside, 0700, e);
    if (r >= 0)
        r = write_parts(&w);
    tree_links_free(&w.same);
    *ret = w.m.report;
    manifest_done(&w.m);
    close_p(&w.to);
    close_p(&w.state);
    return r < 0 ? r : 0;
}

int backup_write(const char *state, const char *dest, bool volumes,
                 const struct backup_watch *watch, struct backup_report *ret, struct sg_error *e)
{
    AUTO(close_p) int parent = -1;
    char aside[ID_LEN + 16];
    const char *name;
    struct stat st;
    int r = place_parent(dest, &parent, &name, e);

    if (r < 0)
        return r;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(e, SG_ERR_INVALID, -EEXIST, "'%.200s' already exists: name a new directory",
                       dest);
    fds_raise_limit(); /* a tree may be deep */
    umask(0);
    place_name(".backup", aside);
    r = write_aside(state, parent, aside, volumes, watch, ret, e);
    if (r == 0 && renameat2(parent, aside, parent, name, RENAME_NOREPLACE) < 0)
        r = err_errno(e, "name the backup '%.200s'", dest);
    if (r < 0)
        tree_drop(parent, aside);
    else
        fsync(parent);
    return r;
}
