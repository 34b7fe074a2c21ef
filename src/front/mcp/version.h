/* Versions of the protocol.
 *
 * Until 2025-11-25 a client begins with `initialize`, which settles the version for a session. From
 * 2026-07-28 on each request names its version, in the header and in its _meta, and repeats its
 * method and the name of the tool in headers, which must agree with the body. */
#pragma once

#include "lib/http/http.h"
#include "front/mcp/message.h"

enum mcp_version {
    MCP_2024_11_05,
    MCP_2025_03_26,
    MCP_2025_06_18,
    MCP_2025_11_25,
    MCP_2026_07_28,
    MCP_VERSION_MAX_
};

#define MCP_VERSION_SESSIONS MCP_2025_11_25 /* the newest with sessions */

const char *version_text(enum mcp_version v);
/* False: we do not have this version. */
bool version_read(const char *text, enum mcp_version *ret);
static inline bool version_has_sessions(enum mcp_version v)
{
    return v <= MCP_VERSION_SESSIONS;
}
/* The version that `initialize` settles on when the client asks for `text`. */
enum mcp_version version_settle(const char *text);
/* Writes {"supported":[...],"requested":"..."}. */
void version_error_data(struct strbuf *out, const char *requested);

/* Checks a request of a version without sessions: headers and _meta must be there and agree. 0, or
 * the code of the error. */
int version_check_request(const struct http_req *req, const struct message *m, struct sg_error *e);
