/* Requests that were meant for a sandbox, by a name that is none here: another domain before the
 * same server, or an id that no sandbox can have. The control plane would only say that they have no
 * key. */
#pragma once

#include "lib/http/http.h"

/* Whether a request without a key has been answered (404), with what to do instead. Call it when the
 * host was found to name no sandbox. */
bool stray_refused(struct http_req *req);
