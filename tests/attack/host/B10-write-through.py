"""B10: root inside can change neither the host's programs nor what the next sandbox sees of them.

Only files that this script has put there are written: should the layers leak, no harm is done."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, script  # noqa: E402
from oracle import sha256  # noqa: E402
from program import run  # noqa: E402

NAME = f"sandglass-canary-{os.urandom(6).hex()}"
PATHS = [f"{top}/{NAME}" for top in ("/usr/bin", "/usr/share", "/usr/lib")]
TEXT = f"#!/bin/sh\necho genuine {NAME}\n" + "#" * 8192 + "\n"

ATTACK = f"""
import errno, mmap, os


def private_map(path):
    fd = os.open(path, os.O_RDONLY)
    mmap.mmap(fd, 4096, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)[:9] = b"#!changed"


for path in {PATHS!r}:
    if open(path).read() != {TEXT!r}:
        raise SystemExit(f"{{path}} is not the host's")
    for name, attempt in (
        ("append", lambda: open(path, "a").write("echo changed\\n")),
        ("open for writing", lambda: os.close(os.open(path, os.O_RDWR))),
        ("map for writing", lambda: private_map(path)),
        ("truncate", lambda: os.truncate(path, 4096)),
        ("chmod", lambda: os.chmod(path, 0o6777)),
        ("chown", lambda: os.chown(path, 1000, 1000)),
        ("utime", lambda: os.utime(path, (1, 1))),
        ("setxattr", lambda: os.setxattr(path, "user.x", b"y")),
        ("link", lambda: os.link(path, path + "-link")),
        ("rename", lambda: os.rename(path, path + "-moved")),
        ("create beside", lambda: open(path + "-link", "w").close()),
        ("unlink", lambda: os.unlink(path)),
    ):
        try:
            attempt()
            print("PWNED", name, path)
        except OSError as e:
            print("denied", name, errno.errorcode[e.errno])
print("DONE")
"""
LOOK = f"""
import hashlib, os

for path in {PATHS!r}:
    st = os.stat(path)
    print(path, oct(st.st_mode), st.st_uid, hashlib.sha256(open(path, "rb").read()).hexdigest())
    print(os.path.exists(path + "-moved"), os.path.exists(path + "-link"))
"""


def state():
    return [
        (p, sha256(p), os.stat(p).st_mode, os.stat(p).st_uid, os.stat(p).st_mtime_ns) for p in PATHS
    ]


def look():
    with script(LOOK) as f:
        return run("-f", f.name).out


try:
    for path in PATHS:
        with open(path, "w") as f:
            f.write(TEXT)
        os.chmod(path, 0o755)
    before, seen = state(), look()
    with script(ATTACK) as f:
        for user in ("root", "user"):
            r = run("--user", user, "-f", f.name)
            denied = "PWNED" not in r.out and "DONE" in r.out and r.out.count("denied") == 36
            check(f"B10 {user} can change nothing of it", [] if denied else [r])
    check("B10 the host's files are as before", [] if state() == before else ["they have changed"])
    again = look()
    check("B10 the next sandbox sees them as before", [] if again == seen else [seen, again])
finally:
    for path in PATHS:
        for end in ("", "-link", "-moved"):
            if os.path.lexists(path + end):
                os.unlink(path + end)
finish()
