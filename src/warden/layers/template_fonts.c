#include "warden/layers/template_fonts.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "warden/host/child.h"
#include "warden/host/program.h"
#include "warden/layers/template.h"

#define PYTHON     "/usr/bin/python3"
#define FONTS_ID   65534 /* in the namespace: belongs to nobody */
#define PACKET_MAX (64u * 1024)
#define ANSWER_NS  30000000000ull
#define END_MS     1000

static bool is_name(const char *name, size_t len)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";

    return len > 0 && len < TEMPLATE_FONTS_NAME && name[0] != '.' && strlen(name) == len &&
           strspn(name, allowed) == len;
}

/* Receives the next packet. 0: there are no more, because the program has ended. */
static ssize_t receive(int sock, uint64_t deadline, char *buf, size_t size)
{
    for (;;) {
        struct pollfd p = {.fd = sock, .events = POLLIN};
        ssize_t n = recv(sock, buf, size, MSG_DONTWAIT);

        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            return n < 0 ? -errno : n;
        if (poll(&p, 1, clock_poll_ms(deadline)) == 0)
            return -ETIMEDOUT;
    }
}

static int hear(int sock, char ret_name[TEMPLATE_FONTS_NAME], struct strbuf *list)
{
    AUTO(free_p) char *packet = xcalloc(1, PACKET_MAX + 1);
    uint64_t deadline = clock_ns() + ANSWER_NS;
    ssize_t n = receive(sock, deadline, packet, PACKET_MAX);

    packet[n > 0 ? n : 0] = '\0';
    if (n < 0 || !is_name(packet, (size_t)n))
        return n < 0 ? (int)n : -ENOENT;
    memcpy(ret_name, packet, (size_t)n + 1);
    while ((n = receive(sock, deadline, packet, PACKET_MAX)) > 0)
        strbuf_add(list, packet, (size_t)n);
    if (n == 0 && (list->len == 0 || list->truncated))
        n = -ENOENT;
    return (int)n;
}

int template_fonts_ask(int at, char ret_name[TEMPLATE_FONTS_NAME], struct strbuf *list)
{
    AUTO(close_p) int script = -1;
    struct program program = {.name = "list of fonts",
                              .path = PYTHON,
                              .arguments = (const char *const[]){PROGRAM_MORE_PATH, NULL},
                              .uid = FONTS_ID,
                              .gid = FONTS_ID,
                              .dir = at};
    struct program_ends ends;
    struct sg_error e;
    int r;

    if (access(TEMPLATE_FONTS_MODULE, F_OK) < 0 || access(PYTHON, X_OK) < 0)
        return -ENOENT;
    program.more = script = openat(at, TEMPLATE_FONTS_SCRIPT, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    r = script < 0 ? -errno : program_start(&program, &ends, &e);
    if (r < 0)
        return r;
    r = hear(ends.sock, ret_name, list);
    close(ends.sock);
    child_end(&ends.pidfd, END_MS, NULL);
    close_p(&ends.pidfd);
    return r;
}
