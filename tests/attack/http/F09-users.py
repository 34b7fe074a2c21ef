"""F09: whose files they become, and names that are none. Files are worked on with root's rights, as at E2B."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site, answered  # noqa: E402

NAMES = ("../x", "..", "/", "a" * 4096, "nobody-here", "4294967296", "-1", "0x0", "user\n", "User",
         "root ", "root\t", "-u", "user;id", "root:x", "agent", "%72oot", "ro\u043et")


def names(sandbox):
    wrong = []
    for name in NAMES:
        wrong += answered(f"read as {name[:20]!r}", sandbox.get("/etc/hostname", name), 4)
        wrong += answered(f"write as {name[:20]!r}", sandbox.put("/tmp/x", b"x", name), 4)
    return wrong


def owners(sandbox):
    wrong = []
    sandbox.put("/root/private", b"root's", "root")
    sandbox.says("sudo chmod 600 /root/private; sudo mkdir -m 700 /srv/root")
    wrong += answered("read root's file", sandbox.get("/root/private"), 200)
    wrong += answered("write into root's directory", sandbox.put("/srv/root/a/f", b"x"), 200)
    sandbox.put("mine", b"x")
    sandbox.put("/tmp/roots", b"x", "root")
    for number in ("1000", "65534", "65535", "65536", "4294967295"):  # ids are names too, from 65535 on nobody's
        wrong += answered(f"{number} writes", sandbox.put(f"/tmp/{number}", b"x", number), 200)
    said = sandbox.says("sudo stat -c %u /root/private /srv/root /srv/root/a /srv/root/a/f mine /tmp/roots /tmp/[0-9]*").split()
    if said != ["0", "0", "1000", "1000", "1000", "0", "1000", "65534", "65534", "65534", "65534"]:
        wrong.append(f"files belong to {said}")
    for path in ("/proc/1/environ", "/proc/1/root/etc/passwd", "/proc/self/mem", "/proc/sysrq-trigger"):
        wrong += answered(f"read {path}", sandbox.get(path), 4)
        wrong += answered(f"write {path}", sandbox.put(path, b"x"), 4)
    return wrong


with Site() as site:
    sandbox = site.create()
    check("F09 names that are no user's are refused", names(sandbox))
    check("F09 files become the user's, and root's rights end at the agent", owners(sandbox))
    check("F09 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
