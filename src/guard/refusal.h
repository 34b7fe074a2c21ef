/* What a sandbox is told of a connection that does not come about, where its protocol has room for
 * it: a reason beats a reset. */
#pragma once

#include "guard/peek.h"

/* False: nothing could be said. Does not wait. */
bool refusal_send(int fd, const struct peek *p, const char *name, const struct net_addr *to,
                  const char *rule);
bool refusal_send_failure(int fd, const struct peek *p, const char *what);
