/* Requests over one kept HTTPS connection to egress/host.c, in a sandbox and outside it.
 *
 *   https NAME PORT COUNT yes|no [ADDRESS]   prints the microseconds of each. The host says whether
 *                                            it got the header that is put in on the way; that must
 *                                            be as told. With ADDRESS, NAME is not resolved
 *
 * The certificate is verified by the roots that every client here has, or those in SSL_CERT_FILE.
 */
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "meter.h"

#define WARM 20 /* requests that are not counted */

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "https: %s\n", what);
    exit(1);
}

static int dial(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (getaddrinfo(host, port, &hints, &found) != 0)
        fail("the host is not found");
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0)
        fail("cannot connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    freeaddrinfo(found);
    return fd;
}

static SSL *begin(int fd, const char *name)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *s;

    SSL_CTX_set_default_verify_paths(context);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    s = SSL_new(context);
    SSL_set_tlsext_host_name(s, name);
    SSL_set1_host(s, name);
    SSL_set_fd(s, fd);
    if (SSL_connect(s) != 1)
        fail(X509_verify_cert_error_string(SSL_get_verify_result(s)));
    return s;
}

/* The host's answers are small; the body is their last line. */
static void exchange(SSL *s, const char *request, int len, const char *expected)
{
    char answer[4096];
    size_t have = 0, tail = strlen(expected);

    if (SSL_write(s, request, len) != len)
        fail("cannot send the request");
    do {
        int n = SSL_read(s, answer + have, (int)(sizeof(answer) - 1 - have));
        if (n <= 0)
            fail("no answer");
        have += (size_t)n;
        answer[have] = '\0';
    } while (!strstr(answer, "\r\n\r\n") || memcmp(answer + have - 2, "\n\n", 2) != 0);
    if (strncmp(answer, "HTTP/1.1 200 ", 13) != 0 || strcmp(answer + have - tail, expected) != 0)
        fail(answer);
}

int main(int argc, char **argv)
{
    char request[512], expected[16];

    if (argc < 5)
        return 2;
    long count = strtol(argv[3], NULL, 10);
    SSL *s = begin(dial(argc > 5 ? argv[5] : argv[1], argv[2]), argv[1]);
    int len = snprintf(request, sizeof(request),
                       "GET /v1/things?limit=10 HTTP/1.1\r\nHost: %s:%s\r\nUser-Agent: bench\r\n"
                       "Accept: application/json\r\n\r\n",
                       argv[1], argv[2]);
    snprintf(expected, sizeof(expected), "%s\n\n", argv[4]);
    for (long i = -WARM; i < count; i++) {
        double t = meter_clock(CLOCK_MONOTONIC);
        exchange(s, request, len, expected);
        t = meter_clock(CLOCK_MONOTONIC) - t;
        if (i >= 0)
            printf("%.1f\n", t);
    }
    return 0;
}
