"""F10: parts and file names that try to be more than that."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, rss_mib  # noqa: E402
from oracle import Canary  # noqa: E402
from server import Site, answered  # noqa: E402


def part(name, filename, data=b"x", more=b""):
    return (b'--B\r\nContent-Disposition: form-data; name="' + name + b'"; filename="' + filename
            + b'"\r\n' + more + b"\r\n" + data + b"\r\n")


def post(sandbox, body, kind="multipart/form-data; boundary=B"):
    return sandbox.site.ask("POST", "/files", sandbox.headers(**{"Content-Type": kind}), body)


def names(sandbox, canary):
    """Every name is one file of the sandbox, or refused."""
    wrong = []
    for name in (b"a%0D%0ASet-Cookie: x", b"q%22.txt", b"../../../../tmp/up", b"b\\\"c", b"\xff\xfe",
                 canary.tree.encode() + b"/0/0/0", b"/proc/self/mem", b"x" * 5000, b"",
                 b"tab\there", b"d/" * 200 + b"f"):
        wrong += answered(f"part {name[:30]}", post(sandbox, part(b"file", name) + b"--B--\r\n"), 200, 4)
    return wrong


def framing(sandbox):
    long = b"x" * 100000
    bodies = {
        "no end": part(b"file", b"cut"),
        "no boundary at all": b"hello",
        "boundary inside": part(b"file", b"ok", b"--B-- is not the end of a line\r\n --B\r\n"),
        "endless header": b"--B\r\nX: " + long + b"\r\n\r\nx\r\n--B--\r\n",
        "many headers": b"--B\r\n" + b"A: b\r\n" * 5000 + b"\r\nx\r\n--B--\r\n",
        "NUL in a header": b"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\0b\""
                           b"\r\n\r\nx\r\n--B--\r\n",
        "bare LF": b"--B\nContent-Disposition: form-data; name=\"file\"; filename=\"lf\"\n\nx\n--B--\n",
        "no name": b"--B\r\n\r\nx\r\n--B--\r\n",
    }
    wrong = []
    for what, body in bodies.items():
        wrong += answered(what, post(sandbox, body), 200, 4)
    for kind in ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; "
                 "boundary=" + "b" * 500, "multipart/form-data; boundary=\"a\x01b\"", "text/html", ""):
        wrong += answered(f"type {kind[:40]!r}", post(sandbox, b"--B--\r\n", kind), 4)
    if sandbox.says("ls cut 2>/dev/null"):
        wrong.append("a part without an end was written")
    return wrong


def many(site, sandbox):
    body = b"".join(part(b"file", b"many/%d" % i) for i in range(100000)) + b"--B--\r\n"
    before = rss_mib(site.front())
    wrong = answered("100,000 parts", post(sandbox, body), 4)
    grown = rss_mib(site.front()) - before
    return wrong + ([f"the front has grown by {grown:.0f} MiB"] if grown > 32 else [])


def downloads(sandbox):
    wrong = []
    for name in ("x\r\nSet-Cookie: a=b", "q\"; filename=\"evil.exe", "\u202egpj.exe", "a;b", "n" * 255,
                 "\x7f\x1b[31m", "%0d%0aX-Evil: 1"):
        if sandbox.put(f"/tmp/{name}", b"x").status != 200:
            wrong.append(f"{name!r} cannot be written")
            continue
        a = sandbox.get(f"/tmp/{name}")
        values = a.header("Content-Disposition")
        if a.status != 200 or len(values) != 1 or not values[0].startswith("attachment; filename="):
            wrong.append(f"{name!r}: {a.status} {values}")
        elif values[0].split("filename*=")[0].count('"') != 2 or not values[0].isprintable():
            wrong.append(f"{name!r}: {values}")
        if a.header("Set-Cookie") or a.header("X-Evil"):
            wrong.append(f"PWNED {name!r} adds a header")
    return wrong


canary = Canary()
try:
    with Site() as site:
        sandbox = site.create()
        check("F10 file names of parts stay names of files inside", names(sandbox, canary))
        check("F10 malformed parts are refused", framing(sandbox))
        check("F10 100,000 parts are refused, in little memory", many(site, sandbox))
        check("F10 a download's name stays inside its header", downloads(sandbox))
        check("F10 the sandbox goes on", sandbox.trouble() + site.trouble())
    check("F10 the canaries are untouched", canary.wrong())
finally:
    canary.remove()
finish()
