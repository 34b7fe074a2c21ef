/* What a copy of a sandbox has of its kernels, and what stands in the way of one, as people read
 * it. Servers tell it in one form for forks, branches, checkpoints and rewinds. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

struct json_t;

/* The kernels of one sandbox, as a table; nothing if there are none. */
void carry_print_kernels(const struct json_t *kernels);
/* The same for several sandboxes: an array of objects with "sandbox" and "kernels". Those without a
 * sandbox are left out. */
void carry_print_forks(const struct json_t *forks);

/* Says what went wrong; what stands in the way, if the refusal lists it, as a table with what
 * helps. Returns the exit status. refusal may be NULL. */
int carry_fail(const struct sg_error *e, const struct json_t *refusal);
/* The same in a sentence: the first of them. */
void carry_add_obstacle(struct strbuf *out, const struct json_t *refusal);

/* How much longer than others such a call may take. inherit may be NULL. */
uint64_t carry_more_ms(const char *inherit, uint64_t wait_ms);

bool carry_is_carried(const struct json_t *kernel);
/* The kernel of a context, or NULL. */
const struct json_t *carry_find(const struct json_t *kernels, const char *context);
