/* What is answered when a request cannot be forwarded: JSON for programs, a small page for people.
 */
#pragma once

#include "front/core/sandbox.h"
#include "lib/http/http.h"

/* port 0: not told. */
void refuse_forward(struct http_req *req, const struct sandbox *b, int status, unsigned port,
                    const char *message);
/* Did a person follow a link? A script's request carries the browser's name as well. */
bool wants_page(const struct http_req *req);
