"""F05: trees that move while they are listed, removed and watched."""
import concurrent.futures
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from oracle import Canary  # noqa: E402
from program import LONG  # noqa: E402
from server import PATIENCE_S, Site  # noqa: E402

SECONDS = 60 if LONG else 4
MOVE = r"""
import os, time
home = os.path.expanduser("~")
deadline = time.monotonic() + SECONDS
i = 0
while time.monotonic() < deadline:
    i += 1
    deep = f"{home}/top/a/b/c/d/e"
    try:
        os.makedirs(deep, exist_ok=True)
        for k in range(5):
            open(f"{deep}/{k}", "w").close()
        os.rename(f"{home}/top/a/b/c", f"{home}/top/up{i}")
        os.rename(f"{home}/top/up{i}", f"{home}/out{i}")
        os.rename(f"{home}/out{i}", f"{home}/top/a/b/back{i}")
    except OSError:
        pass
"""


def use(sandbox, method, message, deadline):
    wrong, worst, n = [], 0.0, 0
    while time.monotonic() < deadline:
        began = time.monotonic()
        a = sandbox.rpc(f"filesystem.Filesystem/{method}", message)
        worst = max(worst, time.monotonic() - began)
        if a.status >= 500 and b"Directory not empty" not in a.body:  # it was filled meanwhile
            wrong.append(f"{method}: {a}")
        if method == "CreateWatcher" and a.status == 200:
            sandbox.rpc("filesystem.Filesystem/GetWatcherEvents", a.json())
            sandbox.rpc("filesystem.Filesystem/RemoveWatcher", a.json())
        n += 1
    if worst > PATIENCE_S / 2:
        wrong.append(f"{method} took {worst:.1f} s")
    return wrong, f"{n} x {method}"


canary = Canary()
try:
    with Site() as site:
        sandbox = site.create()
        sandbox.python(MOVE.replace("SECONDS", str(SECONDS)))
        deadline = time.monotonic() + SECONDS
        jobs = (("ListDir", {"path": "top", "depth": 20}), ("Remove", {"path": "top/a"}),
                ("CreateWatcher", {"path": "top", "recursive": True}))
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            done = list(pool.map(lambda job: use(sandbox, *job, deadline), jobs))
        check("F05 moving trees neither hang nor break an operation",
              [w for wrong, _ in done for w in wrong][:10], ", ".join(n for _, n in done))
        check("F05 the sandbox goes on", sandbox.trouble() + site.trouble())
    check("F05 the canaries are untouched", canary.wrong())
finally:
    canary.remove()
finish()
