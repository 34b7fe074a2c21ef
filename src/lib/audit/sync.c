/* Makes written lines durable. The thread that waits for the disk has descriptors of its own,
 * because files, and the whole record, may be closed meanwhile. */
#include <fcntl.h>
#include <unistd.h>

#include "lib/audit/audit_impl.h"

struct audit_sync {
    int *fds;
    size_t n;
    int r;
};

static void take(struct audit_sync *s, int fd)
{
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (copy >= 0)
        s->fds[s->n++] = copy;
    else
        s->r = -EMFILE; /* it will be tried again */
}

struct audit_sync *audit_sync_new(const struct list *chains)
{
    struct audit_sync *s = xcalloc(1, sizeof(*s));
    size_t n = 0;

    LIST_EACH(struct audit_chain, c, chains, link)
        n += c->unsynced ? 2 : 0;
    s->fds = xcalloc(n + 1, sizeof(*s->fds));
    LIST_EACH(struct audit_chain, c, chains, link) {
        c->syncing = c->place.head;
        if (!c->unsynced)
            continue;
        take(s, c->fd);
        if (c->made)
            take(s, c->dir);
        c->unsynced = c->made = false;
    }
    return s;
}

void audit_sync_run(struct audit_sync *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (fdatasync(s->fds[i]) < 0)
            s->r = -errno;
}

int audit_sync_end(struct audit_log *log, struct audit_sync *s)
{
    int r = s->r;

    for (size_t i = 0; i < s->n; i++)
        close(s->fds[i]);
    free(s->fds);
    free(s);
    if (log)
        audit_synced(log, r);
    return r;
}
