/* The inside of a policy, for policy.c and policy_requests.c. */
#pragma once

#include "guard/entries.h"
#include "guard/policy.h"
#include "lib/json/fields.h"

struct policy {
    unsigned refs;
    char hash[2 * POLICY_HASH_LEN + 1];
    bool default_deny, fake_ip;
    bool plain; /* secrets in the document need not be sealed */
    struct entries allow, deny;
    enum sanitise_mode sanitise;
    struct policy_quota quota;

    struct policy_rule *rules;
    size_t n_rules;
    struct names *rule_names; /* finds the rule for a name */
    struct policy_secret *secrets;
    size_t n_secrets;
    struct scrub *scrub;        /* finds all secrets; NULL: there are none */
    struct names *secret_hosts; /* finds the secret whose placeholder is replaced at a name */
    struct policy_proxy *proxy; /* NULL: none */
};

/* Reads rules, secrets and the proxy into p. After a failure p keeps what was read so far. */
void policy_requests_read(struct policy *p, struct fields *in, const struct vault_key *key);
void policy_requests_done(struct policy *p);
