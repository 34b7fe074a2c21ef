/* Reads and writes DNS messages, strictly and without I/O. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "guard/policy.h"

#define DNS_UDP_MAX     1232
#define DNS_MESSAGE_MAX 65535
#define DNS_RECORDS_MAX 64
#define DNS_RDATA_MAX   4096

enum dns_rcode { DNS_NOERROR, DNS_FORMERR, DNS_SERVFAIL, DNS_NXDOMAIN, DNS_NOTIMP, DNS_REFUSED };
enum dns_type {
    DNS_A = 1,
    DNS_NS = 2,
    DNS_CNAME = 5,
    DNS_SOA = 6,
    DNS_PTR = 12,
    DNS_MX = 15,
    DNS_TXT = 16,
    DNS_AAAA = 28,
    DNS_SRV = 33,
    DNS_OPT = 41,
    DNS_SVCB = 64,
    DNS_HTTPS = 65,
    DNS_ANY = 255,
};

/* ---- a question of a sandbox ----------------------------------------------------------------- */

struct dns_question {
    uint16_t id, type, flags; /* flags: RD goes into the reply */
    uint16_t udp_max;         /* from its OPT record; 512 without one */
    bool edns;
    char name[POLICY_NAME_MAX + 1]; /* lower case */
    uint8_t wire[260];              /* the question section as it came (case kept) */
    uint16_t wire_len;
};
/* Returns 0, or the negated enum dns_rcode to answer with; -EBADMSG: drop the message, it cannot
 * even be answered. */
int dns_question_read(const uint8_t *p, size_t len, struct dns_question *ret);

struct dns_record {
    uint16_t type;
    uint32_t ttl;
    uint16_t len;
    const uint8_t *data; /* names in it are not compressed */
    char name[POLICY_NAME_MAX + 1];
};
struct dns_answer {
    uint8_t rcode;
    bool truncated;
    size_t n;
    struct dns_record records[DNS_RECORDS_MAX];
    uint8_t store[8192]; /* what the data of records points into */
};
/* Writes a reply; one longer than max is cut, with TC set. */
void dns_reply_write(const struct dns_question *q, int rcode, const struct dns_record *records,
                     size_t n, size_t max, struct strbuf *out);

/* ---- a question of ours, and its answer ------------------------------------------------------ */

void dns_query_write(uint16_t id, const char *name_in_case, uint16_t type, struct strbuf *out);
/* Reads a whole answer to exactly that question. Leaves out records of other names than the name
 * and its CNAMEs; takes ech and address hints out of HTTPS and SVCB. -EBADMSG: p is not such an
 * answer. */
int dns_answer_read(const uint8_t *p, size_t len, uint16_t id, const char *name_in_case,
                    uint16_t type, struct dns_answer *ret);
