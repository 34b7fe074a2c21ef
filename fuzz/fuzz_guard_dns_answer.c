/* Answers of upstreams: the first byte says which type was asked for, the rest is the message. What
 * was read can be written as a reply and read again, and is the same. */
#include <assert.h>

#include "guard/dns_message.h"
#include "guard/dns_names.h"

#define ID   0x1234
#define NAME "aB.test"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const uint16_t types[] = {DNS_A,   DNS_NS,   DNS_CNAME, DNS_SOA,  DNS_PTR,  DNS_MX,
                                 DNS_TXT, DNS_AAAA, DNS_SRV,   DNS_SVCB, DNS_HTTPS};

/* Behind the target there is nothing that leads a connection elsewhere or hides its name. */
static void check_service(const struct dns_record *r)
{
    char target[POLICY_NAME_MAX + 1];
    size_t at = 2;

    assert(dns_name_read(r->data, r->len, &at, false, target) == 0);
    while (at < r->len) {
        unsigned key = dns_get16(r->data + at);

        assert(key <= 3);
        at += 4u + dns_get16(r->data + at + 2);
    }
    assert(at == r->len);
}

static void check_record(const struct dns_answer *a, const struct dns_record *r, uint16_t type)
{
    assert(r->type == type || r->type == DNS_CNAME);
    assert(r->data >= a->store && r->data + r->len <= a->store + sizeof(a->store));
    assert(r->type != DNS_A || r->len == 4);
    assert(r->type != DNS_AAAA || r->len == 16);
    if (r->type == DNS_HTTPS || r->type == DNS_SVCB)
        check_service(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct dns_answer a, b;
    AUTO(strbuf_done) struct strbuf query = {0};
    AUTO(strbuf_done) struct strbuf reply = {0};
    struct dns_question q;

    if (len < 1)
        return 0;
    uint16_t type = types[data[0] % ARRAY_SIZE(types)];
    if (dns_answer_read(data + 1, len - 1, ID, NAME, type, &a) < 0)
        return 0;
    assert(a.n <= DNS_RECORDS_MAX && (!a.truncated || a.n == 0));
    for (size_t i = 0; i < a.n; i++)
        check_record(&a, &a.records[i], type);

    strbuf_init(&query, 512);
    strbuf_init(&reply, DNS_MESSAGE_MAX);
    dns_query_write(ID, NAME, type, &query);
    assert(dns_question_read((uint8_t *)query.buf, query.len, &q) == 0);
    dns_reply_write(&q, a.rcode, a.records, a.n, DNS_MESSAGE_MAX, &reply);
    assert(dns_answer_read((uint8_t *)reply.buf, reply.len, ID, NAME, type, &b) == 0);
    assert(b.n == a.n && b.rcode == a.rcode && !b.truncated);
    for (size_t i = 0; i < a.n; i++) {
        const struct dns_record *x = &a.records[i], *y = &b.records[i];

        assert(x->type == y->type && x->ttl == y->ttl && x->len == y->len);
        assert(memcmp(x->data, y->data, x->len) == 0 && strcmp(x->name, y->name) == 0);
    }
    return 0;
}
