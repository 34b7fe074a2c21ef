#include "lib/web/hosts.h"

#include <string.h>

#define SEPARATORS ", "

bool hosts_next(const char **list, struct listed_host *ret)
{
    const char *p = *list + strspn(*list, SEPARATORS);
    size_t len = strcspn(p, SEPARATORS);
    const char *slashes = memmem(p, len, "://", 3);
    const char *host = slashes ? slashes + 3 : p;

    *ret = (struct listed_host){.scheme = p,
                                .scheme_len = slashes ? (size_t)(slashes - p) : 0,
                                .host = host,
                                .host_len = len - (size_t)(host - p)};
    *list = p + len;
    return len > 0;
}

bool host_is_any(const struct listed_host *h)
{
    return h->scheme_len == 0 && h->host_len == 1 && h->host[0] == '*';
}

/* The entry as one that the caller vouches for. False: its host is too long to be one. */
static bool take(const struct listed_host *h, struct vouched *ret)
{
    if (h->host_len >= sizeof(ret->host))
        return false;
    *ret = (struct vouched){.plain = h->scheme_len == 4};
    memcpy(ret->host, h->host, h->host_len);
    return true;
}

int hosts_judge(const char *list, const char *as, const struct url *u, bool *ret_inside,
                struct sg_error *e)
{
    struct vouched one = {.host = ""};
    struct vouchers none = {.as = as}, by_one = {.v = &one, .n = 1, .as = as};
    bool listed = false;
    int r;

    *ret_inside = false;
    for (struct listed_host h; hosts_next(&list, &h);) {
        if (host_is_any(&h))
            listed = true;
        else if (take(&h, &one) && url_vouched(u, &by_one)) {
            listed = true;
            if (h.scheme_len > 0 && url_allowed(u, &by_one, NULL) == 0)
                *ret_inside = true;
        }
    }
    if (*ret_inside)
        return 0;
    r = url_allowed(u, &none, e);
    if (r == 0 && !listed)
        return err_set(e, SG_ERR_DENIED, -EPERM, "%s is not among those that the operator allows",
                       u->origin);
    return r;
}
