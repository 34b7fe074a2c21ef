#include "inside/broker/open_files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

/* Flags that only matter when a file is first opened. */
#define FLAGS_DROPPED (O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY)
#define FILES_USUAL   1024 /* the limit of a new copy (stage/confine.c) */

void open_files_done(struct open_files *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].path);
    free(l->items);
    free(l->cwd);
    *l = (struct open_files){.n = 0};
}

bool open_files_add(struct open_files *l, const struct open_file *item)
{
    if (l->n == OPEN_FILES_MAX)
        return false;
    if (!l->items)
        l->items = xcalloc(OPEN_FILES_MAX, sizeof(*l->items));
    l->items[l->n++] = *item;
    return true;
}

static void add_path(struct remote_calls *v, int64_t want, int64_t nr, const char *path,
                     int64_t second)
{
    struct cpu_call c = {.nr = nr, .args = {0, second}};
    int which = 0;

    if (nr == SYS_openat)
        c = (struct cpu_call){.nr = nr, .args = {AT_FDCWD, 0, second}}, which = 1;
    remote_calls_add_data(v, want, &c, which, path, strlen(path) + 1);
}

static void add(struct remote_calls *v, int64_t want, int64_t nr, int64_t a, int64_t b, int64_t c)
{
    remote_calls_add(v, want, &(struct cpu_call){.nr = nr, .args = {a, b, c}});
}

/* free_fd: the number that openat returns. */
static void add_file(const struct open_file *i, int free_fd, struct remote_calls *v)
{
    int flags = i->flags & ~FLAGS_DROPPED;

    add_path(v, free_fd, SYS_openat, i->path, flags);
    if (i->offset != 0)
        add(v, i->offset, SYS_lseek, free_fd, i->offset, SEEK_SET);
    if (i->fd == free_fd)
        return;
    add(v, i->fd, SYS_dup3, free_fd, i->fd, flags & O_CLOEXEC);
    add(v, 0, SYS_close, free_fd, 0, 0);
}

/* Opens files from the highest number down, so that the file whose number is free_fd itself comes
 * last. A file is opened before its duplicates are made. */
static void add_files(const struct open_files *l, int free_fd, struct remote_calls *v)
{
    for (size_t n = l->n; n > 0; n--) {
        const struct open_file *i = &l->items[n - 1];
        if (i->same < 0)
            add_file(i, free_fd, v);
    }
    for (size_t n = 0; n < l->n; n++) {
        const struct open_file *i = &l->items[n];
        if (i->same >= 0)
            add(v, i->fd, SYS_dup3, i->same, i->fd, i->flags & O_CLOEXEC);
    }
}

void open_files_calls_cwd(const char *cwd, struct remote_calls *v)
{
    add_path(v, 0, SYS_chdir, cwd, 0);
}

/* Duplicates of 0 to 3 need nothing: they still are that. */
void open_files_calls_own(const struct open_files *l, struct remote_calls *v)
{
    struct open_files files = *l;

    if (l->cwd)
        open_files_calls_cwd(l->cwd, v);
    files.items = xcalloc(l->n + 1, sizeof(*files.items));
    files.n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].same < 0 || l->items[i].same >= OPEN_FILES_FIRST)
            files.items[files.n++] = l->items[i];
    add_files(&files, l->free_fd, v);
    free(files.items);
}

void open_files_calls_copy(const struct open_files *l, struct remote_calls *v)
{
    struct cpu_call limit = {.nr = SYS_prlimit64, .args = {0, RLIMIT_NOFILE}};

    if (l->n > 0 && l->items[l->n - 1].fd >= FILES_USUAL)
        remote_calls_add_data(v, 0, &limit, 2, &l->files, sizeof(l->files));
    add_files(l, OPEN_FILES_FIRST, v);
    if (l->cwd)
        add_path(v, REMOTE_CALLS_ANY, SYS_chdir, l->cwd, 0);
}
