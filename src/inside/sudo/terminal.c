#include "inside/sudo/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "lib/base/fd.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static struct termios before;
static bool taken;

void terminal_resize(const struct terminal *t)
{
    struct winsize size;

    if (t->master >= 0 && ioctl(0, TIOCGWINSZ, &size) == 0)
        ioctl(t->master, TIOCSWINSZ, &size);
}

void terminal_open(struct terminal *t)
{
    int unlocked = 0;

    *t = (struct terminal){.master = -1, .slave = -1};
    if (!isatty(0) || !isatty(1) || !isatty(2) || tcgetattr(0, &before) < 0)
        return;
    AUTO(close_p) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return;
    AUTO(close_p) int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0 || tcsetattr(slave, TCSANOW, &before) < 0)
        return;
    t->master = steal_fd(&master);
    t->slave = steal_fd(&slave);
    terminal_resize(t);
}

void terminal_give_back(void)
{
    if (taken)
        tcsetattr(0, TCSADRAIN, &before);
    taken = false;
}

void terminal_take(struct terminal *t)
{
    struct termios raw = before;

    if (t->master < 0)
        return;
    close(t->slave); /* the command has it */
    t->slave = -1;
    fd_set_nonblock(t->master, true);
    cfmakeraw(&raw);
    taken = tcsetattr(0, TCSADRAIN, &raw) == 0;
}

bool terminal_input(const struct terminal *t)
{
    char buf[4096];
    ssize_t n = read(0, buf, sizeof(buf));

    if (n <= 0)
        return n < 0 && errno == EINTR;
    /* Bytes that a stopped command does not take are lost, as on a real line. */
    ssize_t written = write(t->master, buf, (size_t)n);
    return written >= 0 || errno == EAGAIN;
}

bool terminal_output(const struct terminal *t)
{
    char buf[4096];
    ssize_t n = read(t->master, buf, sizeof(buf));

    if (n > 0)
        return fd_write_all(1, buf, (size_t)n) == 0;
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}
