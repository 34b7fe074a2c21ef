/* Questions of sandboxes, the replies to them, and the guard's own questions. dns_answer.c reads
 * the answers of upstreams. */
#include "guard/dns_message.h"

#include "guard/dns_names.h"

#define POINTER   0xc00cu /* compression pointer to the question's name */
#define PLAIN_MAX 512     /* bytes of a datagram for a client without EDNS */
#define EXTRA_MAX 4       /* records after a question: OPT, and perhaps a signature */
#define OPT_LEN   11
/* RFC 8914: tells people why they were refused. */
#define EDE_OPTION  15
#define EDE_BLOCKED 15
#define EDE_LEN     6

/* ---- questions of sandboxes ------------------------------------------------------------------ */

/* Reads one record after the question: only OPT means anything. */
static int read_extra(const uint8_t *p, size_t len, size_t *at, struct dns_question *q)
{
    char owner[POLICY_NAME_MAX + 1];

    if (dns_name_read(p, len, at, true, owner) == -EBADMSG || len - *at < 10)
        return -EBADMSG;
    const uint8_t *rr = p + *at;
    size_t rdlen = dns_get16(rr + 8);
    if (rdlen > len - *at - 10)
        return -EBADMSG;
    *at += 10 + rdlen;
    if (dns_get16(rr) != DNS_OPT)
        return 0;
    /* The second byte of its TTL is the version. */
    if (q->edns || owner[0] || rr[5] != 0)
        return -EBADMSG;
    q->edns = true;
    q->udp_max = dns_get16(rr + 2) > PLAIN_MAX ? dns_get16(rr + 2) : PLAIN_MAX;
    return 0;
}

static int read_extras(const uint8_t *p, size_t len, size_t at, struct dns_question *q)
{
    unsigned n = dns_get16(p + 10);

    if (n > EXTRA_MAX)
        return -EBADMSG;
    while (n-- > 0)
        if (read_extra(p, len, &at, q) < 0)
            return -EBADMSG;
    return at == len ? 0 : -EBADMSG;
}

int dns_question_read(const uint8_t *p, size_t len, struct dns_question *ret)
{
    size_t at = DNS_HEAD_LEN;
    int r;

    *ret = (struct dns_question){.udp_max = PLAIN_MAX};
    if (len < DNS_HEAD_LEN || len > DNS_MESSAGE_MAX || (dns_get16(p + 2) & DNS_FLAG_QR))
        return -EBADMSG;
    ret->id = dns_get16(p);
    ret->flags = dns_get16(p + 2);
    if (ret->flags & DNS_FLAG_OPCODE)
        return -DNS_NOTIMP;
    if ((ret->flags & DNS_FLAG_TC) || dns_get16(p + 4) != 1 || dns_get32(p + 6) != 0)
        return -DNS_FORMERR;

    r = dns_name_read(p, len, &at, false, ret->name);
    if (r == -EBADMSG || len - at < 4)
        return -DNS_FORMERR;
    if (r < 0)
        ret->name[0] = '\0';
    ret->type = dns_get16(p + at);
    if (read_extras(p, len, at + 4, ret) < 0) {
        ret->edns = false;
        return -DNS_FORMERR;
    }
    ret->wire_len = (uint16_t)(at + 4 - DNS_HEAD_LEN);
    memcpy(ret->wire, p + DNS_HEAD_LEN, ret->wire_len);
    return r < 0 || dns_get16(p + at + 2) != DNS_CLASS_IN ? -DNS_REFUSED : 0;
}

/* ---- replies --------------------------------------------------------------------------------- */

static bool is_question(const struct dns_question *q, const char *name)
{
    return strcmp(q->name, name) == 0;
}

static size_t record_size(const struct dns_question *q, const struct dns_record *r)
{
    return (is_question(q, r->name) ? 2 : dns_name_size(r->name)) + 10 + r->len;
}

static void write_record(const struct dns_question *q, const struct dns_record *r,
                         struct strbuf *out)
{
    if (is_question(q, r->name))
        dns_put16(out, POINTER);
    else
        dns_name_write(r->name, out);
    dns_put16(out, r->type);
    dns_put16(out, DNS_CLASS_IN);
    dns_put32(out, r->ttl);
    dns_put16(out, r->len);
    strbuf_add(out, r->data, r->len);
}

/* Writes our OPT record. The client's own options (its subnet, a cookie) are not answered. */
static void write_opt(bool refused, struct strbuf *out)
{
    strbuf_addch(out, '\0');
    dns_put16(out, DNS_OPT);
    dns_put16(out, DNS_UDP_MAX);
    dns_put32(out, 0);
    dns_put16(out, refused ? EDE_LEN : 0);
    if (refused) {
        dns_put16(out, EDE_OPTION);
        dns_put16(out, 2);
        dns_put16(out, EDE_BLOCKED);
    }
}

void dns_reply_write(const struct dns_question *q, int rcode, const struct dns_record *records,
                     size_t n, size_t max, struct strbuf *out)
{
    bool refused = rcode == DNS_REFUSED;
    size_t len = (size_t)DNS_HEAD_LEN + q->wire_len, fit = 0;

    if (q->edns)
        len += OPT_LEN + (refused ? EDE_LEN : 0);
    while (fit < n && len + record_size(q, &records[fit]) <= max)
        len += record_size(q, &records[fit++]);

    dns_put16(out, q->id);
    dns_put16(out, (uint16_t)(DNS_FLAG_QR | DNS_FLAG_RA |
                              (q->flags & (DNS_FLAG_OPCODE | DNS_FLAG_RD | DNS_FLAG_CD)) |
                              (fit < n ? DNS_FLAG_TC : 0) | (unsigned)rcode));
    dns_put16(out, q->wire_len > 0);
    dns_put16(out, (uint16_t)fit);
    dns_put16(out, 0);
    dns_put16(out, q->edns);
    strbuf_add(out, q->wire, q->wire_len);
    for (size_t i = 0; i < fit; i++)
        write_record(q, &records[i], out);
    if (q->edns)
        write_opt(refused, out);
}

/* ---- the guard's own questions --------------------------------------------------------------- */

void dns_query_write(uint16_t id, const char *name_in_case, uint16_t type, struct strbuf *out)
{
    dns_put16(out, id);
    dns_put16(out, DNS_FLAG_RD);
    dns_put16(out, 1);
    dns_put32(out, 0);
    dns_put16(out, 1);
    dns_name_write(name_in_case, out);
    dns_put16(out, type);
    dns_put16(out, DNS_CLASS_IN);
    write_opt(false, out);
}
