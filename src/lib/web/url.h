/* Where requests may go. Every address here was named by somebody hostile: by the one who named an
 * image or a webhook, or by a registry, in a redirect or a challenge. So
 *
 *   - requests go by https, but to hosts that the caller lists as plain;
 *   - nothing leads from https to http, whatever is listed;
 *   - addresses inside (loopback, private, link-local, metadata: lib/net/addr.h) are for hosts
 *     that the caller lists. A literal address is judged here, what a name leads to when it is
 *     connected (net_addr_dial_refusal);
 *   - credentials are for one scheme, host and port (url_same_origin). */
#pragma once

#include <curl/curl.h>

#include "lib/base/err.h"

#define URL_MAX      8192
#define URL_HOST_MAX 256

/* A host that the caller vouches for. */
struct vouched {
    char host[URL_HOST_MAX]; /* HOST[:PORT]; without port, the one of its scheme */
    bool plain;              /* by http */
};

struct vouchers {
    struct vouched *v;
    size_t n;
    const char *as; /* what the hosts are, for errors: "registry" */
};

/* Whether the caller lists a host as plain, by the very text of it. */
bool vouchers_plain(const struct vouchers *vouchers, const char *host);

struct url {
    CURLU *curl;
    bool plain;
    char host[URL_HOST_MAX]; /* an IPv6 address has its brackets */
    uint16_t port;
    char origin[URL_HOST_MAX + 16]; /* "https://host:port", for errors: paths may hold tokens */
};

void url_done(struct url *u); /* accepts a zeroed struct */
/* An absolute URL of http or https, without a user. It may go nowhere before url_allowed. */
int url_parse(const char *text, struct url *ret, struct sg_error *e);
/* What a redirect or a challenge from `from` leads to, if it may be followed. */
int url_follow(const struct url *from, const char *location, const struct vouchers *vouchers,
               struct url *ret, struct sg_error *e);
int url_allowed(const struct url *u, const struct vouchers *vouchers, struct sg_error *e);
const struct vouched *url_vouched(const struct url *u, const struct vouchers *vouchers);
bool url_same_origin(const struct url *a, const struct url *b);
/* Appends name=value to the query, encoded. */
int url_add_query(struct url *u, const char *name, const char *value);
