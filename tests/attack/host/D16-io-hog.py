"""D16: a sandbox that writes and syncs without pause."""
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from program import LONG, run, start  # noqa: E402

SECONDS = 60 if LONG else 4
GROSS_S = 20
HOG = f"""
for i in 1 2 3 4 5 6 7 8; do
    (while :; do dd if=/dev/zero of=/tmp/f$i bs=64k count=64 oflag=dsync 2>/dev/null; done) &
done
for i in 1 2 3 4; do (while :; do sync; done) & done
sleep {SECONDS}
"""


def fsync_times(seconds):
    """How long the host itself waits for its disk."""
    times, deadline = [], time.monotonic() + seconds
    with tempfile.TemporaryFile(dir="/var/tmp") as f:
        while time.monotonic() < deadline:
            began = time.monotonic()
            f.write(b"x" * 4096)
            f.flush()
            os.fsync(f.fileno())
            times.append(time.monotonic() - began)
            time.sleep(0.02)
    return sorted(times)


def tell(times):
    middle, worst = times[len(times) // 2] * 1000, times[-1] * 1000
    return f"{len(times)} syncs, p50 {middle:.1f} ms, worst {worst:.1f} ms"


quiet = fsync_times(1)
hog = start("--timeout", "5m", "--", "sh", "-c", HOG)
time.sleep(0.3)
busy = fsync_times(SECONDS - 1)
r = run("--", "sh", "-c", "echo x > /tmp/x && sync && cat /tmp/x", timeout=GROSS_S)
status = hog.wait(60)
hog.communicate()
check(
    "D16 the host's disk answers meanwhile",
    [tell(busy)] if busy[-1] > GROSS_S else [],
    f"quiet: {tell(quiet)}",
    f"busy: {tell(busy)}",
)
check("D16 a neighbour can write and sync", [] if r.status == 0 and r.out == "x\n" else [r])
check("D16 the hog ends normally", [] if status == 0 else [f"status {status}"])
finish()
