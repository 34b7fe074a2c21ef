/* Copies of public templates. Another tenant's sandboxes may be made of a template that is public, but
 * never of its owner's files: inodes, and so pages, locks and watches, would be the same. So a tenant
 * gets a copy of its own with its first use of the template, and sandbox_create puts it in the place of
 * the owner's layer: whatever wants a sandbox made, it is never made of a layer of another tenant.
 *
 *   first use --> copied by a files worker (ORDER_COPY) --> kept, and counted for tenant_build_size
 *                                                            |
 *            the template has changed, or is no longer public, or nobody used it for a day;
 *            or other copies of the tenant take its room     |
 *                                                            v
 *                                                  removed; sandboxes of it go on
 *
 * Worlds need none: each tenant mounts them for itself, and has inodes of its own. */
#pragma once

#include "front/core/front.h"
#include "lib/base/ids.h"

/* snapshot: for sandboxes of this tenant. Called once, perhaps before copies_want returns. */
typedef void (*copies_done)(void *arg, int r, const char *snapshot, const struct sg_error *e);
/* Finds what the tenant's sandboxes are made of instead of a layer of a public template; copies it first
 * if need be. -ENOENT: the layer is another tenant's, and not public. -EDQUOT. */
void copies_want(struct front *f, const char *tenant, const char *snapshot, copies_done done,
                 void *arg);
/* Whether a layer is another tenant's: then nothing may be made of it but through copies_want. */
bool copies_are_needed(struct front *f, const char *tenant, const char *snapshot);
/* Removes those that nobody may have any more, or that nobody has used for long. */
void copies_tidy(struct front *f);
/* Removes what the tenant's own templates leave no more room for. */
void copies_fit(struct front *f, const char *tenant);
/* Once, when the store is open. */
void copies_start(struct front *f);
