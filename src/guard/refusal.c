#include "guard/refusal.h"

#include <sys/socket.h>

/* Sends a fatal TLS alert, in a record of its own. */
static bool send_alert(int fd, uint8_t description)
{
    const uint8_t alert[] = {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, description};

    return send(fd, alert, sizeof(alert), MSG_NOSIGNAL) == (ssize_t)sizeof(alert);
}

#define ALERT_ACCESS_DENIED  49
#define ALERT_INTERNAL_ERROR 80

static bool send_answer(int fd, const char *status, const char *text)
{
    char answer[1024];
    int n = snprintf(answer, sizeof(answer),
                     "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                     "Connection: close\r\n\r\n%s",
                     status, strlen(text), text);

    if (n < 0 || (size_t)n >= sizeof(answer))
        return false;
    return send(fd, answer, (size_t)n, MSG_NOSIGNAL) == n;
}

bool refusal_send(int fd, const struct peek *p, const char *name, const struct net_addr *to,
                  const char *rule)
{
    char text[512], address[NET_ADDR_TEXT_MAX];

    if (p->what == PEEK_TLS)
        return send_alert(fd, ALERT_ACCESS_DENIED);
    if (p->what != PEEK_HTTP)
        return false;
    net_addr_text(to, address);
    snprintf(text, sizeof(text), "sandglass: %s port %u is not allowed for this sandbox (%s)\n",
             name ? name : address, to->port, rule);
    return send_answer(fd, "403 Forbidden", text);
}

bool refusal_send_failure(int fd, const struct peek *p, const char *what)
{
    char text[256];

    if (p->what == PEEK_TLS)
        return send_alert(fd, ALERT_INTERNAL_ERROR);
    if (p->what != PEEK_HTTP)
        return false;
    snprintf(text, sizeof(text), "sandglass: %s\n", what);
    return send_answer(fd, "502 Bad Gateway", text);
}
