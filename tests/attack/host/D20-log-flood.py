"""D20: what sandboxes can write into the logs of the host."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, script  # noqa: E402
from oracle import kernel_log, since  # noqa: E402
from program import LONG, run  # noqa: E402

CRASHES = 100000 if LONG else 1500
MOST_LINES = 600
FLOOD = f"""
import ctypes, mmap, os

def crash(i):
    if i % 3 == 0:
        ctypes.string_at(0)
    page = mmap.mmap(-1, 4096, prot=7)
    int80, ud2 = b"\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3", b"\\x0f\\x0b"
    page.write(int80 if i % 3 == 1 else ud2)
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    os._exit(0)

ended = 0
for i in range({CRASHES}):
    pid = os.fork()
    if pid == 0:
        crash(i)
    ended += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
print("CRASHED", ended)
"""

last = (kernel_log() or [""])[-1]
with script(FLOOD) as f:
    r = run("--timeout", "30m" if LONG else "100s", "-f", f.name, timeout=2000)
check("D20 the crashes happened", [] if f"CRASHED {CRASHES}" in r.out else [r])
lines = since(kernel_log(), last)
check(
    "D20 the kernel's log grows little",
    [f"{len(lines)} lines"] if len(lines) > MOST_LINES else [],
    f"{len(lines)} lines for {CRASHES} crashes",
)
finish()
