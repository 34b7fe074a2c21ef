"""The filesystem service and /files, as other clients than the JavaScript SDK use them."""
import gzip
import http.client
import json
import re
import time

from wire.connect import Stream, run, unary
from wire.control import STAMP
from wire.http import URL, ask, common, fresh
from wire.tap import same, test

FS = "filesystem.Filesystem"


def folder(sandbox):
    path = f"/home/user/d{time.time_ns()}"
    same(unary(sandbox, f"{FS}/MakeDir", {"path": path}).status, 200)
    return path


def form(parts, boundary="b0undary"):
    """(body, headers) of a multipart form; parts are (file name, data)."""
    body = b""
    for name, data in parts:
        quoted = name.replace('"', "%22")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        body += head.encode() + data + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def upload(sandbox, path, data, headers=None, **more):
    kind = {"Content-Type": "application/octet-stream"}
    return sandbox.request("POST", f"/files?path={path}", data, {**kind, **(headers or {})}, **more)


@test("Stat: an entry, as JSON of protobuf has it")
def _():
    sandbox = common()
    d = folder(sandbox)
    same(upload(sandbox, f"{d}/f", b"12345").status, 200)
    run(sandbox, f"chmod 644 {d}/f")
    entry = unary(sandbox, f"{FS}/Stat", {"path": f"{d}/f"}).json["entry"]
    assert STAMP.match(entry.pop("modifiedTime")), entry
    wanted = {"name": "f", "type": "FILE_TYPE_FILE", "path": f"{d}/f", "size": "5", "mode": 0o644}
    same(entry, {**wanted, "permissions": "-rw-r--r--", "owner": "user", "group": "user"})
    entry = unary(sandbox, f"{FS}/Stat", {"path": d}).json["entry"]
    same((entry["type"], entry["permissions"][0]), ("FILE_TYPE_DIRECTORY", "d"))


@test("MakeDir and Move tell the entry, Remove tells nothing, also of what is not there")
def _():
    sandbox = common()
    d = folder(sandbox)
    entry = unary(sandbox, f"{FS}/MakeDir", {"path": f"{d}/a/b"}).json["entry"]
    same((entry["name"], entry["path"]), ("b", f"{d}/a/b"))
    entry = unary(sandbox, f"{FS}/Move", {"source": f"{d}/a/b", "destination": f"{d}/c"}).json["entry"]
    same(entry["path"], f"{d}/c")
    for _ in range(2):
        a = unary(sandbox, f"{FS}/Remove", {"path": f"{d}/c"})
        same((a.status, a.json), (200, {}))


@test("the watcher of the Python SDK: create, poll, remove")
def _():
    sandbox = common()
    d = folder(sandbox)
    a = unary(sandbox, f"{FS}/CreateWatcher", {"path": d, "recursive": True})
    same(a.status, 200, str(a))
    watcher = {"watcherId": a.json["watcherId"]}
    assert isinstance(watcher["watcherId"], str) and watcher["watcherId"], a
    same(unary(sandbox, f"{FS}/GetWatcherEvents", watcher).json, {})
    run(sandbox, f"mkdir {d}/sub; touch {d}/file")
    # what happened before the question is in the answer, also below a directory that is new
    seen = unary(sandbox, f"{FS}/GetWatcherEvents", watcher).json.get("events", [])
    for name in ("sub", "file"):
        assert {"name": name, "type": "EVENT_TYPE_CREATE"} in seen, seen
    for i in range(20):
        run(sandbox, f"mkdir -p {d}/new{i}/deep; touch {d}/new{i}/deep/f")
        seen = unary(sandbox, f"{FS}/GetWatcherEvents", watcher).json.get("events", [])
        assert {"name": f"new{i}/deep/f", "type": "EVENT_TYPE_CREATE"} in seen, (i, seen)
    same(unary(sandbox, f"{FS}/GetWatcherEvents", watcher).json, {}, "each event is told once")
    same(unary(sandbox, f"{FS}/RemoveWatcher", watcher).json, {})
    a = unary(sandbox, f"{FS}/GetWatcherEvents", watcher)
    same((a.status, a.json["code"]), (404, "not_found"))
    same(unary(sandbox, f"{FS}/RemoveWatcher", watcher).status, 404)
    same(unary(sandbox, f"{FS}/CreateWatcher", {"path": "/no/such"}).status, 404)


@test("a watcher belongs to its sandbox")
def _():
    sandbox, other = fresh(), fresh()
    watcher = unary(sandbox, f"{FS}/CreateWatcher", {"path": "/home/user"}).json
    same(unary(other, f"{FS}/GetWatcherEvents", watcher).status, 404)


@test("watchers have a limit, and the sandbox works on")
def _():
    sandbox = fresh()
    answers = [unary(sandbox, f"{FS}/CreateWatcher", {"path": "/home/user"}) for _ in range(300)]
    assert any(a.status != 200 for a in answers), "300 watchers"
    refused = next(a for a in answers if a.status != 200)
    assert refused.json["code"] in ("resource_exhausted", "failed_precondition"), refused
    same(run(sandbox, "echo fine")[0], "fine\n")


@test("WatchDir: start first, then what happens")
def _():
    sandbox = common()
    d = folder(sandbox)
    stream = Stream(sandbox, f"{FS}/WatchDir", {"path": d, "includeEntry": True})
    it = iter(stream)
    same(next(it), {"start": {}})
    upload(sandbox, f"{d}/f", b"xyz")
    event = next(m["filesystem"] for m in it if m.get("filesystem", {}).get("type") == "EVENT_TYPE_WRITE")
    same((event["name"], event["entry"]["path"]), ("f", f"{d}/f"))
    stream.close()


@test("/files: bytes in, bytes out, with a length")
def _():
    sandbox = common()
    d = folder(sandbox)
    data = bytes(range(256)) * 1000
    for how in ({}, {"chunked": True}):
        a = upload(sandbox, f"{d}/f", data, **how)
        same((a.status, a.json), (200, [{"path": f"{d}/f", "name": "f", "type": "file"}]))
    a = sandbox.request("GET", f"/files?path={d}/f")
    same((a.status, a.headers["content-length"], a.headers["content-type"]), (200, str(len(data)), "application/octet-stream"))
    same(a.body, data)
    upload(sandbox, f"{d}/empty", b"")
    a = sandbox.request("GET", f"/files?path={d}/empty")
    same((a.status, a.headers.get("content-length"), a.body), (200, "0", b""))


@test("/files: a form with several parts, named by their file names")
def _():
    sandbox = common()
    d = folder(sandbox)
    body, headers = form([(f"{d}/one", b"1"), (f"{d}/zwei ü", b"22"), (f"{d}/sub/leer", b"")])
    for how in ({}, {"chunked": True}):
        a = sandbox.request("POST", "/files", body, headers, **how)
        same([f["path"] for f in a.json], [f"{d}/one", f"{d}/zwei ü", f"{d}/sub/leer"])
    same(run(sandbox, f"cat '{d}/one' '{d}/zwei ü'")[0], "122")
    body, headers = form([("ignored-name", b"by query")])
    a = sandbox.request("POST", f"/files?path={d}/named", body, headers)
    same([f["path"] for f in a.json], [f"{d}/named"])


@test("/files: compressed")
def _():
    sandbox = common()
    d = folder(sandbox)
    data = b"sandglass " * 100000
    a = upload(sandbox, f"{d}/f", gzip.compress(data), {"Content-Encoding": "gzip"})
    same(a.status, 200, str(a))
    same(run(sandbox, f"wc -c < {d}/f")[0].strip(), str(len(data)))
    for bad in (b"not gzip", gzip.compress(data)[:-10], b""):
        a = upload(sandbox, f"{d}/bad", bad, {"Content-Encoding": "gzip"})
        same(a.status, 400, f"{bad[:10]}: {a}")
    same(sandbox.request("GET", f"/files?path={d}/bad").status, 404, "nothing of it stays")
    a = upload(sandbox, f"{d}/bad", data, {"Content-Encoding": "br"})
    assert a.status in (400, 415), a


@test("/files: what is refused, in the shape of an error")
def _():
    sandbox = common()
    d = folder(sandbox)
    body, headers = form([(f"{d}/same", b"1"), (f"{d}/same", b"2")])
    for answer, status, words in (
        (sandbox.request("GET", f"/files?path={d}/none"), 404, f"path '{d}/none' does not exist"),
        (sandbox.request("GET", f"/files?path={d}"), 400, "directory"),
        (sandbox.request("GET", "/files?path=/etc/passwd&username=nobody-here"), 401, "nobody-here"),
        (sandbox.request("GET", "/files?path=/etc/passwd&username=../root"), 401, ""),
        (upload(sandbox, d, b"x"), 400, "directory"),
        (sandbox.request("POST", "/files", b"x", {"Content-Type": "application/octet-stream"}), 400, ""),
        (sandbox.request("POST", "/files", body, headers), 400, ""),
        (sandbox.request("POST", "/files", b"x", {"Content-Type": "multipart/form-data"}), 400, ""),
        (sandbox.request("POST", f"/files?path={d}/x", b"--b\r\n\r\nx",
                         {"Content-Type": "multipart/form-data; boundary=b"}), 400, ""),
    ):
        same(answer.status, status, str(answer))
        same(answer.json["code"], status, str(answer))
        assert words in answer.json["message"], answer


@test("/files/compose: several files become one, and are gone then")
def _():
    sandbox = common()
    d = folder(sandbox)

    def compose(sources, destination, **more):
        body = {"source_paths": sources, "destination": destination, **more}
        return sandbox.request("POST", "/files/compose", json.dumps(body).encode(), {"Content-Type": "application/json"})

    parts = [bytes([65 + i]) * (300000 * i + 1) for i in range(4)]
    for i, part in enumerate(parts):
        upload(sandbox, f"{d}/part-{i}", part)
    names = [f"{d}/part-{i}" for i in range(4)]
    a = compose(names, f"{d}/deep/whole")
    same((a.status, a.json), (200, {"path": f"{d}/deep/whole", "name": "whole", "type": "file"}), str(a))
    same(sandbox.request("GET", f"/files?path={d}/deep/whole").body, b"".join(parts))
    same(run(sandbox, f"ls {d}; stat -c %U {d}/deep/whole")[0], "deep\nuser\n")
    # the file itself among its sources, over a file that is there, as somebody else
    upload(sandbox, f"{d}/more", b"!")
    a = compose([f"{d}/deep/whole", f"{d}/more"], f"{d}/deep/whole", username="root")
    same(a.status, 200, str(a))
    same(run(sandbox, f"tail -c 2 {d}/deep/whole; stat -c ' %U' {d}/deep/whole; ls {d}")[0], "D! root\ndeep\n")
    upload(sandbox, f"{d}/one", b"1")
    for a, status, words in (
        (compose([f"{d}/one", f"{d}/none"], f"{d}/x"), 404, "none"),
        (compose([f"{d}/one", d], f"{d}/x"), 400, "directory"),
        (compose([f"{d}/one"], d), 400, "directory"),
        (compose([], f"{d}/x"), 400, "source_paths"),
        (compose([f"{d}/one", 7], f"{d}/x"), 400, "source_paths"),
        (compose(["a"] * 257, f"{d}/x"), 400, "source_paths"),
        (compose([f"{d}/one"], ""), 400, "destination"),
        (compose([f"{d}/one"], f"{d}/x", username="nobody-here"), 401, "nobody-here"),
        (compose(["/proc/1/environ"], f"{d}/x"), 403, ""),
        (sandbox.request("POST", "/files/compose", b"[]"), 400, ""),
    ):
        same(a.status, status, str(a))
        assert words in a.json["message"], a
    same(run(sandbox, f"ls -A {d}")[0], "deep\none\n", "what failed left nothing, and took nothing")


@test("/files: metadata by headers, in any case, bounded")
def _():
    sandbox = common()
    d = folder(sandbox)
    a = upload(sandbox, f"{d}/f", b"x", {"X-Metadata-Colour": "Blue", "x-metadata-size": "L"})
    same(a.json[0].get("metadata"), {"colour": "Blue", "size": "L"})
    a = upload(sandbox, f"{d}/g", b"x", {f"X-Metadata-{'k' * 250}": "v"})
    same(a.status, 400, str(a))
    a = upload(sandbox, f"{d}/g", b"x", {f"X-Metadata-k{i}": "v" * 500 for i in range(10)})
    same(a.status, 400, str(a))
    for bad in ("../trusted.overlay.opaque", "a/b", "a*b"):
        a = upload(sandbox, f"{d}/g", b"x", {f"X-Metadata-{bad}": "v"})
        same(a.status, 400, f"{bad}: {a}")


@test("/files: an upload that breaks off leaves nothing")
def _():
    sandbox = common()
    d = folder(sandbox)
    c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=10)
    c.putrequest("POST", f"/files?path={d}/half")
    headers = {**sandbox.headers(), "Content-Type": "application/octet-stream", "Content-Length": "1000000"}
    for name, value in headers.items():
        c.putheader(name, value)
    c.endheaders()
    c.send(b"x" * 300000)
    time.sleep(0.3)
    c.close()
    time.sleep(0.3)
    same(run(sandbox, f"ls -A {d}")[0], "")


@test("a browser may ask: preflight of the data plane")
def _():
    sandbox = common()
    headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-access-token"}
    a = ask("OPTIONS", "/process.Process/List", None, {**sandbox.headers(), **headers})
    assert a.status in (200, 204), a
    same(a.headers.get("access-control-allow-origin"), "*")
    assert "access-control-allow-credentials" not in a.headers, a.headers
    assert re.search(r"\*|x-access-token", a.headers.get("access-control-allow-headers", ""), re.I), a.headers
