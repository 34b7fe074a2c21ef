/* A policy: what one sandbox may reach. It is read from a document (wire/policy_document.h), never
 * changes after that, and is counted by references.
 *
 * Addresses are in a radix tree (cidr.h); the record names the longest prefix that matches. Allow
 * beats deny, whatever the length of the prefix (as E2B has it). Names are in a hash of labels
 * (names.h); `*.x` is one label or more below x, never x itself. "0.0.0.0/0" stands for all
 * traffic, IPv6 too. A lookup does not depend on how many entries there are: 10,000 names cost what
 * 10 do.
 *
 * Allowing a name does not allow its address: only a connection that says the name gets through,
 * and it goes to the address that the guard itself has resolved. */
#pragma once

#include "guard/entries.h"
#include "lib/sanitise/sanitise.h"
#include "lib/vault/vault.h"

#define POLICY_ENTRIES_MAX 20000
#define POLICY_HASH_LEN    16
#define POLICY_SECRETS_MAX 256

struct policy_secret {
    char name[65];
    struct secret value;
    char placeholder[64]; /* what the sandbox has in place of the value; "": nothing */
    char (*hosts)[POLICY_NAME_MAX + 1]; /* where the secret may go: names, *.names */
    size_t n_hosts;
    char (*headers)[65]; /* lower case; the placeholder is replaced in these */
    size_t n_headers;
};
struct policy_header {
    char name[65];     /* lower case */
    const char *value; /* may have ${e2b.secrets.NAME} and ${e2b.identity.tokens.NAME} in it */
};
struct policy_rule {
    char domain[POLICY_NAME_MAX + 1]; /* perhaps *.x */
    struct policy_header *headers;
    size_t n_headers;
};
struct policy_proxy {
    char host[POLICY_NAME_MAX + 1]; /* a name or an address */
    uint16_t port;
    char username[256]; /* "": none */
    struct secret password;
};
struct policy_token {
    const char *name, *audience;
};
struct policy_identity { /* what the tokens of the sandbox say: identity.h */
    const char *issuer, *spiffe_id, *sandbox_id, *tenant_id, *tenant, *template_id;
    struct policy_token *tokens;
    size_t n_tokens;
};
struct policy_quota {
    uint32_t flows, flow_rate; /* 0: no limit */
    uint64_t bytes;
};

/* Never changed after it was read. Of the rules and secrets, use policy_rule and the like. */
struct policy {
    unsigned refs;
    char hash[2 * POLICY_HASH_LEN + 1]; /* first half of the document's SHA-256 */
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
    struct policy_identity identity;
    struct policy_proxy *proxy; /* NULL: none */
};

/* key may be NULL: then a document with sealed texts is refused. */
int policy_parse(const char *text, size_t len, const struct vault_key *key, struct policy **ret,
                 struct sg_error *e);
/* The same for a guard of one caller (wire/guard.h), whose documents may have secrets that are not
 * sealed. */
int policy_parse_plain(const char *text, size_t len, const struct vault_key *key,
                       struct policy **ret, struct sg_error *e);
struct policy *policy_ref(struct policy *p);
void policy_unref(struct policy *p); /* NULL is allowed */

enum verdict { VERDICT_DENY, VERDICT_ALLOW, VERDICT_NAME /* the name decides */ };
struct judgement {
    enum verdict verdict;
    const char *rule; /* "allow 93.184.216.0/24", "default deny"...; lives as long as the policy */
};
/* Judges by address. VERDICT_NAME if a name could change the result, or if the connection must be
 * looked at because of rules; `fallback` is then the verdict for a connection without a name. */
void policy_judge_address(const struct policy *p, const struct net_addr *a, struct judgement *ret,
                          struct judgement *fallback);
/* Judges by a name in the form of name_normalise. `a` is where the sandbox was going, or NULL: a
 * connection that is allowed by address needs no name. Without it, this tells whether DNS may be
 * asked about the name: a question tells something to whoever serves the zone, so where the default
 * is deny only names that are allowed may be asked about. Never VERDICT_NAME. Before dialling an
 * address that a name was resolved to, ask again with that address: a network that is denied stays
 * so behind a name, unless the name itself is allowed. */
void policy_judge_name(const struct policy *p, const char *name, const struct net_addr *a,
                       struct judgement *ret);

/* ---- what the guard does to requests --------------------------------------------------------- */

/* Whether connections to a name are inspected: the name has a rule, or a placeholder is replaced
 * there. */
bool policy_inspects(const struct policy *p, const char *name);
/* The most specific rule for a name; NULL: none. */
const struct policy_rule *policy_rule(const struct policy *p, const char *name);
const struct policy_secret *policy_secret(const struct policy *p, const char *name, size_t len);
/* Adds the secrets of the policy, which must outlive `to`. */
void policy_scrub_secrets(const struct policy *p, struct scrub *to);
bool policy_secret_goes_to(const struct policy_secret *s, const char *host);

/* ---- what the operator lets nobody reach ----------------------------------------------------- */

struct deny_set;
/* list: names, *.names, addresses and networks with commas between. "": none. The list beats every
 * policy. */
int deny_set_new(const char *list, struct deny_set **ret, struct sg_error *e);
void deny_set_free(struct deny_set *s); /* NULL is allowed, here and below */
/* The rule that denies an address or a name ("server denies 10.0.0.0/8"); it lives as long as the
 * set. NULL: nothing denies it. */
const char *deny_set_address(const struct deny_set *s, const struct net_addr *a);
const char *deny_set_name(const struct deny_set *s, const char *name);
/* Whether the set has names, so that the guard must know a connection's name before letting it
 * through. */
bool deny_set_has_names(const struct deny_set *s);
