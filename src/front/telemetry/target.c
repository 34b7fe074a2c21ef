#include "front/telemetry/target.h"

#include <stdio.h>
#include <string.h>

#include "lib/text/base64.h"
#include "lib/log/log.h"

#define OTLP_PATH     "/v1/traces"
#define LANGFUSE_PATH "/api/public/otel" OTLP_PATH
/* Without this header Langfuse shows spans minutes later. */
#define LANGFUSE_VERSION_HEADER "x-langfuse-ingestion-version"
#define LANGFUSE_VERSION        "4"

/* Joins base and path, unless base ends with it already; a query of base goes to the end. */
static void make_url(const char *base, const char *path, char url[TARGET_URL_MAX])
{
    size_t len = strcspn(base, "?"), path_len = strlen(path);

    while (len > 0 && base[len - 1] == '/')
        len--;
    bool has = len >= path_len && strncmp(base + len - path_len, path, path_len) == 0;
    snprintf(url, TARGET_URL_MAX, "%.*s%s%s", (int)len, base, has ? "" : path,
             base + strcspn(base, "?"));
}

/* ---- headers --------------------------------------------------------------------------------- */

static bool is_token(const char *p, size_t len)
{
    static const char more[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < len; i++)
        if (!((p[i] >= '0' && p[i] <= '9') || ((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'z') ||
              (p[i] && strchr(more, p[i]))))
            return false;
    return len > 0 && len < TARGET_NAME_MAX;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes a value. Returns its length, or -1 if it has a character that no header can have. */
static int decode(const char *p, size_t len, char out[HIDDEN_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < len && n < HIDDEN_MAX - 1; i++) {
        int high = p[i] == '%' && i + 2 < len ? hex_value(p[i + 1]) : -1;
        int low = high >= 0 ? hex_value(p[i + 2]) : -1;
        int c = low >= 0 ? high << 4 | low : (unsigned char)p[i];

        if (c < 0x20 || c == 0x7f)
            return -1;
        out[n++] = (char)c;
        i += low >= 0 ? 2 : 0;
    }
    return (int)n;
}

static bool add_header(struct target_headers *h, const char *name, size_t name_len,
                       const char *value, size_t len)
{
    if (h->n == EXPORTER_HEADERS || !is_token(name, name_len))
        return false;
    memcpy(h->names[h->n], name, name_len);
    h->names[h->n][name_len] = '\0';
    return hidden_set(&h->values[h->n], value, len) && ++h->n;
}

static void trim(const char **p, size_t *len)
{
    while (*len > 0 && **p == ' ') {
        ++*p;
        --*len;
    }
    while (*len > 0 && (*p)[*len - 1] == ' ')
        --*len;
}

/* Takes one name=value. An empty entry is skipped. */
static bool take_header(struct target_headers *h, const char *p, size_t len)
{
    char value[HIDDEN_MAX];
    bool good = false;

    trim(&p, &len);
    const char *equals = memchr(p, '=', len);
    if (len == 0)
        return true;
    if (!equals)
        return false;
    const char *from = equals + 1;
    size_t name_len = (size_t)(equals - p), value_len = len - name_len - 1;
    trim(&p, &name_len);
    trim(&from, &value_len);
    int n = decode(from, value_len, value);
    if (n >= 0)
        good = add_header(h, p, name_len, value, (size_t)n);
    explicit_bzero(value, sizeof(value));
    return good;
}

static void headers_reset(struct target_headers *h)
{
    for (size_t i = 0; i < EXPORTER_HEADERS; i++)
        hidden_wipe(&h->values[i]);
    h->n = 0;
}

bool target_otlp(const struct settings *s, char url[TARGET_URL_MAX], struct target_headers *ret)
{
    const char *at = hidden_reveal(&s->otlp_headers);
    unsigned number = 0;

    headers_reset(ret);
    if (!s->otlp_endpoint[0])
        return false;
    make_url(s->otlp_endpoint, OTLP_PATH, url);
    while (*at) {
        size_t len = strcspn(at, ",");

        number++;
        /* The log does not quote the entry: it may be a secret at the wrong place. */
        if (!take_header(ret, at, len))
            log_line(LEVEL_WARN,
                     "otlp_headers: entry %u is not name=value, or there are too many entries",
                     number);
        at += len + (at[len] == ',');
    }
    return true;
}

bool target_langfuse(const struct settings *s, char url[TARGET_URL_MAX], struct target_headers *ret)
{
    struct strbuf plain = strbuf_upto(sizeof(s->langfuse_public_key) + HIDDEN_MAX);
    struct strbuf header = strbuf_upto(2 * (sizeof(s->langfuse_public_key) + HIDDEN_MAX));

    headers_reset(ret);
    if (!s->langfuse_host[0])
        return false;
    make_url(s->langfuse_host, LANGFUSE_PATH, url);
    strbuf_reserve(&plain);
    strbuf_reserve(&header);
    strbuf_addstr(&plain, s->langfuse_public_key);
    strbuf_addch(&plain, ':');
    strbuf_addstr(&plain, hidden_reveal(&s->langfuse_secret_key));
    strbuf_addstr(&header, "Basic ");
    base64_encode(&header, plain.buf, plain.len);
    if (!add_header(ret, "Authorization", strlen("Authorization"), header.buf, header.len))
        log_line(LEVEL_WARN,
                 "langfuse_secret_key is too long: traces are sent to Langfuse without it");
    strbuf_wipe(&plain);
    strbuf_wipe(&header);
    add_header(ret, LANGFUSE_VERSION_HEADER, strlen(LANGFUSE_VERSION_HEADER), LANGFUSE_VERSION,
               strlen(LANGFUSE_VERSION));
    return true;
}
