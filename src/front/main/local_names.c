#include "front/main/local_names.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/log/log.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"

#define NAME      "localhost"
#define NAME_MAX_ 253
#define HOUR      3600l

static struct {
    struct authority root;
    EVP_PKEY *leaf_key; /* of all certificates; in memory alone */
} local;

unsigned local_port(int listener)
{
    struct sockaddr_storage addr = {0};
    const struct sockaddr_in *v4 = (const void *)&addr;
    const struct sockaddr_in6 *v6 = (const void *)&addr;
    socklen_t len = sizeof(addr);

    if (getsockname(listener, (struct sockaddr *)&addr, &len) < 0)
        return 0;
    if (addr.ss_family == AF_INET && ntohl(v4->sin_addr.s_addr) >> 24 == 127)
        return ntohs(v4->sin_port);
    if (addr.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr))
        return ntohs(v6->sin6_port);
    return 0;
}

void local_domain(struct settings *s, unsigned port)
{
    if (s->domain[0] == '\0' && port > 0)
        snprintf(s->domain, sizeof(s->domain), NAME ":%u", port);
}

/* Lower case, so that equal names have equal certificates. False: the name is not ours. */
static bool own_name(const char *asked, char ret[NAME_MAX_ + 1])
{
    size_t len = asked ? strlen(asked) : 0, own = strlen(NAME);

    if (len == 0)
        asked = NAME, len = own;
    if (len < own || len > NAME_MAX_ || strcasecmp(asked + len - own, NAME) != 0 ||
        (len > own && (len == own + 1 || asked[len - own - 1] != '.')))
        return false;
    for (size_t i = 0; i <= len; i++)
        ret[i] = (char)(asked[i] >= 'A' && asked[i] <= 'Z' ? asked[i] | 0x20 : asked[i]);
    return true;
}

/* One certificate for each handshake: no wildcard below a name without a dot is valid anywhere. */
static int show(SSL *ssl, void *arg UNUSED)
{
    char name[NAME_MAX_ + 1];
    const char *names[] = {name};
    struct sg_error e = {0};
    X509 *leaf = NULL;

    if (own_name(SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name), name))
        leaf = CERTIFICATE(&e, .key = local.leaf_key, .issuer = local.root.cert,
                           .issuer_key = local.root.key, .from_s = -HOUR, .to_s = 24 * HOUR,
                           .path = -1, .names = names, .n_names = 1);
    int ok = leaf && SSL_use_cert_and_key(ssl, leaf, local.leaf_key, NULL, 1) == 1;
    X509_free(leaf);
    return ok;
}

static int prepare(struct http_server *s, struct sg_error *e)
{
    static const char *const names[] = {NAME};
    static const struct authority_spec spec = {
        .common_name = "Sandglass on this machine", .names = names, .n_names = 1};
    AUTO(close_p) int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = dir < 0 ? err_errno(e, "open the front's directory")
                    : authority_open(dir, &spec, &local.root, e);

    if (r < 0)
        return r;
    local.leaf_key = EVP_EC_gen("P-256");
    return local.leaf_key ? http_server_set_certificates(s, show, NULL, e)
                          : certificate_error(e, "make a key");
}

bool local_certificates(struct http_server *s)
{
    struct sg_error e = {0};

    if (prepare(s, &e) == 0)
        return true;
    authority_done(&local.root);
    log_line(LEVEL_WARN, "no HTTPS for names below localhost: %s", e.message);
    return false;
}
