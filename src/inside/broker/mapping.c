#include "inside/broker/mapping.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/fd.h"

#define MAPS_MAX  (16u << 20)
#define SMAPS_MAX (64u << 20)

/* From Linux 6.11 on, an ioctl on /proc/PID/maps answers for one mapping. The list as text is long,
 * and slow to make. */
struct map_query {
    uint64_t size, flags, at, start, end, vma_flags, page_size, offset, inode;
    uint32_t major, minor, name_size, build_id_size;
    uint64_t name, build_id;
};
#define MAP_QUERY     _IOWR('f', 17, struct map_query)
#define IS_SHARED     0x08u
#define COVER_OR_NEXT 0x10u
#define OF_FILES      0x20u

/* Linux's name for shared memory that only descendants can have. */
static const char nameless[] = "/dev/zero (deleted)";

/* The device of all memory files without a name, whoever made them. */
static dev_t memory_device(void)
{
    static dev_t device;
    struct stat st;

    if (device == 0) {
        AUTO(close_p) int fd = memfd_create("sandglass-look", MFD_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0)
            device = st.st_dev;
    }
    return device;
}

/* Memory files with huge pages have another device, so names are checked too. */
static bool is_memory(const struct mapping *m, dev_t device)
{
    static const char *const names[] = {"/memfd:", "/SYSV", "/anon_hugepage"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strncmp(m->name, names[i], strlen(names[i])) == 0)
            return true;
    return device == memory_device() && !m->anonymous;
}

/* A read-only mapping can be made writable if its file was opened for writing. Linux takes long to
 * tell, because it counts all pages of the mapping as well. */
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

/* The mode of the link in map_files shows how the file was opened. But Linux may have cached the
 * link from an earlier mapping at that place. If it wrongly says "read-only", freezing the files
 * finds the mistake. */
static void judge(int dir, dev_t device, struct mapping *m)
{
    char path[64], *range = path + sizeof("map_files");
    struct stat st;

    m->anonymous = device == memory_device() && strcmp(m->name, nameless) == 0;
    m->memory = is_memory(m, device);
    m->writable = (m->prot & PROT_WRITE) != 0;
    if (m->writable || m->anonymous || m->memory || !m->shared)
        return;
    snprintf(path, sizeof(path), "map_files/%llx-%llx", (unsigned long long)m->start,
             (unsigned long long)m->end);
    if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !(st.st_mode & S_IWUSR))
        return;
    snprintf(range, 40, "%08llx-%08llx ", (unsigned long long)m->start, (unsigned long long)m->end);
    m->writable = may_become_writable(dir, range);
}

/* Asks for the name only where it matters: it takes longer than everything else. */
static int ask_name(int maps, struct mapping *m)
{
    struct map_query q = {.size = sizeof(q),
                          .at = m->start,
                          .name = (uint64_t)(uintptr_t)m->name,
                          .name_size = sizeof(m->name)};

    if (ioctl(maps, MAP_QUERY, &q) < 0)
        return -errno;
    m->name[q.name_size ? sizeof(m->name) - 1 : 0] = '\0';
    return 0;
}

static int ask_each(int dir, int maps, int (*fn)(const struct mapping *m, void *arg), void *arg)
{
    struct mapping m;
    uint64_t at = 0;
    int r = 0;

    while (r == 0) {
        struct map_query q = {.size = sizeof(q), .flags = OF_FILES | COVER_OR_NEXT, .at = at};
        dev_t device;

        if (ioctl(maps, MAP_QUERY, &q) < 0)
            return errno == ENOENT ? 0 : -errno;
        at = q.end;
        device = makedev(q.major, q.minor);
        m.shared = (q.vma_flags & IS_SHARED) != 0;
        if (!m.shared && device != memory_device())
            continue;
        m.start = q.start;
        m.end = q.end;
        m.prot = (int)(q.vma_flags & (PROT_READ | PROT_WRITE | PROT_EXEC));
        r = ask_name(maps, &m);
        if (r < 0)
            break;
        judge(dir, device, &m);
        r = fn(&m, arg);
    }
    return r;
}

/* Parses one line of maps. The path is the rest of the line. */
static bool parse(const char *line, struct mapping *ret, dev_t *ret_device)
{
    unsigned long long start, end;
    unsigned major, minor;
    char perms[5];
    int at = 0;

    if (sscanf(line, "%llx-%llx %4s %*x %x:%x %*u %n", &start, &end, perms, &major, &minor, &at) !=
            5 ||
        at == 0)
        return false;
    *ret_device = makedev(major, minor);
    ret->shared = perms[3] == 's';
    if (!ret->shared && *ret_device != memory_device())
        return false;
    ret->start = start;
    ret->end = end;
    ret->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
                (perms[2] == 'x' ? PROT_EXEC : 0);
    snprintf(ret->name, sizeof(ret->name), "%s", line + at);
    return true;
}

static int read_each(int dir, int (*fn)(const struct mapping *m, void *arg), void *arg)
{
    AUTO(free_p) char *text = NULL;
    struct mapping m;
    dev_t device;
    int r = file_read(dir, "maps", MAPS_MAX, &text, NULL);

    for (char *line = text, *next; r == 0 && line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (!parse(line, &m, &device))
            continue;
        judge(dir, device, &m);
        r = fn(&m, arg);
    }
    return r;
}

int mapping_each(int dir, int (*fn)(const struct mapping *m, void *arg), void *arg)
{
    AUTO(close_p) int maps = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
    int r = maps < 0 ? -errno : ask_each(dir, maps, fn, arg);

    return r == -ENOTTY ? read_each(dir, fn, arg) : r;
}
