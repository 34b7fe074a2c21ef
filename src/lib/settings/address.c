#include "lib/settings/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

void address_format(const struct address *a, char ret[ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (a->addr.ss_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, &a->addr, sizeof(in));
        inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof(host));
        snprintf(ret, ADDRESS_TEXT_MAX, "[%s]:%u", host, ntohs(in.sin6_port));
    } else {
        struct sockaddr_in in;
        memcpy(&in, &a->addr, sizeof(in));
        inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
        snprintf(ret, ADDRESS_TEXT_MAX, "%s:%u", host, ntohs(in.sin_port));
    }
}
