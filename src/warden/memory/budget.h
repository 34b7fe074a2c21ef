/* The budget: the machine's memory as this server gives it out. Accounting alone: what is used is
 * told to it (pressure.h reads), and a create costs two lookups and no file.
 *
 * A sandbox that lives, and one that is being made, has a share. How much it will use nobody knows;
 * its limit is what it may use, and machines are not bought for the sum of limits. So a share is
 *
 *   BUDGET_NEW       of a template of which too little is known
 *   what was learnt  else: 95 of 100 sandboxes that this tenant made from this template, of the
 *                    last BUDGET_SAMPLES, used no more at their peak
 *
 *   what is asked for                                  answer
 *   ------------------------------------------------  -------------------------------------------
 *   the larger of all shares and of what is used,     -EAGAIN: the machine is full (503, try again)
 *   with this one, is over `limit`
 *   the same of the tenant, over `tenant_limit`       -EDQUOT: its tenant's memory is full (429)
 *   pressure says that nobody is to be let in         -EAGAIN
 *   anything else                                     a share
 *
 * Shares are for sandboxes alone: what waits in pools, zygotes and checkpoints are part of what is
 * used. They are let go first (pressure.h).
 *
 * Bounded: what is known of templates is forgotten, the longest unused first, beyond
 * BUDGET_CLASSES. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

#define BUDGET_NEW     (16ull << 20)
#define BUDGET_SAMPLES 64
#define BUDGET_KNOWN   20 /* samples before they count */
#define BUDGET_CLASSES 2048
#define BUDGET_BUCKETS 256

struct budget_class;
struct budget_tenant;

struct budget {
    uint64_t limit, tenant_limit; /* tenant_limit 0: none */
    uint64_t reserved, used;
    bool closed; /* nobody is to be let in */
    uint64_t refused;
    uint32_t n_classes;
    uint64_t clock; /* counts uses */
    struct budget_class *classes[BUDGET_BUCKETS];
    struct budget_tenant *tenants[BUDGET_BUCKETS];
};

/* What one sandbox has; zeroed: nothing. */
struct budget_share {
    struct budget_class *class;
    struct budget_tenant *tenant;
    uint64_t bytes;
};

/* What a server may give out of a machine that has `there` bytes: less 10 % and less 1 GiB, which
 * is for all that is no sandbox; a quarter at least. */
uint64_t budget_of_machine(uint64_t there);

/* template: the name of a layer or of a checkpoint, "": the plain one. */
int budget_take(struct budget *b, const char *tenant, const char *template,
                struct budget_share *ret, struct sg_error *e);
/* peak: what it has used, 0: that is not known. Nothing if there is no share. */
void budget_give_back(struct budget *b, struct budget_share *share, uint64_t peak);
/* Whether so many bytes more, of something that is no sandbox, would still be within the budget. */
bool budget_has_room(const struct budget *b, uint64_t bytes);
/* What a sandbox like that would get. */
uint64_t budget_expects(const struct budget *b, const char *tenant, const char *template);
/* What all sandboxes of a tenant have in use; forgotten with its last share. */
void budget_tenant_uses(struct budget *b, const char *tenant, uint64_t bytes);
void budget_done(struct budget *b);
