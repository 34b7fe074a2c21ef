#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "inside/agent/proc.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

#define TTY_GID 5 /* devpts uses this group */

void pty_resize(int master, uint32_t rows, uint32_t cols)
{
    struct winsize size = {.ws_row = (unsigned short)(rows > 0xffff ? 0xffff : rows),
                           .ws_col = (unsigned short)(cols > 0xffff ? 0xffff : cols)};

    ioctl(master, TIOCSWINSZ, &size);
}

/* Only the first open goes by name, and its result is a terminal only if it answers as one. The
 * other end is opened from it. */
int pty_open(const struct agent_user *as, uint32_t rows, uint32_t cols, int *ret_master,
             int *ret_slave)
{
    AUTO(close_p) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    int unlocked = 0;

    if (master < 0)
        return -errno;
    if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return -errno;
    AUTO(close_p) int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return -errno;
    if (fchown(slave, as->uid, TTY_GID) < 0 || fchmod(slave, 0620) < 0)
        return -errno;
    pty_resize(master, rows ? rows : 24, cols ? cols : 80);
    *ret_master = steal_fd(&master);
    *ret_slave = steal_fd(&slave);
    return 0;
}
