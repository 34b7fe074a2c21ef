"""D18: files without end, or with nothing behind them, read from outside."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from engine import Engine, SandglassError  # noqa: E402
from host import check, finish, poll, rss_mib  # noqa: E402

PLANT = r"""
import os, signal, socket
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
os.chdir(os.path.expanduser("~"))
fd = os.open("sparse", os.O_CREAT | os.O_RDWR)
for size in (8 << 60, 1 << 62, 1 << 40, 30 << 20):
    try:
        os.ftruncate(fd, min(size, (1 << 63) - 1))
        print("SIZE", size)
        break
    except OSError as e:
        print(e)
os.mkfifo("fifo")
s = socket.socket(socket.AF_UNIX)
s.bind("socket")
for name, target in {"zero": "/dev/zero", "tty": "/dev/tty", "random": "/dev/urandom",
                     "stdin": "/dev/stdin", "ptmx": "/dev/ptmx", "kmsg": "/proc/kmsg",
                     "mem": "/proc/self/mem",
                     "pagemap": "/proc/self/pagemap", "dangling": "/nowhere"}.items():
    os.symlink(target, name)
os.mkdir("directory")
"""
GROW = r"""
import os, time
deadline = time.monotonic() + 4
with open(os.path.expanduser("~/growing"), "wb", buffering=0) as f:
    while time.monotonic() < deadline:
        if f.write(bytes(4096)) and f.tell() > 16 << 20:
            f.truncate(0)
            f.seek(0)
"""
NAMES = (
    "sparse",
    "fifo",
    "socket",
    "zero",
    "tty",
    "random",
    "stdin",
    "ptmx",
    "kmsg",
    "mem",
    "pagemap",
    "dangling",
    "directory",
)
GROSS_S, MOST, GROSS_MIB = 8, 4 << 20, 64

with Engine() as engine:
    sandbox = engine.sandbox(disk_bytes=64 << 20)
    r = sandbox.exec("/usr/bin/python3", "-c", PLANT)
    check("D18 the files are planted", [] if r.status == 0 else [r.out, r.err])
    before, wrong = rss_mib(os.getpid()), []
    for user in ("user", "root"):
        for name in NAMES:
            for verb in ("read", "write"):
                began = time.monotonic()
                try:
                    if verb == "read":
                        told = f"{len(sandbox.read(f'/home/user/{name}', user=user, most=MOST))} bytes"
                    elif name in ("sparse", "directory", "dangling"):
                        continue
                    else:
                        sandbox.write(f"/home/user/{name}", b"x", user=user)
                        told = "written"
                except SandglassError as e:
                    told = str(e)
                took = time.monotonic() - began
                print("#", user, verb, name, told[-70:], f"{took * 1000:.0f} ms")
                if took > GROSS_S or "\n" in told:
                    wrong.append(f"{verb} {name}: {took:.1f} s {told}")
    check("D18 each request ends soon", wrong)
    sandbox.close()

    # A file that is cut and grows all the time while it is read.
    sandbox = engine.sandbox(disk_bytes=64 << 20)
    sandbox.exec("sh", "-c", 'setsid /usr/bin/python3 -c "$0" >/dev/null 2>&1 &', GROW)
    poll(lambda: sandbox.exec("test", "-e", "/home/user/growing").status == 0)
    wrong, answers = [], set()
    for _ in range(50):
        began = time.monotonic()
        try:
            sandbox.read("/home/user/growing", most=MOST)
            answers.add("read")
        except SandglassError as e:
            answers.add(str(e))
        if time.monotonic() - began > GROSS_S:
            wrong.append(f"a read took {time.monotonic() - began:.1f} s")
    check("D18 a file that grows all the time can be read", wrong, *sorted(answers))
    grown = rss_mib(os.getpid()) - before
    sandbox.close()
    check(
        "D18 the reader's memory stays flat", [f"{grown:.0f} MiB more"] if grown > GROSS_MIB else []
    )
finish()
