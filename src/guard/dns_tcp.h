/* DNS questions over TCP, where each message has its length before it. */
#pragma once

#include "guard/guard.h"

struct dns_tcp;
/* Takes fd over. Calls done once when the sandbox closes the connection, breaks the framing or says
 * nothing for a while; not after dns_tcp_free. */
struct dns_tcp *dns_tcp_new(struct sandbox *s, int fd, void (*done)(void *arg, const char *error),
                            void *arg);
void dns_tcp_free(struct dns_tcp *d);
