#include "warden/twin/mapping.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"

#define MAPS_MAX  (16u << 20)
#define SMAPS_MAX (64u << 20)

/* From Linux 6.11 on, /proc/PID/maps can be asked. The list as text is long, and slow to make. */
struct map_query {
    uint64_t size, flags, at, start, end, vma_flags, page_size, offset, inode;
    uint32_t major, minor, name_size, build_id_size;
    uint64_t name, build_id;
};
#define MAP_QUERY     _IOWR('f', 17, struct map_query)
#define WITH_SHARED   0x08u
#define COVER_OR_NEXT 0x10u

/* The kernel's own name for memory that is shared by descent only. */
static const char nameless[] = "/dev/zero (deleted)";

/* A mapping that cannot be written now, of a file that was opened for writing, can be made so. It
 * takes the kernel long to say that: it counts all pages along with it. */
static bool may_become_writable(int dir, const char *range)
{
    AUTO(free_p) char *text = NULL;
    const char *at, *end;

    if (file_read(dir, "smaps", SMAPS_MAX, &text, NULL) < 0)
        return true;
    for (at = strstr(text, range); at && at != text && at[-1] != '\n';)
        at = strstr(at + 1, range);
    at = at ? strstr(at, "\nVmFlags:") : NULL;
    end = at ? strchr(at + 1, '\n') : NULL;
    return !end || memmem(at, (size_t)(end - at), " mw", 3);
}

/* How the file was opened is also how its link looks; but the kernel may remember the link from
 * another mapping that was there before. What it tells wrongly this way round is noticed when the
 * files are frozen. */
static void judge(int dir, struct mapping *m)
{
    char path[64], *range = path + sizeof "map_files";
    struct stat st;

    m->anonymous = strcmp(m->name, nameless) == 0;
    m->writable = (m->prot & PROT_WRITE) != 0;
    if (m->writable || m->anonymous)
        return;
    snprintf(path, sizeof path, "map_files/%llx-%llx", (unsigned long long)m->start,
             (unsigned long long)m->end);
    if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !(st.st_mode & S_IWUSR))
        return;
    snprintf(range, 40, "%08llx-%08llx ", (unsigned long long)m->start, (unsigned long long)m->end);
    m->writable = may_become_writable(dir, range);
}

static int ask_each(int dir, int maps, int (*fn)(const struct mapping *m, void *arg), void *arg)
{
    struct mapping m;
    uint64_t at = 0;
    int r = 0;

    while (r == 0) {
        struct map_query q = {.size = sizeof q,
                              .flags = WITH_SHARED | COVER_OR_NEXT,
                              .at = at,
                              .name = (uint64_t)(uintptr_t)m.name,
                              .name_size = sizeof m.name};
        if (ioctl(maps, MAP_QUERY, &q) < 0)
            return errno == ENOENT ? 0 : -errno;
        m.name[q.name_size ? sizeof m.name - 1 : 0] = '\0';
        m.start = q.start;
        m.end = at = q.end;
        m.prot = (int)(q.vma_flags & (PROT_READ | PROT_WRITE | PROT_EXEC));
        judge(dir, &m);
        r = fn(&m, arg);
    }
    return r;
}

/* The path is what is left of the line. */
static bool parse(const char *line, struct mapping *ret)
{
    unsigned long long start, end;
    char perms[5];
    int at = 0;

    if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %*u %n", &start, &end, perms, &at) != 3 ||
        at == 0 || perms[3] != 's')
        return false;
    ret->start = start;
    ret->end = end;
    ret->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
                (perms[2] == 'x' ? PROT_EXEC : 0);
    snprintf(ret->name, sizeof ret->name, "%s", line + at);
    return true;
}

static int read_each(int dir, int (*fn)(const struct mapping *m, void *arg), void *arg)
{
    AUTO(free_p) char *text = NULL;
    struct mapping m;
    int r = file_read(dir, "maps", MAPS_MAX, &text, NULL);

    for (char *line = text, *next; r == 0 && line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (!parse(line, &m))
            continue;
        judge(dir, &m);
        r = fn(&m, arg);
    }
    return r;
}

int mapping_each_shared(int dir, int (*fn)(const struct mapping *m, void *arg), void *arg)
{
    AUTO(close_p) int maps = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
    int r = maps < 0 ? -errno : ask_each(dir, maps, fn, arg);

    return r == -ENOTTY ? read_each(dir, fn, arg) : r;
}
