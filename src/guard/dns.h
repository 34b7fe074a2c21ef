/* DNS as a sandbox sees it: whatever server it asks, over UDP or TCP, the guard answers.
 *
 * The policy comes first: a name that could not be reached is REFUSED, and no question leaves. Then
 * budgets: DNS_PER_SECOND questions, DNS_NAMES_PER_MINUTE different names below a wildcard or in an
 * open policy: names are a way to tell something to whoever serves the zone. Types: A, AAAA, and a
 * few more (MX, TXT, SRV, PTR, HTTPS, SVCB, CNAME, NS, SOA) under their own name's policy; ANY and
 * others are refused. Answers have no ECH and no address hints, and no address that may not be
 * dialled. Decisions are on record, the same one about a name once in a minute.
 *
 * With fake addresses (fake.c) a name that is allowed is answered with one of 198.18.0.0/15 that
 * stands for it in this sandbox alone: a connection to it is one to that name, whatever protocol it
 * speaks. The name must exist; it is resolved again when it is connected to. */
#pragma once

#include "guard/dns_message.h"
#include "guard/guard.h"

#define DNS_PER_SECOND       50
#define DNS_NAMES_PER_MINUTE 200

/* Where a reply goes: once for each question, unless the box goes first. */
typedef void (*dns_reply)(void *arg, const uint8_t *p, size_t len);
/* max: how long a reply may be (DNS_UDP_MAX or what the question allows over UDP; DNS_MESSAGE_MAX
 * over TCP). arg's owner must call dns_cancel before it goes. NULL if it was answered at once. */
struct dns_pending;
struct dns_pending *dns_serve(struct sandbox *s, const uint8_t *p, size_t len, bool tcp,
                              dns_reply reply, void *arg);
void dns_cancel(struct dns_pending *d);

/* fake.c. At most 4,096 names a sandbox; the one that was not used longest goes. */
struct fakes;
/* The address that stands for a name; one is made. */
void fake_address(struct sandbox *s, const char *name, struct net_addr *ret);
/* The name; NULL if the address stands for none, in this sandbox. */
const char *fake_name(struct sandbox *s, const struct net_addr *a);
bool fake_is(const struct net_addr *a); /* of the range */
void fakes_free(struct fakes *f);
