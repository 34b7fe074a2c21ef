"""D26: a tenant keeps the disk busy with writes that it syncs, and changes what the server must store. Others do not wait for that.

Judged is what the front's main thread waits for, since on a shared machine times say little: it may not wait for the disk, but once
when it begins the log anew, and the threads that do so instead must be seen at it. `tests/perf/run neighbours` has the times."""
import concurrent.futures
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site  # noqa: E402

SECONDS = 8
FSYNC, FDATASYNC = ("74", "75") if os.uname().machine == "x86_64" else ("82", "83")
SYNC = """
import os, threading
def write(n):
    fd = os.open(f"/mnt/FILE.{n}", os.O_RDWR | os.O_CREAT)
    while True:
        os.pwrite(fd, os.urandom(1 << 18), 0)
        os.fsync(fd)
for n in range(4): threading.Thread(target=write, args=[n]).start()
"""


def waits(pid):
    """Of each thread of a process: whether it waits for the disk now."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as file:
                yield int(thread) == pid, file.read().split()[0] in (FSYNC, FDATASYNC)
        except (OSError, IndexError):
            pass


def changes(site, end):
    """Rows that must be stored: each change is one that a sync keeps."""
    n = 0
    while time.monotonic() < end:
        made = site.api("POST", "/volumes", {"name": f"v{threading.get_ident()}"})
        if made.status == 201:
            site.api("DELETE", f"/volumes/{made.json()['volumeID']}")
            n += 1
    return n


def neighbour(site, key, end):
    wrong, n = [], 0
    while time.monotonic() < end:
        one = site.create(key=key)
        status, out = one.run("echo here")
        wrong += [] if (status, out) == (0, "here\n") else [f"{status} {out!r}"]
        site.api("DELETE", f"/sandboxes/{one.id}", key=key)
        n += 1
    return n, wrong


def watch(pid, end):
    main = other = 0
    while time.monotonic() < end:
        for is_main, waiting in waits(pid):
            main += waiting and is_main
            other += waiting and not is_main
        time.sleep(0.001)
    return main, other


with Site("--tenant-rate", "0", "--tenant-volumes", "1000") as the_site:
    the_site.api("POST", "/volumes", {"name": "synced"})
    attackers = [the_site.create(volumeMounts=[{"name": "synced", "path": "/mnt"}]) for _ in range(3)]
    for at, attacker in enumerate(attackers):
        attacker.python(SYNC.replace("FILE", str(at)))
    until = time.monotonic() + SECONDS
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        changing = [pool.submit(changes, the_site, until) for _ in range(3)]
        beside = pool.submit(neighbour, the_site, the_site.key_of("neighbour"), until)
        on_main, on_others = watch(the_site.front(), until)
        changed = sum(f.result() for f in changing)
        made, wrong = beside.result()
    check("D26 the front does not wait for the disk", [f"it was seen {on_main} times at it"] if on_main > 2 + on_others // 20 else [],
          f"{changed} changes, seen {on_others} times at it: its threads")
    check("D26 control: its threads do", [] if on_others > 5 and changed > 5 else [f"seen {on_others} times, {changed} changes"])
    check("D26 a neighbour's sandboxes all work", wrong or ([] if made > 3 else ["there were none"]), f"{made}")
    check("D26 the server goes on", the_site.trouble())
finish()
