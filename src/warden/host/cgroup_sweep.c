/* Sweeping control groups that were left behind: in both layouts, in every hierarchy
 * (cgroup_place.h). */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "lib/base/fd.h"
#include "lib/text/strbuf.h"
#include "warden/host/cgroup.h"
#include "warden/host/cgroup_place.h"

#define NAMES_MAX (4u << 20) /* bytes of a list of names */

/* ---- listing places -------------------------------------------------------------------------- */

struct tops {
    const struct cgroup_ops *ops;
    int fds[CGROUP_TOPS_MAX];
};

static void tops_close(struct tops *t)
{
    for (int k = 0; t->ops && k < CGROUP_TOPS_MAX; k++)
        close_p(&t->fds[k]);
}

/* Makes nothing: in a hierarchy without `sandglass` nothing is left behind. */
static struct tops tops_open(void)
{
    struct tops t = {.ops = cgroup_host(NULL)};

    if (t.ops && t.ops->tops(false, t.fds, NULL) < 0)
        t.ops = NULL;
    return t;
}

static bool is_number(const char *name)
{
    return name[0] != '\0' && name[strspn(name, "0123456789")] == '\0';
}

/* A list is strings one after the other, with an empty one at the end. */
#define FOR_EACH_NAME(name, list) for (const char *name = (list); *name; name += strlen(name) + 1)

/* Lists the directories in a directory. They may go away while the list is used. */
static char *list_dirs(int top, const char *path)
{
    int fd = openat(top, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct strbuf out;
    struct dirent *entry;

    strbuf_init(&out, NAMES_MAX);
    if (!d)
        close_p(&fd);
    while (d && (entry = readdir(d)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            strbuf_add(&out, entry->d_name, strlen(entry->d_name) + 1);
    if (d)
        closedir(d);
    strbuf_addch(&out, '\0');
    return strbuf_detach(&out, NULL);
}

static bool has_name(const char *list, const char *name)
{
    FOR_EACH_NAME(one, list)
    if (strcmp(one, name) == 0)
        return true;
    return false;
}

static void add_name(struct strbuf *list, const char *name)
{
    if (!has_name(list->buf, name))
        strbuf_add(list, name, strlen(name) + 1);
}

/* Lists every place of any hierarchy, tenants before their server. */
static char *list_places(const struct tops *t)
{
    struct strbuf out;

    strbuf_init(&out, NAMES_MAX);
    for (int k = 0; t->ops && k < CGROUP_TOPS_MAX; k++) {
        AUTO(free_p) char *servers = t->fds[k] < 0 ? NULL : list_dirs(t->fds[k], ".");
        for (const char *s = servers; s && *s; s += strlen(s) + 1) {
            if (is_number(s))
                continue;
            AUTO(free_p) char *tenants = list_dirs(t->fds[k], s);
            FOR_EACH_NAME(tenant, tenants)
            {
                char path[CGROUP_PATH_MAX];
                if ((size_t)snprintf(path, sizeof(path), "%s/%s", s, tenant) < sizeof(path))
                    add_name(&out, path);
            }
            add_name(&out, s);
        }
    }
    strbuf_addch(&out, '\0');
    return strbuf_detach(&out, NULL);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* A function that is called for each group of a slot; a slot has at most one in each hierarchy. */
typedef int (*group_action)(const struct cgroup_ops *ops, int top, const char *path);

static int each_path(const struct tops *t, const char *place, uint32_t slot, group_action fn)
{
    char path[CGROUP_PATH_MAX];
    int sum = 0;

    snprintf(path, sizeof(path), place[0] ? "%s/%u" : "%s%u", place, slot);
    for (int k = 0; k < CGROUP_TOPS_MAX; k++) {
        int r = t->fds[k] < 0 ? 0 : fn(t->ops, t->fds[k], path);
        sum = sum < 0 ? sum : r < 0 ? r : sum + r;
    }
    return sum;
}

/* The sum of the results of fn, or its first error. */
static int each_place(const struct tops *t, const char *places, uint32_t slot, group_action fn)
{
    int sum = each_path(t, "", slot, fn);

    FOR_EACH_NAME(place, places)
    {
        int r = strchr(place, '/') ? each_path(t, place, slot, fn) : 0;
        sum = sum < 0 ? sum : r < 0 ? r : sum + r;
    }
    return sum;
}

static int strike_group(const struct cgroup_ops *ops, int top, const char *path)
{
    AUTO(close_p) int dir = openat(top, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return dir >= 0 && ops->strike(dir);
}

static int remove_group(const struct cgroup_ops *ops UNUSED, int top, const char *path)
{
    return cgroup_rmdir(top, path);
}

bool cgroup_strike(uint32_t slot)
{
    AUTO(tops_close) struct tops t = tops_open();
    AUTO(free_p) char *places = list_places(&t);

    return t.ops && each_place(&t, places, slot, strike_group) > 0;
}

int cgroup_sweep(uint32_t slot, struct sg_error *e)
{
    AUTO(tops_close) struct tops t = tops_open();
    AUTO(free_p) char *places = list_places(&t);
    int r;

    if (!t.ops)
        return cgroup_host(e) ? 0 : -ENOSYS;
    for (int tries = 0; tries < 400 && each_place(&t, places, slot, strike_group) > 0; tries++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    r = each_place(&t, places, slot, remove_group);
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "remove the control groups of id range %u: %s", slot,
                       strerror(-r));
    return 0;
}

static void find_in(int top, const char *path, bool *ret, uint32_t max)
{
    AUTO(free_p) char *names = list_dirs(top, path);

    FOR_EACH_NAME(name, names)
    {
        unsigned long slot = is_number(name) ? strtoul(name, NULL, 10) : max;
        if (slot < max)
            ret[slot] = true;
    }
}

void cgroup_find_slots(bool *ret, uint32_t max)
{
    AUTO(tops_close) struct tops t = tops_open();
    AUTO(free_p) char *places = list_places(&t);

    for (int k = 0; t.ops && k < CGROUP_TOPS_MAX; k++) {
        if (t.fds[k] < 0)
            continue;
        find_in(t.fds[k], ".", ret, max);
        FOR_EACH_NAME(place, places)
        if (strchr(place, '/'))
            find_in(t.fds[k], place, ret, max);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Locks a place that belongs to nobody: returns a descriptor of it in the hierarchy of memory, or
 * -1. */
static int lock_place(const struct tops *t, const char *path)
{
    AUTO(close_p)
    int dir = t->fds[0] < 0 ? -1 : openat(t->fds[0], path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0 ? steal_fd(&dir) : -1;
}

bool cgroup_remove_path(const int tops[CGROUP_TOPS_MAX], const char *path)
{
    for (int k = CGROUP_TOPS_MAX - 1; k >= 0; k--)
        if (tops[k] >= 0 && unlinkat(tops[k], path, AT_REMOVEDIR) < 0 && errno != ENOENT)
            return false;
    return true;
}

static bool is_local(const char *place)
{
    size_t n = strlen(CGROUP_LOCAL);

    return strncmp(place, CGROUP_LOCAL, n) == 0 && (place[n] == '/' || place[n] == '\0');
}

/* If a crash left a place in other hierarchies only, it is made in that of memory, to lock it. */
uint32_t cgroup_sweep_places(bool remove)
{
    AUTO(tops_close) struct tops t = tops_open();
    AUTO(free_p) char *places = list_places(&t);
    uint32_t n = 0;

    FOR_EACH_NAME(place, places)
    {
        bool there = t.fds[0] >= 0 && (!remove || cgroup_mkdir(t.fds[0], place) == 0);
        AUTO(close_p) int lock = there ? lock_place(&t, place) : -1;
        n += lock >= 0 && !is_local(place);
        if (lock >= 0 && remove)
            cgroup_remove_path(t.fds, place);
    }
    if (remove && t.ops && t.fds[0] >= 0 && flock(t.fds[0], LOCK_EX | LOCK_NB) == 0)
        t.ops->remove_tops();
    return n;
}
