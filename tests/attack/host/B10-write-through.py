"""B10: what root inside does to the template changes neither the host nor the next sandbox.

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
import mmap, os

for path in {PATHS!r}:
    if open(path).read() != {TEXT!r}:
        raise SystemExit(f"{{path}} is not the host's")
    with open(path, "a") as f:
        f.write("echo changed\\n")
    fd = os.open(path, os.O_RDWR)
    mmap.mmap(fd, 4096)[:9] = b"#!changed"
    os.truncate(path, 4096)
    os.chmod(path, 0o6777)
    os.chown(path, 1000, 1000)
    os.utime(path, (1, 1))
    os.link(path, path + "-link")
    os.rename(path, path + "-moved")
    os.unlink(path + "-link")
    open(path, "w").write("#!/bin/sh\\necho another\\n")
for path in ("/usr/bin/python3.11", "/usr/bin/env", "/etc/passwd", "/usr/bin/sudo"):
    try:
        os.close(os.open(path, os.O_WRONLY))  # enough to copy it up; nothing is written
    except OSError as e:
        print(path, e)
print("CHANGED")
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
        r = run("--user", "root", "-f", f.name)
        check("B10 root can change all of it inside", [] if "CHANGED" in r.out else [r])
        as_user = run("--user", "user", "-f", f.name)
        check("B10 an ordinary user cannot", [as_user] if "CHANGED" in as_user.out else [])
    check("B10 the host's files are as before", [] if state() == before else ["they have changed"])
    again = look()
    check("B10 the next sandbox sees them as before", [] if again == seen else [seen, again])
finally:
    for path in PATHS:
        for end in ("", "-link", "-moved"):
            if os.path.lexists(path + end):
                os.unlink(path + end)
finish()
