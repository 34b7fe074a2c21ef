/* The policy document tells the guard what a sandbox may reach. The front or the command line
 * writes this JSON, guard/policy.h reads it, and nobody in between looks into it.
 *
 *   {"tenant": id, "sandbox": id,
 *    "default": "allow" | "deny",            for targets that no entry names
 *    "allow": ["93.184.216.0/24", "2606:2800::1", "a.test", "*.b.test", ...],
 *    "deny":  ["198.51.100.7", "*.ads.test", ...],          allow is stronger than deny
 *    "fakeIp": true,                         answer names with addresses that stand for them
 *    "rules": [{"domain": "api.test", "headers": [["authorization", "Bearer ${e2b.secrets.k}"]]}],
 *    "secrets": [{"name": "k", "sealed": "...", "placeholder": "sgph_...",
 *                 "hosts": ["api.test"], "headers": ["authorization"]}],
 *               or "value": "..." in place of "sealed", see GUARD_OF_ONE_CALLER (wire/guard.h)
 *    "identity": {"issuer": "https://...", "spiffeId": "spiffe://...", "tenant": name, "template": id,
 *                 "tokens": {"aws": "sts.amazonaws.com"}},   by name: its audience
 *               mentioned in rules as ${e2b.identity.tokens.aws}; guard/identity.h
 *    "proxy": {"address": "proxy.test:1080", "username": "...", "password": "..."},
 *    "sanitise": "enforce" | "report-only" | "off",         of request bodies that are inspected
 *    "flows": 128, "flowRate": 100, "bytes": 0}             quotas; 0: none
 *
 * Only the guard can read a sealed text (lib/vault/vault.h); it is sealed for the purpose
 * "TENANT/NAME". The proxy's password is the client's own, so it comes unsealed. A document cannot
 * open internal addresses: the guard never dials those unless the server's settings name them. */
#pragma once

#include "lib/text/strbuf.h"

struct egress_secret {
    const char *name, *value, *placeholder;
    const char *const *hosts; /* NULL-terminated */
};

struct egress_document {
    const char *tenant, *sandbox_id;
    bool default_deny, fake_ip;
    const char *const *allow, *const *deny; /* NULL-terminated, or NULL */
    uint32_t flows, flow_rate;
    uint64_t bytes;
    const struct egress_secret *secrets; /* see GUARD_OF_ONE_CALLER */
    size_t n_secrets;
};

/* Prints a document as JSON, for callers that have no "rules" and no "proxy". */
void egress_document_print(const struct egress_document *d, struct strbuf *out);
