/* DNS as a sandbox sees it: whatever server it asks, over UDP or TCP, the guard answers.
 *
 * The policy comes first: a question for a name that could not be reached is REFUSED, and never
 * leaves. Then come budgets, because names are a way to tell something to whoever serves the zone:
 * DNS_PER_SECOND questions, and DNS_NAMES_PER_MINUTE different names below a wildcard or in an open
 * policy. Types: A, AAAA, and a few more (MX, TXT, SRV, PTR, HTTPS, SVCB, CNAME, NS, SOA) under the
 * policy of the name itself; ANY and others are refused. Answers have no ECH, no address hints, and
 * no address that may not be dialled. Decisions go on record, the same one about a name once a
 * minute.
 *
 * With fake addresses (fake.c) the guard answers for an allowed name with an address of
 * 198.18.0.0/15 that stands for the name in this sandbox alone: a connection to the address is one
 * to the name, whatever protocol it speaks. The name must exist; it is resolved again when the
 * sandbox connects. */
#pragma once

#include "guard/dns_message.h"
#include "guard/guard.h"

#define DNS_PER_SECOND       50
#define DNS_NAMES_PER_MINUTE 200

/* Receives the reply: called once for each question, unless the sandbox ends first. */
typedef void (*dns_reply)(void *arg, const uint8_t *p, size_t len);
/* Answers the question in p. A reply is at most as long as the question allows over UDP
 * (DNS_UDP_MAX at most), and DNS_MESSAGE_MAX over TCP. The owner of arg must call dns_cancel before
 * it goes. NULL if the question was answered at once. */
struct dns_pending;
struct dns_pending *dns_serve(struct sandbox *s, const uint8_t *p, size_t len, bool tcp,
                              dns_reply reply, void *arg);
void dns_cancel(struct dns_pending *d);

/* fake.c. At most 4,096 names per sandbox; the least recently used one goes. */
/* The address that stands for a name; makes one if there is none. */
void fake_address(struct sandbox *s, const char *name, struct net_addr *ret);
/* The name that an address stands for in this sandbox; NULL: none. */
const char *fake_name(struct sandbox *s, const struct net_addr *a);
bool fake_is(const struct net_addr *a); /* whether a is in 198.18.0.0/15 */
void fakes_free(struct fakes *f);
