"""F07: signed addresses with anything changed."""
import base64
import hashlib
import os
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site, answered  # noqa: E402


def sign(path, operation, user, token, expiry=None):
    text = ":".join([path, operation, user, token] + ([str(expiry)] if expiry is not None else []))
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def address(**query):
    return "/files?" + urllib.parse.urlencode({k: v for k, v in query.items() if v is not None})


def ways(site, sandbox, target, method="GET", body=None):
    """With the sandbox named, and without: the signature is all there is."""
    named = {"E2b-Sandbox-Id": sandbox.id, "Content-Type": "application/octet-stream"}
    return [site.ask(method, target, named, body),
            site.ask(method, target, {"Content-Type": "application/octet-stream"}, body)]


def tampered(site, sandbox, other):
    path, soon, past = "/tmp/f", int(time.time()) + 600, int(time.time()) - 5
    good = sign(path, "read", "", sandbox.token)
    dated = sign(path, "read", "", sandbox.token, soon)
    targets = {
        "no signature": address(path=path),
        "empty signature": address(path=path, signature=""),
        "other path": address(path="/tmp/g", signature=good),
        "path with a suffix": address(path=path + ":read", signature=good),
        "other user": address(path=path, username="root", signature=good),
        "for writing": address(path=path, signature=sign(path, "write", "", sandbox.token)),
        "of another sandbox": address(path="/tmp/nope", signature=sign("/tmp/nope", "read", "",
                                                                       other.token + "0")),
        "without a token": address(path=path, signature=sign(path, "read", "", "")),
        "expired": address(path=path, signature=sign(path, "read", "", sandbox.token, past),
                           signature_expiration=past),
        "expiry dropped": address(path=path, signature=dated),
        "expiry added": address(path=path, signature=good, signature_expiration=soon),
        "expiry moved": address(path=path, signature=dated, signature_expiration=soon + 1),
        "expiry spelt differently": address(path=path, signature=dated,
                                            signature_expiration=f"0{soon}"),
        "negative expiry": address(path=path, signature=sign(path, "read", "", sandbox.token, -1),
                                   signature_expiration=-1),
        "endless expiry": address(path=path, signature=good, signature_expiration="9" * 400),
        "truncated": address(path=path, signature=good[:-1]),
        "extended": address(path=path, signature=good + "A"),
        "padded": address(path=path, signature=good + "="),
        "other case": address(path=path, signature=good.swapcase()),
        "v0": address(path=path, signature="v0" + good[2:]),
        "fields moved over the colon": address(path="/tmp", username="", signature=good),
    }
    wrong = []
    for what, target in targets.items():
        for a in ways(site, sandbox, target):
            wrong += answered(what, a, 401)
    for what, target in (("read signature writes", address(path=path, signature=good)),):
        for a in ways(site, sandbox, target, "POST", b"PWNED"):
            wrong += answered(what, a, 401)
    header = {"E2b-Sandbox-Id": sandbox.id, "X-Access-Token": other.token}
    wrong += answered("a wrong token beside a right signature",
                      site.ask("GET", address(path=path, signature=good), header), 401)
    for what, token in (("empty", ""), ("cut", sandbox.token[:-1]), ("longer", sandbox.token + "0"), ("a sandbox's id", sandbox.id)):
        header = {"X-Access-Token": token}
        wrong += answered(f"a token that is {what} and no sandbox named", site.ask("GET", address(path=path), header), 401)
        wrong += answered(f"health of a token that is {what}", site.ask("GET", "/health", header), 502)
    wrong += answered("a file of the sandbox whose token it is", site.ask("GET", address(path=path), {"X-Access-Token": other.token}), 404)
    return wrong


with Site() as site:
    sandbox, other = site.create(), site.create()
    sandbox.put("/tmp/f", b"secret")
    good = address(path="/tmp/f", signature=sign("/tmp/f", "read", "", sandbox.token))
    check("F07 control: the untouched address works",
          [str(a) for a in ways(site, sandbox, good) if (a.status, a.body) != (200, b"secret")])
    check("F07 a changed address is refused", tampered(site, sandbox, other))
    check("F07 nothing was written", [] if sandbox.get("/tmp/f").body == b"secret" else ["it was"])
    sandbox.kill()
    named, unnamed = ways(site, sandbox, good)
    check("F07 an address dies with its sandbox",
          answered("named", named, 502) + answered("not named", unnamed, 401))
    check("F07 the server goes on", site.trouble())
finish()
