/* The guard of an engine: the process that everything goes through that leaves its sandboxes. The
 * library has no event loop, so a thread answers the guard's requests, and starts another guard
 * when one has ended.
 *
 * Callers of these functions hold the engine. The thread and the callers share the list of
 * sandboxes under a lock. The guard writes its key and its record to memory, so both are gone when
 * the guard is. */
#pragma once

#include <sandglass.h>

#include "warden/providers/provider.h"

struct egress;

int egress_open(const struct sg_options *o, struct egress **ret, struct sg_error *e);
/* Opens the sandbox's way out, to the guard. `placeholders` are the placeholders of o->secrets. */
int egress_admit(struct egress *g, struct instance *i, const char *id, const struct sg_options *o,
                 char *const *placeholders, struct sg_error *e);
/* The certificate that the guard shows on the sandbox's inspected connections, as PEM, and the file
 * name under which OpenSSL looks for it. hosts: the names it is valid for, NULL-terminated. */
int egress_certificate(struct egress *g, const char *id, const char *const *hosts, char **ret_pem,
                       char ret_hash[16], struct sg_error *e);
/* Call it before the instance is destroyed. A sandbox that was never admitted is allowed, and so is
 * a NULL guard, here and below. */
void egress_dismiss(struct egress *g, const char *id);
/* Kills the guard and does not wait for its end. */
void egress_kill(struct egress *g);
void egress_close(struct egress *g);
