/* The control plane: the REST routes that create, list and end sandboxes, as E2B's programs call
 * them. docs/e2b.md has the table of routes and what each does here.
 *
 *   routes.c       which function answers       request.h   a request, while it waits
 *   sandbox.c      create, get, kill, network   create.c    from a body to a sandbox's plan
 *   path.c         create, for a path           spec.c      a create request, checked
 *   lifecycle.c    timeout, pause, connect...   network.c   rules for traffic, checked
 *   list.c         the list of sandboxes        field.c     fields of a body, by type
 *   snapshot.c     snapshots                    filter.c    which sandboxes a list shows
 *   fork.c         copies of a sandbox          page.c      tokens of the next page
 *   checkpoints.c  checkpoints, rewind          ref.c       names of templates
 *   template.c     templates                    shape.c     objects of the answers
 *   template_tags.c  tags, changes, deleting   build.c   builds of templates
 *   metrics.c      what sandboxes use
 *   logs.c         the log of a sandbox
 *   secrets.c      the tenant's secrets           events.c    events of sandboxes
 *   webhooks.c     where events are posted to
 *
 * Every request brings an API key, which names the tenant; no code here ever looks up another
 * tenant's data. */
#pragma once

#include "front/core/front.h"

/* Answers a request that is meant for no sandbox: at once, or after its body and the answers to its
 * orders have come. */
void e2b_request(struct http_req *req);
