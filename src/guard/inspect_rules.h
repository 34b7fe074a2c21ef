/* What a policy does to the headers of a request: sets those of the rule, puts secrets in the place
 * of their placeholders. And what comes back is scrubbed of: every secret of the policy, as soon as
 * one of them may go to the connection's host. Not only what was put into this request: a host can
 * keep what it got and tell it to the next who asks. For the same reason no part of an answer can
 * be asked for then: half a secret is not found. */
#pragma once

#include "guard/guard.h"
#include "guard/http_message.h"
#include "guard/policy.h"
#include "guard/scrub.h"

#define RULES_WHY 256

struct rules {
    struct sandbox *sandbox;
    struct policy *policy;
    const char *name;                       /* of the connection */
    const struct policy_rule *rule;         /* or NULL */
    const struct scrub *scrub;              /* NULL: no secret may go there */
    uint64_t told[POLICY_SECRETS_MAX / 64]; /* which are on record for this connection */
    char label[POLICY_NAME_MAX + 8];        /* "rules NAME", for the record */
};
void rules_init(struct rules *r, struct sandbox *s, struct policy *p, const char *name);
/* Writes the fields of a request that pass, as the rules have them. plain_body: its
 * Content-Encoding does not hold any more. 0, or the status to refuse the request with; why then
 * says why. `out` must not move while it is written to: it gets secrets. */
int rules_write(struct rules *r, const struct http_message *m, bool plain_body, struct strbuf *out,
                char why[RULES_WHY]);
