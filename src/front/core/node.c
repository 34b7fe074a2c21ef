#include "front/core/node.h"

#include "front/store/node.h"
#include "lib/base/clock.h"
#include "lib/log/log.h"

static struct {
    enum node_status status;
    int64_t since_ms;
} node;

int node_start(struct front *f, bool again, struct sg_error *e)
{
    int64_t status = NODE_READY, since = 0;
    int r = store_node_get(f->store, &status, &since, e);

    node.since_ms = clock_wall_ms();
    if (r < 0 || status <= NODE_READY || status >= NODE_STATUS_MAX_)
        return r;
    if (!again)
        return store_node_set(f->store, NODE_READY, node.since_ms, e);
    node.status = (enum node_status)status;
    node.since_ms = since;
    return 0;
}

enum node_status node_status(const struct front *f)
{
    return f->draining ? NODE_DRAINING : node.status;
}

int64_t node_status_since_ms(void)
{
    return node.since_ms;
}

int node_set_status(struct front *f, enum node_status status, struct sg_error *e)
{
    static const char *const said[] = {[NODE_READY] = "it takes new sandboxes again",
                                       [NODE_DRAINING] = "it takes no new sandboxes (draining)",
                                       [NODE_STANDBY] = "it takes no new sandboxes (standby)"};
    int64_t now = clock_wall_ms();

    if (status == node.status)
        return 0;
    if (node.status == NODE_DRAINING && status == NODE_STANDBY)
        return err_set(e, SG_ERR_GONE, -EBUSY,
                       "cannot change node status from draining to standby");
    int r = store_node_set(f->store, status, now, e);
    if (r < 0)
        return r;
    node.status = status;
    node.since_ms = now;
    log_line(LEVEL_INFO, "the operator has changed the server's status: %s", said[status]);
    return 0;
}

int node_check_open(const struct front *f, struct sg_error *e)
{
    if (f->draining || node.status == NODE_READY)
        return 0;
    return err_set(e, SG_ERR_LIMIT, -EAGAIN,
                   "the server takes no new sandboxes: its operator has closed it for now");
}
