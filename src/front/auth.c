#include "front/auth.h"

#include <string.h>

#include "front/reply.h"

const struct store_tenant *auth_tenant(struct http_req *req)
{
    static struct store_tenant tenant;
    const char *key = http_header_get(req, "x-api-key");
    const char *bearer = http_header_get(req, "authorization");

    if (!key && bearer && strncmp(bearer, "Bearer ", 7) == 0)
        key = bearer + 7;
    if (!key) {
        reply_error(req, 401, "Invalid API key: none was given in the X-API-Key header");
        return NULL;
    }
    if (store_key_check(front_of(req)->store, key, &tenant) < 0) {
        reply_error(req, 401, "Invalid API key: it is unknown or revoked");
        return NULL;
    }
    return &tenant;
}
