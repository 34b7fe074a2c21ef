#include "warden/readiness.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/sandboxes/teardown.h"
#include "warden/server.h"

#define APART_NS 1000000000ull

void readiness_proved(struct server *s)
{
    s->readiness.proved = true;
}

void readiness_failed(struct server *s, const struct sg_error *e)
{
    s->readiness.proved = false;
    snprintf(s->readiness.why, sizeof(s->readiness.why), "%.255s", e->message);
}

static void on_made(void *arg, struct instance *i, const struct sg_error *e)
{
    struct server *s = arg;
    struct readiness *p = &s->readiness;

    p->probing = false;
    if (i)
        teardown_begin(p->tenant_pool, i, NULL, NULL);
    else
        readiness_failed(s, e);
    if (!i)
        log_line(LEVEL_WARN, "not ready, no sandbox can be made: %s", p->why);
    tenant_pool_give_up(p->tenant_pool);
}

static void probe(struct server *s)
{
    struct readiness *p = &s->readiness;
    struct sg_error e = {0};

    p->probed_ns = clock_ns();
    if (tenant_pool_get(s, TENANT_POOL_NOBODY, &p->tenant_pool, &e) <
        0) { /* tenant_pool_get has told the reason */
        log_line(LEVEL_WARN, "not ready, no sandbox can be made: %s", e.message);
        return;
    }
    p->probing = true;
    p->request = (struct tenant_pool_request){.bare = true, .done = on_made, .arg = s};
    tenant_pools_usual_limits(s, &p->request.limits);
    tenant_pool_request(p->tenant_pool, &p->request);
}

void readiness_start(struct server *s)
{
    snprintf(s->readiness.why, sizeof(s->readiness.why), "no sandbox has been made yet");
    probe(s);
}

int readiness_check(struct server *s, struct sg_error *e)
{
    struct readiness *p = &s->readiness;

    if (p->proved)
        return 0;
    if (!p->probing && !s->closing && clock_ns() - p->probed_ns >= APART_NS)
        probe(s);
    return err_set(e, SG_ERR_LIMIT, -EAGAIN, "no sandbox can be handed out: %s", p->why);
}
