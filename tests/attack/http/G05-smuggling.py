"""G05: requests that two readers could take for different ones, at the server and through a port."""
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, poll  # noqa: E402
from server import Site  # noqa: E402

CHUNKED = b"Transfer-Encoding: chunked\r\n"


def smuggled(key):
    """What must never be seen as a request: it would make a sandbox."""
    body = b'{"templateID":"base","metadata":{"smuggled":"yes"}}'
    return (b"POST /v2/sandboxes HTTP/1.1\r\nHost: h\r\nX-API-Key: " + key
            + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def corpus(head, rest):
    """Whole requests: `head` is the first line and honest headers, `rest` the smuggled request."""
    n = b"%d" % len(rest)
    yield "CL and TE", head + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + rest
    yield "TE and CL", head + CHUNKED + b"Content-Length: " + n + b"\r\n\r\n0\r\n\r\n" + rest
    yield "two CL", head + b"Content-Length: 0\r\nContent-Length: " + n + b"\r\n\r\n" + rest
    yield "two equal CL", head + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n" + rest
    yield "a list of CL", head + b"Content-Length: 0, 0\r\n\r\n" + rest
    for value in (b"+0", b"-0", b"0x0", b"0 0", b"0.0", b"", b"00000000000000000000000000", b"1e1",
                  b"\x0b0", b"99999999999999999999", b"0;a=b"):
        yield f"CL {value!r}", head + b"Content-Length: " + value + b"\r\n\r\n" + rest
    for value in (b"xchunked", b"chunked, identity", b"identity, chunked", b"gzip, chunked",
                  b"chunked;q=1", b"chunked\x00", b"\x0bchunked", b"chunk", b"", b"chunked,",
                  b'"chunked"', b"chunked, chunked"):
        yield f"TE {value!r}", (head + b"Transfer-Encoding: " + value + b"\r\n\r\n0\r\n\r\n" + rest)
    yield "two TE", head + CHUNKED + b"Transfer-Encoding: x\r\n\r\n0\r\n\r\n" + rest
    yield "space before colon", head + b"Content-Length : 0\r\n\r\n" + rest
    yield "space before colon of TE", (head + b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n"
                                       b"\r\n0\r\n\r\n" + rest)
    yield "folded", head + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + rest
    yield "folded with a tab", head + b"X: y\r\n\tz\r\n\r\n" + rest
    yield "bare LF", (head + b"\r\n").replace(b"\r\n", b"\n") + rest
    yield "one bare LF", head + b"X: y\nContent-Length: 0\r\n\r\n" + rest
    yield "bare CR", head + b"X: y\rContent-Length: 0\r\n\r\n" + rest
    yield "NUL in a value", head + b"X: a\x00b\r\n\r\n" + rest
    yield "NUL in a name", head + b"X\x00: a\r\n\r\n" + rest
    yield "no name", head + b": a\r\n\r\n" + rest
    yield "no colon", head + b"Content-Length\r\n\r\n" + rest
    yield "space first", head.replace(b"Host", b" Host") + b"\r\n" + rest
    for size in (b"0x0", b"+0", b"-0", b"0 ", b" 0", b"", b"g", b"0;\x00", b"1" * 17,
                 b"ffffffffffffffff1", b"0\x0b"):
        yield f"chunk size {size!r}", head + CHUNKED + b"\r\n" + size + b"\r\n\r\n" + rest
    yield "chunk with bare LF", head + CHUNKED + b"\r\n0\n\n" + rest
    yield "chunk longer than it says", head + CHUNKED + b"\r\n1\r\nab\r\n0\r\n\r\n" + rest
    yield "long extension", head + CHUNKED + b"\r\n0;" + b"x" * 5000 + b"\r\n\r\n" + rest
    yield "no version", head.split(b"\r\n")[0].rsplit(b" ", 1)[0] + b"\r\n\r\n" + rest
    for version in (b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.1 ", b"HTTP/11",
                    b"HTTP/1.1\x00", b"HTTP /1.1"):
        yield f"version {version!r}", head.replace(b"HTTP/1.1", version) + b"\r\n" + rest
    yield "two Host", head + b"Host: other\r\n\r\n" + rest
    yield "no Host", re.sub(rb"Host: [^\r]*\r\n", b"", head) + b"\r\n" + rest
    yield "bad Host", re.sub(rb"Host: [^\r]*", b"Host: a/b@c", head) + b"\r\n" + rest
    yield "other host in the target", head.replace(b" /", b" http://other/", 1) + b"\r\n" + rest
    yield "HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rest


def count(got):
    return len(re.findall(rb"HTTP/1\.1 \d\d\d ", got))


def at_the_server(site):
    wrong, rest = [], smuggled(site.key.encode())
    head = (b"POST /v2/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"X-API-Key: " + site.key.encode() + b"\r\n")
    for what, request in corpus(head, rest):
        got = site.say(request, timeout=15)
        if count(got) != 1:
            wrong.append(f"{what}: {count(got)} answers: {got[:200]}")
        elif not re.match(rb"HTTP/1\.1 (400|413|414|431|501|505) ", got):
            wrong.append(f"{what}: {got[:80]}")
        elif b"connection: close" not in got.lower():
            wrong.append(f"{what}: the connection stays: {got[:200]}")
    sandboxes = site.api("GET", "/v2/sandboxes?metadata=smuggled%3Dyes")
    return wrong + ([f"PWNED {sandboxes}"] if sandboxes.json() != [] else [])


SERVER = r"""
import socket, threading
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 8000)); s.listen(64)
open("ready", "w").close()
def one(c):
    d = b""
    c.settimeout(0.3)
    try:
        while True:
            p = c.recv(65536)
            if not p: break
            d += p
    except OSError:
        pass
    open("seen", "ab").write(d + b"\n=====\n")
    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    c.close()
while True:
    threading.Thread(target=one, args=(s.accept()[0],)).start()
"""


def through_a_port(site, sandbox):
    """The server inside sees one request on each connection, and only what was meant for it."""
    wrong, rest = [], b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
    head = (f"POST /front HTTP/1.1\r\nHost: 127.0.0.1\r\nE2b-Sandbox-Id: {sandbox.id}\r\n"
            "E2b-Sandbox-Port: 8000\r\n").encode()
    for what, request in corpus(head, rest):
        got = site.say(request, timeout=15)
        if count(got) != 1 or b" 200 " in got[:20]:
            wrong.append(f"{what}: {got[:200]}")
    # and an honest one, to see that it gets there
    site.say(head + b"Content-Length: 2\r\nConnection: close\r\n\r\nhi", timeout=15)
    seen = poll(lambda: (s := sandbox.get("seen").body) and s.endswith(b"=====\n") and s)
    if not seen or not seen.endswith(b"\r\n\r\nhi\n=====\n"):
        wrong.append(f"the honest request did not arrive: {seen}")
    for one in (seen or b"").split(b"=====\n"):
        if one.count(b" HTTP/1.1\r\n") > 1 or b"/smuggled" in one:
            wrong.append(f"PWNED the server inside has seen {one}")
    return wrong


with Site() as site:
    began = time.monotonic()
    check("G05 what is not one clear request is refused, and nothing after it read",
          at_the_server(site), f"{time.monotonic() - began:.0f} s")
    sandbox = site.create()
    sandbox.python(SERVER)
    if not poll(lambda: sandbox.get("ready").status == 200):
        check("G05 the server inside starts", [sandbox.says("ls -la; python3 attack.py 2>&1 | head")])
    check("G05 nor is it passed on to a port", through_a_port(site, sandbox))
    check("G05 the server goes on", sandbox.trouble() + site.trouble())
finish()
