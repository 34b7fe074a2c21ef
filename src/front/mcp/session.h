/* Sessions of MCP: ids that carry their own proof, so nothing is stored.
 *
 *   128 random bits, 128 bits of HMAC-SHA256(secret, tenant, random bits), in hexadecimal digits
 *
 * The id gives no access: each request has a key. It names a conversation, which nobody else may
 * have, and says whose calls a cancellation means. The secret belongs to the server and outlives
 * the process.
 *
 * Sessions that their client has ended are remembered for a while: the protocol wants them
 * refused. */
#pragma once

#include "front/core/front.h"
#include "front/store/store.h"

#define SESSION_LEN 64

/* -errno: the store cannot be read. */
int mcp_session_new(struct front *f, const char *tenant, char ret[SESSION_LEN + 1],
                    struct sg_error *e);
/* Whether the id was made for this tenant, and the session has not been ended. */
bool mcp_session_valid(struct front *f, const char *tenant, const char *id);
void mcp_session_end(const char *id);
