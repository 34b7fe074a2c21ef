/* Who asks: API keys of the control plane. A key is looked at on every request, never once for a
 * connection. */
#pragma once

#include "front/core/front.h"
#include "front/store/store.h"

/* The tenant whose key came with the request. If there is none, 401 has been answered and NULL is
 * returned. The pointer is valid until the next call. */
const struct store_tenant *auth_tenant(struct http_req *req);
