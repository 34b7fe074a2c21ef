"""D12: limits that the kernel keeps per user must not be a way to starve others: not a neighbour,
not another owner's sandbox, not the host's root. Inotify instances and message queues are charged
to whoever made the user namespace as well, pipe buffers to the user id itself."""
import ctypes
import os
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from engine import Engine  # noqa: E402
from host import check, check_control, finish  # noqa: E402
from program import run  # noqa: E402

HOARD = r"""
import ctypes, fcntl, os, struct, sys, time

libc, n = ctypes.CDLL(None), 0
what = sys.argv[1]
while what == "inotify" and n < 3000 and libc.inotify_init1(0) >= 0:
    n += 1
try:
    while what == "pipes" and n < 80:
        r, w = os.pipe()
        n += fcntl.fcntl(w, 1031, 1 << 20) == 1 << 20
except OSError:
    pass
attributes = ctypes.create_string_buffer(struct.pack("8q", 0, 4, 2048, 0, 0, 0, 0, 0))
while what == "queues" and n < 64 and libc.syscall(240, b"q%d" % n, 0o102, 0o600, attributes) >= 0:
    n += 1
open("/tmp/hoarded", "w").write(str(n))
time.sleep(float(sys.argv[2]))
"""
USE = r"""
import ctypes, fcntl, os, struct

libc = ctypes.CDLL(None)
print("inotify", sum(libc.inotify_init1(0) >= 0 for _ in range(4)))
try:
    print("pipes", sum(fcntl.fcntl(os.pipe()[1], 1031, 1 << 20) == 1 << 20 for _ in range(4)))
except OSError as e:
    print("pipes", e)
attributes = ctypes.create_string_buffer(struct.pack("8q", 0, 4, 2048, 0, 0, 0, 0, 0))
queues = [libc.syscall(240, b"mine%d" % i, 0o102, 0o600, attributes) for i in range(4)]
print("queues", sum(queue >= 0 for queue in queues))
"""
PY = "/usr/bin/python3"


def with_hogs(engine, what, hogs, seconds, look):
    """Calls look() while this many sandboxes hoard; what it said, and how much they got."""
    sandboxes = [engine.sandbox() for _ in range(hogs)]
    threads = [
        threading.Thread(target=sandbox.exec, args=(PY, "-c", HOARD, what, str(seconds)))
        for sandbox in sandboxes
    ]
    for thread in threads:
        thread.start()
    threading.Event().wait(seconds / 2)
    said = look()
    for thread in threads:
        thread.join()
    got = [int(sandbox.read("/tmp/hoarded")) for sandbox in sandboxes]
    for sandbox in sandboxes:
        sandbox.close()
    return said, got


def starved(said, what, got):
    if not any(got):
        return [f"the hogs got no {what} themselves"]
    return [] if f"{what} 4\n" in said else [f"PWNED {what}: {said.split()} after {got} elsewhere"]


def neighbour(what):
    with Engine() as engine:
        sandbox = engine.sandbox()
        said, got = with_hogs(engine, what, 1, 3, lambda: sandbox.exec(PY, "-c", USE).out)
        sandbox.close()
    return starved(said, what, got)


def host_root():
    """Root of the host itself, in this process."""
    libc = ctypes.CDLL(None)
    fds = [libc.inotify_init1(0) for _ in range(4)]
    attributes = ctypes.create_string_buffer(struct.pack("8q", 0, 4, 2048, 0, 0, 0, 0, 0))
    name = b"sandglass-attack-%d" % os.getpid()
    queue = libc.syscall(240, name, 0o102, 0o600, attributes)
    libc.syscall(241, name)  # mq_unlink
    for fd in [*fds, queue]:
        if fd >= 0:
            os.close(fd)
    return f"inotify {sum(fd >= 0 for fd in fds)}\nqueues {4 if queue >= 0 else 0}\n"


def outsiders(what, hogs, seconds):
    """What a sandbox of another owner and the host's root still get."""

    def look():
        return run("--", PY, "-c", USE).out, host_root()

    with Engine(hogs + 1) as engine:
        (sandbox, root), got = with_hogs(engine, what, hogs, seconds, look)
    return starved(sandbox, what, got), starved(root, what, got)


if sys.argv[1:] == ["findings"]:
    print("\n".join(neighbour("pipes")))
    sys.exit(0)
check("D12 a hog of pipe buffers starves no neighbour", neighbour("pipes"))
check_control("D12", "uids")
check("D12 a hog of inotify instances starves no neighbour", neighbour("inotify"))
for what, hogs, seconds in (("inotify", 2, 3), ("queues", 16, 6)):
    other, root = outsiders(what, hogs, seconds)
    check(f"D12 hogs of {what} starve no sandbox of another owner", other)
    check(f"D12 hogs of {what} do not starve the host's root", root)
finish()
