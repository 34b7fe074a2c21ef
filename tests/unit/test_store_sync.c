/* Durable changes of the store: who waits for the disk, and when they are kept. */
#include "store_place.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "front/store/sync.h"

TAP_MAIN

static struct {
    unsigned here, on_threads;
    int error;
} syncs;

/* In place of libc's, which SQLite calls too. */
__attribute__((visibility("default"))) int fdatasync(int fd)
{
    bool here = gettid() == getpid();

    __atomic_add_fetch(here ? &syncs.here : &syncs.on_threads, 1, __ATOMIC_SEQ_CST);
    if (!here && syncs.error) {
        errno = syncs.error;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

static struct {
    uv_loop_t loop;
    struct place place;
    struct store *store;
    struct commits commits;
    unsigned told;
    int r;
} t;

static void on_synced(void *arg, int r)
{
    EXPECT(arg == &t);
    t.told++;
    t.r = r;
}

static void change(void)
{
    static unsigned n;
    struct sg_error e;
    char id[ID_LEN + 1];

    snprintf(id, sizeof(id), "%020u", n++);
    EXPECT(store_snapshot_loose(t.store, id, &e) == 0);
}

static void begin(void)
{
    struct sg_error e;

    memset(&t, 0, sizeof(t));
    EXPECT(uv_loop_init(&t.loop) == 0);
    t.place = place_make();
    t.store = open_ok(&t.place);
    EXPECT(store_sync_start(t.store, &t.loop, &t.commits, on_synced, &t, &e) == 0);
    change(); /* the first one makes the log, and syncs that at once */
    uv_run(&t.loop, UV_RUN_DEFAULT);
    t.commits = (struct commits){0};
    memset(&syncs, 0, sizeof(syncs));
}

static void end(void)
{
    store_close(t.store);
    EXPECT(uv_loop_close(&t.loop) == 0);
    place_remove(&t.place);
}

TEST(a_change_is_kept_by_a_thread)
{
    begin();
    EXPECT(commits_awaited(&t.commits, 0) == 0);
    for (unsigned i = 0; i < 3; i++)
        change();
    EXPECT(t.commits.made == 3 && t.commits.kept == 0 && syncs.here == 0);
    EXPECT(commits_awaited(&t.commits, 0) == 3 && commits_awaited(&t.commits, 2) == 3);
    EXPECT(commits_awaited(&t.commits, 3) == 0);
    uv_run(&t.loop, UV_RUN_DEFAULT);
    EXPECT(t.commits.kept == 3 && t.told > 0 && t.r == 0);
    EXPECT(syncs.here == 0 && syncs.on_threads > 0 && syncs.on_threads <= 2);
    end();
}

TEST(a_change_that_need_not_be_kept_is_not_counted)
{
    struct store_tenant tenant;
    char key[STORE_KEY_LEN + 1];
    struct store_key info;

    begin();
    make_key(t.store, "acme", key, &info);
    uv_run(&t.loop, UV_RUN_DEFAULT);
    uint64_t made = t.commits.made;
    EXPECT(made > 0);
    EXPECT(store_key_check(t.store, key, &tenant) == 0); /* which notes the key's use */
    EXPECT(t.commits.made == made);
    end();
}

static off_t size_of(const char *suffix)
{
    char path[128];
    struct stat st;

    snprintf(path, sizeof(path), "%s%s", t.place.file, suffix);
    return stat(path, &st) == 0 ? st.st_size : -1;
}

TEST(a_long_log_is_moved_by_a_thread)
{
    enum { ROUNDS = 30, CHANGES = 100 };

    begin();
    off_t before = size_of("");
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; k < CHANGES; k++)
            change();
        uv_run(&t.loop, UV_RUN_DEFAULT);
    }
    EXPECT(t.commits.kept == ROUNDS * CHANGES);
    EXPECT(size_of("") > before);
    /* Each change writes some pages: without being moved the log would have far more than this. */
    EXPECT(size_of("-wal") < (off_t)ROUNDS * CHANGES * 4096);
    EXPECT(syncs.here < ROUNDS); /* only when a log is begun anew */
    end();
}

TEST(a_log_to_which_commits_are_added_without_a_pause_has_an_end)
{
    enum { CHANGES = 30000, MOST = 16000 };

    begin();
    for (unsigned i = 0; i < CHANGES; i++)
        change();
    EXPECT(size_of("-wal") < (off_t)(MOST + 1000) * 4200);
    EXPECT(syncs.here > 0);
    uv_run(&t.loop, UV_RUN_DEFAULT);
    EXPECT(t.commits.kept == CHANGES);
    end();
}

TEST(a_disk_that_fails_is_told_and_nothing_is_kept)
{
    begin();
    syncs.error = EIO;
    change();
    uv_run(&t.loop, UV_RUN_DEFAULT);
    EXPECT(t.r == -EIO && t.commits.kept == 0 && t.commits.made == 1);
    end();
}
