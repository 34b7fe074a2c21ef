"""F06: files that are none: pipes, sockets, devices, directories, links to nowhere."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, fd_count, finish, poll  # noqa: E402
from server import Site, answered  # noqa: E402

PLANT = ("mkfifo fifo; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")';"
         "mkdir dir; ln -s nowhere dangling; ln -s loop loop; ln -s /dev/zero zero;"
         "ln -s /dev/tty tty; ln -s fifo tofifo; truncate -s 900M sparse")
HOME = "/home/user"
READS = {"fifo": 4, "sock": 4, "dir": 400, "dangling": 404, "loop": 4, "zero": 4, "tty": 4,
         "tofifo": 4, "/dev/zero": 4, "/dev/tty": 4, "/dev/ptmx": 4, "/dev/null": 4,
         "/proc/kmsg": 4}
WRITES = {"dir": 400, "loop": 4, "zero": 4, "tty": 4, "/dev/zero": 4, "/dev/tty": 4, "/dev/null": 4,
          "/proc/sys/kernel/core_pattern": 4}
GROSS_S = 10


def attempts(sandbox):
    wrong = []
    for name, status in READS.items():
        for user in ("user", "root"):
            began = time.monotonic()
            wrong += answered(f"read {name} as {user}", sandbox.get(os.path.join(HOME, name), user),
                              status)
            if time.monotonic() - began > GROSS_S:
                wrong.append(f"reading {name} took {time.monotonic() - began:.0f} s")
    for name, status in WRITES.items():
        for user in ("user", "root"):
            began = time.monotonic()
            wrong += answered(f"write {name} as {user}", sandbox.put(os.path.join(HOME, name), b"x", user),
                              status)
            if time.monotonic() - began > GROSS_S:
                wrong.append(f"writing {name} took {time.monotonic() - began:.0f} s")
    for name in ("fifo", "sock", "dangling"):  # may be replaced, must not be waited for
        wrong += answered(f"write {name}", sandbox.put(name, b"x"), 200, 4)
    return wrong


with Site() as site:
    sandbox = site.create()
    sandbox.says(PLANT)
    before = fd_count(site.front())
    check("F06 files that are none are refused, and nothing waits for them", attempts(sandbox))
    a = sandbox.get("sparse", Range=f"bytes={(900 << 20) - 6}-")
    check("F06 a huge file gives the part that was asked for",
          [] if (a.status, a.body) == (206, bytes(6)) else [str(a)])
    after = poll(lambda: fd_count(site.front()) <= before + 2 and fd_count(site.front()))
    check("F06 no descriptor is left open", [] if after else [f"{before} before, {after} after"])
    check("F06 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
