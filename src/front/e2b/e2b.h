/* The control plane: the REST routes that create, list and end sandboxes, as E2B's programs call
 * them. docs/e2b.md has the table of routes and what each does here.
 *
 *   routes.c     which function answers       request.h   a request, while it waits
 *   sandbox.c    create, get, kill, network   spec.c      a create request, checked; create.c
 *   path.c       create, of a path's sandbox
 *   lifecycle.c  timeout, pause, connect...   network.c   rules for traffic, checked
 *   list.c       the list of sandboxes        field.c     fields of a body, by type
 *   snapshot.c   snapshots; fork.c            filter.c    what a list is to show
 *   template.c   templates                    page.c      tokens of the next page
 *   metrics.c, logs.c; secrets.c              ref.c       names of templates
 *   create.c     from a body to a sandbox's   shape.c     objects of the answers
 *                specification
 *
 * Every request brings a key, which names the tenant; nothing of another tenant is ever looked up.
 */
#pragma once

#include "front/core/front.h"

/* Answers a request that is meant for no sandbox: now, or after its body and orders came. */
void e2b_request(struct http_req *req);
