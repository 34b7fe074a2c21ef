/* Reads which servers to ask. They are the operator's and may be anywhere: the list of addresses
 * that are never dialled for sandboxes does not apply to them. */
#include <fcntl.h>

#include "lib/base/fd.h"
#include "lib/text/parse.h"
#include "guard/resolver_impl.h"

#define DNS_PORT        53
#define RESOLV_CONF     "/etc/resolv.conf"
#define RESOLV_CONF_MAX 65536

/* Parses "1.2.3.4", "1.2.3.4:53", "2606::1" or "[2606::1]:53". */
static int parse_server(const char *text, struct net_addr *ret)
{
    char host[NET_ADDR_TEXT_MAX + 1];
    const char *end = text + strlen(text), *colon = strrchr(text, ':'), *port = NULL;
    uint64_t number = DNS_PORT;

    if (*text == '[') {
        end = strchr(++text, ']');
        if (!end || (end[1] && end[1] != ':'))
            return -EINVAL;
        port = end[1] ? end + 2 : NULL;
    } else if (colon && colon == strchr(text, ':')) {
        end = colon;
        port = colon + 1;
    }
    if ((size_t)(end - text) >= sizeof(host) ||
        (port && parse_u64("port", port, 1, 65535, &number, NULL) < 0))
        return -EINVAL;
    memcpy(host, text, (size_t)(end - text));
    host[end - text] = '\0';
    if (net_addr_parse(host, ret) < 0)
        return -EINVAL;
    ret->port = (uint16_t)number;
    return 0;
}

/* Reads the servers of the system. Skips one that cannot be used here, like an address with a
 * zone. */
static int read_system(struct resolver *r, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    size_t len;
    char *rest = NULL;
    int ret = file_read(AT_FDCWD, RESOLV_CONF, RESOLV_CONF_MAX, &text, &len);

    if (ret == -ENOENT)
        return 0;
    if (ret < 0)
        return err_code(e, ret, "read '%s'", RESOLV_CONF);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *word = NULL, *key = strtok_r(line, " \t\r", &word);
        char *value = key ? strtok_r(NULL, " \t\r", &word) : NULL;

        if (value && strcmp(key, "nameserver") == 0 && r->n_servers < RESOLVER_SERVERS &&
            parse_server(value, &r->servers[r->n_servers]) == 0)
            r->n_servers++;
    }
    return 0;
}

int resolver_servers_read(struct resolver *r, const char *servers, struct sg_error *e)
{
    AUTO(free_p) char *text = xstrdup(servers);
    char *rest = NULL;

    if (strcmp(servers, "auto") == 0)
        return read_system(r, e);
    for (char *s = strtok_r(text, ", ", &rest); s; s = strtok_r(NULL, ", ", &rest)) {
        if (r->n_servers == RESOLVER_SERVERS)
            return err_invalid(e, "egress_dns: '%s' has more than %d servers", servers,
                               RESOLVER_SERVERS);
        if (parse_server(s, &r->servers[r->n_servers]) < 0)
            return err_invalid(e,
                               "egress_dns: '%s' is not an address, such as 9.9.9.9 or "
                               "[2620:fe::fe]:53",
                               s);
        r->n_servers++;
    }
    if (r->n_servers == 0)
        return err_invalid(e, "egress_dns: names no server; use addresses, or auto");
    return 0;
}
