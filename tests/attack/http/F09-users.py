"""F09: whose permissions apply, and names that are none."""
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


def permissions(sandbox):
    wrong = []
    sandbox.put("/root/private", b"root's", "root")
    sandbox.says("sudo chmod 600 /root/private; sudo chmod 755 /root; sudo mkdir -m 755 /srv/root;"
                 "mkdir -m 700 own")
    wrong += answered("read root's file", sandbox.get("/root/private"), 403)
    wrong += answered("write into root's directory", sandbox.put("/srv/root/f", b"x"), 403)
    wrong += answered("write over root's file", sandbox.put("/etc/passwd", b"x"), 403)
    wrong += answered("make directories in root's", sandbox.put("/srv/root/a/b/f", b"x"), 403)
    wrong += answered("remove root's file",
                      sandbox.rpc("filesystem.Filesystem/Remove", {"path": "/etc/passwd"}), 403)
    wrong += answered("root reads it", sandbox.get("/root/private", "root"), 200)
    for number in ("1000", "65534", "65535", "65536", "4294967295"):  # ids are names too, from 65535 on nobody's
        wrong += answered(f"{number} reads root's file", sandbox.get("/root/private", number), 403)
    sandbox.put("mine", b"x")
    sandbox.put("/tmp/roots", b"x", "root")
    if sandbox.says("stat -c %U mine /tmp/roots") != "user\nroot\n":
        wrong.append(f"files belong to {sandbox.says('stat -c %U mine /tmp/roots')!r}")
    return wrong


with Site() as site:
    sandbox = site.create()
    check("F09 names that are no user's are refused", names(sandbox))
    check("F09 the permissions of the user apply", permissions(sandbox))
    check("F09 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
