/* /mcp: the tools, for clients that speak the Model Context Protocol (streamable HTTP).
 *
 *   route.c      what every request must have: origin, key, session, version; which method
 *   origin.c     pages that may ask                session.c   ids that carry their own proof
 *   message.c    JSON-RPC messages                 version.c   versions, and what each demands
 *   exchange.c   the answer to one POST: JSON, or a stream of events
 *   methods.c    initialize, ping, tools/list...   call.c      a tool at work; progress; the end
 *   catalogue.c  which tools there are             result.c    what a tool's answer is made of
 *   run.c        run_code, run_analysis            execute.c   execute_code
 *   shown.c      results of cells as content       contexts.c  list_contexts, end_context
 *   files.c      a file operation in the path's sandbox; file_read.c, file_write.c, file_list.c
 *
 * A POST brings one message, or in version 2025-03-26 several. Its answer is JSON if all is known
 * soon, and a stream of events otherwise:
 *
 *   asked --all answered--> one JSON document
 *     `--1 s: somebody wants to know of progress; 5 s--> stream --all answered--> its end
 *
 * Nothing is kept of a session: its id proves by itself that we gave it to this tenant, so it is
 * good after a restart. GET is refused, since we never have to say anything unasked. Who leaves
 * before the answer gives the call up: there is no second way to get it.
 *
 * From version 2026-07-28 on there are no sessions. A request says what it needs by itself. */
#pragma once

#include "front/core/front.h"

void mcp_request(struct http_req *req);
