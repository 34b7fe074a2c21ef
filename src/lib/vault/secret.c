/* Keeps secrets in locked memory. That is scarce (RLIMIT_MEMLOCK), and most secrets are short, so
 * pages are cut into slots, and only long secrets have pages of their own. Each mapping has a page
 * without access on both sides. For one thread only. */
#include <assert.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "lib/base/list.h"
#include "lib/vault/impl.h"

#define PAGE      4096u
#define SLOT      256u
#define N_SLOTS   (PAGE / SLOT)
#define ALL_SLOTS ((1u << N_SLOTS) - 1)

struct slab {
    struct list link;
    uint8_t *mem; /* a page */
    uint32_t used;
};
static struct list slabs;

static size_t whole_pages(size_t len)
{
    return (len + PAGE - 1) / PAGE * PAGE;
}

static uint8_t *map_locked(size_t len)
{
    size_t size = whole_pages(len);
    uint8_t *p = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    uint8_t *mem = p + PAGE;
    if (mprotect(mem, size, PROT_READ | PROT_WRITE) == 0 &&
        madvise(mem, size, MADV_DONTDUMP) == 0 && madvise(mem, size, MADV_DONTFORK) == 0 &&
        syscall(SYS_mlock, mem, size) == 0) /* mlock() does nothing under a sanitizer */
        return mem;
    munmap(p, size + 2 * PAGE);
    return NULL;
}

static void unmap_locked(uint8_t *mem, size_t len)
{
    munmap(mem - PAGE, whole_pages(len) + 2 * PAGE);
}

static struct slab *slab_with_room(void)
{
    struct slab *b = LIST_FIND(struct slab, at, &slabs, link, at->used != ALL_SLOTS);
    uint8_t *mem = b ? NULL : map_locked(PAGE);

    if (!mem)
        return b;
    b = xcalloc(1, sizeof(*b));
    b->mem = mem;
    list_push(&slabs, &b->link);
    return b;
}

static uint8_t *slot_take(void)
{
    struct slab *b = slab_with_room();

    if (!b)
        return NULL;
    unsigned i = (unsigned)__builtin_ctz(~b->used);
    b->used |= 1u << i;
    return b->mem + i * SLOT;
}

static void slot_give(uint8_t *p)
{
    struct slab *b = LIST_FIND(struct slab, at, &slabs, link, p >= at->mem && p < at->mem + PAGE);

    assert(b);
    b->used &= ~(1u << ((size_t)(p - b->mem) / SLOT));
    if (b->used)
        return;
    list_remove(&b->link);
    unmap_locked(b->mem, PAGE);
    free(b);
}

int secret_alloc(struct secret *s, size_t len)
{
    if (len > VAULT_SECRET_MAX)
        return -E2BIG;
    uint8_t *p = len < SLOT ? slot_take() : map_locked(len + 1);
    if (!p)
        return -ENOMEM;
    *s = (struct secret){.bytes = p, .len = len};
    return 0;
}

int secret_set(struct secret *s, const void *bytes, size_t len)
{
    struct secret fresh;
    int r = secret_alloc(&fresh, len);

    if (r < 0)
        return r;
    if (len > 0)
        memcpy(fresh.bytes, bytes, len);
    secret_done(s);
    *s = fresh;
    return 0;
}

void secret_done(struct secret *s)
{
    if (!s->bytes)
        return;
    explicit_bzero(s->bytes, s->len + 1);
    if (s->len < SLOT)
        slot_give(s->bytes);
    else
        unmap_locked(s->bytes, s->len + 1);
    *s = (struct secret){0};
}

void vault_harden_process(void)
{
    struct rlimit none = {0};

    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
}
