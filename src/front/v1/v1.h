/* Execution contexts over HTTP: what a chat application calls. docs/openapi.yaml has every route,
 * and a test that holds it against the server; docs/contexts.md says what contexts are.
 *
 *   routes.c     which function answers       check.c    bodies and queries, strictly
 *   contexts.c   one context: get-or-create, get, end, touch
 *   list.c       pages of contexts            cursor.c   where a page begins
 *   branch.c     branch, merge, cleanup, paths
 *   checkpoints.c   which there are, and back to one
 *   explore.c    the same path several times, and one of them adopted
 *   usage.c      what a tenant used           days.c     from one day to another
 *   audit.c      what left its sandboxes, as the guard has it on record
 *   agents.c     hosted agents (front/acp/agents.h): start, list, stop, their WebSockets
 *   spec.c       the sandbox that a body asks for
 *   shape.c      objects of the answers       reply.c    answers that several routes give
 *
 * A request is an e2b_req (front/e2b/request.h), which lives until what was begun for it has called
 * back. Nothing is decided here: the manager (front/contexts/context.h) or its store does, and
 * answers later.
 *
 *   key --> route --> body, strictly --> context_*() --> here? the answer
 *                                                        another server? 307, to the same target
 *
 * A field that we do not know is refused, and named: a limit that was mistyped must not count as
 * none. */
#pragma once

#include "front/core/front.h"

/* Answers a request below /v1/: now, or after its body and what it waits for came. */
void v1_request(struct http_req *req);
