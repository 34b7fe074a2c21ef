/* The policy document: what a sandbox may reach, as the front or the command line tells the guard
 * (guard/policy.h reads it). JSON; nobody in between looks into it.
 *
 *   {"tenant": id, "sandbox": id,
 *    "default": "allow" | "deny",            what happens to what no entry names
 *    "allow": ["93.184.216.0/24", "2606:2800::1", "a.test", "*.b.test", ...],
 *    "deny":  ["198.51.100.7", "*.ads.test", ...],          allow is stronger than deny
 *    "fakeIp": true,                         answer names with addresses that stand for them
 *    "rules": [{"domain": "api.test", "headers": [["authorization", "Bearer ${e2b.secrets.k}"]]}],
 *    "secrets": [{"name": "k", "sealed": "...", "placeholder": "sgph_...",
 *                 "hosts": ["api.test"], "headers": ["authorization"]}],
 *               or "value": "..." in place of "sealed", for a guard of one caller (wire.h)
 *    "proxy": {"address": "proxy.test:1080", "username": "...", "password": "..."},
 *    "sanitise": "enforce" | "report-only" | "off",         of request bodies that are inspected
 *    "flows": 128, "flowRate": 100, "bytes": 0}             quotas; 0: none
 *
 * A sealed text can be read by the guard alone (lib/vault/vault.h); what it was sealed for is
 * "TENANT/NAME". The proxy's password is the client's own and comes as it is. A document says
 * nothing about internal addresses: those are never dialled, whatever it says, unless the server's
 * settings name them. */
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
    const struct egress_secret *secrets; /* for a guard of one caller */
    size_t n_secrets;
};

/* For callers without rules. */
void egress_document_print(const struct egress_document *d, struct strbuf *out);
