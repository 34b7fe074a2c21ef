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

/* The token that came with the request. NULL: none, and there is no default. */
static const char *bearer_of(struct http_req *req)
{
    const char *bearer = http_header_get(req, "authorization");

    return bearer && strncmp(bearer, "Bearer ", 7) == 0 ? bearer + 7 : NULL;
}

/* Checks a token of any kind. NULL: answered. */
static struct store_tenant *check(struct http_req *req, enum store_token kind, const char *token)
{
    static const struct {
        const char *missing, *wrong;
    } says[] = {
        [STORE_KEY] = {"Invalid API key: none was given in the X-API-Key header",
                       "Invalid API key: it is unknown or revoked"},
        [STORE_ADMIN] = {"Invalid admin token: this route needs the operator's, in the "
                         "X-Admin-Token header ('sandglass key create --admin' makes one)",
                         "Invalid admin token: it is unknown or revoked"},
        [STORE_ACCESS] = {"Invalid access token: none was given as a bearer token",
                          "Invalid access token: it is unknown or revoked"},
    };
    _Static_assert(ARRAY_SIZE(says) == STORE_TOKEN_MAX_, "words for every kind");
    static struct store_tenant tenant;

    if (!token) {
        reply_error(req, 401, "%s", says[kind].missing);
        return NULL;
    }
    if (!auth_may_try(req))
        return NULL;
    if (store_token_check(front_of(req)->store, kind, token, &tenant) < 0) {
        auth_refuse(req, says[kind].wrong);
        return NULL;
    }
    return &tenant;
}

const struct store_tenant *auth_tenant(struct http_req *req)
{
    const char *key = http_header_get(req, "x-api-key");
    const struct store_tenant *t = check(req, STORE_KEY, key ? key : bearer_of(req));

    return t && auth_admit(req, t->id) ? t : NULL;
}

static struct store_tenant *operator(struct http_req *req)
{
    struct store_tenant *t = check(req, STORE_ADMIN, http_header_get(req, "x-admin-token"));

    return t && request_log_has_room(req) ? t : NULL;
}

const struct store_tenant *auth_operator(struct http_req *req)
{
    return operator(req);
}

const struct store_tenant *auth_operator_for(struct http_req *req)
{
    const char *team = http_header_get(req, "x-team-id");
    struct store_tenant *t = operator(req);

    if (!t)
        return NULL;
    if (team && store_tenant_named(front_of(req)->store, team, t) == 0) {
        request_log_about(req, t->id, NULL);
        return t;
    }
    reply_error(req, 401, "Invalid X-Team-ID: %s",
                team ? "there is no such team" : "none was given with the admin token");
    return NULL;
}

const struct store_tenant *auth_team(struct http_req *req)
{
    return http_header_get(req, "x-admin-token") ? auth_operator_for(req) : auth_tenant(req);
}

const struct store_tenant *auth_account(struct http_req *req)
{
    if (http_header_get(req, "x-admin-token"))
        return operator(req);
    const struct store_tenant *t = check(req, STORE_ACCESS, bearer_of(req));
    return t && auth_admit(req, t->id) ? t : NULL;
}
