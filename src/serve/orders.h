/* What the front asks for: each order is checked here, field by field, and then done by the part it
 * concerns. */
#pragma once

#include "order/order.h"

struct server;

/* Takes the order and its descriptor (-1: none). 0: it is or will be answered. An error: it is no
 * order at all, and the descriptor stays the caller's. */
int orders_take(struct server *s, struct order *o, int fd);
/* Tells a new front everything it must know. */
void orders_greet(struct server *s);
/* Again after SIGHUP. */
void orders_tell_settings(struct server *s);
