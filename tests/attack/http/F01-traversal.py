"""F01: spellings of paths that lead out of the root. There is nothing there but the sandbox."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from oracle import Canary  # noqa: E402
from server import Site, answered  # noqa: E402

UP = ("../" * 12, "%2e%2e/" * 12, "..%2f" * 12, "..%252f" * 12, "....//" * 12, "..\\" * 12,
      "%5c..%5c" * 12, "/" + "../" * 12, "//", "/./" * 5, "/proc/self/root/../../", "/proc/1/root/",
      "/proc/1/cwd/../../", "/proc/self/cwd/../../", "~/" + "../" * 12, "%c0%ae%c0%ae/" * 12,
      "%uff0e%uff0e/" * 12, "/dev/fd/../../..")


def attempts(site, sandbox, canary):
    wrong = []
    for up in UP:
        for name in (canary.path.lstrip("/"), canary.tree.lstrip("/") + "/0/0/0", "etc/shadow"):
            a = sandbox.get(up + name, quote=False)
            wrong += answered(f"read {up}{name}", a, 2, 4)
            if canary.secret.encode() in a.body:
                wrong.append(f"PWNED read {up}{name}")
            a = sandbox.get(up + name, quote=False, user="root")
            if canary.secret.encode() in a.body or a.body == open("/etc/shadow", "rb").read():
                wrong.append(f"PWNED read {up}{name} as root")
        a = sandbox.put(up + canary.tree.lstrip("/") + "/0/0/0", b"PWNED", quote=False, user="root")
        wrong += answered(f"write {up}", a, 2, 4)
    return wrong


def malformed(sandbox):
    wrong = []
    for path in ("a%00b", "%00", "/etc/passwd%00.txt", "x" * 4096, "/" * 5000, "/x" * 3000):
        wrong += answered(f"read {path[:20]}", sandbox.get(path, quote=False), 4)
        wrong += answered(f"write {path[:20]}", sandbox.put(path, b"", quote=False), 4)
    return wrong


def by_rpc(sandbox, canary):
    wrong = []
    for up in ("../" * 12, "/" + "../" * 12, "/proc/self/root/../../", "/proc/1/root/"):
        path = up + canary.tree.lstrip("/")
        for method, message in (
            ("Stat", {"path": path}), ("ListDir", {"path": path, "depth": 3}),
            ("Move", {"source": path + "/0", "destination": "/tmp/moved"}),
            ("MakeDir", {"path": path + "/0/new"}), ("Remove", {"path": path}),
        ):
            a = sandbox.rpc(f"filesystem.Filesystem/{method}", message)
            wrong += answered(f"{method} {path}", a, 200, 4)
            if method in ("Stat", "ListDir", "Move") and a.status == 200:
                wrong.append(f"PWNED {method} {path}: {a}")
    return wrong


canary = Canary()
try:
    with Site() as site:
        sandbox = site.create()
        check("F01 no spelling of a path reads or writes the host", attempts(site, sandbox, canary))
        check("F01 malformed and endless paths are refused", malformed(sandbox))
        check("F01 no operation leads out of the root", by_rpc(site.create(), canary))
        check("F01 the server goes on", site.trouble() + site.create().trouble())
    check("F01 the canaries are untouched", canary.wrong())
finally:
    canary.remove()
finish()
