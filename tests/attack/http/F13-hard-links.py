"""F13: hard links to files of others, written to through the server."""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site, answered  # noqa: E402


FILES = ("/etc/passwd", "/usr/bin/env", "/etc/hostname")


def digests():
    return {path: hashlib.sha256(open(path, "rb").read()).hexdigest() for path in FILES}


def attempts(sandbox, other):
    """A file that is written stays the same file, so its other names see it; those of the sandbox, and no more."""
    wrong = []
    there = other.says(f"sha256sum {' '.join(FILES)}")
    for target in FILES:
        sandbox.says(f"rm -f l; sudo ln {target} l; sudo chown -h root l 2>/dev/null")
        wrong += answered(f"write over a link to {target}", sandbox.put("l", b"PWNED"), 200, 4)
    if other.says(f"sha256sum {' '.join(FILES)}") != there:
        wrong.append("PWNED another sandbox's file has changed")
    return wrong


with Site() as site:
    sandbox, before = site.create(), digests()
    check("F13 writing over a link writes nothing of others", attempts(sandbox, site.create()))
    check("F13 the host's files are untouched", [] if digests() == before else ["PWNED"])
    check("F13 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
