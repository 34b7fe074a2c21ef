"""K05: a kernel that is being made is sent the signal by which its makers know that they are done.

What makes a kernel works off a list of calls in it, and a trap says that the list is at its end. Whoever sends a trap from
inside must not get a kernel that is let go half confined."""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from cells import warm_kernel  # noqa: E402
from host import check, finish  # noqa: E402
from server import Site  # noqa: E402

TRIES = 40

FIGHT = r"""
import os, signal
next, turn = os.getpid() + 1, 0
while True:
    for pid in range(next, next + 6):
        try:
            os.kill(pid, signal.SIGTRAP)
        except OSError:
            pass
    turn += 1
    if turn % 50 == 0:
        next = max(next, *(int(p) for p in os.listdir("/proc") if p.isdigit()))
"""
START = f"""
import subprocess, sys
open("/tmp/fight.py", "w").write({FIGHT!r})
fight = subprocess.Popen([sys.executable, "/tmp/fight.py"])
"""
LOOK = r"""
import os
status = dict(l.split(":\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\t" in l)
print(status["Seccomp"].strip(), status["CapEff"].strip(), status["CapBnd"].strip(), status["NoNewPrivs"].strip(), os.getuid())
"""
RIGHT = "2 0000000000000000 0000000000000000 1 1000"


def one(sandbox):
    """What a new kernel says of itself, or that there is none."""
    headers = sandbox.headers(**{"E2b-Sandbox-Port": "49999", "Content-Type": "application/json"})
    made = sandbox.site.ask("POST", "/contexts", headers, json.dumps({"language": "python"}).encode())
    if made.status not in (200, 201):
        return "none"
    context = made.json()["id"]
    try:
        return sandbox.cell(LOOK, context_id=context).out.strip() or "none"
    except RuntimeError:  # it died before it was ready
        return "none"
    finally:
        sandbox.site.ask("DELETE", f"/contexts/{context}", sandbox.headers(**{"E2b-Sandbox-Port": "49999"}))


def attack():
    with Site() as site:
        sandbox = warm_kernel(site)
        check("K05 a kernel is confined as it should be", [] if one(sandbox) == RIGHT else ["it is not"])
        sandbox.cell(START)
        said = collections.Counter(one(sandbox) for _ in range(TRIES))
        check(f"K05 {TRIES} kernels are made under a rain of traps: each is confined, or none",
              [f"{n} times {what!r}" for what, n in said.items() if what not in (RIGHT, "none")], str(dict(said)))
        check("K05 the server goes on", site.trouble())


attack()
finish()
