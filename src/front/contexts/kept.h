/* What a context's sandbox was asked to be: metadata, variables, network. It is the context's, not
 * the sandbox's: kept with the row as long as that is active, and applied again when a sandbox that
 * was lost is replaced.
 *
 * It may hold what nobody else may read, so the store gets it sealed (lib/vault/vault.h), for this
 * tenant and context, under a key in the front's own directory (KEPT_KEY), which is in no database.
 * Only a server with that key can open it: of several on one database, those that were given a
 * copy. Elsewhere the sandbox is made without it, reaches nothing, and the answer (kept_lost) and
 * the log say so. */
#pragma once

#include "front/core/spec.h"

#define KEPT_KEY "contexts.key"

struct vault_key;

/* A text for the store in *ret, to be freed; NULL: there is nothing to keep. */
int kept_seal(const struct vault_key *k, const char *tenant, const char *context,
              const struct sandbox_spec *s, char **ret, struct sg_error *e);
/* The same of a sandbox that runs, with the network that it has now. */
int kept_seal_running(const struct vault_key *k, const char *context, const struct sandbox_spec *s,
                      char **ret, struct sg_error *e);
/* What s does not say itself it gets from there. ret_said: s says something itself. -EBADMSG: it
 * was sealed for another, and s is as it was. */
int kept_apply(const struct vault_key *k, const char *tenant, const char *context, const char *kept,
               struct sandbox_spec *s, bool *ret_said, struct sg_error *e);
