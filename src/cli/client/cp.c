/* sandglass cp: copies files and directories to and from a sandbox.
 *
 * Names that come from a sandbox are hostile: each must be one plain component, and files are
 * created relative to an open directory, without following links. Links and special files inside a
 * directory are left out in both directions, because the user did not ask for what a link leads
 * to. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/command/ui.h"
#include "cli/client/interrupt.h"
#include "cli/client/local_file.h"
#include "cli/client/place.h"
#include "cli/client/remote_file.h"

#define DEPTH_MAX 100

struct cp_options {
    struct client_common common;
    const char *args[2];
    size_t n_args;
    const char *user;
    bool quiet, recursive;
};

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct cp_options *o = self;

    if (o->n_args == ARRAY_SIZE(o->args))
        return err_invalid(e, "unexpected argument '%.64s': cp SRC DST", arg);
    if (!*arg)
        return err_invalid(e, "the name of a file is empty");
    o->args[o->n_args++] = arg;
    return 0;
}

static int check(void *self, char **rest UNUSED, struct sg_error *e)
{
    const struct cp_options *o = self;
    AUTO(place_done) struct place from = {0}, to = {0};

    if (o->n_args < ARRAY_SIZE(o->args))
        return err_invalid(e, "cp needs two places: SRC DST, one of them ID:PATH");
    place_parse(&from, o->args[0]);
    place_parse(&to, o->args[1]);
    if (!from.id && !to.id)
        return err_invalid(e, "neither '%.64s' nor '%.64s' is in a sandbox: write ID:PATH",
                           o->args[0], o->args[1]);
    if (from.id && to.id)
        return err_invalid(e, "both places are in sandboxes: copy to this machine first");
    return 0;
}

static const struct cli_option options[] = {
    {"user", 'u', "NAME", "user whose files they are in the sandbox",
     CLI_AT(client_user, cp_options, user)},
    {"recursive", 'r', NULL, "directories too, which they always are",
     CLI_FLAG(cp_options, recursive)},
    {"quiet", 'q', NULL, "no progress and no notes", CLI_FLAG(cp_options, quiet)},
    CLIENT_OPTIONS,
};

/* ---- directories ----------------------------------------------------------------------------- */

struct copy {
    struct remote remote;
    struct progress progress;
    uint64_t left_out; /* count of links and special files */
};

static int check_depth(unsigned depth, const char *path, struct sg_error *e)
{
    if (interrupt_signal())
        return err_set(e, SG_ERR_INTERNAL, -EINTR, "interrupted");
    if (depth > DEPTH_MAX)
        return err_set(e, SG_ERR_LIMIT, -ELOOP, "'%.128s' lies more than %d directories deep", path,
                       DEPTH_MAX);
    return 0;
}

static void close_dir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* ---- directories to the sandbox -------------------------------------------------------------- */

static int dir_up(struct copy *c, int dirfd, const char *to, unsigned depth, struct sg_error *e);

static int entry_up(struct copy *c, int dirfd, const char *name, const char *to, unsigned depth,
                    struct sg_error *e)
{
    AUTO(free_p) char *path = place_join(to, name);
    AUTO(close_p) int fd = -1;
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, "cannot stat '%.128s'", name);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        c->left_out++;
        return 0;
    }
    fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "cannot open '%.128s'", name);
    if (S_ISDIR(st.st_mode))
        return dir_up(c, fd, path, depth + 1, e);
    c->progress.files++;
    return err_wrap(e, remote_upload(&c->remote, path, fd, (uint64_t)st.st_size, e), "'%.128s'",
                    name);
}

static int dir_up(struct copy *c, int dirfd, const char *to, unsigned depth, struct sg_error *e)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(close_dir_p) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    int r = check_depth(depth, to, e);

    if (r == 0)
        r = remote_make_dir(&c->remote, to, e);
    if (r < 0)
        return r;
    if (!dir)
        return err_errno(e, "cannot read the directory for '%.128s'", to);
    while (r == 0 && (entry = readdir(dir)))
        if (place_is_name(entry->d_name))
            r = entry_up(c, dirfd, entry->d_name, to, depth, e);
    return r;
}

/* ---- directories from the sandbox ------------------------------------------------------------ */

static int file_down(struct copy *c, const char *from, int dirfd, const char *name, unsigned mode,
                     bool follow, struct sg_error *e)
{
    struct local_file file;
    int r = local_file_open(&file, dirfd, name, follow, e);

    if (r < 0)
        return r;
    r = remote_download(&c->remote, from, file.fd, e);
    if (r == 0)
        r = local_file_keep(&file, mode, e);
    local_file_done(&file);
    return r;
}

struct dir_down {
    struct copy *copy;
    const char *from;
    int dirfd;
    unsigned depth;
};

static int list_down(struct dir_down *d, struct sg_error *e);

static int subdir_down(const struct dir_down *d, const char *name, const char *from,
                       struct sg_error *e)
{
    AUTO(close_p) int fd = -1;

    if (mkdirat(d->dirfd, name, 0777) < 0 && errno != EEXIST)
        return err_errno(e, "cannot make the directory '%.128s'", name);
    fd = openat(d->dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "cannot open the directory '%.128s'", name);
    struct dir_down below = {d->copy, from, fd, d->depth + 1};
    return list_down(&below, e);
}

static int entry_down(void *arg, const struct remote_entry *entry, struct sg_error *e)
{
    const struct dir_down *d = arg;
    AUTO(free_p) char *from = place_join(d->from, entry->name);

    if (!place_is_name(entry->name))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "'%.128s' has an entry with an invalid name: copying stops", d->from);
    if (entry->is_link || entry->type == REMOTE_OTHER) {
        d->copy->left_out++;
        return 0;
    }
    if (entry->type == REMOTE_DIR)
        return subdir_down(d, entry->name, from, e);
    d->copy->progress.files++;
    return file_down(d->copy, from, d->dirfd, entry->name, entry->mode, false, e);
}

static int list_down(struct dir_down *d, struct sg_error *e)
{
    int r = check_depth(d->depth, d->from, e);

    return r < 0 ? r : remote_list(&d->copy->remote, d->from, entry_down, d, e);
}

/* ---- to the sandbox -------------------------------------------------------------------------- */

/* Decides where the copy of `name` goes: into `to` if that is a directory, else to `to` itself. */
static int remote_target(struct copy *c, const char *to, const char *name, char **ret,
                         struct sg_error *e)
{
    struct remote_entry entry = {.type = REMOTE_DIR};
    int r = place_ends_in_slash(to) ? 0 : remote_stat(&c->remote, to, &entry, e);

    if (r < 0 && r != -ENOENT)
        return r;
    bool below = r == 0 && entry.type == REMOTE_DIR;
    *ret = below ? place_join(to, name) : xstrdup(to);
    return 0;
}

static int stream_up(struct copy *c, const char *to, struct sg_error *e)
{
    struct remote_entry entry;

    if (place_ends_in_slash(to) ||
        (remote_stat(&c->remote, to, &entry, NULL) == 0 && entry.type == REMOTE_DIR))
        return err_set(e, SG_ERR_INVALID, -EISDIR,
                       "'%.128s' is a directory: name the file that standard input becomes", to);
    return remote_upload(&c->remote, to, STDIN_FILENO, REMOTE_SIZE_UNKNOWN, e);
}

static int up(struct copy *c, const char *from, const char *to, struct sg_error *e)
{
    AUTO(free_p) char *name = place_last_name(from), *target = NULL;
    AUTO(close_p) int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "cannot open '%.128s'", from);
    int r = remote_target(c, to, name, &target, e);
    if (r < 0)
        return r;
    if (S_ISDIR(st.st_mode))
        return dir_up(c, fd, target, 0, e);
    if (!S_ISREG(st.st_mode))
        return remote_upload(&c->remote, target, fd, REMOTE_SIZE_UNKNOWN, e);
    c->progress.total = (uint64_t)st.st_size;
    return remote_upload(&c->remote, target, fd, (uint64_t)st.st_size, e);
}

/* ---- from the sandbox ------------------------------------------------------------------------ */

static char *local_target(const char *to, const char *name)
{
    struct stat st;
    bool below = place_ends_in_slash(to) || (stat(to, &st) == 0 && S_ISDIR(st.st_mode));

    return below ? place_join(to, name) : xstrdup(to);
}

static int tree_down(struct copy *c, const char *from, const char *target, struct sg_error *e)
{
    AUTO(close_p) int fd = -1;

    if (mkdir(target, 0777) < 0 && errno != EEXIST)
        return err_errno(e, "cannot make the directory '%.128s'", target);
    fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "cannot open the directory '%.128s'", target);
    return list_down(&(struct dir_down){c, from, fd, 0}, e);
}

static int down(struct copy *c, const char *from, const struct place *to, struct sg_error *e)
{
    AUTO(free_p) char *name = place_last_name(from), *target = local_target(to->path, name);
    struct remote_entry entry;
    int r = remote_stat(&c->remote, from, &entry, e);

    if (r < 0)
        return r;
    if (entry.type == REMOTE_OTHER)
        return err_invalid(e, "'%.128s' is neither a file nor a directory", from);
    if (entry.type == REMOTE_DIR && place_is_stream(to))
        return err_set(e, SG_ERR_INVALID, -EISDIR,
                       "'%.128s' is a directory: only a file can go to standard output", from);
    if (entry.type == REMOTE_DIR)
        return tree_down(c, from, target, e);
    c->progress.total = entry.size;
    if (place_is_stream(to))
        return remote_download(&c->remote, from, STDOUT_FILENO, e);
    return file_down(c, from, AT_FDCWD, target, entry.mode, true, e);
}

static int copy(struct copy *c, const struct place *from, const struct place *to,
                struct sg_error *e)
{
    if (from->id)
        return down(c, from->path, to, e);
    return place_is_stream(from) ? stream_up(c, to->path, e) : up(c, from->path, to->path, e);
}

static int cp_fn(struct client *client, void *self, struct sg_error *e)
{
    AUTO(place_done) struct place from = {0}, to = {0};
    AUTO(sandbox_close) struct sandbox sandbox = {0};
    AUTO(free_p) char *name = NULL;
    const struct cp_options *o = self;
    struct copy c = {.remote = {.sandbox = &sandbox, .user = o->user}};

    c.remote.progress = &c.progress;
    place_parse(&from, o->args[0]);
    place_parse(&to, o->args[1]);
    name = place_last_name(place_is_stream(&from) ? to.path : from.path);
    interrupt_watch();
    int r = sandbox_open(&sandbox, client, from.id ? from.id : to.id, o->user, e);
    progress_init(&c.progress, name, 0, o->quiet);
    if (r == 0)
        r = copy(&c, &from, &to, e);
    progress_clear(&c.progress);
    if (r == 0 && c.left_out > 0 && !o->quiet)
        ui_note("%llu link%s or special file%s left out", (unsigned long long)c.left_out,
                c.left_out == 1 ? "" : "s", c.left_out == 1 ? "" : "s");
    return r;
}

const struct client_verb cp_verb = {
    .name = "cp",
    .usage = "[OPTION]... SRC ID:DST\n[OPTION]... ID:SRC DST",
    .about = "Copies files and directories to and from a sandbox. '-' is standard input or "
             "output.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), positional, 0},
    .options_size = sizeof(struct cp_options),
    .check = check,
    .fn = cp_fn,
};
