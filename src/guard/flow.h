/* TCP connections of sandboxes; see guard.h for the steps. */
#pragma once

#include "guard/guard.h"

#define PEEK_NS       3000000000ull
#define PEEK_SHORT_NS 300000000ull /* where no name is needed to let it through */
#define DIAL_NS       30000000000ull
#define IDLE_NS       600000000000ull

/* The sandbox's TCP listener is readable. False: it is to wait for a moment. */
bool flows_accept(struct sandbox *s);
/* Its policy is another: flows that it would not let through are reset. */
void flows_judge_again(struct sandbox *s);
/* What they are inspected with is about to go. */
void flows_reset_inspected(struct sandbox *s);
void flows_reset_all(struct sandbox *s, const char *why);

/* udp.c. As above. */
bool udp_receive(struct sandbox *s);
void udp_judge_again(struct sandbox *s);
void udp_reset_all(struct sandbox *s);
/* The warden's answer to GUARD_ASK_UDP; takes the descriptor over. */
void udp_got_socket(struct guard *g, uint64_t seq, int code, int fd);

/* quota.c */
enum quota_what { QUOTA_OK, QUOTA_FLOWS, QUOTA_RATE, QUOTA_BYTES, QUOTA_GUARD };
enum quota_what quota_take_flow(struct sandbox *s);
void quota_give_flow(struct sandbox *s);
/* false: it has no more. */
bool quota_count(struct sandbox *s, uint64_t bytes);
