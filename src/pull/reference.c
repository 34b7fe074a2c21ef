#include "pull/reference.h"

#include <stdio.h>
#include <string.h>

#include "pull/fault.h"

#define HUB          "docker.io"
#define HUB_OLD      "index.docker.io"
#define HUB_REGISTRY "registry-1.docker.io"
#define DEFAULT_TAG  "latest"
#define SHOWN_MAX    200 /* of a reference in an error */

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

/* ---- hosts ----------------------------------------------------------------------------------- */

/* Labels with dots between them; none begins or ends with a dash. */
static bool valid_name(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool first = i == 0 || p[i - 1] == '.', last = i + 1 == len || p[i + 1] == '.';

        if (!is_alnum(p[i]) && !(p[i] == '-' && !first && !last) &&
            !(p[i] == '.' && !first && i + 1 < len))
            return false;
    }
    return len > 0;
}

static bool valid_port(const char *p, size_t len)
{
    unsigned port = 0;

    for (size_t i = 0; i < len; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        port = port * 10 + (unsigned)(p[i] - '0');
    }
    return len > 0 && len <= 5 && port > 0 && port <= 65535;
}

bool reference_host_valid(const char *text, size_t len)
{
    const char *close = len && text[0] == '[' ? memchr(text, ']', len) : NULL;
    const char *colon =
        memchr(close ? close : text, ':', len - (close ? (size_t)(close - text) : 0));
    size_t host = colon ? (size_t)(colon - text) : len;

    if (len > REFERENCE_NAME_MAX || (colon && !valid_port(colon + 1, len - host - 1)))
        return false;
    if (!close)
        return valid_name(text, host);
    for (const char *p = text + 1; p < close; p++)
        if (*p != ':' && !(*p >= '0' && *p <= '9') && !((*p | 0x20) >= 'a' && (*p | 0x20) <= 'f'))
            return false;
    return host == (size_t)(close - text) + 1 && close > text + 2;
}

/* ---- paths and tags -------------------------------------------------------------------------- */

/* How many of the characters between letters stand at p: ".", "_", "__" or any number of dashes. */
static size_t separator(const char *p, const char *end)
{
    size_t n = 0;

    if (*p == '.')
        return 1;
    if (*p == '_')
        return p + 1 < end && p[1] == '_' ? 2 : 1;
    while (p + n < end && p[n] == '-')
        n++;
    return n;
}

static bool valid_path(const char *p, size_t len)
{
    const char *end = p + len;
    bool letter = false; /* before p */

    while (p < end) {
        size_t n = is_lower(*p) ? 0 : *p == '/' ? 1 : separator(p, end);

        if (!is_lower(*p) && (n == 0 || !letter))
            return false;
        letter = n == 0;
        p += n ? n : 1;
    }
    return letter;
}

static bool valid_tag(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_alnum(p[i]) && p[i] != '_' && (i == 0 || (p[i] != '.' && p[i] != '-')))
            return false;
    return len > 0 && len <= REFERENCE_TAG_MAX;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The length of the host at the beginning, without its slash; 0: there is none. */
static size_t find_host(const char *text, size_t len)
{
    const char *slash = memchr(text, '/', len);
    size_t n = slash ? (size_t)(slash - text) : 0;
    bool host = n == strlen("localhost") && memcmp(text, "localhost", n) == 0;

    for (size_t i = 0; i < n; i++)
        host |= text[i] == '.' || text[i] == ':' || (text[i] >= 'A' && text[i] <= 'Z');
    return host ? n : 0;
}

static bool is_hex_name(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!(p[i] >= '0' && p[i] <= '9') && !(p[i] >= 'a' && p[i] <= 'f'))
            return false;
    return len == 64;
}

static bool take_name(const char *text, size_t len, struct reference *r)
{
    size_t host = find_host(text, len);
    const char *path = text + (host ? host + 1 : 0);
    size_t path_len = len - (size_t)(path - text);
    bool hub = !host || (host == strlen(HUB) && memcmp(text, HUB, host) == 0) ||
               (host == strlen(HUB_OLD) && memcmp(text, HUB_OLD, host) == 0);
    const char *prefix = hub && !memchr(path, '/', path_len) ? "library/" : "";

    if (len > REFERENCE_NAME_MAX || !valid_path(path, path_len) || is_hex_name(text, len) ||
        (host && !reference_host_valid(text, host)))
        return false;
    snprintf(r->host, sizeof(r->host), "%.*s", (int)(hub ? strlen(HUB_REGISTRY) : host),
             hub ? HUB_REGISTRY : text);
    snprintf(r->path, sizeof(r->path), "%s%.*s", prefix, (int)path_len, path);
    return true;
}

static bool take_reference(const char *text, struct reference *r)
{
    const char *at = strchr(text, '@');
    size_t len = at ? (size_t)(at - text) : strlen(text), name = len;
    bool tagged = false;

    if (at && !digest_parse(at + 1, strlen(at + 1), &r->digest))
        return false;
    /* The last colon after the last slash begins a tag; any other belongs to the host. */
    for (size_t i = len; i > 0 && text[i - 1] != '/' && !tagged; i--)
        if (text[i - 1] == ':') {
            name = i - 1;
            tagged = true;
        }
    if (tagged && !valid_tag(text + name + 1, len - name - 1))
        return false;
    if (!at)
        snprintf(r->tag, sizeof(r->tag), "%.*s",
                 (int)(tagged ? len - name - 1 : strlen(DEFAULT_TAG)),
                 tagged ? text + name + 1 : DEFAULT_TAG);
    return take_name(text, name, r);
}

int reference_parse(const char *text, struct reference *ret, struct sg_error *e)
{
    struct reference r = {0};

    if (!take_reference(text, &r))
        return fault_invalid(e,
                             "'%.*s' is not the name of an image; use for example debian:12 or "
                             "ghcr.io/owner/name:tag, in lower case",
                             SHOWN_MAX, text);
    *ret = r;
    return 0;
}

const char *reference_version(const struct reference *r)
{
    return digest_given(&r->digest) ? r->digest.text : r->tag;
}

bool reference_same(const char *a, const char *b)
{
    struct reference one, two;

    return strcmp(a, b) == 0 ||
           (reference_parse(a, &one, NULL) == 0 && reference_parse(b, &two, NULL) == 0 &&
            strcmp(one.host, two.host) == 0 && strcmp(one.path, two.path) == 0 &&
            strcmp(reference_version(&one), reference_version(&two)) == 0);
}
