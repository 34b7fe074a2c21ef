/* A policy: what one sandbox may reach. Read from a document (wire/policy_document.h), never
 * changed after, counted.
 *
 * Addresses: a radix tree (cidr.h), of which the longest prefix is named in the record; allow beats
 * deny whatever its length (as E2B has it). Names: a hash of labels (names.h); `*.x` is one label
 * or more below x, never x itself. "0.0.0.0/0" stands for all traffic, IPv6 too. Looking up is
 * independent of how many entries there are: 10,000 names cost what 10 do.
 *
 * A name that is allowed lets nobody reach its address: only a connection that says the name goes,
 * and it goes to where the guard itself has found the name to be. */
#pragma once

#include "guard/addr.h"
#include "lib/sanitise/sanitise.h"
#include "lib/vault/vault.h"

#define POLICY_ENTRIES_MAX 20000
#define POLICY_NAME_MAX    253
#define POLICY_HASH_LEN    16
#define POLICY_SECRETS_MAX 256

struct policy;
struct vault_key;

/* key may be NULL: then a document with sealed texts is refused. */
int policy_parse(const char *text, size_t len, const struct vault_key *key, struct policy **ret,
                 struct sg_error *e);
/* The same for a guard of one caller (wire/guard.h): secrets may be there as they are. */
int policy_parse_plain(const char *text, size_t len, const struct vault_key *key,
                       struct policy **ret, struct sg_error *e);
struct policy *policy_ref(struct policy *p);
void policy_unref(struct policy *p); /* NULL is allowed */

/* First half of the document's SHA-256, hexadecimal. */
const char *policy_hash(const struct policy *p);

enum verdict { VERDICT_DENY, VERDICT_ALLOW, VERDICT_NAME /* the name decides */ };
struct judgement {
    enum verdict verdict;
    const char *rule; /* "allow 93.184.216.0/24", "default deny"...; lives as long as the policy */
};
/* By address. VERDICT_NAME if names could change the result, or must be looked at because of rules:
 * `fallback` then is what counts if there is no name. */
void policy_judge_address(const struct policy *p, const struct net_addr *a, struct judgement *ret,
                          struct judgement *fallback);
/* By a name in the form of name_normalise. The address is where the sandbox was going, or NULL:
 * one that is allowed by address needs no name. Never VERDICT_NAME. Whoever dials where a name was
 * found to be asks again with that address: a network that is denied stays so behind a name, unless
 * the name itself is allowed. */
void policy_judge_name(const struct policy *p, const char *name, const struct net_addr *a,
                       struct judgement *ret);
/* Whether DNS may be asked about a name. Where the default is deny only names that are allowed may
 * be: a question tells something to whoever serves the zone. */
void policy_judge_question(const struct policy *p, const char *name, struct judgement *ret);

/* Lower case, one trailing dot removed, letters, digits, '-' and '_', labels of 1 to 63, at most
 * POLICY_NAME_MAX; no address. ret has POLICY_NAME_MAX + 1 bytes. -EINVAL. */
int name_normalise(const char *name, size_t len, char *ret);

/* ---- what is done to requests ---------------------------------------------------------------- */

struct policy_secret {
    char name[65];
    struct secret value;
    char placeholder[64]; /* what the sandbox has in its place; "" if it has nothing */
    char (*hosts)[POLICY_NAME_MAX + 1]; /* where it may go: names, *.names */
    size_t n_hosts;
    char (*headers)[65]; /* in which the placeholder is replaced, lower case */
    size_t n_headers;
};
struct policy_header {
    char name[65];     /* lower case */
    const char *value; /* with ${e2b.secrets.NAME} in it */
};
struct policy_rule {
    char domain[POLICY_NAME_MAX + 1]; /* perhaps *.x */
    struct policy_header *headers;
    size_t n_headers;
};
/* Whether connections to it are inspected: it has a rule, or a placeholder is replaced there. */
bool policy_inspects(const struct policy *p, const char *name);
/* The most special rule for it; NULL. */
const struct policy_rule *policy_rule(const struct policy *p, const char *name);
size_t policy_secrets(const struct policy *p, const struct policy_secret **ret);
/* Looks for all of them. NULL: it has none. */
struct scrub;
const struct scrub *policy_scrub(const struct policy *p);
const struct policy_secret *policy_secret(const struct policy *p, const char *name, size_t len);
bool policy_secret_goes_to(const struct policy_secret *s, const char *host);
enum sanitise_mode policy_sanitise(const struct policy *p);

bool policy_fake_ip(const struct policy *p);

struct policy_proxy {
    char host[POLICY_NAME_MAX + 1]; /* a name or an address */
    uint16_t port;
    char username[256]; /* "": none */
    struct secret password;
};
const struct policy_proxy *policy_proxy(const struct policy *p); /* NULL: none */

struct policy_quota {
    uint32_t flows, flow_rate; /* 0: none */
    uint64_t bytes;
};
const struct policy_quota *policy_quota(const struct policy *p);

/* ---- what the operator lets nobody reach ----------------------------------------------------- */

struct deny_set;
/* list: names, *.names, addresses and networks with commas between. "": none. It is stronger than
 * every policy. */
int deny_set_new(const char *list, struct deny_set **ret, struct sg_error *e);
void deny_set_free(struct deny_set *s); /* NULL is allowed, here and below */
/* The rule that denies it ("server denies 10.0.0.0/8"), which lives as long as the set; NULL. */
const char *deny_set_address(const struct deny_set *s, const struct net_addr *a);
const char *deny_set_name(const struct deny_set *s, const char *name);
/* Whether a connection's name must be known before it can be let through. */
bool deny_set_has_names(const struct deny_set *s);
