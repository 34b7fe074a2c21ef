#include "front/main/stray.h"

#include <string.h>

#include "front/core/front.h"
#include "front/core/reply.h"

#define API   "api."
#define SHOWN 100 /* characters of the host in a message */

/* The name after the first dot, and how long it is without a port. */
static const char *parent_of(const char *host, size_t *ret_len)
{
    const char *dot = strchr(host, '.');

    *ret_len = dot ? strcspn(dot + 1, ":") : 0;
    return dot ? dot + 1 : NULL;
}

/* PORT-..., which no name of a server begins with. */
static bool begins_with_port(const char *host)
{
    size_t digits = strspn(host, "0123456789");

    return digits >= 1 && digits <= 5 && host[digits] == '-';
}

static bool is_stray(const char *host, const char *domain, bool *ret_below)
{
    size_t len, domain_len = strcspn(domain, ":");
    const char *parent = parent_of(host, &len);

    *ret_below = parent && len == domain_len && strncmp(parent, domain, len) == 0;
    return (parent && begins_with_port(host)) ||
           (*ret_below && strncmp(host, API, strlen(API)) != 0);
}

bool stray_refused(struct http_req *req)
{
    const char *domain = front_of(req)->settings.domain;
    bool below;

    if (http_header_get(req, "x-api-key") || http_header_get(req, "authorization") ||
        !is_stray(req->host, domain, &below))
        return false;
    if (below)
        reply_error(req, 404,
                    "'%.*s' names no sandbox: a sandbox's port is at PORT-ID.%s, where ID is what "
                    "getHost() or 'sandglass ps' says, and the API at " API "%s",
                    SHOWN, req->host, domain, domain);
    else if (domain[0])
        reply_error(req, 404,
                    "'%.*s' names no sandbox here: the server's domain is %s. Ask for "
                    "PORT-ID.%s, or have the server started with the domain of that name "
                    "(--domain)",
                    SHOWN, req->host, domain, domain);
    else
        reply_error(req, 404,
                    "'%.*s' names no sandbox: this server has no domain. Name the sandbox in the "
                    "headers E2b-Sandbox-Id and E2b-Sandbox-Port, or have the server started with "
                    "--domain",
                    SHOWN, req->host);
    return true;
}
