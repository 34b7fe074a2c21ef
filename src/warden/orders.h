/* What the front asks for: each order is checked here, field by field, and then done by the part it
 * concerns. */
#pragma once

#include "wire/warden.h"

struct server;

#define ORDER_FDS_MAX 2

/* Takes the order; of its descriptors (-1: none) those that it leaves there stay the caller's. 0:
 * it is or will be answered. An error: it is no order at all. */
int orders_take(struct server *s, struct order *o, int fds[ORDER_FDS_MAX]);
/* Tells a new front everything it must know. */
void orders_greet(struct server *s);
/* Again after SIGHUP. */
void orders_tell_settings(struct server *s);
