"""C14: more output than anyone wants, and readers that are slow."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import agents, check, finish, rss_mib  # noqa: E402
from program import LONG, run_json, start  # noqa: E402

MOST_MIB = 64
CLIENTS = 50 if LONG else 4
SECONDS = 60 if LONG else 4

began = [start("--timeout", "5m", "--", "sh", "-c", "yes | head -c 20G") for _ in range(CLIENTS)]
worst, deadline = 0.0, time.monotonic() + SECONDS
while time.monotonic() < deadline:
    for p in began:
        p.stdout.read(64)
    worst = max([worst] + [rss_mib(pid) for p in began for pid in [p.pid, *agents(p.pid)]])
    time.sleep(0.05)
alive = [p.poll() is None for p in began]
check(
    "C14 slow readers hold the program back, not the memory of others",
    [f"{worst:.0f} MiB"]
    if worst > MOST_MIB
    else []
    if all(alive)
    else ["a run has ended by itself"],
    f"at most {worst:.0f} MiB in one process",
)
wrong = []
for p in began:
    p.stdout.close()  # nobody reads any more
for p in began:
    try:
        if p.wait(timeout=20) != 141:
            wrong.append(f"status {p.returncode}")
    except subprocess.TimeoutExpired:
        wrong.append("a run goes on although nobody reads")
        p.terminate()
        p.wait()
    p.stderr.close()
check("C14 a run ends when nobody reads any more", wrong)

for stream, code in (("stdout", "yes | head -c 300M"), ("stderr", "yes | head -c 300M >&2")):
    r, o = run_json("--output-limit", "1M", "--timeout", "60s", "--", "sh", "-c", code)
    fine = (
        o
        and o["limit"] == "output"
        and o["exit_code"] == 0
        and len(o[stream]) == 1 << 20
        and o["resource_usage"][f"{stream}_bytes"] == 300 << 20
    )
    check(f"C14 a flood on {stream} is cut and counted", [] if fine else [str(r)[-1500:]])
finish()
