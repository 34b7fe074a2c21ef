#include "lib/web/url.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/net/addr.h"

/* An address or a redirect that must not be followed. */
#define forbidden(e, ...) err_set(e, SG_ERR_DENIED, -EPERM, __VA_ARGS__)

void url_done(struct url *u)
{
    curl_url_cleanup(u->curl);
    *u = (struct url){0};
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Copies one part. False: it is missing or too long. */
static bool part(CURLU *curl, CURLUPart which, unsigned flags, char *ret, size_t cap)
{
    char *text = NULL;
    bool good = curl_url_get(curl, which, &text, flags) == CURLUE_OK && strlen(text) < cap;

    if (good)
        memcpy(ret, text, strlen(text) + 1);
    curl_free(text);
    return good;
}

static bool has(CURLU *curl, CURLUPart which)
{
    char *text = NULL;
    bool there = curl_url_get(curl, which, &text, 0) == CURLUE_OK;

    curl_free(text);
    return there;
}

/* Fills in what is known of u->curl. */
static int look(struct url *u, struct sg_error *e)
{
    char scheme[8], port[8];
    size_t len;

    if (!part(u->curl, CURLUPART_SCHEME, 0, scheme, sizeof(scheme)) ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        return forbidden(e, "an address of another kind than http and https");
    if (has(u->curl, CURLUPART_USER) || has(u->curl, CURLUPART_PASSWORD))
        return forbidden(e, "an address with a user in it");
    if (!part(u->curl, CURLUPART_HOST, 0, u->host, sizeof(u->host)) ||
        !part(u->curl, CURLUPART_PORT, CURLU_DEFAULT_PORT, port, sizeof(port)))
        return forbidden(e, "an address without a host");
    u->plain = strcmp(scheme, "http") == 0;
    u->port = (uint16_t)strtoul(port, NULL, 10);
    /* The root's own dot makes another text of the same host. */
    len = strlen(u->host);
    if (len > 0 && u->host[len - 1] == '.')
        u->host[len - 1] = '\0';
    snprintf(u->origin, sizeof(u->origin), "%s://%s:%u", scheme, u->host, u->port);
    /* What follows # is for browsers. */
    return curl_url_set(u->curl, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK ? 0 : -ENOMEM;
}

/* Reads text, which may be relative to what u->curl is already. */
static int take(struct url *u, const char *text, struct sg_error *e)
{
    CURLUcode r =
        strlen(text) < URL_MAX ? curl_url_set(u->curl, CURLUPART_URL, text, 0) : CURLUE_BAD_HANDLE;

    if (r == CURLUE_UNSUPPORTED_SCHEME)
        return forbidden(e, "an address of another kind than http and https");
    if (r != CURLUE_OK)
        return forbidden(e, "an address that cannot be read");
    return look(u, e);
}

int url_parse(const char *text, struct url *ret, struct sg_error *e)
{
    AUTO(url_done) struct url u = {.curl = curl_url()};
    int r = u.curl ? take(&u, text, e) : err_code(e, -ENOMEM, "read an address");

    if (r < 0)
        return r;
    *ret = u;
    u.curl = NULL;
    return 0;
}

/* ---- rules ----------------------------------------------------------------------------------- */

const struct vouched *url_vouched(const struct url *u, const struct vouchers *vouchers)
{
    char with_port[URL_HOST_MAX + 8];

    snprintf(with_port, sizeof(with_port), "%s:%u", u->host, u->port);
    for (size_t i = 0; i < vouchers->n; i++) {
        const struct vouched *v = &vouchers->v[i];

        if (strcasecmp(v->host, with_port) == 0 ||
            (strcasecmp(v->host, u->host) == 0 && u->port == (v->plain ? 80 : 443)))
            return v;
    }
    return NULL;
}

bool vouchers_plain(const struct vouchers *vouchers, const char *host)
{
    for (size_t i = 0; i < vouchers->n; i++)
        if (vouchers->v[i].plain && strcasecmp(vouchers->v[i].host, host) == 0)
            return true;
    return false;
}

/* Why a host that is an address must not be asked; NULL: it may, or it is a name. */
static const char *literal_refusal(const char *host)
{
    char bare[URL_HOST_MAX];
    struct net_addr a;

    snprintf(bare, sizeof(bare), "%s", host + (host[0] == '['));
    if (host[0] == '[')
        bare[strcspn(bare, "]")] = '\0';
    return net_addr_parse(bare, &a) == 0 ? net_addr_refusal(&a) : NULL;
}

int url_allowed(const struct url *u, const struct vouchers *vouchers, struct sg_error *e)
{
    const struct vouched *v = url_vouched(u, vouchers);
    const char *why = literal_refusal(u->host);

    if (u->plain && !(v && v->plain))
        return forbidden(e, "%s is not encrypted: the operator must allow it as a plain %s",
                         u->origin, vouchers->as);
    if (why && !v)
        return forbidden(e, "%s is an %s: the operator must allow it as a %s", u->origin, why,
                         vouchers->as);
    return 0;
}

bool url_same_origin(const struct url *a, const struct url *b)
{
    return a->plain == b->plain && a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

int url_follow(const struct url *from, const char *location, const struct vouchers *vouchers,
               struct url *ret, struct sg_error *e)
{
    AUTO(url_done) struct url u = {.curl = curl_url_dup(from->curl)};
    int r = u.curl ? take(&u, location, e) : err_code(e, -ENOMEM, "read an address");

    if (r == 0 && u.plain && !from->plain)
        r = forbidden(e, "%s is not encrypted", u.origin);
    if (r == 0)
        r = url_allowed(&u, vouchers, e);
    if (r < 0)
        return err_wrap(e, r, "%s sends us elsewhere", from->origin);
    *ret = u;
    u.curl = NULL;
    return 0;
}

int url_add_query(struct url *u, const char *name, const char *value)
{
    char pair[1024];
    int n = snprintf(pair, sizeof(pair), "%s=%s", name, value);

    if (n >= (int)sizeof(pair) || curl_url_set(u->curl, CURLUPART_QUERY, pair,
                                               CURLU_APPENDQUERY | CURLU_URLENCODE) != CURLUE_OK)
        return -EINVAL;
    return 0;
}
