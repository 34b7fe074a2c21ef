#include "guard/warden_link.h"

#include <poll.h>

#include "guard/flow.h"
#include "guard/front_link.h"
#include "lib/log/log.h"
#include "lib/uv/ipc_uv.h"

#define FDS_MAX   3
#define FIRST_MS  10000
#define QUEUE_MAX 4096

struct warden_link {
    struct ipc_uv ipc;
    struct guard *guard;
    uint64_t seq;
};

/* A message that is dropped because too many wait: the flow that asks for a socket will time
 * out. */
static void link_send(struct warden_link *l, struct guard_message *m)
{
    ipc_link_send(&l->ipc.link, &(struct ipc_out){.head = m, .len = sizeof(*m)});
}

static void take_policy(struct warden_link *l, const struct guard_message *m, int document)
{
    struct guard_message a = {
        .what = GUARD_APPLIED, .seq = m->seq, .life = m->life, .epoch = m->epoch};
    struct sg_error e = {0};

    memcpy(a.id, m->id, sizeof(a.id));
    a.code = document < 0 ? err_set(&e, SG_ERR_LIMIT, -EMFILE, "the guard has no descriptor left")
                          : sandbox_set_policy(l->guard, m, document, &e);
    snprintf(a.message, sizeof(a.message), "%.255s", e.message);
    link_send(l, &a);
}

static void take_settings(struct warden_link *l, int *fds)
{
    struct sg_error e = {0};

    if (settings_take(l->guard, fds[0], fds[1], fds[2], &e) < 0)
        log_line(LEVEL_ERROR,
                 "guard: the settings were not reloaded, the old ones stay in force: %s",
                 e.message);
}

/* Handles a message. Takes over the descriptors that it keeps. */
static void take(struct warden_link *l, const struct guard_message *m, int *fds, size_t n)
{
    switch ((enum guard_what)m->what) {
    case GUARD_SETTINGS:
        if (n == 3)
            take_settings(l, fds);
        break;
    case GUARD_FRONT:
        if (n == 1)
            front_link_set(l->guard, steal_fd(&fds[0]));
        break;
    case GUARD_SANDBOX:
        if (n == 3)
            sandbox_add(l->guard, m, steal_fd(&fds[0]), steal_fd(&fds[1]), fds[2]);
        else
            log_line(LEVEL_ERROR, "guard: sandbox %s has no network: descriptors were lost", m->id);
        break;
    case GUARD_POLICY:
        take_policy(l, m, fds[0]); /* fds[0] may have been lost on the way: -1 */
        break;
    case GUARD_GONE:
        sandbox_remove(l->guard, m);
        break;
    case GUARD_UDP:
        udp_got_socket(l->guard, m->seq, m->code, n == 1 ? steal_fd(&fds[0]) : -1);
        break;
    case GUARD_BEAT:
        link_send(l, &(struct guard_message){.what = GUARD_BEAT});
        break;
    case GUARD_APPLIED:
    case GUARD_ASK_UDP:
    case GUARD_READY:
    case GUARD_FAILED:
    case GUARD_MAX_:
        break;
    }
}

static int on_message(struct ipc_in *in)
{
    struct guard_message *m = in->m;

    m->id[ID_LEN] = m->tenant[ID_LEN] = '\0';
    take(CONTAINER_OF(in->link, struct warden_link, ipc.link), m, in->fds.at, in->fds.n);
    return 0;
}

static void on_gone(struct ipc_link *l UNUSED, int r)
{
    exit(r == -EPIPE ? 0 : 1);
}

static const struct ipc_kind link_kind = {
    .magic = GUARD_MAGIC,
    .max = sizeof(struct guard_message),
    .fds_max = FDS_MAX,
    .unsent_max = QUEUE_MAX,
    .take = on_message,
    .gone = on_gone,
};

int warden_link_open(struct guard *g, int fd, struct sg_error *e)
{
    struct guard_message m;
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = FDS_MAX};
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (poll(&p, 1, FIRST_MS) != 1 ||
        ipc_take(fd, GUARD_MAGIC, &m, sizeof(m), sizeof(m), &fds) < 0 || m.what != GUARD_SETTINGS ||
        fds.n != 3)
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the warden has sent no settings");
    g->of_one_caller = m.code == GUARD_OF_ONE_CALLER;
    return settings_take(g, fds.at[0], fds.at[1], fds.at[2], e);
}

void warden_link_start(struct guard *g, int fd)
{
    struct guard_message ready = {.what = GUARD_READY};

    g->link = NEW(struct warden_link, .guard = g);
    ipc_uv_init(&g->link->ipc, g->loop, &link_kind);
    ipc_link_open(&g->link->ipc.link, fd);
    link_send(g->link, &ready);
}

/* Undoes the mapping of IPv4 addresses that the listener, an IPv6 socket, reports. */
static void unmapped(const struct sockaddr_storage *from, struct sockaddr_storage *ret)
{
    struct net_addr a;

    memset(ret, 0, sizeof(*ret));
    if (net_addr_from((const struct sockaddr *)from, &a) == 0)
        net_addr_to(&a, ret);
}

uint64_t warden_link_ask_udp(struct warden_link *l, const struct sandbox *s,
                             const struct sockaddr_storage *local,
                             const struct sockaddr_storage *peer)
{
    struct guard_message m = {.what = GUARD_ASK_UDP, .seq = ++l->seq, .life = s->life};

    memcpy(m.id, s->id, sizeof(m.id));
    unmapped(local, &m.local);
    unmapped(peer, &m.peer);
    link_send(l, &m);
    return m.seq;
}
