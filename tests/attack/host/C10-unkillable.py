"""C10: tasks that are hard to kill."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, marked, poll, script  # noqa: E402
from program import run  # noqa: E402

MARK = f"unkillable-{os.urandom(6).hex()}"
TIMEOUT_S = 2
HARD = {
    "reads FIFOs that nobody writes": """
for i in range(20):
    os.mkfifo(f"/tmp/f{i}")
    subprocess.Popen(["cat", f"/tmp/f{i}", MARK])
time.sleep(600)""",
    "waits in vfork for a child that never execs": """
def chain(depth):
    pid = ctypes.CDLL(None).syscall(58)  # vfork, in one and the same address space
    if pid == 0:
        chain(depth - 1) if depth else time.sleep(600)
        os._exit(0)
for _ in range(5):
    if os.fork() == 0:
        chain(5)
        os._exit(0)
time.sleep(600)""",
    "execs itself again and again": """
for i in range(10):
    if os.fork() == 0:
        os.execv("/bin/sh", ["sh", "-c", 'exec "$0" -c "$1" "$0" "$1"', MARK])
time.sleep(600)""",
    "waits for futexes": """
word = ctypes.create_string_buffer(8)
for i in range(50):
    threading.Thread(target=ctypes.CDLL(None).syscall, args=(202, word, 0, 0, 0, 0, 0)).start()
time.sleep(600)""",
    "holds file locks against itself": """
import fcntl
for i in range(10):
    if os.fork() == 0:
        f = open("/tmp/lock", "w")
        fcntl.flock(f, fcntl.LOCK_EX)
        time.sleep(600)
time.sleep(600)""",
    "syncs and allocates without pause": """
for i in range(8):
    if os.fork() == 0:
        n = 0
        while True:
            with open(f"/tmp/s{i}", "wb") as f:
                f.write(bytes(1 << 20)); f.flush(); os.fsync(f.fileno())
            os.sync() if n % 50 == 0 else None
            n += 1
time.sleep(600)""",
    "is a tree of threads and processes": """
def tree(depth):
    for _ in range(3):
        if os.fork() == 0:
            for _ in range(3):
                threading.Thread(target=time.sleep, args=(600,)).start()
            tree(depth - 1) if depth else time.sleep(600)
            time.sleep(600)
tree(2)
time.sleep(600)""",
}
HEAD = f"import ctypes, os, signal, subprocess, threading, time\nMARK = {MARK!r}\n"

for what, code in HARD.items():
    with script(HEAD + code) as f:
        r = run("--timeout", f"{TIMEOUT_S}s", "--pids", "400", "-f", f.name, timeout=60)
    wrong = [] if r.status == 124 and r.seconds < TIMEOUT_S + 8 else [r]
    if not poll(lambda: not marked(MARK), 2):
        wrong.append(f"still there: {marked(MARK)}")
    check(f"C10 a program that {what} is ended", wrong, f"{r.seconds:.1f} s")
finish()
