/* Tokens that tell a server outside which sandbox asks: JSON Web Tokens, signed here with ES256.
 *
 * A policy document names tokens and their audiences (wire/policy_document.h). A rule's header
 * mentions one as ${e2b.identity.tokens.NAME}, and the guard puts it in as it does secrets: the
 * sandbox never has it, and it is scrubbed from what comes back.
 *
 * The keys for signing are derived from the guard's own key (lib/vault/vault.h), one for each
 * period of IDENTITY_PERIOD_S, so no file holds them, and a new one takes over by itself. The key
 * set that is published has the present key, the next one, so that it is known before it is used,
 * and the last one until its last token has expired.
 *
 *   identity.c        keys, and the making of a token
 *   identity_live.c   the tokens of a sandbox that are being used */
#pragma once

#include <openssl/evp.h>

#include "guard/guard.h"
#include "guard/policy.h"

#define IDENTITY_PERIOD_S  (30 * 24 * 3600)
#define IDENTITY_LIFE_S    600  /* of a token */
#define IDENTITY_RENEW_S   300  /* a token of this age is put into no more requests */
#define IDENTITY_OVERLAP_S 3600 /* how long a key is published after its period */

/* Writes {"keys": [{"kid", "x", "y", "until": seconds}]}: the keys to publish at that time. */
int identity_keys(const struct vault_key *k, int64_t now_s, struct strbuf *out, struct sg_error *e);
/* Appends a token. */
int identity_make(const struct vault_key *k, const struct policy_identity *who,
                  const struct policy_token *what, int64_t now_s, struct strbuf *out,
                  struct sg_error *e);

/* ---- tokens in use --------------------------------------------------------------------------- */

struct scrub;

/* The tokens of a sandbox under one policy, which do not change. When they are too old, others take
 * their place. Connections that still answer keep the ones they have used. */
struct identity_live;
/* Whether the value of a rule's header mentions a token that the policy has. */
bool identity_mentioned(const struct policy *p, const char *value);
/* Returns tokens that are fresh enough, with a reference for the caller. NULL, and the reason in e:
 * they cannot be made. */
struct identity_live *identity_take(struct sandbox *s, struct policy *p, struct sg_error *e);
struct identity_live *identity_ref(struct identity_live *l);
void identity_unref(struct identity_live *l); /* NULL is allowed */
/* NULL: there is no token of that name. */
const struct secret *identity_token(const struct identity_live *l, const char *name, size_t len);
/* Finds these tokens, those that they replaced, and the secrets of the policy. */
const struct scrub *identity_scrub(const struct identity_live *l);
