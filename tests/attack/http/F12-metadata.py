"""F12: metadata that tries to be other attributes, or very many."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, rss_mib  # noqa: E402
from server import Site, answered  # noqa: E402

NAMES = ("../trusted.overlay.opaque", "../../security.capability", "trusted.overlay.opaque",
         "a/b", "a%2fb", "a*b", "a'b", "a|b", "a~b", "a^b", "a`b", "a!b", "#", "$(id)")
OPAQUE = "trusted.overlay.opaque"
LIST = "python3 -c \"import os; print(*sorted(os.listxattr('f')))\""


def attempts(sandbox):
    wrong = []
    for name in NAMES:
        a = sandbox.put("f", b"x", **{f"X-Metadata-{name}": "y"})
        wrong += answered(name, a, 400) if name != OPAQUE else answered(name, a, 200, 400)
    for what, value in (("4 KiB value", "v" * 4097), ("64 KiB value", "v" * 65536),
                        ("not ASCII", "\u00e9".encode().decode("latin1"))):
        wrong += answered(what, sandbox.put("f", b"x", **{"X-Metadata-a": value}), 4)
    wrong += answered("a key of 247", sandbox.put("f", b"x", **{f"X-Metadata-{'k' * 247}": "v"}), 4)
    wrong += answered("a key of 246", sandbox.put("f", b"x", **{f"X-Metadata-{'k' * 246}": "v"}), 200)
    sandbox.put("f", b"x", **{"X-Metadata-Good_1.a-b": "y", f"X-Metadata-{OPAQUE}": "y"})
    names = sandbox.says(LIST).split()
    wrong += [f"PWNED attribute {n}" for n in names if not n.startswith("user.e2b.")]
    if "user.e2b.good_1.a-b" not in names:
        wrong.append(f"good metadata is not there: {names}")
    return wrong


def many(site, sandbox):
    before = rss_mib(site.front())
    head = f"POST /files?path=f HTTP/1.1\r\nHost: h\r\nE2b-Sandbox-Id: {sandbox.id}\r\n".encode()
    got = site.say(head + b"".join(b"X-Metadata-%d: v\r\n" % i for i in range(10000)) + b"\r\n")
    wrong = [] if got[:12] in (b"HTTP/1.1 431", b"HTTP/1.1 400") else [f"10,000 headers: {got[:99]}"]
    if rss_mib(site.front()) - before > 16:
        wrong.append("the front has grown")
    return wrong


with Site() as site:
    sandbox = site.create()
    check("F12 metadata stays below user.e2b., and has limits", attempts(sandbox))
    check("F12 ten thousand headers are refused", many(site, sandbox))
    check("F12 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
