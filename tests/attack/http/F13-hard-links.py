"""F13: hard links to files of others, written over through the server."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site, answered  # noqa: E402


def attempts(sandbox):
    wrong = []
    sandbox.put("/root/secret", b"root's", "root")
    sandbox.says("sudo chmod 600 /root/secret; sudo chmod 755 /root")
    before = sandbox.says("sha256sum /etc/passwd; stat -c '%U %a %h' /etc/passwd")
    for target in ("/etc/passwd", "/root/secret", "/usr/bin/env"):
        sandbox.says(f"rm -f l; ln {target} l")
        wrong += answered(f"write over a link to {target}", sandbox.put("l", b"PWNED"), 200, 403)
        # the same, made by root for us
        sandbox.says(f"sudo ln {target} made; sudo chown -h root made 2>/dev/null")
        a = sandbox.get("made")
        if target == "/root/secret" and a.status == 200:
            wrong.append("PWNED a link to root's file can be read")
        wrong += answered(f"write over root's link to {target}", sandbox.put("made", b"PWNED"), 200, 403,
                          404)
        sandbox.says("sudo rm -f made")
    if sandbox.says("sha256sum /etc/passwd; stat -c '%U %a %h' /etc/passwd") != before:
        wrong.append("PWNED /etc/passwd has changed")
    if sandbox.get("/root/secret", "root").body != b"root's":
        wrong.append("PWNED root's file has changed")
    return wrong


with Site() as site:
    sandbox = site.create()
    check("F13 writing over a link does not write its other names", attempts(sandbox))
    check("F13 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
