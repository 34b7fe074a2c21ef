#include "lib/command/terminal.h"

#include <sys/ioctl.h>

void terminal_raw(struct terminal *t, int fd)
{
    struct termios raw;

    t->fd = -1;
    if (tcgetattr(fd, &t->saved) < 0)
        return;
    raw = t->saved;
    cfmakeraw(&raw);
    if (tcsetattr(fd, TCSADRAIN, &raw) == 0)
        t->fd = fd;
}

void terminal_hide(struct terminal *t, int fd)
{
    struct termios hidden;

    t->fd = -1;
    if (tcgetattr(fd, &t->saved) < 0)
        return;
    hidden = t->saved;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    hidden.c_lflag |= ICANON | ECHONL;
    if (tcsetattr(fd, TCSAFLUSH, &hidden) == 0)
        t->fd = fd;
}

void terminal_restore(struct terminal *t)
{
    if (t->fd >= 0)
        tcsetattr(t->fd, TCSADRAIN, &t->saved);
    t->fd = -1;
}

void terminal_size(uint16_t *ret_rows, uint16_t *ret_cols)
{
    struct winsize w;

    *ret_rows = 24;
    *ret_cols = 80;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0) {
            *ret_rows = w.ws_row;
            *ret_cols = w.ws_col;
            return;
        }
    }
}
