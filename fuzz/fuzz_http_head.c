/* The head of a request, in one piece and byte by byte: both readings must agree, and what the
 * server's owner may rely on must hold. */
#include <assert.h>

#include "lib/http/impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_clean(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

static void check_headers(const struct http_req *q)
{
    unsigned hosts = 0, lengths = 0, codings = 0;

    for (size_t i = 0; i < q->n_headers; i++) {
        const char *name = q->headers[i].name, *value = q->headers[i].value;

        assert(*name && is_clean(name) &&
               name[strcspn(name, " \t:ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == 0);
        assert(is_clean(value) && *value != ' ' && *value != '\t');
        assert(!*value || (value[strlen(value) - 1] != ' ' && value[strlen(value) - 1] != '\t'));
        hosts += strcmp(name, "host") == 0;
        lengths += strcmp(name, "content-length") == 0;
        codings += strcmp(name, "transfer-encoding") == 0;
    }
    assert(hosts <= 1 && lengths + codings <= 1);
    assert((q->content_length == -1) == (codings == 1));
    assert(codings == 1 || q->content_length >= 0);
    assert(q->content_length <= 0 || lengths == 1);
}

static void check(struct req *r)
{
    struct http_req *q = &r->pub;

    assert(q->path[0] == '/' && !strpbrk(q->path, "?# "));
    assert(q->target[0] && is_clean(q->target) && !strchr(q->target, ' '));
    assert(strlen(q->target) <= 8192 && strlen(q->query) <= strlen(q->target));
    assert(strlen(q->host) <= 255 && !strpbrk(q->host, "/\\@ ,?#%ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
    assert(*q->host || r->http10);
    assert(q->method_name && *q->method_name);
    check_headers(q);
    http_query_get(q, "a");
    http_query_get(q, "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct http_limits limits = HTTP_LIMITS_DEFAULT;
    struct head_scan whole = {0}, piecewise = {0};
    const char *why = NULL, *p = (const char *)data;
    int status, len = head_scan(&whole, &limits, p, size, &why), again = 0;

    for (size_t n = 1; n <= size && again == 0; n++)
        again = head_scan(&piecewise, &limits, p, n, &why);
    assert(len == again);
    assert(len >= 0 || (len <= -400 && why && *why));
    if (len <= 0)
        return 0;
    struct req *r = req_new(p, (size_t)len, &whole, &status, &why);
    if (r) {
        check(r);
        req_free(r);
    } else {
        assert(status >= 400 && status < 600 && *why);
    }
    return 0;
}
