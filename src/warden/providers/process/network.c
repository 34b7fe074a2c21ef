/* The way out of an instance: see process.h. */
#include "warden/providers/process/process_impl.h"

_Static_assert(NETWORK_WHY == NETPATH_WHY, "one text");

int network_choose(enum egress_path wish, enum egress_path *ret, char why[NETWORK_WHY],
                   struct sg_error *e)
{
    return netpath_probe(wish, ret, why, e);
}

bool instance_network_prepared(const struct instance *i)
{
    return i->netpath.path != 0;
}

int instance_network_prepare(struct instance *i, enum egress_path path, struct sg_error *e)
{
    return instance_network_prepared(i) ? 0 : netpath_prepare(i->pidfd, path, &i->netpath, e);
}

int instance_network_open(struct instance *i, enum egress_path path, struct sg_error *e)
{
    int r = instance_network_prepare(i, path, e);

    return r < 0 ? r : netpath_open(i->pidfd, &i->netpath, e);
}

int instance_network_close(struct instance *i, struct sg_error *e)
{
    return netpath_close(i->pidfd, &i->netpath, e);
}

void instance_network_sockets(const struct instance *i, struct network_sockets *ret)
{
    *ret = (struct network_sockets){
        .path = i->netpath.path, .tcp = i->netpath.tcp, .udp = i->netpath.udp};
}

int instance_network_udp(struct instance *i, const struct sockaddr_storage *local,
                         const struct sockaddr_storage *peer, struct sg_error *e)
{
    return netpath_udp(i->pidfd, local, peer, e);
}
