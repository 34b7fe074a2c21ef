/* Checks the entries of network_allow and network_deny. The guard reads them too (guard/entries.h);
 * the check here tells the mistake to the caller who made it. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "lib/text/parse.h"
#include "engine/sandbox.h"

#define NAME_MAX_  253
#define LABEL_MAX_ 63

/* An address, with or without a prefix length ("/24"). */
static bool is_network(const char *entry)
{
    const char *slash = strchr(entry, '/');
    size_t len = slash ? (size_t)(slash - entry) : strlen(entry);
    int family = memchr(entry, ':', len) ? AF_INET6 : AF_INET;
    char address[INET6_ADDRSTRLEN];
    struct in6_addr parsed;
    uint64_t bits;

    if (len >= sizeof(address))
        return false;
    snprintf(address, sizeof(address), "%.*s", (int)len, entry);
    return inet_pton(family, address, &parsed) == 1 &&
           (!slash ||
            parse_u64("length", slash + 1, 0, family == AF_INET ? 32 : 128, &bits, NULL) == 0);
}

bool network_entry_is_name(const char *entry)
{
    const char *name = strncmp(entry, "*.", 2) == 0 ? entry + 2 : entry;
    size_t len = strlen(name), label = 0;
    bool letters = false;

    if (len > 0 && name[len - 1] == '.') /* a final dot, as DNS writes full names */
        len--;
    if (len == 0 || len > NAME_MAX_)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool digit = name[i] >= '0' && name[i] <= '9', dot = name[i] == '.';
        bool letter = (name[i] | 0x20) >= 'a' && (name[i] | 0x20) <= 'z';
        if ((dot && label == 0) || !(dot || digit || letter || name[i] == '-' || name[i] == '_'))
            return false;
        label = dot ? 0 : label + 1;
        letters = dot ? false : letters || !digit;
        if (label > LABEL_MAX_)
            return false;
    }
    return label > 0 && letters; /* a name that ends in a number is an address, or invalid */
}

int network_entry_check(const char *what, const char *entry, struct sg_error *e)
{
    if (is_network(entry) || network_entry_is_name(entry))
        return 0;
    return err_invalid(e,
                       "%s: '%.64s' is not a name, an address or a network: use for example "
                       "example.com, *.example.com, 192.0.2.7 or 2001:db8::/32",
                       what, entry);
}
