"""One tenant and what it must not learn of another: a foreign id and one that never was get the same bytes."""
import http.client
import socket
import urllib.parse

from wire.http import KEY, OTHER_KEY, UNKNOWN, URL, api, ask, fresh
from wire.tap import same, test

# Every route that names a sandbox, with a body that would do something.
BY_SANDBOX = [
    ("GET", "/sandboxes/{}", None),
    ("DELETE", "/sandboxes/{}", None),
    ("POST", "/sandboxes/{}/timeout", {"timeout": 1}),
    ("POST", "/sandboxes/{}/timeout", {"timeout": "bad"}),
    ("POST", "/sandboxes/{}/refreshes", {"duration": 1}),
    ("POST", "/sandboxes/{}/pause", {}),
    ("POST", "/sandboxes/{}/resume", {}),
    ("POST", "/sandboxes/{}/connect", {"timeout": 1}),
    ("POST", "/v2/sandboxes/{}/connect", {"timeout": 1}),
    ("POST", "/v2/sandboxes/{}/connect", None),
    ("GET", "/sandboxes/{}/metrics", None),
    ("GET", "/sandboxes/{}/logs", None),
    ("GET", "/v2/sandboxes/{}/logs", None),
    ("PUT", "/sandboxes/{}/network", {"denyOut": ["0.0.0.0/0"]}),
    ("PUT", "/sandboxes/{}/network", {"denyOut": ["nonsense"]}),
    ("POST", "/sandboxes/{}/snapshots", {}),
    ("POST", "/sandboxes/{}/snapshots", {"name": "Bad Name"}),
    ("POST", "/sandboxes/{}/fork", {"count": 1}),
    ("POST", "/sandboxes/{}/fork", {"count": 0}),
    ("GET", "/snapshots?sandboxID={}", None),
    ("GET", "/sandboxes/metrics?sandbox_ids={}", None),
]

# Every route that names a template or a snapshot.
BY_TEMPLATE = [
    ("GET", "/templates/{}", None),
    ("DELETE", "/templates/{}", None),
    ("GET", "/templates/aliases/{}", None),
    ("GET", "/templates/{}/tags", None),
    ("GET", "/snapshots?name={}", None),
    ("GET", "/v2/sandboxes?template={}", None),
]


def told(answer, name):
    """Everything that an answer tells, without the name that was asked for, whole or in part."""
    headers = {k: v for k, v in answer.headers.items() if k != "date"}
    whole = urllib.parse.unquote(name)
    body = answer.body.replace(headers.pop("x-request-id").encode(), b"REQUEST")
    for part in (whole, whole.partition(":")[0], whole.partition(":")[0].rpartition("/")[2]):
        body = body.replace(part.encode(), b"NAME")
    assert abs(int(headers.get("content-length", len(answer.body))) - len(answer.body)) == 0, headers
    headers.pop("content-length", None)
    return answer.status, headers, body


def compare(method, path, body, foreign, unknown):
    """The same request for two names that are equally long."""
    same(len(foreign), len(unknown), "lengths of the names")
    got = [told(api(method, path.format(n), body, key=OTHER_KEY), n) for n in (foreign, unknown)]
    same(got[0], got[1], f"{method} {path}")
    return got[0]


def quote(name):
    return name.replace("/", "%2F").replace(":", "%3A")


@test("a foreign sandbox and an unknown one: the same bytes on every route")
def _():
    sandbox = fresh()
    for method, path, body in BY_SANDBOX:
        status, _, _ = compare(method, path, body, sandbox.id, UNKNOWN)
        assert status in (404, 400, 200), f"{method} {path}: {status}"
        if status == 200:
            assert "{}" in path.partition("?")[2], f"{method} {path} is a success"
    same(api("GET", f"/sandboxes/{sandbox.id}").json["state"], "running", "state afterwards")


@test("... while it is paused, too")
def _():
    sandbox = fresh()
    api("POST", f"/sandboxes/{sandbox.id}/pause", {})
    for method, path, body in BY_SANDBOX:
        compare(method, path, body, sandbox.id, UNKNOWN)
    same(api("GET", f"/sandboxes/{sandbox.id}").json["state"], "paused", "state afterwards")


@test("a foreign snapshot and an unknown one: the same bytes on every route")
def _():
    sandbox = fresh()
    plain = api("POST", f"/sandboxes/{sandbox.id}/snapshots", {}).json["snapshotID"]
    named = api("POST", f"/sandboxes/{sandbox.id}/snapshots", {"name": "named-snapshot"}).json["snapshotID"]
    try:
        for name in (plain, named):
            space, slash, rest = name.rpartition("/")
            own, colon, tag = rest.partition(":")
            unknown = space + slash + "z" * len(own) + colon + tag
            for method, path, body in BY_TEMPLATE:
                compare(method, path, body, quote(name), quote(unknown))
            answers = []
            for template in (name, unknown):
                a = api("POST", "/v2/sandboxes", {"templateID": template, "timeout": 5}, key=OTHER_KEY)
                answers.append(told(a, template))
            same(answers[0], answers[1], "create from it")
            assert answers[0][0] in (400, 404), f"status of create: {answers[0]}"
    finally:
        for name in (plain, named):
            same(api("DELETE", f"/templates/{quote(name)}").status, 204, "it is still there for its owner")


@test("the same message for the data plane: foreign is not a word there, the token decides")
def _():
    sandbox = fresh()
    mine = fresh(key=OTHER_KEY)
    for token in (mine.token, "", "x", sandbox.token[:-1]):
        a = ask("POST", "/process.Process/List", b"{}",
                {**sandbox.headers(), "X-Access-Token": token, "Content-Type": "application/json"})
        same(a.status, 401, str(a))


@test("a key is looked at with every request of a connection")
def _():
    sandbox = fresh({"metadata": {"of": "first"}})
    other = fresh({"metadata": {"of": "second"}}, key=OTHER_KEY)
    c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=10)
    seen = []
    for key in (KEY, None, OTHER_KEY, "e2b_" + "0" * 40, KEY):
        a = ask("GET", "/v2/sandboxes", None, {"X-API-KEY": key} if key else {}, connection=c)
        ids = {s["sandboxID"] for s in a.json} & {sandbox.id, other.id} if a.status == 200 else None
        seen.append((a.status, ids))
    c.close()
    same(seen, [(200, {sandbox.id}), (401, None), (200, {other.id}), (401, None), (200, {sandbox.id})])


@test("... also when they are sent without waiting")
def _():
    sandbox = fresh()
    other = fresh(key=OTHER_KEY)
    sent = b""
    for key in (KEY, None, OTHER_KEY):
        head = f"X-API-KEY: {key}\r\n" if key else ""
        sent += f"GET /v2/sandboxes HTTP/1.1\r\nHost: {URL.netloc}\r\n{head}\r\n".encode()
    got = raw_answers(sent, 3)
    same([status for status, _ in got], [200, 401, 200])
    assert sandbox.id in got[0][1] and other.id not in got[0][1], got[0]
    assert other.id in got[2][1] and sandbox.id not in got[2][1], got[2]


def raw_answers(sent, n):
    """Statuses and bodies of n answers that have a length."""
    out, data = [], b""
    with socket.create_connection((URL.hostname, URL.port), timeout=10) as s:
        s.sendall(sent)
        while len(out) < n:
            head, found, rest = data.partition(b"\r\n\r\n")
            if found:
                lines = head.decode().split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
                length = int(headers.get("content-length", 0))
                if len(rest) >= length:
                    out.append((int(lines[0].split()[1]), rest[:length].decode()))
                    data = rest[length:]
                    continue
            part = s.recv(65536)
            assert part, f"closed after {len(out)} answers"
            data += part
    return out
