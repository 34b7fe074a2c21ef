/* /mcp: the tools, for clients that speak the Model Context Protocol (streamable HTTP).
 *
 *   route.c      checks every request: origin, key, session, version; finds the method
 *   origin.c     which web pages may ask
 *   session.c    session ids that carry their own proof
 *   message.c    JSON-RPC messages
 *   version.c    versions, and their demands
 *   exchange.c   the answer to one POST: JSON, or a stream of events
 *   methods.c    initialize, ping, tools/list...
 *   call.c       a tool at work: its progress and its end
 *   catalogue.c  the list of tools
 *   result.c     the parts of a tool's answer
 *   run.c        run_code, run_analysis;  shown.c: results of cells as content
 *   execute.c    execute_code
 *   contexts.c   list_contexts, end_context
 *   files.c      a file operation in the path's sandbox; file_read.c, file_write.c, file_list.c
 *   media.c      whether bytes are a picture or text
 *
 * A POST brings one message, or in version 2025-03-26 several. Its answer is JSON if everything is
 * answered soon, and a stream of events otherwise:
 *
 *   asked --all answered--> one JSON document
 *     `--1 s, if the client wants progress; else 5 s--> stream --all answered--> its end
 *
 * Sessions are not stored: a session's id proves by itself that we gave it to this tenant, so it is
 * good after a restart. GET is refused, since we never have to say anything unasked. A client that
 * leaves before the answer gives the call up: there is no second way to get the answer.
 *
 * From version 2026-07-28 on there are no sessions. Each request carries all that it needs. */
#pragma once

#include "front/core/front.h"

void mcp_request(struct http_req *req);
