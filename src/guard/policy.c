#include "guard/policy_impl.h"

#include <assert.h>
#include <openssl/sha.h>

#include "lib/text/json_check.h"
#include "wire/guard.h"

#define ID_TEXT_MAX 64
#define ENTRY_MAX   POLICY_NAME_MAX
#define DEPTH_MAX   16
#define VALUES_MAX  (4u * POLICY_ENTRIES_MAX)

/* ---- reading --------------------------------------------------------------------------------- */

static void read_entries(struct fields *in, const char *key, struct entries *to)
{
    json_t *list = field_array(in, key, POLICY_ENTRIES_MAX), *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (!json_is_string(v) || json_string_length(v) > ENTRY_MAX)
            field_wrong(in, "element %zu of '%s' must be a string of at most %d bytes", i, key,
                        ENTRY_MAX);
        else if (entries_add(to, key, json_string_value(v), in->e) < 0)
            fields_check(in, err_wrap(in->e, -EINVAL, "policy document"));
        if (!fields_ok(in))
            return;
    }
}

static void read_quota(struct fields *in, struct policy_quota *ret)
{
    ret->flows = (uint32_t)field_count(in, "flows", 0, UINT32_MAX, 0);
    ret->flow_rate = (uint32_t)field_count(in, "flowRate", 0, UINT32_MAX, 0);
    ret->bytes = field_count(in, "bytes", 0, INT64_MAX, 0);
}

static void read_document(struct policy *p, struct fields *in, const struct vault_key *key)
{
    if (!json_is_object(in->object))
        field_wrong(in, "must be a JSON object");
    p->fake_ip = field_flag(in, "fakeIp", false);
    const char *text = field_text(in, "default", 16, "");
    field_text(in, "tenant", ID_TEXT_MAX, NULL);
    field_text(in, "sandbox", ID_TEXT_MAX, NULL);
    p->default_deny = strcmp(text, "deny") == 0;
    if (!p->default_deny && strcmp(text, "allow") != 0)
        field_must(in, "default", "\"allow\" or \"deny\"");
    read_entries(in, "allow", &p->allow);
    read_entries(in, "deny", &p->deny);
    text = field_text(in, "sanitise", 32, NULL);
    p->sanitise = SANITISE_ENFORCE;
    if (text && sanitise_mode_parse(text, &p->sanitise) < 0)
        field_must(in, "sanitise", "\"enforce\", \"report-only\" or \"off\"");
    read_quota(in, &p->quota);
    policy_requests_read(p, in, key);
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
    struct fields in = {.prefix = "policy document: ", .e = e, .strict = true};
    struct policy *p;
    json_error_t why;
    json_t *o;

    if (len > GUARD_DOCUMENT_MAX)
        return field_wrong(&in, "longer than %u bytes", GUARD_DOCUMENT_MAX);
    struct json_weight w = json_weigh(text, len);
    if (w.depth > DEPTH_MAX || w.values > VALUES_MAX)
        return field_wrong(&in, "more than %u values, or more than %d levels", VALUES_MAX,
                           DEPTH_MAX);
    in.object = o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    /* The library's message quotes the text, and there may be a credential in it. */
    if (!o)
        return field_wrong(&in, "not valid JSON (line %d, column %d)", why.line, why.column);
    p = NEW(struct policy, .refs = 1, .plain = plain);
    entries_init(&p->allow);
    entries_init(&p->deny);
    set_hash(p, text, len);
    read_document(p, &in, key);
    json_decref(o);
    if (in.r < 0)
        policy_unref(p);
    else
        *ret = p;
    return in.r;
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
