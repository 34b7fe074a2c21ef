/* Internal addresses that the operator opens: exceptions from those that are never dialled. */

#include "lib/text/parse.h"
#include "guard/cidr.h"

#define ENTRY_TEXT_MAX 64

struct exception {
    struct cidr network;
    uint16_t port; /* 0: any */
};

struct internal_set {
    struct exception *v;
    size_t n;
};

/* Splits "10.0.0.0/8:443" and "[fd00::/8]:443". An IPv6 network without brackets has no port. */
static int parse_entry(char *text, struct exception *ret)
{
    char *network = text, *port = NULL;
    uint64_t number = 0;

    if (text[0] == '[') {
        char *end = strchr(text, ']');

        if (!end || (end[1] && end[1] != ':'))
            return -EINVAL;
        port = end[1] ? end + 2 : NULL;
        *end = '\0';
        network = text + 1;
    } else if (strchr(text, ':') && strchr(text, ':') == strrchr(text, ':')) {
        port = strchr(text, ':');
        *port++ = '\0';
    }
    if (port && parse_u64("port", port, 1, 65535, &number, NULL) < 0)
        return -EINVAL;
    ret->port = (uint16_t)number;
    return cidr_parse(network, &ret->network);
}

static int add_entry(struct internal_set *s, const char *text, size_t len, struct sg_error *e)
{
    struct exception *x = &s->v[s->n];
    char entry[ENTRY_TEXT_MAX];
    struct net_addr only = {0};

    snprintf(entry, sizeof(entry), "%.*s", (int)len, text);
    if (len >= sizeof(entry) || parse_entry(entry, x) < 0)
        return err_invalid(e,
                           "egress_internal: '%.*s' is not an address or network; use for example "
                           "10.0.0.7, 10.0.0.0/8:443 or [fd00::/8]:443",
                           (int)(len < 80 ? len : 80), text);
    memcpy(only.ip, x->network.ip, sizeof(only.ip));
    if (x->network.len == 128 && net_addr_undialable(&only))
        return err_invalid(
            e, "egress_internal: '%.*s' is an address that nobody can connect to: leave it out",
            (int)len, text);
    s->n++;
    return 0;
}

int internal_set_new(const char *text, struct internal_set **ret, struct sg_error *e)
{
    struct internal_set *s = xcalloc(1, sizeof(*s));
    int r = 0;

    s->v = xcalloc(strlen(text) / 2 + 1, sizeof(*s->v)); /* each entry takes two bytes or more */
    for (const char *p = text + strspn(text, ", \t"); r == 0 && *p; p += strspn(p, ", \t")) {
        size_t n = strcspn(p, ", \t");

        r = add_entry(s, p, n, e);
        p += n;
    }
    if (r < 0)
        internal_set_free(s);
    else
        *ret = s;
    return r;
}

void internal_set_free(struct internal_set *s)
{
    if (s)
        free(s->v);
    free(s);
}

bool internal_set_has(const struct internal_set *s, const struct net_addr *a)
{
    if (net_addr_undialable(a))
        return false;
    for (size_t i = 0; s && i < s->n; i++)
        if (cidr_has(&s->v[i].network, a) && (!s->v[i].port || !a->port || s->v[i].port == a->port))
            return true;
    return false;
}
