#include "front/store/sync.h"

#include <fcntl.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "front/store/db.h"

#define LOG_SUFFIX "-wal"
#define LOG_PAGES  1000  /* from here on a thread moves the log into the database */
#define LOG_MAX    16000 /* from here on the loop does */

struct store_sync {
    uv_loop_t *loop;
    struct commits *commits;
    void (*synced)(void *arg, int r);
    void *arg;
    struct store *store;

    int log; /* the file */
    bool syncing;
    uint64_t upto; /* the change that the sync under way keeps */
    int r;
    uv_work_t sync;

    sqlite3 *db; /* of the thread that moves the log */
    bool moving;
    int pages; /* of the log, as of the last commit */
    int asked; /* of these, when the move began */
    uv_work_t move;
};

/* ---- on threads ------------------------------------------------------------------------------ */

static void sync_log(uv_work_t *w)
{
    struct store_sync *y = CONTAINER_OF(w, struct store_sync, sync);

    y->r = fdatasync(y->log) < 0 ? -errno : 0;
}

/* As far as it can without waiting for anybody. */
static void move_log(uv_work_t *w)
{
    struct store_sync *y = CONTAINER_OF(w, struct store_sync, move);

    sqlite3_wal_checkpoint_v2(y->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static void begin_sync(struct store_sync *y);

static void after_sync(uv_work_t *w, int status UNUSED)
{
    struct store_sync *y = CONTAINER_OF(w, struct store_sync, sync);

    y->syncing = false;
    if (y->r == 0)
        y->commits->kept = y->upto;
    y->synced(y->arg, y->r);
    if (y->r == 0)
        begin_sync(y);
}

static void begin_sync(struct store_sync *y)
{
    if (y->syncing || y->commits->kept == y->commits->made)
        return;
    y->syncing = true;
    y->upto = y->commits->made;
    if (uv_queue_work(y->loop, &y->sync, sync_log, after_sync) < 0)
        abort(); /* fails only without a function to call */
}

static void begin_move(struct store_sync *y);

/* What was added meanwhile is moved too. What another process still reads stays until a later
 * commit. */
static void after_move(uv_work_t *w, int status UNUSED)
{
    struct store_sync *y = CONTAINER_OF(w, struct store_sync, move);

    y->moving = false;
    if (y->pages != y->asked)
        begin_move(y);
}

static void begin_move(struct store_sync *y)
{
    if (y->moving)
        return;
    y->moving = true;
    y->asked = y->pages;
    if (uv_queue_work(y->loop, &y->move, move_log, after_move) < 0)
        abort();
}

static int on_commit(void *arg, sqlite3 *db UNUSED, const char *name UNUSED, int pages)
{
    struct store_sync *y = arg;

    y->pages = pages;
    if (y->store->durable) {
        y->commits->made++;
        begin_sync(y);
    }
    /* A log is begun anew only after a moment in which all of it has been moved. While commits come
     * without a pause, only the loop can make such a moment. */
    if (pages >= LOG_MAX)
        sqlite3_wal_checkpoint_v2(y->store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    else if (pages >= LOG_PAGES)
        begin_move(y);
    return SQLITE_OK;
}

static int open_log(struct store_sync *y, struct sg_error *e)
{
    size_t len = strlen(y->store->path);
    AUTO(free_p) char *path = xcalloc(1, len + sizeof(LOG_SUFFIX));

    memcpy(path, y->store->path, len);
    memcpy(path + len, LOG_SUFFIX, sizeof(LOG_SUFFIX));
    y->log = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return y->log < 0 ? err_errno(e, "open '%s'", path) : 0;
}

/* What is in the log may not be on disk, though it can be read: whoever wrote it was killed, or could
 * not sync it, and Linux keeps such pages as if they were written. So it is moved, from memory, before
 * anybody is answered. Another process that reads may keep that from being done now; then a sync must
 * do. */
static int empty_log(struct store_sync *y, struct sg_error *e)
{
    int r = sqlite3_wal_checkpoint_v2(y->store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    if (r == SQLITE_BUSY)
        return fdatasync(y->log) < 0 ? err_errno(e, "sync the database's log") : 0;
    return r == SQLITE_OK ? 0 : db_error(y->store, "empty its log", e);
}

int store_sync_start(struct store *s, uv_loop_t *loop, struct commits *c,
                     void (*synced)(void *arg, int r), void *arg, struct sg_error *e)
{
    struct store_sync *y = NEW(struct store_sync, .loop = loop, .commits = c, .synced = synced,
                               .arg = arg, .store = s, .log = -1);
    int r = db_open_again(s, &y->db, e); /* with that the log is there */

    if (r == 0)
        r = open_log(y, e);
    if (r == 0)
        r = empty_log(y, e);
    if (r < 0) {
        store_sync_free(y);
        return r;
    }
    s->sync = y;
    sqlite3_wal_hook(s->db, on_commit, y);
    db_set_durable(s, true);
    return 0;
}

void store_sync_free(struct store_sync *y)
{
    if (!y)
        return;
    while (y->syncing || y->moving)
        uv_run(y->loop, UV_RUN_ONCE);
    sqlite3_close(y->db);
    close_p(&y->log);
    free(y);
}
