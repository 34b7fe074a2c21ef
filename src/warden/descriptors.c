#include "warden/descriptors.h"

#include "lib/base/fds.h"
#include "warden/server.h"
#include "warden/sandboxes/tenant_pool.h"

int descriptors_admit(struct server *s, struct sg_error *e)
{
    while (fds_level() >= FDS_SCARCE)
        if (!tenant_pools_relieve(s))
            return err_set(
                e, SG_ERR_LIMIT, -EMFILE,
                "the server has %llu of %llu descriptors open and keeps the rest in reserve: end "
                "some sandboxes, or raise its limit (LimitNOFILE= of the service)",
                (unsigned long long)fds_open(), (unsigned long long)fds_max());
    if (!list_empty(&s->loop.polled))
        return err_set(e, SG_ERR_LIMIT, -ENOSPC,
                       "the server has no room to watch another descriptor: end some sandboxes, or "
                       "raise fs.epoll.max_user_watches");
    return 0;
}
