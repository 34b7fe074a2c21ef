/* Keeps what a client asked of a context's sandbox: metadata, variables, network. These belong to
 * the context, not to the sandbox: they are stored with the row while it is active, and applied
 * again when a lost sandbox is replaced.
 *
 * They may hold secrets, so the store gets them sealed (lib/vault/vault.h), for this tenant and
 * context. The key is in the front's own directory (KEPT_KEY), and in no database. Only a server
 * with that key can open the text: of several servers on one database, those that were given a copy
 * of the key. On any other server the new sandbox is made without these settings and reaches
 * nothing; the answer (kept_lost) and the log say so. */
#pragma once

#include "front/core/spec.h"

#define KEPT_KEY "contexts.key"

struct vault_key;

/* Seals the settings of a spec into a text for the store, *ret, to be freed; NULL: there is nothing
 * to keep. */
int kept_seal(const struct vault_key *k, const char *tenant, const char *context,
              const struct sandbox_spec *s, char **ret, struct sg_error *e);
/* The same for a running sandbox, with its current network. */
int kept_seal_running(const struct vault_key *k, const char *context, const struct sandbox_spec *s,
                      char **ret, struct sg_error *e);
/* Fills in from the kept text what s does not set itself. *ret_said: s sets something itself.
 * -EBADMSG: the text cannot be opened with this key; s is unchanged. */
int kept_apply(const struct vault_key *k, const char *tenant, const char *context, const char *kept,
               struct sandbox_spec *s, bool *ret_said, struct sg_error *e);
