/* The budget: how this server shares out the machine's memory. It only keeps accounts: pressure.h
 * reads what is used and tells it, so that a create costs two lookups and reads no file.
 *
 * Every sandbox that lives or is being made has a share. Nobody knows how much it will use. Its
 * limit says what it may use, but nobody buys machines for the sum of all limits. So a share is
 *
 *   BUDGET_NEW       for a template of which too little is known
 *   what was learnt  else: of the last BUDGET_SAMPLES sandboxes that this tenant made from this
 *                    template, 95 of 100 used no more at their peak
 *
 *   when a share is asked for                         answer
 *   ------------------------------------------------  -------------------------------------------
 *   the larger of all shares and of what is used,     -EAGAIN: the machine is full (503, try again)
 *   with this one, is over `limit`
 *   the same of the tenant, over `tenant_limit`       -EDQUOT: its tenant's memory is full (429)
 *   pressure has closed the budget                    -EAGAIN
 *   anything else                                     a share
 *
 * Only sandboxes have shares. Pooled sandboxes, zygotes and checkpoints count as memory that is
 * used; they are given up first when memory is short (pressure.h).
 *
 * The budget remembers at most BUDGET_CLASSES templates; beyond that it forgets the one that was
 * not used for longest. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"
#include "lib/base/map.h"

#define BUDGET_NEW     (16ull << 20)
#define BUDGET_SAMPLES 64
#define BUDGET_KNOWN   20 /* samples needed before they count */
#define BUDGET_CLASSES 2048

struct budget_class;
struct budget_tenant;

struct budget {
    uint64_t limit, tenant_limit; /* tenant_limit 0: none */
    uint64_t reserved, used;
    bool closed; /* no new sandbox gets a share */
    uint64_t refused;
    uint64_t clock; /* counts uses, to find the longest unused */
    struct map classes, tenants;
};

/* The share of one sandbox; zeroed: no share. */
struct budget_share {
    struct budget_class *class;
    struct budget_tenant *tenant;
    uint64_t bytes;
};

/* How much of a machine with `there` bytes a server may give out: 10 % and 1 GiB less, which are
 * for everything but sandboxes; a quarter at least. */
uint64_t budget_of_machine(uint64_t there);

/* template: the name of a snapshot or of a checkpoint, "": the plain template. */
int budget_take(struct budget *b, const char *tenant, const char *template,
                struct budget_share *ret, struct sg_error *e);
/* peak: the most that the sandbox used; 0: unknown. Does nothing if there is no share. */
void budget_give_back(struct budget *b, struct budget_share *share, uint64_t peak);
/* Whether the budget has room for that many bytes, for something that is no sandbox. */
bool budget_has_room(const struct budget *b, uint64_t bytes);
/* The share that a sandbox of this tenant and template would get. */
uint64_t budget_expects(const struct budget *b, const char *tenant, const char *template);
/* Notes how much all sandboxes of a tenant use; forgotten with the tenant's last share. */
void budget_tenant_uses(struct budget *b, const char *tenant, uint64_t bytes);
void budget_done(struct budget *b);
