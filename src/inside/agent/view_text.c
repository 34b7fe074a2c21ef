/* The texts of the view (view.h), as Linux would write them. */
#include <string.h>

#include "inside/agent/view.h"

#define TICK_USEC 10000u /* /proc/stat counts in hundredths of a second, on every machine */

const char *const view_names[VIEW_FILES_MAX_] = {
    [VIEW_MEMINFO] = "meminfo", [VIEW_STAT] = "stat", [VIEW_LOADAVG] = "loadavg",
    [VIEW_CPUINFO] = "cpuinfo", [VIEW_CPUS] = "cpus", [VIEW_CPU_MAX] = "cpu.max",
};

/* ---- reading --------------------------------------------------------------------------------- */

static uint64_t value_of(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (strncmp(p, key, len) == 0 && p[len] == ' ')
            return strtoull(p + len + 1, NULL, 10);
    return 0;
}

/* The first name is v2's, the second v1's. No text has both. */
static uint64_t either(const char *text, const char *v2, const char *v1)
{
    uint64_t v = value_of(text, v2);

    return v > 0 ? v : value_of(text, v1);
}

void view_read_memory(struct view_figures *f, const char *t)
{
    f->cache = either(t, "file", "cache");
    f->anon = either(t, "anon", "rss");
    f->mapped = either(t, "file_mapped", "mapped_file");
    f->dirty = either(t, "file_dirty", "dirty");
    f->writeback = either(t, "file_writeback", "writeback");
    f->shmem = value_of(t, "shmem");
    f->slab_reclaimable = value_of(t, "slab_reclaimable");
    f->slab_unreclaimable = value_of(t, "slab_unreclaimable");
    f->kernel_stack = value_of(t, "kernel_stack");
    f->pagetables = value_of(t, "pagetables");
    f->inactive_anon = value_of(t, "inactive_anon");
    f->active_anon = value_of(t, "active_anon");
    f->inactive_file = value_of(t, "inactive_file");
    f->active_file = value_of(t, "active_file");
    f->unevictable = value_of(t, "unevictable");
}

void view_read_cpu(struct view_figures *f, const char *t)
{
    f->user_usec = value_of(t, "user_usec");
    f->system_usec = value_of(t, "system_usec");
}

/* e to the power of -x, near enough for two digits. */
static double decay(double x)
{
    double v = x < 1024 ? 1 - x / 1024 : 0;

    for (int i = 0; i < 10; i++)
        v *= v;
    return v;
}

void view_load(double load[3], double busy, uint64_t usec)
{
    static const double minutes[3] = {1, 5, 15};

    for (int i = 0; i < 3; i++)
        load[i] = busy + (load[i] - busy) * decay((double)usec / (minutes[i] * 60e6));
}

/* ---- writing --------------------------------------------------------------------------------- */

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void put_meminfo(const struct view_figures *f, struct strbuf *out)
{
    uint64_t unused = less(f->memory_max, f->memory_used);
    uint64_t can_go = f->inactive_file + f->active_file + f->slab_reclaimable;
    uint64_t available = unused + (can_go < f->memory_used ? can_go : f->memory_used);
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {
        {"MemTotal", f->memory_max},
        {"MemFree", unused},
        {"MemAvailable", available < f->memory_max ? available : f->memory_max},
        {"Buffers", 0},
        {"Cached", f->cache},
        {"SwapCached", 0},
        {"Active", f->active_anon + f->active_file},
        {"Inactive", f->inactive_anon + f->inactive_file},
        {"Active(anon)", f->active_anon},
        {"Inactive(anon)", f->inactive_anon},
        {"Active(file)", f->active_file},
        {"Inactive(file)", f->inactive_file},
        {"Unevictable", f->unevictable},
        {"Mlocked", 0},
        {"SwapTotal", 0},
        {"SwapFree", 0},
        {"Dirty", f->dirty},
        {"Writeback", f->writeback},
        {"AnonPages", f->anon},
        {"Mapped", f->mapped},
        {"Shmem", f->shmem},
        {"KReclaimable", f->slab_reclaimable},
        {"Slab", f->slab_reclaimable + f->slab_unreclaimable},
        {"SReclaimable", f->slab_reclaimable},
        {"SUnreclaim", f->slab_unreclaimable},
        {"KernelStack", f->kernel_stack},
        {"PageTables", f->pagetables},
        {"CommitLimit", f->memory_max},
        {"Committed_AS", f->anon + f->shmem},
        {"VmallocTotal", 0},
        {"VmallocUsed", 0},
        {"AnonHugePages", 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int gap = 16 - (int)strlen(rows[i].name) - 1;
        strbuf_addf(out, "%s:%*llu kB\n", rows[i].name, gap + 8,
                    (unsigned long long)rows[i].bytes / 1024);
    }
    strbuf_addstr(out, "HugePages_Total:       0\nHugePages_Free:        0\n"
                       "HugePages_Rsvd:        0\nHugePages_Surp:        0\n"
                       "Hugepagesize:       2048 kB\n");
}

/* Each processor did its part of the work: which of the machine's did it, nobody inside knows. */
static void put_cpu_line(const struct view_figures *f, const char *name, uint64_t share,
                         struct strbuf *out)
{
    uint64_t user = f->user_usec / share, kernel = f->system_usec / share;
    uint64_t idle = less(f->age_usec * (f->cpus / share), user + kernel);

    strbuf_addf(out, "%s %llu 0 %llu %llu 0 0 0 0 0 0\n", name,
                (unsigned long long)(user / TICK_USEC), (unsigned long long)(kernel / TICK_USEC),
                (unsigned long long)(idle / TICK_USEC));
}

static void put_stat(const struct view_figures *f, struct strbuf *out)
{
    char name[16];

    put_cpu_line(f, "cpu ", 1, out);
    for (uint32_t i = 0; i < f->cpus; i++) {
        snprintf(name, sizeof(name), "cpu%u", i);
        put_cpu_line(f, name, f->cpus, out);
    }
    strbuf_addf(out,
                "intr 0\nctxt 0\nbtime %llu\nprocesses %llu\nprocs_running 1\nprocs_blocked 0\n"
                "softirq 0 0 0 0 0 0 0 0 0 0 0\n",
                (unsigned long long)f->boot, (unsigned long long)f->processes);
}

/* The first processors of the host's list, each of which ends with an empty line. */
static void put_cpuinfo(const char *host, uint32_t cpus, struct strbuf *out)
{
    const char *end = host;

    for (uint32_t i = 0; i < cpus; i++) {
        const char *gap = strstr(end, "\n\n");
        if (!gap) {
            end += strlen(end);
            break;
        }
        end = gap + 2;
    }
    strbuf_add(out, host, (size_t)(end - host));
}

void view_text(enum view_file which, const struct view_figures *f, const char *host_cpuinfo,
               struct strbuf *out)
{
    switch (which) {
    case VIEW_MEMINFO:
        put_meminfo(f, out);
        break;
    case VIEW_STAT:
        put_stat(f, out);
        break;
    case VIEW_LOADAVG:
        strbuf_addf(out, "%.2f %.2f %.2f 1/%llu 1\n", f->load[0], f->load[1], f->load[2],
                    (unsigned long long)f->processes);
        break;
    case VIEW_CPUINFO:
        put_cpuinfo(host_cpuinfo, f->cpus, out);
        break;
    case VIEW_CPUS:
        if (f->cpus > 1)
            strbuf_addstr(out, "0-");
        strbuf_addf(out, "%u\n", f->cpus - 1);
        break;
    case VIEW_CPU_MAX:
        strbuf_addf(out, "%llu %llu\n", (unsigned long long)f->quota_usec,
                    (unsigned long long)f->period_usec);
        break;
    case VIEW_FILES_MAX_:
        break;
    }
}
