"""H06: attributes and files that look like the marks of an overlay, in the files that a fork, a snapshot and a rewind are
made of: none of them may be taken for a mark."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from cells import fork, warm_kernel  # noqa: E402
from host import check, finish  # noqa: E402
from server import Sandbox, Site  # noqa: E402

# Everything that an overlay reads of its layers, on a directory of the template, on one of its own, and on a file.
PLANT = r"""
import os
marks = ("opaque", "redirect", "metacopy", "origin", "impure", "nlink", "upper", "whiteout", "whiteouts", "protattr", "uuid")
os.makedirs("/home/user/own/below")
open("/home/user/own/below/kept", "w").write("kept")
open("/home/user/own/file", "w").write("file")
os.system("sudo sh -c 'mkdir -p /etc/ssl/made && echo kept > /etc/ssl/made/kept && chown -R user /etc/ssl/made && chmod 777 /etc/ssl'")
for path in ("/home/user", "/home/user/own", "/home/user/own/below", "/home/user/own/file", "/etc/ssl/made", "/etc/ssl"):
    for mark in marks:
        for kind in ("user.overlay.", "trusted.overlay.", "user.overlay.overlay."):
            for value in (b"y", b"x", b"/etc", b"\x00\xfb\x1d\x00\x81" + b"\xff" * 24):
                try:
                    os.setxattr(path, kind + mark, value)
                except OSError:
                    pass
""" + "\n"

# What is to be seen in every copy.
LOOK = r"""
import glob, json, os
def seen():
    files = {p: open(p).read() for p in ("/home/user/own/below/kept", "/home/user/own/file", "/etc/ssl/made/kept") if os.path.exists(p)}
    marks = sorted(n for n in os.listxattr("/home/user/own") if "overlay" in n and n.startswith("trusted."))
    return json.dumps([files, sorted(os.listdir("/etc/ssl")), sorted(os.listdir("/home/user/own")), os.stat("/home/user/own/file").st_size, marks])
seen()
"""


def attack():
    with Site("--sandbox-memory", "256M") as site:
        sandbox = warm_kernel(site)
        planted = sandbox.cell(PLANT + LOOK)
        if planted.error:
            raise RuntimeError(f"the cell failed: {planted}")
        expected = planted.text
        check("H06 the files that are looked at are there",
              [] if "kept" in expected and "made" in expected and "trusted." not in expected else [expected])
        _, sandboxes = fork(site, sandbox, count=2)
        _, again = fork(site, sandboxes[0], count=1)
        check("H06 forks see the files of the source", [f"{b.cell(LOOK)}" for b in sandboxes + again + [sandbox]
                                                       if b.cell(LOOK).text != expected])
        made = site.api("POST", f"/sandboxes/{sandbox.id}/snapshots", {}).json()
        copy = site.create(templateID=made["snapshotID"])
        second = site.api("POST", f"/sandboxes/{copy.id}/snapshots", {}).json()
        copies = [copy, site.create(templateID=second["snapshotID"])]
        check("H06 so do sandboxes of a snapshot", [f"{b.cell(LOOK)}" for b in copies if b.cell(LOOK).text != expected])
        site.api("POST", f"/sandboxes/{sandbox.id}/checkpoints", {"label": "a"})
        sandbox.cell("import os; os.system('rm -rf /home/user/own')")
        back = site.api("POST", f"/sandboxes/{sandbox.id}/rewind", {"label": "a"})
        seen = Sandbox(site, sandbox.made).cell(LOOK)
        check("H06 and a sandbox that goes back", [] if back.status == 200 and seen.text == expected else [str(back), str(seen)])
        check("H06 the server goes on", site.trouble())


attack()
finish()
