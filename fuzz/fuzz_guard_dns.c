/* Questions of sandboxes. What was read is a name that can be told, and what is replied fits, and
 * has the question as it came. */
#include <assert.h>
#include <strings.h>

#include "guard/dns_message.h"
#include "guard/dns_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_reply(const struct dns_question *q, int rcode, size_t max)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct dns_record r[20] = {{0}};

    for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
        r[i] = (struct dns_record){
            .type = DNS_AAAA, .ttl = 5, .len = 16, .data = (const uint8_t *)"0123456789abcdef"};
        snprintf(r[i].name, sizeof(r[i].name), "%s", i % 2 ? q->name : "other.test");
    }
    strbuf_init(&out, DNS_MESSAGE_MAX);
    dns_reply_write(q, rcode, r, rcode == 0 ? ARRAY_SIZE(r) : 0, max, &out);
    assert(!out.truncated && out.len >= DNS_HEAD_LEN && out.len <= max);
    assert(dns_get16((uint8_t *)out.buf) == q->id && (out.buf[3] & 0xf) == rcode);
    assert(memcmp(out.buf + DNS_HEAD_LEN, q->wire, q->wire_len) == 0);
    /* It is an answer: nobody takes it for a question. */
    struct dns_question again;
    assert(dns_question_read((uint8_t *)out.buf, out.len, &again) == -EBADMSG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct dns_question q;
    struct net_addr a;
    int r = dns_question_read(data, len, &q);

    if (r == -EBADMSG)
        return 0;
    assert(r == 0 || r == -DNS_FORMERR || r == -DNS_NOTIMP || r == -DNS_REFUSED);
    assert(strlen(q.name) <= POLICY_NAME_MAX && q.wire_len <= 259 && q.udp_max >= 512);
    if (r == 0) {
        AUTO(strbuf_done) struct strbuf wire = {0};

        strbuf_init(&wire, 300);
        dns_name_write(q.name, &wire);
        assert(wire.len + 4 == q.wire_len);
        assert(strncasecmp(wire.buf, (const char *)q.wire, wire.len) == 0);
        dns_name_reverse(q.name, &a);
    }
    check_reply(&q, -r, q.udp_max);
    check_reply(&q, -r, DNS_MESSAGE_MAX);
    return 0;
}
