"""What no honest client sends: broken envelopes, JSON that is not, numbers that cannot be."""
import gzip
import http.client
import json
import os
import struct

from wire.connect import IDENTITY, envelope, run
from wire.control import refuses
from wire.http import KEY, URL, api, common, fresh, raw
from wire.tap import same, test

STREAM = {**IDENTITY, "Content-Type": "application/connect+json"}
SERVER = os.environ["E2E_SERVER_PID"]  # the one that E2B_API_URL names
START = {"process": {"cmd": "/bin/true"}}


def open_stream(sandbox, body, headers=None, method="process.Process/Start"):
    """What the server makes of a request body: ("error", code), ("events", names) or ("status", n)."""
    c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=15)
    try:
        c.request("POST", f"/{method}", body, {**sandbox.headers(), **STREAM, **(headers or {})})
        r = c.getresponse()
        if r.status != 200:
            return "status", r.status
        data, names = r.read(), []
        while data:
            flags, length = struct.unpack(">BI", data[:5])
            text = json.loads(data[5 : 5 + length])
            data = data[5 + length :]
            if flags & 2:
                return ("error", text["error"]["code"]) if "error" in text else ("events", names)
            names += list(text["event"])
        return "cut", names
    except (ConnectionResetError, http.client.RemoteDisconnected, http.client.IncompleteRead) as error:
        return "cut", type(error).__name__
    finally:
        c.close()


@test("envelopes: one message is one message")
def _():
    same(open_stream(common(), envelope(json.dumps(START).encode())), ("events", ["start", "end"]))


@test("envelopes: broken ones are refused, each with a word")
def _():
    sandbox = common()
    good = json.dumps(START).encode()
    bomb = gzip.compress(b" " * 50_000_000)
    for name, body in {
        "nothing": b"",
        "a cut head": b"\0\0\0",
        "a cut message": envelope(good)[:-3],
        "a length of 4 GiB": b"\0\xff\xff\xff\xff" + good,
        "a length beyond what may be": struct.pack(">BI", 0, 64 << 20) + b"x" * 1000,
        "an end of stream first": envelope(b"{}", 2),
        "compressed": envelope(gzip.compress(good), 1),
        "a compressed bomb": envelope(bomb[:1_000_000], 1),
        "flags nobody knows": envelope(good, 0x80),
        "two messages": envelope(good) * 2,
        "bytes after it": envelope(good) + b"\0",
        "no JSON": envelope(b"{"),
        "an array": envelope(b"[]"),
        "a string": envelope(b'"x"'),
        "an empty message": envelope(b""),
        "bad UTF-8": envelope(b'{"process":{"cmd":"\xff\xfe"}}'),
        "depth": envelope(b'{"process":' * 5000 + b"1" + b"}" * 5000),
        "a thousand empty messages": envelope(b"") * 1000,
    }.items():
        kind, what = open_stream(sandbox, body)
        good_end = {
            "error": what in ("invalid_argument", "resource_exhausted", "unimplemented", "internal"),
            "status": what in (400, 413, 415),
            "cut": False,
            "events": False,
        }[kind]
        assert good_end, f"{name}: {kind} {what}"
    same(run(sandbox, "echo fine")[0], "fine\n")


@test("envelopes: many connections that never say what they want cost nobody anything")
def _():
    sandbox = common()
    waiting = []
    for _ in range(50):
        c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=15)
        c.putrequest("POST", "/process.Process/Start")
        for name, value in {**sandbox.headers(), **STREAM, "Content-Length": "1000000"}.items():
            c.putheader(name, value)
        c.endheaders()
        c.send(b"\0\0\x0f\x42\x3b" + b" " * 1000)
        waiting.append(c)
    for _ in range(5):
        same(run(sandbox, "echo fine")[0], "fine\n")
    for c in waiting:
        c.close()


@test("headers of streams that cannot be: refused or passed over, never a hang")
def _():
    sandbox = common()
    for headers in (
        {"Connect-Timeout-Ms": "-1"},
        {"Connect-Timeout-Ms": "abc"},
        {"Connect-Timeout-Ms": "99999999999999999999"},
        {"Connect-Timeout-Ms": "1e3"},
        {"Connect-Timeout-Ms": ""},
        {"Keepalive-Ping-Interval": "0"},
        {"Keepalive-Ping-Interval": "-5"},
        {"Keepalive-Ping-Interval": "99999999999999"},
        {"Keepalive-Ping-Interval": "x"},
        {"Connect-Protocol-Version": "2"},
        {"Connect-Content-Encoding": "gzip"},
        {"Content-Encoding": "gzip"},
    ):
        kind, what = open_stream(sandbox, envelope(json.dumps(START).encode()), headers)
        assert (kind, what) == ("events", ["start", "end"]) or kind == "error" or (kind == "status" and 400 <= what < 500), f"{headers}: {kind} {what}"


@test("processes that cannot be started: an answer for each")
def _():
    sandbox = common()
    for process in (
        {},
        {"cmd": ""},
        {"cmd": "/no/such/program"},
        {"cmd": "/etc/passwd"},
        {"cmd": "/tmp"},
        {"cmd": "a\0b"},
        {"cmd": "/bin/true", "args": ["x" * 3_000_000]},
        {"cmd": "/bin/true", "args": ["x"] * 200_000},
        {"cmd": "/bin/true", "envs": {"A=B": "x"}},
        {"cmd": "/bin/true", "envs": {"": "x"}},
        {"cmd": "/bin/true", "envs": {"A": "x\0y"}},
        {"cmd": "/bin/true", "cwd": "/etc/passwd"},
        {"cmd": "/bin/true", "cwd": "x" * 10_000},
    ):
        kind, what = open_stream(sandbox, envelope(json.dumps({"process": process}).encode()))
        good = kind == "error" or (kind == "events" and what[-1] == "end") or (kind == "status" and what in (400, 413))
        assert good, f"{str(process)[:80]}: {kind} {what}"
    for size in ({"cols": 0, "rows": 0}, {"cols": 70000, "rows": 70000}, {"cols": 4294967295, "rows": 1}, {"cols": -1, "rows": 1}):
        kind, what = open_stream(sandbox, envelope(json.dumps({**START, "pty": {"size": size}}).encode()))
        assert kind in ("error", "events"), f"{size}: {kind} {what}"
    same(run(sandbox, "echo fine")[0], "fine\n")


BAD_JSON = {
    "a brace": b"{",
    "more than one": b"{}{}",
    "words": b"hello",
    "an array": b"[]",
    "a number": b"1",
    "null": b"null",
    "deep arrays": b'{"templateID":"base","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "1e999": b'{"templateID":"base","timeout":1e999}',
    "NaN": b'{"templateID":"base","timeout":NaN}',
    "a key twice": b'{"templateID":"base","timeout":60,"timeout":1}',
    "a lone surrogate": b'{"templateID":"base","metadata":{"a":"\\ud800"}}',
    "bad UTF-8": b'{"templateID":"base","metadata":{"a":"\xff\xfe"}}',
    "a NUL": b'{"templateID":"ba\\u0000se"}',
    "a comment": b'{"templateID":"base"/* */}',
    "a comma": b'{"templateID":"base",}',
    "quotes": b"{'templateID':'base'}",
    "a byte order mark": b'\xef\xbb\xbf{"templateID":"base"}',
    "UTF-16": '{"templateID":"base"}'.encode("utf-16"),
}


@test("create: JSON that is not what it should be is 400")
def _():
    for name, body in BAD_JSON.items():
        for route in ("/v2/sandboxes", "/sandboxes"):
            a = api("POST", route, body, headers={"Content-Type": "application/json"})
            assert a.status == 400, f"{name} on {route}: {a}"
            refuses(a, 400)


@test("create: values of the wrong kind or size are 400")
def _():
    bad = [{"timeout": t} for t in (-1, 0, 2**31, 2**63, 2**64, 1.5, "9", True, [], {})]
    bad += [{"templateID": t} for t in (1, [], "", "a" * 10_000, "a b", "A/../b", "a\nb")]
    bad += [{"metadata": m} for m in ([], "x", {"a": 1}, {"a": None}, {"a": {}}, {"a": "x" * 1_000_000})]
    bad += [{"envVars": e} for e in ([], {"a": 1}, {"A=B": "x"}, {"": "x"}, {"A": "x\0"}, {"A": "x" * 900_000})]
    bad += [{"autoPause": v} for v in ("true", 1)] + [{"autoPauseMemory": False}]
    bad += [{"autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}}, {"autoResume": True}]
    bad += [{"network": n} for n in ([], "x", {"denyOut": "0.0.0.0/0"}, {"denyOut": [1]}, {"allowPublicTraffic": "no"}, {"maskRequestHost": "a\r\nX: y"}, {"maskRequestHost": 1})]
    bad += [{"allow_internet_access": "no"}, {"secure": "yes"}]
    for body in bad:
        route = "/sandboxes" if "secure" in body else "/v2/sandboxes"
        a = api("POST", route, {"templateID": "base", **body})
        if a.status == 201:
            api("DELETE", f"/sandboxes/{a.json['sandboxID']}")
        assert a.status in (400, 404) and (a.status == 400 or "templateID" in body), f"{str(body)[:100]}: {a}"


@test("bodies that are too large are refused while they come")
def _():
    head = f"POST /v2/sandboxes HTTP/1.1\r\nHost: {URL.netloc}\r\nX-API-KEY: {KEY}\r\nContent-Type: application/json\r\n"
    got = raw(f"{head}Content-Length: 2147483648\r\n\r\n{{".encode())
    assert got.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400")), got[:100]
    big = b'{"templateID":"base","x":"' + b"x" * 5_000_000 + b'"}'
    try:
        a = api("POST", "/v2/sandboxes", big, chunked=False)
        assert a.status in (400, 413), a
    except (BrokenPipeError, ConnectionResetError):
        pass
    same(api("GET", "/health").status, 204)


@test("other routes: bad bodies are 400 there too")
def _():
    sandbox = fresh()
    for method, path in (
        ("POST", f"/sandboxes/{sandbox.id}/timeout"),
        ("POST", f"/v2/sandboxes/{sandbox.id}/connect"),
        ("POST", f"/sandboxes/{sandbox.id}/connect"),
        ("POST", f"/sandboxes/{sandbox.id}/refreshes"),
        ("POST", f"/sandboxes/{sandbox.id}/pause"),
        ("POST", f"/sandboxes/{sandbox.id}/snapshots"),
        ("POST", f"/sandboxes/{sandbox.id}/fork"),
        ("PUT", f"/sandboxes/{sandbox.id}/network"),
    ):
        for name in ("a brace", "words", "an array", "deep arrays", "bad UTF-8"):
            a = api(method, path, BAD_JSON[name], headers={"Content-Type": "application/json"})
            assert a.status == 400, f"{method} {path} {name}: {a}"
    same(api("GET", f"/sandboxes/{sandbox.id}").json["state"], "running")


@test("RPC: JSON that is not what it should be is invalid_argument")
def _():
    sandbox = common()
    for name, body in BAD_JSON.items():
        a = sandbox.request("POST", "/filesystem.Filesystem/Stat", body,
                            {**IDENTITY, "Content-Type": "application/json"})
        if name in ("a key twice", "a lone surrogate", "1e999") and a.status in (200, 404):
            continue  # says nothing about `path`
        assert a.status == 400 and a.json["code"] == "invalid_argument", f"{name}: {a}"


@test("queries that cannot be decoded are 400, and no query is too long for an answer")
def _():
    for query in ("metadata=%", "metadata=%zz", "metadata=%25", "metadata=a%253D%25", "state=%ff", "startedAfter=yesterday", "order=up", "limit=%31%30%31"):
        a = api("GET", f"/v2/sandboxes?{query}")
        assert a.status == 400, f"{query}: {a}"
    a = api("GET", "/v2/sandboxes?metadata=" + "a" * 100_000)
    assert a.status in (400, 414, 431), a
    a = api("GET", "/v2/sandboxes?" + "&".join(f"x{i}=y" for i in range(500)))
    assert a.status in (200, 400, 414, 431), a


@test("the memory of the front stays within bounds")
def _():
    same(api("GET", "/health", key=None).status, 204)
    children = open(f"/proc/{SERVER}/task/{SERVER}/children").read().split()
    fronts = [p for p in children if open(f"/proc/{p}/comm").read() == "sandglass-front\n"]
    same(len(fronts), 1, "fronts of the server")
    resident = next(line for line in open(f"/proc/{fronts[0]}/status") if line.startswith("VmRSS"))
    assert int(resident.split()[1]) < 200 * 1024, resident
