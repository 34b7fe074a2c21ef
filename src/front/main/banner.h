/* The banner: tells a person who starts a server the server's address and, at the first start, the
 * API key to use it with. */
#pragma once

#include "front/core/front.h"

/* The address that a program on this machine would use: the domain's, or a listener's. "" if the
 * server listens on all addresses: only its operator knows which of them others can reach. */
void banner_url(const struct settings *s, int listener, char *ret, size_t cap);
/* Prints the banner; at the first start makes the first tenant and its key. listener: the first socket
 * that the server serves. */
int banner_print(struct front *f, int listener, bool first, struct sg_error *e);
