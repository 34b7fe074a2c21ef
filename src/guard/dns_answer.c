/* Reads an upstream's answer. Records that are not about the question are parsed as well, so that
 * the message is known to be whole, and then left out. */

#include "lib/base/hash.h"
#include "guard/dns_message.h"
#include "guard/dns_names.h"
#include "guard/dns_rdata.h"

#define RRS_MAX   512 /* records of an answer that are looked at */
#define CHAIN_MAX 12  /* CNAMEs that are followed */

/* Where a record is in the message. */
struct rr {
    uint64_t owner; /* hash of its name; if hashes are equal, names are compared */
    uint32_t owner_at, data_at;
    uint32_t ttl;
    uint16_t type, len;
};

struct message {
    const uint8_t *p;
    size_t len, at;
    size_t n;
    bool extended; /* its rcode has more bits: no known one does */
    struct rr rrs[RRS_MAX];
};

static int read_rr(struct message *m, bool answer)
{
    char owner[POLICY_NAME_MAX + 1];
    struct rr rr = {.owner_at = (uint32_t)m->at};
    int r = dns_name_read(m->p, m->len, &m->at, true, owner);

    if (r == -EBADMSG || m->len - m->at < 10)
        return -EBADMSG;
    const uint8_t *p = m->p + m->at;
    rr.type = dns_get16(p);
    rr.ttl = dns_get32(p + 4);
    rr.len = dns_get16(p + 8);
    m->at += 10;
    rr.data_at = (uint32_t)m->at;
    if (rr.len > m->len - m->at)
        return -EBADMSG;
    m->at += rr.len;
    if (rr.type == DNS_OPT && rr.ttl >> 24)
        m->extended = true;
    if (answer && r == 0 && dns_get16(p + 2) == DNS_CLASS_IN && m->n < RRS_MAX) {
        rr.owner = hash_text(0, owner);
        m->rrs[m->n++] = rr;
    }
    return 0;
}

/* Whether the answer repeats the question byte for byte, with its case. */
static bool is_about(const uint8_t *p, size_t len, const char *name_in_case, uint16_t type)
{
    AUTO(strbuf_done) struct strbuf want = strbuf_upto(512);

    dns_name_write(name_in_case, &want);
    dns_put16(&want, type);
    dns_put16(&want, DNS_CLASS_IN);
    return len - DNS_HEAD_LEN >= want.len && memcmp(p + DNS_HEAD_LEN, want.buf, want.len) == 0;
}

static bool owned_by(const struct message *m, const struct rr *rr, const char *name, uint64_t hash)
{
    char owner[POLICY_NAME_MAX + 1];
    size_t at = rr->owner_at;

    return rr->owner == hash && dns_name_read(m->p, m->len, &at, true, owner) == 0 &&
           strcmp(owner, name) == 0;
}

/* Appends a record of the message to the answer. False: there is no room, or its data is
 * malformed. */
static bool keep(const struct message *m, const struct rr *rr, const char *owner,
                 struct dns_answer *ret, size_t *used)
{
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(DNS_RDATA_MAX);
    struct dns_record *r = &ret->records[ret->n];

    if (ret->n == DNS_RECORDS_MAX ||
        dns_rdata_copy(m->p, m->len, rr->data_at, rr->len, rr->type, &data) < 0 ||
        data.len > sizeof(ret->store) - *used)
        return false;
    /* RFC 2181: the highest bit means zero. */
    r->ttl = rr->ttl >> 31 ? 0 : rr->ttl;
    r->type = rr->type;
    r->len = (uint16_t)data.len;
    r->data = ret->store + *used;
    memcpy(ret->store + *used, data.buf, data.len);
    snprintf(r->name, sizeof(r->name), "%s", owner);
    *used += data.len;
    ret->n++;
    return true;
}

/* Follows the CNAME of `name`: writes the name that it stands for into `name`. False: it has
 * none. */
static bool follow(const struct message *m, char *name, struct dns_answer *ret, size_t *used)
{
    uint64_t hash = hash_text(0, name);

    for (size_t i = 0; i < m->n; i++) {
        const struct rr *rr = &m->rrs[i];
        size_t at = rr->data_at;

        if (rr->type == DNS_CNAME && owned_by(m, rr, name, hash) && keep(m, rr, name, ret, used))
            return dns_name_read(m->p, m->len, &at, true, name) == 0;
    }
    return false;
}

static void collect(const struct message *m, uint16_t type, struct dns_answer *ret)
{
    char name[POLICY_NAME_MAX + 1];
    size_t used = 0, at = DNS_HEAD_LEN;
    unsigned hops = 0;

    dns_name_read(m->p, m->len, &at, false, name);
    while (type != DNS_CNAME && follow(m, name, ret, &used)) {
        if (++hops > CHAIN_MAX) {
            ret->n = 0;
            ret->rcode = DNS_SERVFAIL;
            return;
        }
    }
    uint64_t hash = hash_text(0, name);
    for (size_t i = 0; i < m->n; i++)
        if (m->rrs[i].type == type && owned_by(m, &m->rrs[i], name, hash))
            keep(m, &m->rrs[i], name, ret, &used);
}

int dns_answer_read(const uint8_t *p, size_t len, uint16_t id, const char *name_in_case,
                    uint16_t type, struct dns_answer *ret)
{
    struct message m = {.p = p, .len = len};

    if (len < DNS_HEAD_LEN || dns_get16(p) != id || dns_get16(p + 4) != 1 ||
        (dns_get16(p + 2) & (DNS_FLAG_QR | DNS_FLAG_OPCODE)) != DNS_FLAG_QR ||
        !is_about(p, len, name_in_case, type))
        return -EBADMSG;
    ret->n = 0;
    ret->rcode = p[3] & 0xf;
    ret->truncated = dns_get16(p + 2) & DNS_FLAG_TC;
    if (ret->truncated)
        return 0;

    m.at = DNS_HEAD_LEN + dns_name_size(name_in_case) + 4;
    unsigned answers = dns_get16(p + 6), others = dns_get16(p + 8) + dns_get16(p + 10);
    for (unsigned i = 0; i < answers + others; i++)
        if (read_rr(&m, i < answers) < 0)
            return -EBADMSG;
    if (m.at != len)
        return -EBADMSG;
    if (m.extended)
        ret->rcode = DNS_SERVFAIL;
    collect(&m, type, ret);
    return 0;
}
