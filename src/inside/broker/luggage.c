#include "inside/broker/luggage.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

/* Of the kernel's own, not to be asked for again. */
#define FLAGS_DROPPED (O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY)
#define FILES_USUAL   1024 /* what a copy may have open at first (stage/confine.c) */

void luggage_done(struct luggage *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].path);
    free(l->items);
    free(l->cwd);
    *l = (struct luggage){.n = 0};
}

bool luggage_add(struct luggage *l, const struct luggage_item *item)
{
    if (l->n == LUGGAGE_MAX)
        return false;
    if (!l->items)
        l->items = xcalloc(LUGGAGE_MAX, sizeof *l->items);
    l->items[l->n++] = *item;
    return true;
}

static void add_path(struct visit *v, int64_t want, int64_t nr, const char *path, int64_t second)
{
    struct cpu_call c = {.nr = nr, .args = {0, second}};
    int which = 0;

    if (nr == SYS_openat)
        c = (struct cpu_call){.nr = nr, .args = {AT_FDCWD, 0, second}}, which = 1;
    visit_add_data(v, want, &c, which, path, strlen(path) + 1);
}

static void add(struct visit *v, int64_t want, int64_t nr, int64_t a, int64_t b, int64_t c)
{
    visit_add(v, want, &(struct cpu_call){.nr = nr, .args = {a, b, c}});
}

/* free_fd: the number that an opening gets. */
static void add_file(const struct luggage_item *i, int free_fd, struct visit *v)
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

/* From the highest down: the one that has the free number itself is last then. An opening comes
 * before those that are the same as it. */
static void add_files(const struct luggage *l, int free_fd, struct visit *v)
{
    for (size_t n = l->n; n > 0; n--) {
        const struct luggage_item *i = &l->items[n - 1];
        if (i->same < 0)
            add_file(i, free_fd, v);
    }
    for (size_t n = 0; n < l->n; n++) {
        const struct luggage_item *i = &l->items[n];
        if (i->same >= 0)
            add(v, i->fd, SYS_dup3, i->same, i->fd, i->flags & O_CLOEXEC);
    }
}

void luggage_visit_cwd(const char *cwd, struct visit *v)
{
    add_path(v, 0, SYS_chdir, cwd, 0);
}

/* What is the same as 0 to 3 is so already. */
void luggage_visit_own(const struct luggage *l, struct visit *v)
{
    struct luggage files = *l;

    if (l->cwd)
        luggage_visit_cwd(l->cwd, v);
    files.items = xcalloc(l->n + 1, sizeof *files.items);
    files.n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].same < 0 || l->items[i].same >= LUGGAGE_FIRST)
            files.items[files.n++] = l->items[i];
    add_files(&files, l->free_fd, v);
    free(files.items);
}

void luggage_visit_copy(const struct luggage *l, struct visit *v)
{
    struct cpu_call limit = {.nr = SYS_prlimit64, .args = {0, RLIMIT_NOFILE}};

    if (l->n > 0 && l->items[l->n - 1].fd >= FILES_USUAL)
        visit_add_data(v, 0, &limit, 2, &l->files, sizeof l->files);
    add_files(l, LUGGAGE_FIRST, v);
    if (l->cwd)
        add_path(v, VISIT_ANY, SYS_chdir, l->cwd, 0);
}
