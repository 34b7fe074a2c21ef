"""C12: no signal of ours ever hits a process that has got the number of one of ours.

In a pid namespace of this script's own, where numbers can be set back at will: bystanders are born
all the time with the numbers that sandboxes have just used."""
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from program import LONG, SANDGLASS, run, start  # noqa: E402

NEXT = "/proc/sys/kernel/ns_last_pid"
FIRST = 300
SECONDS = 120 if LONG else 8


def bystanders(stop, hits, count):
    while not stop.is_set():
        with open(NEXT, "w") as f:
            f.write(str(FIRST))
        batch = []
        for _ in range(30):
            pid = os.fork()
            if pid == 0:
                for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                    signal.signal(sig, signal.SIG_DFL)
                time.sleep(0.1)
                os._exit(7)
            batch.append(pid)
        for pid in batch:
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            count[0] += 1
            if status != 7:
                hits.append(f"bystander {pid} ended with {status}")


def inside():
    stop, hits, count, runs, wrong = threading.Event(), [], [0], 0, []
    other = os.fork()  # a process of its own: a run must not inherit the bystanders
    if other == 0:
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        bystanders(stop, hits, count)
        print("\n".join(hits), flush=True)
        os._exit(min(len(hits), 100))
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        r = run("--", "true")
        if r.status != 0:
            wrong.append(str(r))
        r = run("--timeout", "50ms", "--", "sleep", "60")
        if r.status != 124:
            wrong.append(str(r))
        p = start("--", "sleep", "60")
        time.sleep(0.05)
        p.terminate()
        p.communicate(timeout=20)
        runs += 3
    os.kill(other, signal.SIGTERM)
    hit = os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])
    check(
        "C12 bystanders with reused pids are never signalled",
        [f"{hit} were hit"] if hit else [],
        f"{runs} runs",
    )
    check("C12 runs are not disturbed by them either", wrong[:3])
    finish()


if sys.argv[1:] == ["inside"]:
    inside()
sys.exit(
    subprocess.run(
        [
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            sys.executable,
            os.path.realpath(__file__),
            "inside",
        ],
        env={**os.environ, "SANDGLASS": SANDGLASS},
    ).returncode
)
