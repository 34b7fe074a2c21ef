#include "front/core/auth.h"

#include <arpa/inet.h>
#include <string.h>

#include "front/core/request_log.h"
#include "front/core/rate.h"
#include "front/core/reply.h"

/* How many wrong keys one network may send before it has to wait. No honest client mistypes its key
 * 60 times. */
#define WRONG_A_SECOND 1.0
#define WRONG_BURST    60.0

static struct rate_table wrong_keys, requests;

/* Finds the /24 or /64 of an address, since one client often has all of it. False: the address is
 * this machine's. */
static bool network_of(const char *peer, char ret[RATE_KEY_MAX + 1])
{
    struct in6_addr a6;
    struct in_addr a4;

    if (inet_pton(AF_INET, peer, &a4) == 1) {
        a4.s_addr &= htonl(0xffffff00);
        inet_ntop(AF_INET, &a4, ret, RATE_KEY_MAX + 1);
        return (ntohl(a4.s_addr) >> 24) != 127;
    }
    if (inet_pton(AF_INET6, peer, &a6) != 1 || IN6_IS_ADDR_LOOPBACK(&a6))
        return false;
    memset(a6.s6_addr + 8, 0, 8);
    inet_ntop(AF_INET6, &a6, ret, RATE_KEY_MAX + 1);
    return true;
}

static void too_many(struct http_req *req, const char *what)
{
    http_add_header(req, "Retry-After", "1");
    reply_error(req, 429, "Too many %s: wait a second", what);
}

bool auth_may_try(struct http_req *req)
{
    char network[RATE_KEY_MAX + 1];

    if (!network_of(req->peer, network) ||
        rate_peek(&wrong_keys, network, WRONG_A_SECOND, WRONG_BURST))
        return true;
    too_many(req, "wrong API keys from your network");
    return false;
}

void auth_refuse(struct http_req *req, const char *message)
{
    char network[RATE_KEY_MAX + 1];

    if (network_of(req->peer, network))
        rate_take(&wrong_keys, network, WRONG_A_SECOND, WRONG_BURST);
    reply_error(req, 401, "%s", message);
}

bool auth_admit(struct http_req *req, const char *tenant)
{
    const struct settings *s = &front_of(req)->settings;

    request_log_about(req, tenant, NULL);
    if (s->tenant_rate > 0 && !rate_take(&requests, tenant, s->tenant_rate, s->tenant_rate)) {
        too_many(req, "requests of this tenant");
        return false;
    }
    return request_log_has_room(req);
}

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
    if (!auth_may_try(req))
        return NULL;
    if (store_key_check(front_of(req)->store, key, &tenant) < 0) {
        auth_refuse(req, "Invalid API key: it is unknown or revoked");
        return NULL;
    }
    return auth_admit(req, tenant.id) ? &tenant : NULL;
}
