"""B19: watching shared files tells nothing about what a neighbour does."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, script  # noqa: E402
from program import run, start  # noqa: E402

WATCH = r"""
import ctypes, os, select, struct, sys, time

libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0o4000)
watched = {}
for path in ("/usr/bin", "/usr/bin/cat", "/usr/lib", "/usr/share", "/etc", "/etc/passwd", "/tmp",
             "/var/tmp", "/dev/shm", "/home/user", "/", "/usr/bin/sleep", "/usr/local/bin"):
    number = libc.inotify_add_watch(fd, path.encode(), 0xfff)
    if number >= 0:
        watched[number] = path

def events(seconds):
    deadline, found = time.monotonic() + seconds, []
    while select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
        data = os.read(fd, 65536)
        while data:
            number, mask, _, length = struct.unpack("iIII", data[:16])
            name = data[16:16 + length].rstrip(b"\0").decode()
            found.append((watched.get(number), hex(mask), name))
            data = data[16 + length:]
    return found

events(0.5)
print("READY", flush=True)
for event in events(4):
    print("EVENT", event)
open("/tmp/own", "w").close()
print("OWN", len(events(0.5)))
"""
BUSY = (
    "for i in 1 2 3 4 5; do cat /etc/passwd /usr/bin/cat > /tmp/x; ls /usr/bin > /dev/shm/y; "
    "touch /etc/z$i /usr/local/bin/q ~/h$i /var/tmp/v; rm -f /usr/bin/sleep; env true; done; true"
)

with script(WATCH) as f:
    watcher = start("--user", "root", "--timeout", "60s", "-f", f.name, text=True)
    line = watcher.stdout.readline()
    time.sleep(0.2)
    busy = [run("--user", user, "--", "sh", "-c", BUSY) for user in ("root", "user", "root")]
    out = line + watcher.communicate(timeout=60)[0]
seen = [line for line in out.splitlines() if line.startswith("EVENT")]
ready = "READY" in out and "OWN" in out and "OWN 0" not in out
check("B19 a watcher sees what it does itself", [] if ready else [out])
check("B19 a watcher sees nothing of its neighbours", seen[:10])
check("B19 the neighbours did work", [r for r in busy if r.status != 0])
finish()
