#include "lib/ipc/link.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "lib/base/fd.h"

#define TURN 64

/* A message that waits for room in the socket. */
struct ipc_unsent {
    struct list link;
    uint64_t call; /* the seq of its call; 0: it is none */
    size_t n_fds, len;
    int *fds;    /* behind the data */
    char data[]; /* begins with a struct ipc_head */
};

void ipc_link_init(struct ipc_link *l, const struct ipc_kind *kind,
                   void (*changed)(struct ipc_link *l))
{
    *l = (struct ipc_link){.kind = kind, .changed = changed, .sock = -1};
    l->buf = xcalloc(1, kind->max + 1);
}

void ipc_link_open(struct ipc_link *l, int sock)
{
    ipc_link_close(l);
    fd_set_nonblock(sock, true);
    l->sock = sock;
    l->opened++;
    l->changed(l);
}

/* ---- out ------------------------------------------------------------------------------------- */

static void drop(struct ipc_link *l, struct ipc_unsent *u)
{
    list_remove(&u->link);
    l->n_unsent--;
    for (size_t i = 0; i < u->n_fds; i++)
        close(u->fds[i]);
    free(u);
}

/* Keeps copies of the descriptors. If there is no room for them the message goes without, as if
 * they had been lost on the way. */
static void keep_fds(struct ipc_unsent *u, const int *fds, size_t n)
{
    for (; u->n_fds < n; u->n_fds++) {
        int fd = fcntl(fds[u->n_fds], F_DUPFD_CLOEXEC, 0);

        if (fd < 0)
            break;
        u->fds[u->n_fds] = fd;
    }
    while (u->n_fds < n && u->n_fds > 0)
        close(u->fds[--u->n_fds]);
}

static void enqueue(struct ipc_link *l, const struct ipc_out *out, uint64_t call)
{
    size_t len = out->len + out->more_len, aligned = (len + 7) & ~(size_t)7;
    struct ipc_unsent *u = xcalloc(1, sizeof(*u) + aligned + out->n_fds * sizeof(int));

    u->call = call;
    u->len = len;
    memcpy(u->data, out->head, out->len);
    if (out->more_len > 0)
        memcpy(u->data + out->len, out->more, out->more_len);
    u->fds = (int *)(void *)(u->data + aligned);
    keep_fds(u, out->fds, out->n_fds);
    list_append(&l->unsent, &u->link);
    l->n_unsent++;
    l->changed(l);
}

int ipc_link_put(struct ipc_link *l, const struct ipc_out *out, uint64_t call)
{
    struct ipc_head *head = out->head;
    struct iovec parts[2] = {
        {.iov_base = head, .iov_len = out->len},
        {.iov_base = (void *)(uintptr_t)out->more, .iov_len = out->more_len},
    };
    int r = -EAGAIN;

    head->magic = l->kind->magic;
    if (l->sock < 0)
        return -EPIPE;
    if (l->n_unsent == 0)
        r = ipc_send_parts(l->sock, parts, out->fds, out->n_fds);
    if (r != -EAGAIN || l->kind->no_queue || !ipc_below(l->n_unsent, l->kind->unsent_max))
        return r;
    enqueue(l, out, call);
    return 0;
}

int ipc_link_send(struct ipc_link *l, const struct ipc_out *out)
{
    return ipc_link_put(l, out, 0);
}

void ipc_link_close(struct ipc_link *l)
{
    int sock = steal_fd(&l->sock);

    if (sock < 0)
        return;
    LIST_EACH(struct ipc_unsent, u, &l->unsent, link)
        drop(l, u);
    l->changed(l);
    close(sock);
    if (l->calling)
        l->calling->give_up(l, UINT64_MAX, -EPIPE);
}

/* ---- in -------------------------------------------------------------------------------------- */

int ipc_link_events(const struct ipc_link *l)
{
    if (l->sock < 0)
        return 0;
    return (ipc_below(l->n_unsent, l->kind->read_below) ? POLLIN : 0) | (l->n_unsent ? POLLOUT : 0);
}

static struct ipc_call *find_call(const struct ipc_link *l, uint64_t seq)
{
    return l->calling ? l->calling->find(l, seq) : NULL;
}

static int dispatch(struct ipc_in *in)
{
    struct ipc_link *l = in->link;
    struct ipc_call *call = find_call(l, ((const struct ipc_head *)l->buf)->seq);

    ((char *)l->buf)[in->len] = '\0';
    if (call)
        return l->calling->settle(call, in);
    return l->kind->take ? l->kind->take(in) : -EPROTO;
}

bool ipc_link_take(struct ipc_link *l)
{
    const struct ipc_kind *kind = l->kind;
    struct ipc_in in = {.link = l, .m = l->buf, .fds.max = kind->fds_max};
    ssize_t len = ipc_take(l->sock, kind->magic, l->buf, kind->min ? kind->min : kind->max,
                           kind->max, &in.fds);

    if (len == -EAGAIN)
        return false;
    in.len = len < 0 ? 0 : (size_t)len;
    int r = len < 0 ? (int)len : dispatch(&in);
    ipc_fds_close(&in.fds);
    if (r >= 0)
        return true;
    if (kind->gone)
        kind->gone(l, r);
    ipc_link_close(l);
    return false;
}

/* A message whose call is over is not sent any more: nobody waits for its answer. */
static void send_waiting(struct ipc_link *l)
{
    size_t before = l->n_unsent;

    LIST_EACH(struct ipc_unsent, u, &l->unsent, link) {
        if ((!u->call || find_call(l, u->call)) &&
            ipc_send(l->sock, u->data, u->len, u->fds, u->n_fds) == -EAGAIN)
            break;
        drop(l, u);
    }
    if (l->n_unsent != before)
        l->changed(l);
}

/* The callbacks may close the link, and open it with another socket. */
void ipc_link_ready(struct ipc_link *l)
{
    uint64_t opened = l->opened;

    if (l->sock >= 0)
        send_waiting(l);
    for (unsigned i = 0;
         i < (l->kind->turn ? l->kind->turn : TURN) && l->sock >= 0 && l->opened == opened &&
         ipc_below(l->n_unsent, l->kind->read_below) && ipc_link_take(l);
         i++)
        ;
}
