/* The answer when a request cannot be forwarded: JSON for programs, a small page for people. */
#pragma once

#include "front/core/sandbox.h"
#include "lib/http/http.h"

/* `port` is part of the answer; 0: it is left out. */
void refuse_forward(struct http_req *req, const struct sandbox *b, int status, unsigned port,
                    const char *message);
/* Whether a person followed a link. A script's request also carries the browser's name, so that
 * alone does not count. */
bool wants_page(const struct http_req *req);
