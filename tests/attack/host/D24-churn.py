"""D24: many sandboxes, in turn and side by side, ended in every way. Nothing may grow."""
import concurrent.futures
import gc
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from engine import Engine  # noqa: E402
from host import check, fd_count, finish, poll, rss_mib  # noqa: E402
from oracle import Host  # noqa: E402
from program import LONG, run, start  # noqa: E402

RUNS = 2500 if LONG else 100
CYCLES = 2500 if LONG else 200


def one(i):
    """In turn: to its end, into its time limit, asked to end, over its memory."""
    if i % 4 == 0:
        return run("--", "true").status == 0
    if i % 4 == 1:
        return run("--timeout", "30ms", "--", "sleep", "60").status == 124
    if i % 4 == 2:
        p = start("--", "sleep", "60")
        time.sleep(0.02)
        p.terminate()
        p.communicate()
        return p.returncode == 143
    return run(
        "--memory", "32M", "--", "sh", "-c", "head -c 100M /dev/zero | tail -c 90M | wc -c"
    ).status in (0, 137)


def slab(name):
    """Objects in use, as far as the kernel counts them."""
    found = re.search(rf"^{name}\s+(\d+)", open("/proc/slabinfo").read(), re.M)
    return int(found[1]) if found else 0


def mounts():
    return len(open("/proc/self/mountinfo").readlines())


host = Host()
run("--", "true")
before = {"net_namespace": slab("net_namespace"), "mounts": mounts()}
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    fine = list(pool.map(one, range(RUNS)))
check(
    "D24 every run of the program ends as it should",
    []
    if all(fine)
    else [f"{fine.count(False)} of {RUNS} did not, the first was number {fine.index(False)}"],
)

with Engine(8) as engine:

    def cycle():
        sandbox = engine.sandbox()
        fine = sandbox.exec("/usr/bin/true").status == 0
        sandbox.close()
        return fine

    fine = [cycle() for _ in range(20)]
    gc.collect()
    fds, rss = fd_count(os.getpid()), rss_mib(os.getpid())
    fine += [cycle() for _ in range(CYCLES)]
    gc.collect()
    check("D24 every cycle in one engine works", [] if all(fine) else ["some failed"])
    now = fd_count(os.getpid())
    check("D24 descriptors do not grow", [f"{fds} before, {now} after"] if now > fds else [])
    more = rss_mib(os.getpid()) - rss
    check(
        "D24 memory does not grow",
        [f"{more:.1f} MiB more"] if more > 4 else [],
        f"{more:.2f} MiB more",
    )

check("D24 nothing is left behind", host.leaks())
check("D24 mounts are as before", [] if mounts() == before["mounts"] else [f"{mounts()}"])
# Network namespaces go away in the background, and the count of a slab lags behind.
poll(lambda: slab("net_namespace") <= before["net_namespace"] + 8, 20)
grown = slab("net_namespace") - before["net_namespace"]
check(
    "D24 network namespaces are freed",
    [f"{grown} more"] if grown > (RUNS + CYCLES) // 4 else [],
    f"{grown:+d} objects",
)
host.remove()
finish()
