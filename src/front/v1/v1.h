/* Execution contexts over HTTP: the API for chat applications. docs/openapi.yaml has every route,
 * and a test checks it against the server; docs/contexts.md says what contexts are.
 *
 *   routes.c        which function answers
 *   check.c         checks bodies and queries strictly
 *   contexts.c      one context: get-or-create, get, end, touch
 *   list.c          pages of contexts;  cursor.c: where a page begins
 *   branch.c        branch, merge, cleanup, paths
 *   checkpoints.c   lists checkpoints, and rewinds to one
 *   explore.c       runs several codes from the same state, and adopts one result
 *   usage.c         usage of a tenant;  days.c: from one day to another
 *   events.c        events of a tenant: as a stream, or a page
 *   audit.c         the tenant's part of the guard's record
 *   agents.c        hosted agents (front/acp/agents.h): start, list, stop, their WebSockets
 *   spec.c          the sandbox that a body asks for
 *   shape.c         objects of the answers;  reply.c: answers that several routes give
 *
 * A request is an e2b_req (front/e2b/request.h), which lives until every operation that was begun
 * for it has called back. Nothing is decided here: the context manager (front/contexts/context.h)
 * or its store decides, and answers later.
 *
 *   key --> route --> body, strictly --> context_*() --> here? the answer
 *                                                        another server? 307, to the same target
 *
 * A field that we do not know is refused, and named: a mistyped limit must not count as no
 * limit. */
#pragma once

#include "front/core/front.h"

/* Answers a request below /v1/: at once, or when its body has come and its operations are over. */
void v1_request(struct http_req *req);
