/* Tells a sandbox why a connection fails, where its protocol has room for that: a reason beats a
 * reset. */
#pragma once

#include "guard/peek.h"

/* False: the protocol has no room for a reason, or sending failed. Does not wait. */
bool refusal_send(int fd, const struct peek *p, const char *name, const struct net_addr *to,
                  const char *rule);
bool refusal_send_failure(int fd, const struct peek *p, const char *what);
