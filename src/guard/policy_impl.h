/* How a policy is read: policy.c and policy_requests.c. */
#pragma once

#include "guard/policy.h"
#include "lib/json/fields.h"

/* Reads rules, secrets and the proxy into p. After a failure p keeps what was read so far. */
void policy_requests_read(struct policy *p, struct fields *in, const struct vault_key *key);
void policy_requests_done(struct policy *p);
