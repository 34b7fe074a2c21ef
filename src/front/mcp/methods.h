/* The methods of the protocol. */
#pragma once

#include "front/mcp/exchange.h"

/* Answers a request, now or later. */
void method_request(struct exchange *x, const struct message *m);
void method_notification(struct exchange *x, const struct message *m);
