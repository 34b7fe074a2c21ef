/* The guard of an engine: the process through which everything goes that leaves its sandboxes. The
 * library has no loop of its own, so a thread answers what the guard asks for, and starts another
 * guard when one has ended.
 *
 * Whoever calls these holds the engine; the thread shares the list of sandboxes with them, under a
 * lock. What the guard writes (its key, a record of what went out) is in memory, and gone with
 * it. */
#pragma once

#include <sandglass.h>

#include "warden/providers/process/process.h"

struct egress;

int egress_open(const struct sg_options *o, struct egress **ret, struct sg_error *e);
/* Opens the sandbox's way out, to the guard. `placeholders` are those of o->secrets. */
int egress_admit(struct egress *g, struct instance *i, const char *id, const struct sg_options *o,
                 char *const *placeholders, struct sg_error *e);
/* The certificate that inspected connections of the sandbox are shown, as PEM, and the name OpenSSL
 * looks for it under. hosts: the names that it is good for, NULL-terminated. */
int egress_certificate(struct egress *g, const char *id, const char *const *hosts, char **ret_pem,
                       char ret_hash[16], struct sg_error *e);
/* Before the instance goes. NULL is allowed, here and below; so is one that was not admitted. */
void egress_dismiss(struct egress *g, const char *id);
/* Ends the guard, without waiting for it. */
void egress_kill(struct egress *g);
void egress_close(struct egress *g);
