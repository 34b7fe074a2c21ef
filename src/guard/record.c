#include "lib/audit/audit.h"
#include "guard/guard.h"
#include "guard/news.h"
#include "guard/policy.h"

void record_decision(struct sandbox *s, const struct decision *d)
{
    const struct policy *policy = d->policy ? d->policy : s->policy;
    char address[NET_ADDR_TEXT_MAX] = "";
    struct audit_record r = {
        .kind = d->kind,
        .tenant = s->tenant,
        .sandbox = s->id,
        .name = d->name,
        .address = address,
        .protocol = d->protocol,
        .verdict = d->allowed ? "allow" : "deny",
        .rule = d->rule,
        .detail = d->detail,
        .policy = policy ? policy->hash : NULL,
        .up = d->up,
        .down = d->down,
        .ms = d->ms,
    };

    news_gather(s, d);
    /* A guard of one sandbox may have no record. */
    if (!s->guard->audit)
        return;
    if (d->address) {
        net_addr_text(d->address, address);
        r.port = d->address->port;
    }
    audit_write(s->guard->audit, &r);
}
