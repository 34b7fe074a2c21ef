/* Orders of the front. Each order is checked here, field by field; then the part of the warden that
 * it concerns carries it out. */
#pragma once

#include "wire/warden.h"

struct server;

#define ORDER_FDS_MAX 2

/* Takes one order with its descriptors (-1: none). Descriptors that it leaves in fds stay the
 * caller's. 0: the order has been answered, or will be. An error: the message is no order at
 * all. */
int orders_take(struct server *s, struct order *o, int fds[ORDER_FDS_MAX]);
/* Tells a new front everything it must know. */
void orders_greet(struct server *s);
/* Sends the front its settings; called again after SIGHUP. */
void orders_tell_settings(struct server *s);
