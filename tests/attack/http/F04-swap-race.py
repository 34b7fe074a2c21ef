"""F04: a directory and a link change places while files below are read and written."""
import concurrent.futures
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from oracle import Canary  # noqa: E402
from program import LONG  # noqa: E402
from server import Site  # noqa: E402

SECONDS = 60 if LONG else 5
SWAP = r"""
import ctypes, os, time
c = ctypes.CDLL(None, use_errno=True)
home = os.path.expanduser("~")
os.makedirs(f"{home}/real{TREE}/0/0", exist_ok=True)
open(f"{home}/real{TREE}/0/0/0", "w").write("inside")
os.symlink("TARGET", f"{home}/link")
a, b = f"{home}/real".encode(), f"{home}/link".encode()
deadline = time.monotonic() + SECONDS
n = 0
while time.monotonic() < deadline:
    n += c.renameat2(-100, a, -100, b, 2) == 0
open(f"{home}/count", "w").write(str(n))
"""


def hammer(sandbox, canary, deadline):
    wrong, n, base = [], 0, f"real{canary.tree}/0/0"
    while time.monotonic() < deadline:
        user = ("user", "root")[n % 2]
        a = sandbox.get(f"{base}/0", user)
        if canary.secret.encode() in a.body:
            wrong.append(f"PWNED read: {a}")
        answers = [a, sandbox.put(f"{base}/0", b"inside", user), sandbox.put(f"{base}/n{n}", b"x", user)]
        for method, message in (
            ("MakeDir", {"path": f"{base}/d{n}"}), ("Stat", {"path": f"{base}/0"}),
            ("Move", {"source": f"{base}/n{n}", "destination": f"{base}/m{n}"}),
            ("Remove", {"path": f"{base}/m{n}"}), ("Remove", {"path": f"{base}/d{n}"}),
            ("ListDir", {"path": f"real{canary.tree}", "depth": 5}),
        ):
            answers.append(sandbox.rpc(f"filesystem.Filesystem/{method}", message))
        wrong += [f"PWNED {a}" for a in answers if canary.secret.encode() in a.body]
        wrong += [f"{a}" for a in answers if a.status >= 500]
        n += 1
    return wrong, n


canary = Canary()
try:
    with Site() as site:
        for target in ("/", "../../.."):
            sandbox = site.create()
            code = SWAP.replace("{TREE}", canary.tree).replace("TARGET", target)
            sandbox.python(code.replace("SECONDS", str(SECONDS / 2)))
            deadline = time.monotonic() + SECONDS / 2
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                runs = list(pool.map(lambda _: hammer(sandbox, canary, deadline), range(2)))
            check(
                f"F04 nothing outside the root is reached while a link to {target} is swapped in",
                [w for wrong, _ in runs for w in wrong][:10],
                f"{sum(n for _, n in runs)} rounds",
            )
            check("F04 the sandbox goes on", sandbox.trouble() + site.trouble())
            sandbox.kill()
    check("F04 the canaries are untouched", canary.wrong())
finally:
    canary.remove()
finish()
