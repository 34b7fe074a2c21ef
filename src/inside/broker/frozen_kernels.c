#include "inside/broker/frozen_kernels.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lib/base/fault.h"
#include "lib/base/fd.h"
#include "inside/broker/tables.h"
#include "inside/broker/tracee.h"

#define CHUNK (1u << 20)

struct frozen_kernels *frozen_kernels_new(uint64_t number, uint64_t owner)
{
    struct frozen_kernels *m = xcalloc(1, sizeof(*m));

    *m = (struct frozen_kernels){.number = number, .owner = owner};
    return m;
}

static void kernel_free(struct frozen_kernel *k)
{
    remote_calls_done(&k->remote_calls);
    free(k->shared);
    free(k);
}

void frozen_kernels_end(struct frozen_kernels *m)
{
    LIST_EACH(struct frozen_kernel, k, &m->kernels, link) {
        kill(k->source.pid, SIGKILL);
        kernel_free(k);
    }
    free(m);
}

/* The host's root opened the descriptor, and Linux checks the rights of whoever opened it. */
static int join_group(pid_t pid, int door, struct sg_error *e)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%d", pid);

    if (write(door, text, (size_t)n) != n)
        return err_errno(e, "put a frozen kernel into its memory group");
    return 0;
}

static int call(pid_t pid, const struct source *s, const struct cpu_call *one, struct sg_error *e)
{
    return tracee_call(pid, &s->state, s->call_at, one, NULL, e);
}

static int copy_memory(int from, pid_t to, uint64_t at, uint64_t len, char *buffer)
{
    int r = 0;

    for (uint64_t done = 0; done < len && r == 0; done += CHUNK) {
        size_t n = len - done < CHUNK ? (size_t)(len - done) : CHUNK;
        ssize_t got = pread(from, buffer, n, (off_t)(at + done));
        r = got < 0 ? -errno : (size_t)got != n ? -EFAULT : tracee_write(to, at + done, buffer, n);
    }
    return r;
}

/* Gives a frozen kernel its own copy of the shared memory. The contents come from `from`, a process
 * that has the same memory; there they can be read whatever the protection is. */
static int own_shared(pid_t pid, const struct source *s, const struct look_shared *shared, int from,
                      struct sg_error *e)
{
    AUTO(close_p) int memory = openat(from, "mem", O_RDONLY | O_CLOEXEC);
    AUTO(free_p) char *buffer = xcalloc(1, CHUNK);
    int r = memory < 0 ? err_errno(e, "open a kernel's memory") : 0;

    for (size_t i = 0; i < shared->n && r == 0; i++) {
        uint64_t at = shared->all[i].start, len = shared->all[i].len;
        int prot = shared->all[i].prot;
        struct cpu_call map = {.nr = SYS_mmap,
                               .args = {(int64_t)at, (int64_t)len, PROT_READ | PROT_WRITE,
                                        MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1, 0}};
        struct cpu_call protect = {.nr = SYS_mprotect, .args = {(int64_t)at, (int64_t)len, prot}};
        r = call(pid, s, &map, e);
        if (r == 0)
            r = err_internal(e, copy_memory(memory, pid, at, len, buffer), "copy shared memory");
        if (r == 0 && prot != (PROT_READ | PROT_WRITE))
            r = call(pid, s, &protect, e);
    }
    return r;
}

static bool covers_call(const struct look_shared *shared, uint64_t at)
{
    for (size_t i = 0; i < shared->n; i++)
        if (at - shared->all[i].start < shared->all[i].len)
            return true;
    return false;
}

static int settle(const struct source *s, const struct frozen_kernels_spec *spec,
                  struct sg_error *e)
{
    int r = source_be_victim(s->pid, OOM_FROZEN, e);

    if (r == 0 && spec->door >= 0)
        r = join_group(s->pid, spec->door, e);
    if (r == 0 && (cpu_own_call(s->pid, s->call_at) < 0 || !cpu_is_call(s->pid, s->call_at) ||
                   covers_call(spec->shared, s->call_at)))
        r = err_set(e, SG_ERR_INTERNAL, -EPROTO, "a kernel's code is not in its copy");
    if (r == 0 && spec->shared->n > 0)
        r = own_shared(s->pid, s, spec->shared, spec->k->dir, e);
    return r;
}

int frozen_kernels_add(struct frozen_kernels *m, const struct frozen_kernels_spec *spec,
                       struct sg_error *e)
{
    struct frozen_kernel *k;
    pid_t pid = 0;
    int r = source_copy(spec->h, spec->state, spec->call_at, &pid, e);

    if (r < 0)
        return r;
    k = xcalloc(1, sizeof(*k));
    k->was = spec->k->inside;
    k->source = (struct source){.pid = pid,
                                .state = *spec->state,
                                .call_at = spec->call_at,
                                .umask = spec->k->status.umask};
    source_learn_thread(spec->k->pid, &k->source.thread);
    k->source.thread.tid = spec->tid;
    remote_calls_init(&k->remote_calls);
    open_files_calls_copy(spec->open_files, &k->remote_calls);
    k->source.remote_calls = &k->remote_calls;
    if (spec->shared->n > 0) {
        k->shared = xcalloc(1, sizeof(*k->shared));
        *k->shared = *spec->shared;
    }
    list_push(&m->kernels, &k->link);
    r = k->remote_calls.overflow
            ? err_set(e, SG_ERR_LIMIT, -E2BIG, "a kernel has too many files and mappings open")
            : settle(&k->source, spec, e);
    return r == -ESRCH ? -EIO : r; /* -ESRCH means that H ended; here it was the copy */
}

int frozen_kernels_prepare(struct frozen_kernel *k, uint32_t n_doors,
                           const struct seccomp_prog *filter, struct sg_error *e)
{
    int r = 0;

    if (k->source.page != 0)
        return 0;
    k->source.n_doors = n_doors;
    r = source_map_page(&k->source, e);
    if (r == 0)
        r = tables_install(&k->source, filter, e);
    if (r < 0)
        k->source.page = 0;
    return r;
}

int frozen_kernels_copy(struct frozen_kernel *k, bool last, pid_t *ret, struct sg_error *e)
{
    const struct source *s = &k->source;
    AUTO(close_p) int own = -1;
    pid_t pid = s->pid;
    int r = last ? 0 : source_copy(s->pid, &s->state, s->call_at, &pid, e);

    if (r < 0)
        return r;
    if (!last && k->shared) {
        r = err_internal(e, procfs_open(s->pid, &own), "open a frozen kernel");
        if (r == 0)
            r = own_shared(pid, s, k->shared, own, e);
    }
    if (r == 0)
        r = source_be_victim(pid, OOM_KERNEL, e);
    if (r < 0)
        tracee_kill(pid);
    else
        *ret = pid;
    return r;
}

struct frozen_kernels *frozen_kernels_find(const struct list *sets, uint64_t number)
{
    return LIST_FIND(struct frozen_kernels, m, sets, link, m->number == number);
}

struct frozen_kernel *frozen_kernel_of(struct frozen_kernels *m, pid_t was)
{
    return LIST_FIND(struct frozen_kernel, k, &m->kernels, link, k->was == was);
}

void frozen_kernel_remove(struct frozen_kernel *k)
{
    list_remove(&k->link);
    kernel_free(k);
}

struct frozen_kernels *frozen_kernels_of(const struct list *sets, pid_t pid)
{
    LIST_EACH(struct frozen_kernels, m, sets, link)
        LIST_EACH(struct frozen_kernel, k, &m->kernels, link)
            if (k->source.pid == pid)
                return m;
    return NULL;
}
