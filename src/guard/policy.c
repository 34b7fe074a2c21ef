#include "guard/policy_impl.h"

#include <assert.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/text/json_check.h"
#include "wire/guard.h"

#define ID_TEXT_MAX 64
#define ENTRY_MAX   POLICY_NAME_MAX
#define DEPTH_MAX   16
#define VALUES_MAX  (4u * POLICY_ENTRIES_MAX)

/* ---- reading --------------------------------------------------------------------------------- */

int document_refuse(struct sg_error *e, const char *fmt, ...)
{
    char message[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    return err_set(e, SG_ERR_INVALID, -EINVAL, "policy document: %s", message);
}

int document_string(const json_t *o, const char *key, size_t max, const char **ret,
                    struct sg_error *e)
{
    const json_t *v = json_object_get(o, key);

    if (!v)
        return 0;
    if (!json_is_string(v))
        return document_refuse(e, "'%s' must be a string", key);
    if (json_string_length(v) > max)
        return document_refuse(e, "'%s' is longer than %zu bytes", key, max);
    *ret = json_string_value(v);
    return 0;
}

int document_array(const json_t *o, const char *key, size_t max, const json_t **ret,
                   struct sg_error *e)
{
    const json_t *v = json_object_get(o, key);

    if (!v)
        return 0;
    if (!json_is_array(v))
        return document_refuse(e, "'%s' must be an array", key);
    if (json_array_size(v) > max)
        return document_refuse(e, "'%s' has more than %zu elements", key, max);
    *ret = v;
    return 0;
}

static int read_number(const json_t *o, const char *key, uint64_t max, uint64_t *ret,
                       struct sg_error *e)
{
    const json_t *v = json_object_get(o, key);

    if (!v)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > max)
        return document_refuse(e, "'%s' must be a whole number from 0 to %llu", key,
                               (unsigned long long)max);
    *ret = (uint64_t)json_integer_value(v);
    return 0;
}

static int read_entries(const json_t *o, const char *key, struct entries *to, struct sg_error *e)
{
    const json_t *list = NULL;
    int r = document_array(o, key, POLICY_ENTRIES_MAX, &list, e);

    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_string(v) || json_string_length(v) > ENTRY_MAX)
            return document_refuse(e, "element %zu of '%s' must be a string of at most %d bytes", i,
                                   key, ENTRY_MAX);
        r = entries_add(to, key, json_string_value(v), e);
        if (r < 0)
            err_wrap(e, r, "policy document");
    }
    return r;
}

static int read_default(struct policy *p, const json_t *o, struct sg_error *e)
{
    const char *text = "", *ignored = NULL;
    int r = document_string(o, "default", 16, &text, e);

    if (r == 0)
        r = document_string(o, "tenant", ID_TEXT_MAX, &ignored, e);
    if (r == 0)
        r = document_string(o, "sandbox", ID_TEXT_MAX, &ignored, e);
    if (r < 0)
        return r;
    p->default_deny = strcmp(text, "deny") == 0;
    if (!p->default_deny && strcmp(text, "allow") != 0)
        return document_refuse(e, "'default' must be \"allow\" or \"deny\"");
    return 0;
}

static int read_sanitise(struct policy *p, const json_t *o, struct sg_error *e)
{
    const char *text = NULL;
    int r = document_string(o, "sanitise", 32, &text, e);

    p->sanitise = SANITISE_ENFORCE;
    if (r == 0 && text && sanitise_mode_parse(text, &p->sanitise) < 0)
        r = document_refuse(e, "'sanitise' must be \"enforce\", \"report-only\" or \"off\"");
    return r;
}

static int read_quota(struct policy *p, const json_t *o, struct sg_error *e)
{
    uint64_t flows = 0, rate = 0;
    int r = read_number(o, "flows", UINT32_MAX, &flows, e);

    if (r == 0)
        r = read_number(o, "flowRate", UINT32_MAX, &rate, e);
    if (r == 0)
        r = read_number(o, "bytes", INT64_MAX, &p->quota.bytes, e);
    p->quota.flows = (uint32_t)flows;
    p->quota.flow_rate = (uint32_t)rate;
    return r;
}

static int read_document(struct policy *p, const json_t *o, const struct vault_key *key,
                         struct sg_error *e)
{
    const json_t *fake = json_object_get(o, "fakeIp");
    int r;

    if (!json_is_object(o))
        return document_refuse(e, "must be a JSON object");
    if (fake && !json_is_boolean(fake))
        return document_refuse(e, "'fakeIp' must be true or false");
    p->fake_ip = json_is_true(fake);
    r = read_default(p, o, e);
    if (r == 0)
        r = read_entries(o, "allow", &p->allow, e);
    if (r == 0)
        r = read_entries(o, "deny", &p->deny, e);
    if (r == 0)
        r = read_sanitise(p, o, e);
    if (r == 0)
        r = read_quota(p, o, e);
    if (r == 0)
        r = policy_requests_read(p, o, key, e);
    return r;
}

static void set_hash(struct policy *p, const char *text, size_t len)
{
    uint8_t sum[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)text, len, sum);
    for (size_t i = 0; i < POLICY_HASH_LEN; i++)
        snprintf(p->hash + 2 * i, 3, "%02x", sum[i]);
}

static int parse(const char *text, size_t len, const struct vault_key *key, bool plain,
                 struct policy **ret, struct sg_error *e)
{
    struct policy *p;
    json_error_t why;
    json_t *o;
    int r;

    if (len > GUARD_DOCUMENT_MAX)
        return document_refuse(e, "longer than %u bytes", GUARD_DOCUMENT_MAX);
    struct json_weight w = json_weigh(text, len);
    if (w.depth > DEPTH_MAX || w.values > VALUES_MAX)
        return document_refuse(e, "more than %u values, or more than %d levels", VALUES_MAX,
                               DEPTH_MAX);
    o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    /* The library's message quotes the text, and there may be a credential in it. */
    if (!o)
        return document_refuse(e, "not valid JSON (line %d, column %d)", why.line, why.column);
    p = xcalloc(1, sizeof(*p));
    p->refs = 1;
    p->plain = plain;
    entries_init(&p->allow);
    entries_init(&p->deny);
    set_hash(p, text, len);
    r = read_document(p, o, key, e);
    json_decref(o);
    if (r < 0)
        policy_unref(p);
    else
        *ret = p;
    return r;
}

int policy_parse(const char *text, size_t len, const struct vault_key *key, struct policy **ret,
                 struct sg_error *e)
{
    return parse(text, len, key, false, ret, e);
}

int policy_parse_plain(const char *text, size_t len, const struct vault_key *key,
                       struct policy **ret, struct sg_error *e)
{
    return parse(text, len, key, true, ret, e);
}

struct policy *policy_ref(struct policy *p)
{
    p->refs++;
    return p;
}

void policy_unref(struct policy *p)
{
    if (!p)
        return;
    assert(p->refs > 0);
    if (--p->refs > 0)
        return;
    policy_requests_done(p);
    entries_done(&p->allow);
    entries_done(&p->deny);
    free(p);
}

const char *policy_hash(const struct policy *p)
{
    return p->hash;
}

bool policy_fake_ip(const struct policy *p)
{
    return p->fake_ip;
}

enum sanitise_mode policy_sanitise(const struct policy *p)
{
    return p->sanitise;
}

const struct policy_quota *policy_quota(const struct policy *p)
{
    return &p->quota;
}

/* ---- judging --------------------------------------------------------------------------------- */

static struct judgement by_default(const struct policy *p)
{
    return p->default_deny ? (struct judgement){VERDICT_DENY, "default deny"}
                           : (struct judgement){VERDICT_ALLOW, "default allow"};
}

/* Judges by the address alone. *ret_entry: an entry of `allow` has decided. */
static struct judgement by_address(const struct policy *p, const struct net_addr *a,
                                   bool *ret_entry)
{
    const char *rule = entries_address(&p->allow, a);
    struct net_addr carried;

    *ret_entry = false;
    /* Reaching an IPv4 address through a gateway is still reaching it. */
    if (net_addr_carried(a, &carried)) {
        struct judgement inner = by_address(p, &carried, ret_entry);

        *ret_entry = false;
        if (inner.verdict == VERDICT_DENY)
            return inner;
    }
    if (rule) {
        *ret_entry = true;
        return (struct judgement){VERDICT_ALLOW, rule};
    }
    rule = entries_address(&p->deny, a);
    return rule ? (struct judgement){VERDICT_DENY, rule} : by_default(p);
}

void policy_judge_address(const struct policy *p, const struct net_addr *a, struct judgement *ret,
                          struct judgement *fallback)
{
    bool entry, name_matters;

    *fallback = by_address(p, a, &entry);
    if (fallback->verdict == VERDICT_DENY)
        name_matters = !names_empty(p->allow.names);
    else
        name_matters = (!entry && !names_empty(p->deny.names)) || p->n_rules > 0 ||
                       !names_empty(p->secret_hosts);
    *ret = name_matters ? (struct judgement){VERDICT_NAME, "name"} : *fallback;
}

void policy_judge_name(const struct policy *p, const char *name, const struct net_addr *a,
                       struct judgement *ret)
{
    struct judgement address = by_default(p);
    bool entry = false;
    const char *rule;

    if (a)
        address = by_address(p, a, &entry);
    rule = entries_name(&p->allow, name);
    if (entry || rule) {
        *ret = entry ? address : (struct judgement){VERDICT_ALLOW, rule};
        return;
    }
    rule = entries_name(&p->deny, name);
    *ret = rule ? (struct judgement){VERDICT_DENY, rule} : address;
}

void policy_judge_question(const struct policy *p, const char *name, struct judgement *ret)
{
    policy_judge_name(p, name, NULL, ret);
}

/* ---- the operator's list --------------------------------------------------------------------- */

struct deny_set {
    struct entries entries;
};

int deny_set_new(const char *list, struct deny_set **ret, struct sg_error *e)
{
    struct deny_set *s = xcalloc(1, sizeof(*s));
    char entry[ENTRY_MAX + 1];
    int r = 0;

    entries_init(&s->entries);
    for (const char *p = list + strspn(list, ", \t"); r == 0 && *p; p += strspn(p, ", \t")) {
        size_t n = strcspn(p, ", \t");

        if (n > ENTRY_MAX) {
            r = err_set(e, SG_ERR_INVALID, -EINVAL, "'%.40s...' is too long for a name", p);
            break;
        }
        memcpy(entry, p, n);
        entry[n] = '\0';
        r = entries_add(&s->entries, "server denies", entry, e);
        p += n;
    }
    if (r < 0) {
        deny_set_free(s);
        return err_wrap(e, r, "egress_deny");
    }
    *ret = s;
    return 0;
}

void deny_set_free(struct deny_set *s)
{
    if (s)
        entries_done(&s->entries);
    free(s);
}

const char *deny_set_address(const struct deny_set *s, const struct net_addr *a)
{
    struct net_addr carried;
    const char *rule;

    if (!s)
        return NULL;
    rule = entries_address(&s->entries, a);
    if (!rule && net_addr_carried(a, &carried))
        rule = entries_address(&s->entries, &carried);
    return rule;
}

const char *deny_set_name(const struct deny_set *s, const char *name)
{
    return s ? entries_name(&s->entries, name) : NULL;
}

bool deny_set_has_names(const struct deny_set *s)
{
    return s && !names_empty(s->entries.names);
}
