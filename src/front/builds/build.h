/* Builds of templates. A build is an ordinary sandbox of its tenant, with the network of a sandbox
 * that names none, in which one step after the other is carried out. What a step left is saved as a
 * layer; the next build whose steps begin in the same way starts from it.
 *
 *   submit --> queued --> steps found in the cache --> sandbox --> steps, a layer after each
 *                                    |                                 |
 *                                    +-------> nothing left to do <----+--> start command
 *                                                      |                        |
 *                                                      +---> READY, tagged <----+
 *
 * Any error ends the build with a reason and the step that it is about. A front that is killed
 * leaves rows of builds under way, their sandboxes and perhaps a layer that nothing names: the next
 * front ends the first two (builds_start, sandbox_spec.build) and forgets the third. */
#pragma once

#include "front/core/front.h"
#include "front/store/templates.h"

struct build_plan {
    struct store_tenant tenant;
    struct store_build row;            /* id, template, tags and sizes */
    char name[STORE_NAME_MAX + 1];     /* of the template */
    char from[3 * STORE_NAME_MAX + 4]; /* the base as the client names it, for the log */
    char base[STORE_NAME_MAX + 1];     /* the built-in template under it */
    char layer[ID_LEN + 1];            /* its files: "" for a built-in template */
    bool layer_own;                    /* ... a layer of this tenant's builds */
    json_t *defaults;                  /* of the base, or NULL */
    json_t *steps;                     /* array, checked by steps_check */
    char *start, *ready;               /* NULL: the base's */
    bool force;
    char *image;         /* NULL: the base is there; else it has to be fetched first */
    json_t *credentials; /* for that, or NULL */
    char refusal[512];   /* why the base cannot be used; "": it can */
};
void build_plan_done(struct build_plan *p);

#define BUILDS_WAITING_MAX 32 /* of a tenant */

/* Takes the plan over if it returns 0. -EALREADY: the build was submitted before. -EDQUOT: too many
 * builds of the tenant wait. */
int build_submit(struct front *f, struct build_plan *plan, struct sg_error *e);
/* Ends builds of a template that are not over: one of them, or all if id is NULL. Returns how
 * many. */
size_t builds_cancel(struct front *f, const char *template_id, const char *id);
/* Ends all builds of a tenant that are not over. */
size_t builds_cancel_all(struct front *f, const char *tenant, const char *why);
/* Layers that nothing needs any more are deleted. */
void builds_sweep(struct front *f, const char *tenant);
/* Once, when the store is open. */
int builds_start(struct front *f, struct sg_error *e);
