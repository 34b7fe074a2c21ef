/* Names and numbers as DNS has them on the wire.
 *
 * A name as text is lower case, with dots between its labels and none at the end; "" is the root.
 * Only names whose labels are printable, without dots and backslashes, have a text: bytes that
 * could be read in two ways are no name here. A compression pointer must point before the place
 * that it was reached from, so reading always ends. */
#pragma once

#include "lib/text/strbuf.h"
#include "guard/policy.h"

#define DNS_HEAD_LEN    12
#define DNS_FLAG_QR     0x8000u
#define DNS_FLAG_OPCODE 0x7800u
#define DNS_FLAG_TC     0x0200u
#define DNS_FLAG_RD     0x0100u
#define DNS_FLAG_RA     0x0080u
#define DNS_FLAG_CD     0x0010u
#define DNS_CLASS_IN    1

static inline uint16_t dns_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t dns_get32(const uint8_t *p)
{
    return (uint32_t)dns_get16(p) << 16 | dns_get16(p + 2);
}

void dns_put16(struct strbuf *out, uint16_t v);
void dns_put32(struct strbuf *out, uint32_t v);

/* Reads the name at *at and moves *at behind it. -EBADMSG: malformed; -EINVAL: the name has no text
 * (*at has moved). */
int dns_name_read(const uint8_t *p, size_t len, size_t *at, bool pointers,
                  char ret[POLICY_NAME_MAX + 1]);
/* Writes a name that has been checked; case is kept. */
void dns_name_write(const char *name, struct strbuf *out);
/* How many bytes dns_name_write appends. */
size_t dns_name_size(const char *name);

/* The address that a name below in-addr.arpa or ip6.arpa is about. -EINVAL: the name is not about
 * one. */
int dns_name_reverse(const char *name, struct net_addr *ret);
