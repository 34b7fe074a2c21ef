#include "front/store/dbworker_dial.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "front/store/dbworker_migrate.h"
#include "front/store/dbworker_target.h"

#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 5000

/* PostgreSQL gives up a statement before the database worker gives up the connection
 * (dbworker_process.c), so that a call that was answered -EAGAIN is not carried out later. */
#define SESSION                                       \
    "SET statement_timeout = '2500ms';"               \
    "SET lock_timeout = '2500ms';"                    \
    "SET idle_in_transaction_session_timeout = '5s';" \
    "SET search_path = pg_catalog;"                   \
    "SET row_security = on;"                          \
    "SET jit = off;"                                  \
    "SET default_transaction_isolation = 'read committed';"

struct dial {
    struct target *target;
    int event;
    pthread_mutex_t lock;
    pthread_cond_t wanted_more;
    /* the fields below are used by both threads, under the lock */
    unsigned wanted;
    PGconn *ready[DBWORKER_CONNECTIONS];
    size_t n_ready;
    char trouble[DIAL_TROUBLE_MAX];
    char note[DIAL_NOTE_MAX];
    bool noted, note_bad;
};

/* The outcome of an attempt to connect. */
struct attempt {
    PGconn *pg; /* NULL: the attempt failed */
    char trouble[DIAL_TROUBLE_MAX];
    char note[DIAL_NOTE_MAX];
};

static void fail(const struct dial *d, struct attempt *a, PGconn *pg, const char *trouble)
{
    char why[256];

    target_scrub(d->target, PQerrorMessage(pg), why, sizeof(why));
    snprintf(a->trouble, sizeof(a->trouble), "%s", trouble);
    snprintf(a->note, sizeof(a->note), "store: %s%s%s", trouble, *why ? ": " : "", why);
    PQfinish(pg);
}

static bool session(PGconn *pg, bool *ret_read_only)
{
    PGresult *result = PQexec(pg, SESSION "SHOW transaction_read_only");
    bool good = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;

    if (good)
        *ret_read_only = strcmp(PQgetvalue(result, 0, 0), "off") != 0;
    PQclear(result);
    return good;
}

static void attempt(const struct dial *d, struct attempt *a)
{
    PGconn *pg = target_connect(d->target);
    bool read_only = false;
    int version = 0;

    *a = (struct attempt){0};
    if (PQstatus(pg) != CONNECTION_OK || !session(pg, &read_only)) {
        fail(d, a, pg, "the database cannot be reached");
        return;
    }
    if (read_only) {
        fail(d, a, pg, "the database is read-only");
        return;
    }
    switch (migrate(pg, &version)) {
    case MIGRATE_NEWER:
        snprintf(a->trouble, sizeof(a->trouble),
                 "the database's schema is of version %d, newer than this server knows (%d)",
                 version, migrate_version());
        snprintf(a->note, sizeof(a->note), "store: %s: update this server", a->trouble);
        PQfinish(pg);
        return;
    case MIGRATE_FAILED:
        fail(d, a, pg, "the database's schema cannot be made or brought up to date");
        return;
    case MIGRATED:
        break;
    }
    version = PQserverVersion(pg);
    snprintf(a->note, sizeof(a->note), "store: connected to PostgreSQL %d.%d", version / 10000,
             version % 10000);
    a->pg = pg;
}

static void tell(struct dial *d)
{
    uint64_t one = 1;

    /* The write can only fail because the counter is full, and then the descriptor is readable. */
    if (write(d->event, &one, sizeof(one)) < 0)
        return;
}

/* Publishes the outcome. The same line is not logged twice in a row: attempts may go on for
 * days. */
static void report(struct dial *d, const struct attempt *a, char said[DIAL_NOTE_MAX])
{
    pthread_mutex_lock(&d->lock);
    if (a->pg) {
        d->ready[d->n_ready++] = a->pg;
        d->wanted--;
    }
    snprintf(d->trouble, sizeof(d->trouble), "%s", a->trouble);
    if (strcmp(said, a->note) != 0) {
        snprintf(said, DIAL_NOTE_MAX, "%s", a->note);
        snprintf(d->note, sizeof(d->note), "%s", a->note);
        d->note_bad = !a->pg;
        d->noted = true;
    }
    pthread_mutex_unlock(&d->lock);
    tell(d);
}

static void *dial_main(void *arg)
{
    struct dial *d = arg;
    char said[DIAL_NOTE_MAX] = "";
    unsigned pause_ms = PAUSE_MIN_MS;

    for (;;) {
        struct attempt a;

        pthread_mutex_lock(&d->lock);
        while (d->wanted == 0)
            pthread_cond_wait(&d->wanted_more, &d->lock);
        pthread_mutex_unlock(&d->lock);
        attempt(d, &a);
        report(d, &a, said);
        if (a.pg) {
            pause_ms = PAUSE_MIN_MS;
            continue;
        }
        struct timespec pause = {pause_ms / 1000, (long)(pause_ms % 1000) * 1000000};
        nanosleep(&pause, NULL);
        pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
    }
    return NULL;
}

int dial_start(const char *conninfo, struct dial **ret, struct sg_error *e)
{
    struct dial *d = xcalloc(1, sizeof(*d));
    pthread_t thread;
    int r = target_new(conninfo, &d->target, e);

    if (r < 0) {
        free(d);
        return r;
    }
    d->wanted = DBWORKER_CONNECTIONS;
    d->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->wanted_more, NULL);
    if (d->event < 0 || pthread_create(&thread, NULL, dial_main, d) != 0)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN, "cannot start a thread for connections");
    pthread_detach(thread);
    *ret = d;
    return 0;
}

int dial_fd(const struct dial *d)
{
    return d->event;
}

void dial_clear(struct dial *d)
{
    uint64_t n;

    if (read(d->event, &n, sizeof(n)) < 0)
        return;
}

PGconn *dial_take(struct dial *d)
{
    pthread_mutex_lock(&d->lock);
    PGconn *pg = d->n_ready > 0 ? d->ready[--d->n_ready] : NULL;
    pthread_mutex_unlock(&d->lock);
    return pg;
}

void dial_trouble(struct dial *d, char ret[DIAL_TROUBLE_MAX])
{
    pthread_mutex_lock(&d->lock);
    snprintf(ret, DIAL_TROUBLE_MAX, "%s", d->trouble);
    pthread_mutex_unlock(&d->lock);
}

bool dial_note(struct dial *d, char ret[DIAL_NOTE_MAX], bool *ret_bad)
{
    pthread_mutex_lock(&d->lock);
    bool noted = d->noted;
    snprintf(ret, DIAL_NOTE_MAX, "%s", d->note);
    *ret_bad = d->note_bad;
    d->noted = false;
    pthread_mutex_unlock(&d->lock);
    return noted;
}

void dial_lost(struct dial *d)
{
    pthread_mutex_lock(&d->lock);
    d->wanted++;
    pthread_cond_signal(&d->wanted_more);
    pthread_mutex_unlock(&d->lock);
}
