/* The guard's end of the socket to the warden (wire/guard.h). */
#pragma once

#include "guard/guard.h"

/* Waits for the settings, which the warden sends first: the steps before the system call filter
 * need them. */
int warden_link_open(struct guard *g, int fd, struct sg_error *e);
/* Handles messages in the loop from now on. Tells the warden that the guard is ready. */
void warden_link_start(struct guard *g, int fd);
/* Asks the warden for a socket inside the sandbox; udp_got_socket receives it. Returns the number
 * of the question. */
uint64_t warden_link_ask_udp(struct warden_link *l, const struct sandbox *s,
                             const struct sockaddr_storage *local,
                             const struct sockaddr_storage *peer);

/* sandbox.c. The warden's messages about sandboxes; the descriptors are taken over. */
void sandbox_add(struct guard *g, const struct guard_message *m, int tcp, int udp, int document);
/* 0, or -errno with the reason in e. */
int sandbox_set_policy(struct guard *g, const struct guard_message *m, int document,
                       struct sg_error *e);
void sandbox_remove(struct guard *g, const struct guard_message *m);

/* settings.c. Reads the settings, the roots and the patterns from their descriptors, which stay the
 * caller's, and puts them in force: all of them or, on failure, none. The first call comes before
 * the system call filter. */
int settings_take(struct guard *g, int settings, int roots, int patterns, struct sg_error *e);
