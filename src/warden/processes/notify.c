#include "warden/processes/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define USEC_MAX (7ull * 86400 * 1000000)

static struct {
    int sock; /* -1: there is no service manager */
    struct sockaddr_un to;
    socklen_t to_len;
    uint64_t each_ns, last_ns; /* of the watchdog; each_ns 0: none */
} notify = {.sock = -1};

/* The address is a path, or with '@' an abstract name, which is in no file system. */
static bool read_address(const char *text)
{
    size_t len = strlen(text);

    if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof(notify.to.sun_path))
        return false;
    notify.to = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(notify.to.sun_path, text, len);
    if (text[0] == '@')
        notify.to.sun_path[0] = '\0';
    notify.to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return true;
}

/* WATCHDOG_PID, if it is set, says which process the watchdog is meant for. */
static uint64_t watchdog_ns(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t n = usec ? strtoull(usec, NULL, 10) : 0;

    if (n > USEC_MAX || (pid && strtoull(pid, NULL, 10) != (uint64_t)getpid()))
        return 0;
    return n * 1000 / 4;
}

void notify_open(void)
{
    const char *address = getenv("NOTIFY_SOCKET");

    if (address && read_address(address)) {
        notify.sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        notify.each_ns = watchdog_ns();
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

/* Never waits: a message that cannot be sent at once is dropped. */
void notify_tell(const char *lines)
{
    if (notify.sock >= 0)
        sendto(notify.sock, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&notify.to,
               notify.to_len);
}

void notify_watchdog(void)
{
    uint64_t now = clock_ns();

    if (notify.each_ns == 0 || now - notify.last_ns < notify.each_ns)
        return;
    notify.last_ns = now;
    notify_tell("WATCHDOG=1");
}
