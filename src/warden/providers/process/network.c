/* The way out of an instance: see provider.h. */
#include "warden/providers/process/process_impl.h"

_Static_assert(NETWORK_WHY == NETPATH_WHY, "one text");

static bool prepared(const struct instance *i)
{
    return i->netpath.path != 0;
}

static int prepare(struct instance *i, enum egress_path path, struct sg_error *e)
{
    return prepared(i) ? 0 : netpath_prepare(i->pidfd, path, &i->netpath, e);
}

static int open_out(struct instance *i, enum egress_path path, struct sg_error *e)
{
    int r = prepare(i, path, e);

    return r < 0 ? r : netpath_open(i->pidfd, &i->netpath, e);
}

static int close_out(struct instance *i, struct sg_error *e)
{
    return netpath_close(i->pidfd, &i->netpath, e);
}

static void sockets(const struct instance *i, struct network_sockets *ret)
{
    *ret = (struct network_sockets){
        .path = i->netpath.path, .tcp = i->netpath.tcp, .udp = i->netpath.udp};
}

static int udp(struct instance *i, const struct sockaddr_storage *local,
               const struct sockaddr_storage *peer, struct sg_error *e)
{
    return netpath_udp(i->pidfd, local, peer, e);
}

const struct provider_network process_network = {
    .choose = netpath_probe,
    .prepare = prepare,
    .prepared = prepared,
    .open = open_out,
    .close = close_out,
    .sockets = sockets,
    .udp = udp,
};
