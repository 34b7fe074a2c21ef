/* Tells people which kernels were carried over into a copy of a sandbox, and what stands in the way
 * if a copy cannot be made. Servers answer in one form for forks, branches, checkpoints and
 * rewinds. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

struct json_t;

/* Prints the kernels of one sandbox as a table; nothing if there are none. */
void carry_print_kernels(const struct json_t *kernels);
/* The same for several sandboxes: an array of objects with "sandbox" and "kernels". Objects without
 * a sandbox are left out. */
void carry_print_forks(const struct json_t *forks);

/* Prints the error. If the refusal lists obstacles, also prints a table of them, and what to do
 * about them. Returns the exit status. refusal may be NULL. */
int carry_fail(const struct sg_error *e, const struct json_t *refusal);
/* Appends the first obstacle of the refusal as a sentence. */
void carry_add_obstacle(struct strbuf *out, const struct json_t *refusal);

/* How much more time than other calls a copy may take. inherit may be NULL. */
uint64_t carry_more_ms(const char *inherit, uint64_t wait_ms);

bool carry_is_carried(const struct json_t *kernel);
/* Finds the kernel of a context, or NULL. */
const struct json_t *carry_find(const struct json_t *kernels, const char *context);
