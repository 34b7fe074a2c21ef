#include "guard/dns.h"

#include "lib/base/clock.h"
#include "guard/dns_budget.h"
#include "guard/dns_names.h"
#include "guard/learned.h"
#include "guard/policy.h"
#include "guard/resolver.h"

#define FAKE_TTL 60 /* at most: a name that is no longer allowed is soon asked for again */
#define NO_NAME  "not an internet name"

struct dns_pending {
    struct sandbox *sandbox;
    struct dns_question question;
    size_t max;
    struct resolver_query *query;
    dns_reply reply;
    void *arg;
};

static const char *type_name(uint16_t type)
{
    static const struct {
        uint16_t type;
        const char *name;
    } known[] = {{DNS_A, "A"},     {DNS_NS, "NS"},     {DNS_CNAME, "CNAME"}, {DNS_SOA, "SOA"},
                 {DNS_PTR, "PTR"}, {DNS_MX, "MX"},     {DNS_TXT, "TXT"},     {DNS_AAAA, "AAAA"},
                 {DNS_SRV, "SRV"}, {DNS_SVCB, "SVCB"}, {DNS_HTTPS, "HTTPS"}};

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (known[i].type == type)
            return known[i].name;
    return NULL;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void pending_free(struct dns_pending *d)
{
    d->sandbox->dns.pending--;
    sandbox_unref(d->sandbox);
    free(d);
}

static void answer(struct dns_pending *d, int rcode, const struct dns_record *records, size_t n)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(DNS_MESSAGE_MAX);
    dns_reply reply = d->reply;
    void *arg = d->arg;

    dns_reply_write(&d->question, rcode, records, n, d->max, &out);
    pending_free(d);
    reply(arg, (const uint8_t *)out.buf, out.len);
}

static void answer_addresses(struct dns_pending *d, const struct net_addr *addrs, size_t n,
                             uint32_t ttl)
{
    struct dns_record records[RESOLVER_ADDRS];
    bool v4 = d->question.type == DNS_A;
    size_t kept = 0;

    for (size_t i = 0; i < n && i < RESOLVER_ADDRS; i++) {
        struct dns_record *r = &records[kept];

        if (net_addr_is_v4(&addrs[i]) != v4)
            continue;
        r->type = d->question.type;
        r->ttl = ttl;
        r->len = v4 ? 4 : 16;
        r->data = addrs[i].ip + (v4 ? 12 : 0);
        snprintf(r->name, sizeof(r->name), "%s", d->question.name);
        kept++;
    }
    answer(d, DNS_NOERROR, records, kept);
}

static void answer_name(struct dns_pending *d, const char *name)
{
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(DNS_RDATA_MAX);
    struct dns_record r = {.type = DNS_PTR, .ttl = FAKE_TTL};

    dns_name_write(name, &data);
    r.data = (const uint8_t *)data.buf;
    r.len = (uint16_t)data.len;
    snprintf(r.name, sizeof(r.name), "%s", d->question.name);
    answer(d, DNS_NOERROR, &r, 1);
}

/* ---- the record ------------------------------------------------------------------------------ */

/* Puts a decision on record: once a minute for the same rule and the same `about`, which is the
 * name, or one text for all names. */
static void record(struct sandbox *s, const struct dns_question *q, bool allowed, const char *rule,
                   const char *about, const char *detail)
{
    if (allowed)
        s->guard->dns_allowed++;
    else
        s->guard->dns_blocked++;
    if (dns_budget_tells(&s->dns, rule, about, clock_ns()))
        RECORD(s, .kind = "dns", .protocol = "dns", .allowed = allowed, .rule = rule,
               .name = q->name[0] ? q->name : NULL, .detail = detail);
}

static void refuse(struct dns_pending *d, const char *rule)
{
    record(d->sandbox, &d->question, false, rule, d->question.name, type_name(d->question.type));
    answer(d, DNS_REFUSED, NULL, 0);
}

static void refuse_budget(struct dns_pending *d, const char *detail)
{
    record(d->sandbox, &d->question, false, "dns budget", detail, detail);
    answer(d, DNS_REFUSED, NULL, 0);
}

/* ---- which names may be asked for ------------------------------------------------------------ */

/* Whether a name may be asked for now. The rule lives as long as the policy. */
static bool may_ask(const struct sandbox *s, const char *name, const char **ret_rule)
{
    const char *denied = deny_set_name(s->guard->deny, name);
    struct judgement j;

    policy_judge_name(s->policy, name, NULL, &j);
    *ret_rule = denied ? denied : j.rule;
    return !denied && j.verdict == VERDICT_ALLOW;
}

/* Whether an entry allows exactly this name: the policy lists it already, so asking tells nobody
 * anything. */
static bool is_listed(const char *rule, const char *name)
{
    return strncmp(rule, "allow ", 6) == 0 && strcmp(rule + 6, name) == 0;
}

/* Answers reverse questions. Only the guard knows which name a fake address stands for, and
 * internal addresses are nobody's business. True: the question was answered. */
static bool answer_reverse(struct dns_pending *d)
{
    const struct dns_question *q = &d->question;
    struct net_addr a;

    if (dns_name_reverse(q->name, &a) < 0)
        return false;
    const char *name = q->type == DNS_PTR ? fake_name(d->sandbox, &a) : NULL;
    if (name) {
        answer_name(d, name);
        return true;
    }
    const char *why = guard_never_dials(d->sandbox->guard, &a);
    if (!why)
        return false;
    record(d->sandbox, q, false, why, q->name, type_name(q->type));
    answer(d, DNS_NXDOMAIN, NULL, 0);
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Whether a connection to one of the addresses needs the name to be let through. */
static bool needs_name(const struct policy *p, const char *name, const struct resolved *res)
{
    for (size_t i = 0; i < res->n; i++) {
        struct judgement j, alone;

        policy_judge_address(p, &res->addrs[i], &j, &alone);
        if (j.verdict == VERDICT_NAME)
            j = alone;
        if (j.verdict == VERDICT_ALLOW)
            continue;
        policy_judge_name(p, name, &res->addrs[i], &j);
        if (j.verdict == VERDICT_ALLOW)
            return true;
    }
    return false;
}

static void on_addresses(void *arg, const struct resolved *res)
{
    struct dns_pending *d = arg;
    struct sandbox *s = d->sandbox;
    const struct dns_question *q = &d->question;
    const char *rule;

    d->query = NULL;
    /* A new policy may be in force by now. */
    if (!may_ask(s, q->name, &rule)) {
        refuse(d, rule);
        return;
    }
    if (res->dropped)
        record(s, q, false, res->dropped, q->name, type_name(q->type));
    if (res->r == -ENOENT) {
        answer(d, DNS_NXDOMAIN, NULL, 0);
    } else if (res->r < 0 && res->r != -ENODATA && res->r != -EACCES) {
        answer(d, DNS_SERVFAIL, NULL, 0);
    } else if (s->policy->fake_ip && needs_name(s->policy, q->name, res)) {
        struct net_addr fake;

        fake_address(s, q->name, &fake);
        answer_addresses(d, &fake, 1, res->ttl < FAKE_TTL ? res->ttl : FAKE_TTL);
    } else {
        for (size_t i = 0; i < res->n; i++)
            learned_note(s, q->name, &res->addrs[i]);
        answer_addresses(d, res->addrs, res->n, res->ttl);
    }
}

/* Takes the resolver's answer: addresses of one family, or records of any other type. */
static void on_answer(void *arg, int r, const struct dns_answer *a)
{
    struct dns_pending *d = arg;
    uint16_t type = d->question.type;
    const char *rule;

    d->query = NULL;
    if (type == DNS_A || type == DNS_AAAA) {
        struct resolved res = {.r = r};

        if (r == 0 && a->rcode == DNS_NXDOMAIN)
            res.r = -ENOENT;
        else if (r == 0)
            resolver_addresses(d->sandbox->guard, a, &res);
        on_addresses(d, &res);
    } else if (!may_ask(d->sandbox, d->question.name, &rule)) {
        refuse(d, rule);
    } else if (r < 0) {
        answer(d, DNS_SERVFAIL, NULL, 0);
    } else {
        answer(d, a->rcode, a->records, a->n);
    }
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Whether a name gets a fake address depends on all its addresses, so both families are looked
 * up. */
static struct dns_pending *find_out(struct dns_pending *d)
{
    struct sandbox *s = d->sandbox;
    const struct dns_question *q = &d->question;
    struct resolver *r = s->guard->resolver;
    bool address = q->type == DNS_A || q->type == DNS_AAAA;
    struct resolver_query *query;

    if (address && s->policy->fake_ip)
        query = resolver_lookup(r, q->name, on_addresses, d);
    else
        query = resolver_ask(r, q->name, q->type, on_answer, d);
    if (!query)
        return NULL;
    d->query = query;
    return d;
}

static struct dns_pending *judge(struct dns_pending *d)
{
    struct sandbox *s = d->sandbox;
    const struct dns_question *q = &d->question;
    char name[POLICY_NAME_MAX + 1];
    const char *rule;
    uint64_t now = clock_ns();

    if (!dns_budget_question(&s->dns, now))
        refuse_budget(d, "questions per second");
    else if (name_normalise(q->name, strlen(q->name), name) < 0)
        refuse(d, NO_NAME);
    else if (!type_name(q->type))
        refuse(d, "question type");
    else if (answer_reverse(d))
        return NULL;
    else if (!may_ask(s, q->name, &rule))
        refuse(d, rule);
    else if (!is_listed(rule, q->name) && !dns_budget_name(&s->dns, q->name, now))
        refuse_budget(d, "names per minute");
    else if (s->dns.pending > DNS_PENDING_MAX)
        answer(d, DNS_SERVFAIL, NULL, 0);
    else {
        record(s, q, true, rule, q->name, type_name(q->type));
        return find_out(d);
    }
    return NULL;
}

struct dns_pending *dns_serve(struct sandbox *s, const uint8_t *p, size_t len, bool tcp,
                              dns_reply reply, void *arg)
{
    struct dns_question q;
    int r = dns_question_read(p, len, &q);

    if (r == -EBADMSG)
        return NULL;
    struct dns_pending *d = NEW(struct dns_pending, .sandbox = sandbox_ref(s), .question = q,
                                .reply = reply, .arg = arg);
    s->dns.pending++;
    d->max = d->question.udp_max < DNS_UDP_MAX ? d->question.udp_max : DNS_UDP_MAX;
    if (tcp)
        d->max = DNS_MESSAGE_MAX;
    if (r == 0)
        return judge(d);
    if (r == -DNS_REFUSED)
        refuse(d, NO_NAME);
    else
        answer(d, -r, NULL, 0);
    return NULL;
}

void dns_cancel(struct dns_pending *d)
{
    if (d->query)
        resolver_cancel(d->query);
    pending_free(d);
}
