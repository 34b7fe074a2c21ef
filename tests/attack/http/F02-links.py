"""F02: links that lead up and away are followed inside the sandbox only."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from oracle import Canary  # noqa: E402
from server import Site, answered  # noqa: E402


def reads(sandbox, canary):
    wrong = []
    sandbox.says(f"ln -s /etc/hostname l; ln -s {'../' * 9}etc/passwd m; ln -s {canary.path} c;"
                 f"ln -s {canary.tree} t; ln -s / r")
    for name, target in (("l", "/etc/hostname"), ("m", "/etc/passwd"), ("r/etc/passwd",
                                                                       "/etc/passwd")):
        a = sandbox.get(name)
        if a.status != 200 or a.body.decode() != sandbox.says(f"cat {target}"):
            wrong.append(f"{name} is not the sandbox's {target}: {a}")
        if a.body == open(target, "rb").read():
            wrong.append(f"PWNED {name} is the host's {target}")
    for name in ("c", "t", "t/0/0/0", f"r{canary.path}"):
        for user in ("user", "root"):
            wrong += answered(f"read {name} as {user}", sandbox.get(name, user), 4)
    return wrong


def writes(sandbox, canary):
    sandbox.says("echo old > target; ln -s target inside; ln -s /etc/passwd out; ln -s target gone")
    wrong = answered("write through a link", sandbox.put("inside", b"new"), 200)
    if sandbox.says("cat target; readlink inside") != "newtarget\n":
        wrong.append("a write through a link did not reach its target")
    wrong += answered("write through a link to root's file", sandbox.put("out", b"x:x"), 200)
    if sandbox.says("cat /etc/passwd; readlink out") != "x:x/etc/passwd\n":
        wrong.append("a write through a link to root's file did not reach the sandbox's own")
    wrong += answered("write to the host's tree", sandbox.put("t/0/0/0", b"PWNED", "root"), 2, 4)
    wrong += answered("remove a link", sandbox.rpc("filesystem.Filesystem/Remove", {"path": "gone"}),
                      200)
    wrong += answered("remove a link to /", sandbox.rpc("filesystem.Filesystem/Remove", {"path": "r"}),
                      200)
    if sandbox.says("cat target; ls -d gone r 2>/dev/null; ls -d /etc") != "new/etc\n":
        wrong.append("removing a link removed more or less than the link")
    a = sandbox.rpc("filesystem.Filesystem/Stat", {"path": "c"})
    if a.status == 200 and a.json()["entry"].get("size") == str(len(canary.secret)):
        wrong.append(f"PWNED the size of the host's file: {a}")
    return wrong


canary = Canary()
try:
    with Site() as site:
        sandbox = site.create()
        check("F02 links are read inside the sandbox", reads(sandbox, canary))
        check("F02 links are written and removed inside the sandbox", writes(sandbox, canary))
        check("F02 the sandbox goes on", sandbox.trouble() + site.trouble())
    check("F02 the canaries are untouched", canary.wrong())
finally:
    canary.remove()
finish()
