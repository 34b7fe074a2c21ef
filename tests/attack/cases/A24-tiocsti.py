# case: A24
# title: typing into a terminal
# users: user root
# control: seccomp
import fcntl
import pty
import termios

SYS_IOCTL, TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD = 16, 0x5412, 0x541C, 0x541D, 0x5423


def session():
    _, slave = pty.openpty()
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for letter in b"id\n":
        refused("ioctl(TIOCSTI)", SYS_IOCTL, slave, TIOCSTI, bytes([letter]), ok=("EPERM",))
    for high in (1 << 32, 0xFFFFFFFF << 32):  # the kernel looks at the low half only
        refused(
            "ioctl(TIOCSTI) under high bits", SYS_IOCTL, slave, high | TIOCSTI, b"x", ok=("EPERM",)
        )
    refused("ioctl(TIOCLINUX)", SYS_IOCTL, slave, TIOCLINUX, b"\x06", ok=("EPERM",))
    refused("ioctl(TIOCCONS)", SYS_IOCTL, slave, TIOCCONS, 0, ok=("EPERM",))
    refused("ioctl(TIOCSETD)", SYS_IOCTL, slave, TIOCSETD, b"\x1f\0\0\0", ok=("EPERM",))
    return 0


if in_child(session) != 0:
    sys.exit("no terminal to try it on")
done()
