/* The guard's end of the socket to the warden (wire/guard.h). */
#pragma once

#include "guard/guard.h"

/* Waits for the settings, which come first: what is done before the filter needs them. */
int warden_link_open(struct guard *g, int fd, struct sg_error *e);
/* From now on in the loop. Tells the warden that we are ready. */
void warden_link_start(struct guard *g);
/* Asks for a socket inside; udp_got_socket gets it. Returns the question's number. */
uint64_t warden_link_ask_udp(struct warden_link *l, const struct sandbox *s,
                             const struct sockaddr_storage *local,
                             const struct sockaddr_storage *peer);

/* sandbox.c. What the warden says of sandboxes; the descriptors are taken over. */
void sandbox_add(struct guard *g, const struct guard_message *m, int tcp, int udp, int document);
/* 0, or why not. */
int sandbox_set_policy(struct guard *g, const struct guard_message *m, int document,
                       struct sg_error *e);
void sandbox_remove(struct guard *g, const struct guard_message *m);

/* settings.c. Takes the three texts over. first: before the filter. */
int settings_take(struct guard *g, int settings, int roots, int patterns, struct sg_error *e);
