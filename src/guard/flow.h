/* TCP connections of sandboxes; see guard.h for the steps. */
#pragma once

#include "guard/guard.h"

#define PEEK_NS       3000000000ull
#define PEEK_SHORT_NS 300000000ull /* if the flow may go without a name */
#define DIAL_NS       30000000000ull
#define IDLE_NS       600000000000ull

/* Accepts connections from the sandbox's TCP listener, which is readable. False: the caller lets
 * the listener rest for a while. */
bool flows_accept(struct sandbox *s);
/* The sandbox has a new policy: resets flows that it would not let through. */
void flows_judge_again(struct sandbox *s);
/* Resets the flows that are inspected, because the sanitiser that they use is about to be freed. */
void flows_reset_inspected(struct sandbox *s);
void flows_reset_all(struct sandbox *s, const char *why);

/* udp.c. The same for datagrams. */
bool udp_receive(struct sandbox *s);
void udp_judge_again(struct sandbox *s);
void udp_reset_all(struct sandbox *s);
/* Handles the warden's answer to GUARD_ASK_UDP and takes over the descriptor. */
void udp_got_socket(struct guard *g, uint64_t seq, int code, int fd);

/* quota.c */
/* False: a limit is reached, which is on record. */
bool quota_take_flow(struct sandbox *s);
void quota_give_flow(struct sandbox *s);
/* False: the sandbox has used up its bytes. */
bool quota_count(struct sandbox *s, uint64_t bytes);
