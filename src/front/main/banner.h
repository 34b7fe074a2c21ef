/* What a person who starts a server sees: where it is, and at the first start the key to use it. */
#pragma once

#include "front/core/front.h"

/* The address that a program on this machine would use: the domain's, or that of a listener. "" if
 * it listens on all addresses: which of them others reach, only its operator knows. */
void banner_url(const struct settings *s, int listener, char *ret, size_t cap);
/* Makes the first tenant and key if there is none. listener: the first socket that is served. */
int banner_print(struct front *f, int listener, struct sg_error *e);
