"""C17: whoever owns sandboxes is killed under load. Everything goes with it, and what names remain
are swept by the next one."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import agents, check, finish, marked, poll, script  # noqa: E402
from oracle import Host  # noqa: E402
from program import LONG, run, start  # noqa: E402

MARK = f"owner-{os.urandom(6).hex()}"
ROUNDS, SANDBOXES = (50, 20) if LONG else (3, 6)
BUSY = f"""
import os, subprocess, time
for i in range(4):
    subprocess.Popen(["setsid", "sh", "-c", "while :; do date > /tmp/x; done", "{MARK}"])
while True:
    with open("/tmp/y", "wb") as f:
        f.write(os.urandom(1 << 16))
"""

host = Host()
wrong = []
for round_ in range(ROUNDS):
    with script(BUSY) as f:
        owners = [start("--timeout", "5m", "-f", f.name) for _ in range(SANDBOXES)]
        if round_ == 0:  # full load; later rounds hit them while they are being set up
            poll(lambda: len(marked(MARK)) >= 4 * SANDBOXES)
        else:
            time.sleep(0.005 * round_)
    inside = [pid for p in owners for pid in agents(p.pid)]
    for p in owners:
        p.kill()
    for p in owners:
        p.communicate()
    if not poll(
        lambda: not marked(MARK) and not any(os.path.exists(f"/proc/{pid}") for pid in inside), 5
    ):
        wrong.append(f"round {round_}: still there after 5 s: {marked(MARK)} {inside}")
check("C17 the sandboxes of a killed owner end within 5 s", wrong)

r = run("--", "true")
check("C17 the next run works", [] if r.status == 0 else [r])
# Each of these takes its share of the slots that the dead have left.
again = [start("--", "sleep", "0.5") for _ in range(SANDBOXES + 2)]
check("C17 as many as before can run again", [p.returncode for p in again if p.wait(60) != 0])
for p in again:
    p.communicate()
check("C17 nothing of the dead remains", host.leaks())
host.remove()
finish()
