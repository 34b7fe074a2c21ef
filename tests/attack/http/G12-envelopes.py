"""G12: Connect envelopes that lie about themselves."""
import gzip
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, rss_mib  # noqa: E402
from server import Site  # noqa: E402

START = json.dumps({"process": {"cmd": "/bin/true"}}).encode()
STREAM, UNARY = "process.Process/Start", "process.Process/List"


def envelope(flags, data, length=None):
    return struct.pack(">BI", flags, len(data) if length is None else length) + data


BOMB = gzip.compress(bytes(64 << 20))
BODIES = {
    "length 0xffffffff": envelope(0, START, 0xFFFFFFFF),
    "length 0x80000000": envelope(0, START, 0x80000000),
    "length 5 MiB": envelope(0, b" " * (5 << 20)),
    "compressed": envelope(1, gzip.compress(START)),
    "compressed bomb": envelope(1, BOMB),
    "end first": envelope(2, b"{}"),
    "unknown flags": envelope(0x80, START),
    "all flags": envelope(0xFF, START),
    "nothing": b"",
    "half a header": b"\0\0\0",
    "cut": envelope(0, START)[:-3],
    "empty message": envelope(0, b""),
    "10,000 empty messages": envelope(0, b"") * 10000,
    "two messages": envelope(0, START) * 2,
    "trailing bytes": envelope(0, START) + b"x",
    "no JSON": envelope(0, b"\xff\xfe"),
    "deep JSON": envelope(0, b'{"process":' * 20000),
    "a list": envelope(0, b"[]"),
}
PROTO = {
    "group": b"\x0b\x0c", "endless varint": b"\x08" + b"\xff" * 100, "length past the end": b"\x0a\xff\x7fx",
    "deep": b"\x0a\x10" * 1000, "field 0": b"\x02\x00", "huge length": b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    "bad UTF-8": b"\x0a\x03\x0a\x01\xff", "truncated fixed": b"\x09\x00",
}


def ask(sandbox, method, kind, body, **headers):
    return sandbox.site.ask("POST", f"/{method}", sandbox.headers(**{
        "Content-Type": kind, "Connect-Protocol-Version": "1", **headers}), body)


def error_of(answer):
    """The code that a stream or a unary call failed with, or None."""
    if answer.status != 200:
        return (answer.json() or {}).get("code")
    data, error = answer.body, None
    while len(data) >= 5:
        flags, size = struct.unpack(">BI", data[:5])
        if flags & 2:
            error = json.loads(data[5:5 + size]).get("error", {}).get("code")
        data = data[5 + size:]
    return error


def streams(sandbox):
    wrong = []
    for what, body in BODIES.items():
        for kind in ("application/connect+json", "application/connect+proto"):
            a = ask(sandbox, STREAM, kind, body)
            if a.status >= 500 and a.status != 501 or (a.status == 200 and not error_of(a)):
                wrong.append(f"{what} as {kind}: {a}")
    return wrong


def unaries(sandbox):
    wrong = []
    for what, body in {**PROTO, "envelope": envelope(0, b"{}"), "bomb": BOMB}.items():
        for method in (UNARY, "filesystem.Filesystem/Stat", "process.Process/SendInput"):
            a = ask(sandbox, method, "application/proto", body)
            if a.status >= 500 and a.status != 501:
                wrong.append(f"{what} to {method}: {a}")
    for what, body in BODIES.items():
        if not body:
            continue  # a message without fields
        a = ask(sandbox, "filesystem.Filesystem/Stat", "application/json", body)
        if not 400 <= a.status < 500 and a.status != 501:
            wrong.append(f"{what} as JSON: {a}")
    return wrong


def heads(sandbox):
    wrong = []
    for headers in ({"Content-Encoding": "gzip"}, {"Connect-Content-Encoding": "br"},
                    {"Connect-Timeout-Ms": "-1"}, {"Connect-Timeout-Ms": "9" * 30},
                    {"Connect-Timeout-Ms": "x"}, {"Connect-Protocol-Version": "2"},
                    {"Keepalive-Ping-Interval": "-1"}, {"Keepalive-Ping-Interval": "9" * 30},
                    {"Authorization": "Basic !!!"}, {"Authorization": "Basic " + "A" * 20000}):
        a = ask(sandbox, STREAM, "application/connect+json", envelope(0, START), **headers)
        if a.status >= 500 and a.status != 501:
            wrong.append(f"{headers}: {a}")
    for kind in ("text/plain", "application/grpc", "application/grpc-web", "application/connect+xml", ""):
        a = ask(sandbox, STREAM, kind, envelope(0, START))
        if not 400 <= a.status < 500:
            wrong.append(f"type {kind!r}: {a}")
    return wrong


with Site() as site:
    sandbox = site.create()
    ask(sandbox, STREAM, "application/connect+json", envelope(0, START))
    before = rss_mib(site.front())
    check("G12 envelopes that lie are refused", streams(sandbox))
    check("G12 and so are messages", unaries(sandbox))
    check("G12 and headers", heads(sandbox))
    grown = rss_mib(site.front()) - before
    check("G12 in little memory", [f"{grown:.0f} MiB"] if grown > 32 else [], f"{grown:.0f} MiB")
    check("G12 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
