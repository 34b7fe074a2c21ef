/* Counts what a volume takes on disk. A file with several names counts once in all; each name costs
 * NAME_BYTES besides, so that empty files are not free. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "inside/files/layer_file.h"
#include "inside/volume/volume.h"
#include "lib/base/clock.h"

#define NAME_BYTES 1024
#define LEVELS_MAX 1000 /* each holds two descriptors */
#define WAIT_NS    10000000
#define BEAT_NS    (60 * NS_PER_S) /* who measures says so more often than that, unless killed */
#define NS_PER_S   1000000000ull
#define TRUST_S    60 /* a write believes a measure for so long */

_Static_assert(LEVELS_MAX * 2 < 2048, "room for all levels: FILES_MAX of confine.c");

static uint64_t bytes_of(const struct stat *st)
{
    bool shared = !S_ISDIR(st->st_mode) && st->st_nlink > 1;

    return NAME_BYTES + (uint64_t)st->st_blocks * 512 / (shared ? st->st_nlink : 1);
}

static int count_dir(struct volume_size *size, DIR **levels, uint64_t *ret)
{
    size_t n = 1;
    const char *name;
    struct stat st;

    while (n > 0) {
        int got = layer_next(levels[n - 1], &name), dir = dirfd(levels[n - 1]), fd;

        atomic_store_explicit(&size->beat_ns, clock_ns(), memory_order_relaxed);
        if (got <= 0) {
            layer_closedir_p(&levels[--n]);
            levels[n] = NULL;
            continue;
        }
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* it has gone */
        *ret += bytes_of(&st);
        if (!S_ISDIR(st.st_mode) || (fd = openat(dir, name, LAYER_DIR_FLAGS)) < 0)
            continue;
        if (n == LEVELS_MAX) {
            close(fd);
            return -EOVERFLOW;
        }
        levels[n] = layer_list(fd);
        close(fd);
        n += levels[n] != NULL;
    }
    return 0;
}

/* A tree that is too deep counts as full: nothing could be known about what is below. */
static int count(struct volume_serving *s)
{
    AUTO(free_p) DIR **levels = xcalloc(LEVELS_MAX, sizeof(DIR *));
    uint64_t used = 0;
    int r = -errno;

    if ((levels[0] = layer_list(s->root)) == NULL)
        return r;
    r = count_dir(s->size, levels, &used);
    for (size_t i = 0; i < LEVELS_MAX; i++)
        layer_closedir_p(&levels[i]);
    if (r == 0 || r == -EOVERFLOW) {
        atomic_store(&s->size->used, r == 0 ? used : UINT64_MAX);
        atomic_store(&s->size->measured_ns, clock_ns());
    }
    return r;
}

static bool is_fresh(const struct volume_size *size, uint32_t age_s)
{
    uint64_t at = atomic_load(&size->measured_ns);

    return at != 0 && clock_ns() - at <= age_s * NS_PER_S;
}

int volume_measure(struct volume_serving *s, uint32_t age_s)
{
    const struct timespec wait = {.tv_nsec = WAIT_NS};
    int r = 0;

    while (!is_fresh(s->size, age_s)) {
        uint64_t beat = atomic_load(&s->size->beat_ns), now = clock_ns();

        if ((beat == 0 || now - beat > BEAT_NS) &&
            atomic_compare_exchange_strong(&s->size->beat_ns, &beat, now)) {
            r = count(s);
            atomic_store(&s->size->beat_ns, 0);
            return r;
        }
        nanosleep(&wait, NULL);
    }
    return 0;
}

void volume_give_back(struct volume_serving *s, const struct stat *st)
{
    uint64_t bytes = bytes_of(st), used = atomic_load(&s->size->used);

    while (!atomic_compare_exchange_weak(&s->size->used, &used, used > bytes ? used - bytes : 0))
        ;
}

void volume_size_unknown(struct volume_serving *s)
{
    atomic_store(&s->size->measured_ns, 0);
}

int volume_take_room(struct volume_serving *s, uint64_t bytes)
{
    int r = bytes == 0 ? volume_measure(s, TRUST_S) : 0;
    uint64_t before;

    if (r < 0)
        return r;
    bytes += bytes == 0 ? NAME_BYTES : 0;
    before = atomic_load(&s->size->used);
    do {
        if (before >= s->q.max_bytes || bytes > s->q.max_bytes - before)
            return -EDQUOT;
    } while (!atomic_compare_exchange_weak(&s->size->used, &before, before + bytes));
    return 0;
}
