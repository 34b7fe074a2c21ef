"""pty_run.py [OPTION]... -- COMMAND...: runs a command on a pseudo-terminal, shows what it wrote
and ends with its status (128 + N for a signal).

  --size ROWSxCOLUMNS     size of the terminal
  --type TEXT TYPED       when TEXT has appeared, type TYPED; in order, may be repeated
  --hang-up-at TEXT       when TEXT has appeared, close the terminal"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

PATIENCE_S = 40


def size(text):
    return struct.pack("HHHH", *map(int, text.split("x")), 0, 0)


def parse(argv):
    steps, first_size = [], "24x80"
    while argv[0] != "--":
        option = argv.pop(0)
        if option == "--size":
            first_size = argv.pop(0)
        elif option == "--hang-up-at":
            steps.append((option, argv.pop(0), None))
        else:
            steps.append((option, argv.pop(0), argv.pop(0)))
    return steps, first_size, argv[1:]


def do_step(master, step):
    option, _, value = step
    if option == "--type":
        os.write(master, value.encode().decode("unicode_escape").encode("latin-1"))
        return True
    os.close(master)
    return False


def attend(master, steps):
    """Follows the steps until the terminal is closed by either side."""
    seen, searched, deadline = b"", 0, time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if steps and steps[0][1].encode() in seen[searched:]:
            searched += seen[searched:].index(steps[0][1].encode()) + len(steps[0][1])
            if not do_step(master, steps.pop(0)):
                return
            continue
        if not select.select([master], [], [], 0.2)[0]:
            continue
        try:
            piece = os.read(master, 65536)
        except OSError:  # EIO: nobody has the other side any more
            break
        if not piece:
            break
        seen += piece
        os.write(1, piece)
    if steps:
        print(f"never seen: {steps[0][1]!r}", file=sys.stderr)


def main():
    steps, first_size, command = parse(sys.argv[1:])
    pid, master = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, size(first_size))
        os.execvp(command[0], command)
    attend(master, steps)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code


sys.exit(main())
