"""D17: deep and wide trees, long names and links in circles, against files read from outside."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from engine import Engine, SandglassError  # noqa: E402
from host import check, finish  # noqa: E402

PLANT = r"""
import os

home = os.path.expanduser("~")
os.chdir(home)
os.mkdir("wide")
for i in range(10000):
    os.close(os.open("wide/%d" % i, os.O_CREAT | os.O_WRONLY))
for i in range(20):
    os.close(os.open("wide/" + "n" * 252 + "%03d" % i, os.O_CREAT | os.O_WRONLY))
os.symlink("a", "b")
os.symlink("b", "a")
os.symlink(".", "dot")
for i in range(60):
    os.symlink("chain%d" % (i + 1), "chain%d" % i)
open("chain60", "w").write("end")
made = 0
try:
    for made in range(20000):
        os.mkdir("d")
        os.chdir("d")
except OSError as e:
    print(e)
print("DEPTH", made)
"""
PATHS = {
    "a deep path": "/home/user/" + "d/" * 1000 + "x",
    "a path of 64 KiB": "/" + "d/" * 32768 + "x",
    "a name of 256 bytes": "/home/user/" + "n" * 256,
    "a link in a circle": "/home/user/a",
    "a file behind a circle": "/home/user/a/x",
    "a chain of 60 links": "/home/user/chain0",
    "a way through itself": "/home/user/" + "dot/" * 500 + "wide/1",
    "a directory": "/home/user/wide",
}
GROSS_S = 10

with Engine() as engine:
    sandbox = engine.sandbox(memory_bytes=512 << 20, disk_bytes=200 << 20)
    r = sandbox.exec("/usr/bin/python3", "-c", PLANT)
    check("D17 the tree is planted", [] if "DEPTH" in r.out else [r.out, r.err], r.out.strip())
    wrong = []
    for what, path in PATHS.items():
        for verb in ("read", "write"):
            began = time.monotonic()
            try:
                sandbox.read(path) if verb == "read" else sandbox.write(path, b"x")
                told = "done"
            except SandglassError as e:
                told = str(e)
            if time.monotonic() - began > GROSS_S or "\n" in told or not told:
                wrong.append(f"{verb} {what}: {time.monotonic() - began:.1f} s, {told[:200]}")
            print("#", verb, what, told[-60:])
    check("D17 reading and writing come to an end with a clear answer", wrong)
    check(
        "D17 the agent still answers",
        [] if sandbox.exec("id", "-u").out == "1000\n" else ["it does not"],
    )
    began = time.monotonic()
    sandbox.close()
    took = time.monotonic() - began
    check(
        "D17 the sandbox can be removed",
        [f"{took:.1f} s"] if took > GROSS_S else [],
        f"{took:.2f} s",
    )
finish()
