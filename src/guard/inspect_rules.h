/* A policy's changes to the headers of a request: sets the headers of the rule, with secrets and
 * tokens (identity.h) in them, and replaces placeholders by secrets.
 *
 * It also decides what a response is scrubbed of: every secret of the policy, as soon as one of
 * them may go to the connection's host. Scrubbing only the secrets of this request would not do: a
 * host can keep a secret that it got and tell it to the next who asks. The guard does not let a
 * sandbox ask such a host for a part of a response either, because half a secret would not be
 * found. */
#pragma once

#include "guard/guard.h"
#include "guard/http_message.h"
#include "guard/policy.h"
#include "guard/scrub.h"

#define RULES_WHY 256

/* The next mention in the value of a header: ${e2b.secrets.NAME} or ${e2b.identity.tokens.NAME}. */
struct rules_mention {
    const char *at, *name, *end; /* end: where the search for the one after it begins */
    size_t len;                  /* of the name */
    bool token;
};
bool rules_mention(const char *value, struct rules_mention *ret); /* false: there is none */

struct rules {
    struct sandbox *sandbox;
    struct policy *policy;
    const char *name;                       /* of the connection */
    const struct policy_rule *rule;         /* the name's rule, or NULL */
    struct identity_live *tokens;           /* of the last request; NULL: none may go here */
    const struct scrub *scrub;              /* NULL: no secret may go to this host */
    uint64_t told[POLICY_SECRETS_MAX / 64]; /* secrets whose use is on record for this connection */
    bool told_tokens;                       /* the same of tokens */
    bool no_tokens;                         /* they could not be made */
    char label[POLICY_NAME_MAX + 8];        /* "rules NAME", for the record */
};
void rules_init(struct rules *r, struct sandbox *s, struct policy *p, const char *name);
void rules_done(struct rules *r);
/* Writes the fields of a request that pass, changed as the rules say. plain_body: the body was
 * unpacked, so its Content-Encoding is left out. Returns 0, or the status to refuse the request
 * with and the reason in why. `out` must not move while it is written to, because it gets
 * secrets. */
int rules_write(struct rules *r, const struct http_message *m, bool plain_body, struct strbuf *out,
                char why[RULES_WHY]);
