"""The control plane: shapes, statuses, old routes."""
import datetime
import json
import re
import time

from wire.http import KEY, UNKNOWN, api, ask, eventually, fresh
from wire.connect import run
from wire.tap import same, test

STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")

# Fields that E2B's Python SDK insists on, with their types.
SANDBOX = {"templateID": str, "sandboxID": str, "clientID": str, "envdVersion": str}
LISTED = {**SANDBOX, "startedAt": "stamp", "endAt": "stamp", "state": str, "cpuCount": int, "memoryMB": int, "diskSizeMB": int}
METRIC = {
    "timestamp": "stamp",
    "timestampUnix": int,
    "cpuCount": int,
    "cpuUsedPct": (int, float),
    "memUsed": int,
    "memTotal": int,
    "memCache": int,
    "diskUsed": int,
    "diskTotal": int,
}


def has(thing, fields, what):
    for name, kind in fields.items():
        assert name in thing, f"{what} has no {name}: {thing}"
        value = thing[name]
        if kind == "stamp":
            assert isinstance(value, str) and STAMP.match(value), f"{what}.{name} is {value!r}"
        else:
            ok = isinstance(value, kind) and not isinstance(value, bool)
            assert ok, f"{what}.{name} is {value!r}"


def refuses(answer, status, message="."):
    """The error shape, exactly: code and message, and perhaps error_code; the request's id is in the header alone."""
    same(answer.status, status, f"status of {answer}")
    assert answer.json is not None, f"no JSON: {answer}"
    assert set(answer.json) - {"error_code"} == {"code", "message"}, answer
    assert re.fullmatch("[a-z0-9]{20}", answer.headers["x-request-id"]), answer.headers
    same(answer.json["code"], status, "code")
    assert re.search(message, answer.json["message"]), answer
    assert answer.headers["content-type"].startswith("application/json"), answer.headers


def empty(answer, status=204):
    same(answer.status, status, f"status of {answer}")
    same(answer.body, b"", "body")
    assert "transfer-encoding" not in answer.headers, answer.headers
    assert status == 204 or answer.headers.get("content-length") == "0", answer.headers


def seconds_left(sandbox):
    info = api("GET", f"/sandboxes/{sandbox.id}").json
    end = datetime.datetime.fromisoformat(info["endAt"].replace("Z", "+00:00"))
    return end.timestamp() - time.time()


def near(value, wanted, slack=3):
    assert abs(value - wanted) <= slack, f"{value} is not near {wanted}"


@test("GET /health needs no key and has no body")
def _():
    empty(api("GET", "/health", key=None))


@test("create as the Python SDK writes it: v1, all fields named")
def _():
    body = {
        "templateID": "base",
        "autoPause": False,
        "metadata": {},
        "timeout": 300,
        "envVars": {},
        "secure": True,
        "allow_internet_access": True,
    }
    sandbox = fresh(body, "/sandboxes")
    has(sandbox.made, SANDBOX, "Sandbox")
    assert sandbox.token, "secure gives a token"
    near(seconds_left(sandbox), 300)


@test("create: defaults of v1 are 15 s and no token, of v2 300 s and a token")
def _():
    for route, seconds, token in (("/sandboxes", 15, False), ("/v2/sandboxes", 300, True)):
        a = api("POST", route, {"templateID": "base"})
        same(a.status, 201)
        has(a.json, SANDBOX, "Sandbox")
        same(bool(a.json.get("envdAccessToken")), token, f"token of {route}")
        info = api("GET", f"/sandboxes/{a.json['sandboxID']}").json
        left = datetime.datetime.fromisoformat(info["endAt"].replace("Z", "+00:00"))
        near(left.timestamp() - time.time(), seconds)
        api("DELETE", f"/sandboxes/{a.json['sandboxID']}")


@test("create: a body in chunks, one that is indented, one with a charset, keys nobody knows")
def _():
    text = json.dumps({"templateID": "base", "timeout": 60, "someday": {"a": [1, None]}}, indent=4).encode()
    for how in ({"chunked": True}, {}, {"headers": {"Content-Type": "application/json; charset=utf-8"}}):
        headers = {"Content-Type": "application/json", **how.pop("headers", {})}
        a = api("POST", "/v2/sandboxes", text, headers=headers, **how)
        same(a.status, 201, f"{headers} {how}: {a}")
        api("DELETE", f"/sandboxes/{a.json['sandboxID']}")


@test("GET /sandboxes/ID has every field")
def _():
    sandbox = fresh({"metadata": {"a": "b"}})
    a = api("GET", f"/sandboxes/{sandbox.id}")
    same(a.status, 200)
    has(a.json, LISTED, "SandboxDetail")
    same(a.json["lifecycle"], {"autoResume": False, "onTimeout": "kill"})
    same(a.json["metadata"], {"a": "b"})
    same(a.json["envdAccessToken"], sandbox.token)


@test("both lists have every field; the old one shows running sandboxes only")
def _():
    mark = f"list{time.time_ns()}"
    runs, sleeps = fresh({"metadata": {"m": mark}}), fresh({"metadata": {"m": mark}})
    empty(api("POST", f"/sandboxes/{sleeps.id}/pause"))
    new = api("GET", f"/v2/sandboxes?metadata=m%3D{mark}")
    same({s["sandboxID"] for s in new.json}, {runs.id, sleeps.id})
    assert int(new.headers["x-total-running"]) >= 1, new.headers
    old = api("GET", f"/sandboxes?metadata=m%3D{mark}")
    same([s["sandboxID"] for s in old.json], [runs.id])
    for item in new.json + old.json:
        has(item, LISTED, "ListedSandbox")
        assert "envdAccessToken" not in item, "a list gives no tokens away"


@test("the metadata filter is encoded three times")
def _():
    mark = f"m{time.time_ns()}"
    sandbox = fresh({"metadata": {"a b": "c&d", "m": mark}})
    a = api("GET", f"/v2/sandboxes?metadata=a%252520b%3Dc%252526d%26m%3D{mark}")
    same([s["sandboxID"] for s in a.json], [sandbox.id])


@test("pages: X-Next-Token until there is none, and only ours is taken")
def _():
    mark = f"p{time.time_ns()}"
    made = []
    for _ in range(3):
        made.append(fresh({"metadata": {"m": mark}}).id)
        time.sleep(0.002)  # the order of those that began in the same millisecond is not said
    path = f"/v2/sandboxes?metadata=m%3D{mark}&limit=2"
    first = api("GET", path)
    token = first.headers["x-next-token"]
    second = api("GET", f"{path}&nextToken={token}")
    assert not second.headers.get("x-next-token"), second.headers
    same([s["sandboxID"] for s in first.json + second.json], made[::-1])
    flipped = token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]
    for bad in ("x", token[:-4], flipped, token * 2, "%00", "%ff%fe", "a" * 5000):
        refuses(api("GET", f"{path}&nextToken={bad}"), 400, "Invalid next token")
    for bad in ("0", "101", "-1", "two", "1e1", "99999999999999999999", ""):
        a = api("GET", f"/v2/sandboxes?limit={bad}")
        assert a.status == 400 or (bad == "" and a.status == 200), f"limit={bad}: {a}"


@test("connect: 200 for a running one, 201 for one that was paused, both versions")
def _():
    sandbox = fresh({"timeout": 60})
    for route, body in ((f"/v2/sandboxes/{sandbox.id}/connect", None),
                        (f"/sandboxes/{sandbox.id}/connect", {"timeout": 300})):
        a = api("POST", route, body)
        same(a.status, 200, f"{route}: {a}")
        has(a.json, SANDBOX, "Sandbox")
        same(a.json["envdAccessToken"], sandbox.token)
        near(seconds_left(sandbox), 300)
        empty(api("POST", f"/sandboxes/{sandbox.id}/pause", {}))
        a = api("POST", route, body)
        same(a.status, 201, f"{route}: {a}")
        has(a.json, SANDBOX, "Sandbox")
        same(a.json["sandboxID"], sandbox.id)


@test("pause: 204, then 409; resume: 201, then 409; both 404 for nothing")
def _():
    sandbox = fresh()
    empty(api("POST", f"/sandboxes/{sandbox.id}/pause", {"memory": True}))
    refuses(api("POST", f"/sandboxes/{sandbox.id}/pause", {}), 409)
    a = api("POST", f"/sandboxes/{sandbox.id}/resume", {"timeout": 50, "autoPause": False})
    same(a.status, 201, str(a))
    has(a.json, SANDBOX, "Sandbox")
    near(seconds_left(sandbox), 50)
    refuses(api("POST", f"/sandboxes/{sandbox.id}/resume", {}), 409)
    refuses(api("POST", f"/sandboxes/{UNKNOWN}/pause"), 404)
    refuses(api("POST", f"/sandboxes/{UNKNOWN}/resume", {}), 404)


@test("timeout sets, refreshes extends")
def _():
    sandbox = fresh()
    empty(api("POST", f"/sandboxes/{sandbox.id}/timeout", {"timeout": 77}))
    near(seconds_left(sandbox), 77)
    empty(api("POST", f"/sandboxes/{sandbox.id}/refreshes", {"duration": 200}))
    near(seconds_left(sandbox), 200)
    empty(api("POST", f"/sandboxes/{sandbox.id}/refreshes", {"duration": 20}))
    near(seconds_left(sandbox), 200)
    empty(api("POST", f"/sandboxes/{sandbox.id}/refreshes"))
    for bad in ({}, {"timeout": -1}, {"timeout": "9"}, {"timeout": 1.5}, {"timeout": None}, {"timeout": 2**31}, {"timeout": 2**63}):
        refuses(api("POST", f"/sandboxes/{sandbox.id}/timeout", bad), 400)


@test("DELETE: 204, then 404 with its code in the body")
def _():
    sandbox = fresh()
    empty(sandbox.kill())
    refuses(sandbox.kill(), 404, re.escape(f"Sandbox \"{sandbox.id}\" doesn't exist or you don't have access to it"))


@test("metrics: every field, of one sandbox and of several")
def _():
    sandbox = fresh()
    metrics = eventually("metrics", lambda: api("GET", f"/sandboxes/{sandbox.id}/metrics").json)
    for m in metrics:
        has(m, METRIC, "SandboxMetric")
    now = int(time.time())
    same(api("GET", f"/sandboxes/{sandbox.id}/metrics?start={now - 7200}&end={now - 3600}").json, [])
    a = api("GET", f"/sandboxes/metrics?sandbox_ids={sandbox.id},{UNKNOWN}")
    same(a.status, 200, str(a))
    same(set(a.json["sandboxes"]), {sandbox.id})
    has(a.json["sandboxes"][sandbox.id], METRIC, "SandboxMetric")
    refuses(api("GET", f"/sandboxes/{sandbox.id}/metrics?start=soon"), 400)


@test("logs: both versions; what was written, in order, by level and by word")
def _():
    sandbox = fresh()
    run(sandbox, "echo first-line; sleep 0.3; echo second-line; echo third-line >&2")

    def told():
        a = api("GET", f"/sandboxes/{sandbox.id}/logs")
        return "third-line" in str(a.json) and a.json

    logs = eventually("the lines are in the log", told)
    same(set(logs), {"logs", "logEntries"})
    for item in logs["logs"]:
        has(item, {"timestamp": "stamp", "line": str}, "log")
        assert json.loads(item["line"])["level"], "E2B's command line reads a JSON object with a level"
    for entry in logs["logEntries"]:
        has(entry, {"timestamp": "stamp", "message": str, "fields": dict}, "entry")
        assert entry["level"] in ("debug", "info", "warn", "error"), entry
    text = [entry["message"] for entry in logs["logEntries"]]
    order = [next(i for i, t in enumerate(text) if f"{w}-line" in t) for w in ("first", "second", "third")]
    assert order == sorted(order), text
    same(len(api("GET", f"/sandboxes/{sandbox.id}/logs?limit=1").json["logEntries"]), 1)
    same(api("GET", f"/sandboxes/{sandbox.id}/logs?start={int(time.time() * 1000) + 60000}").json["logEntries"], [])
    new = api("GET", f"/v2/sandboxes/{sandbox.id}/logs?search=second-line").json["logs"]
    assert new and all("second-line" in entry["message"] for entry in new), new
    back = api("GET", f"/v2/sandboxes/{sandbox.id}/logs?direction=backward").json["logs"]
    stamps = [entry["timestamp"] for entry in back]
    same(stamps, sorted(stamps, reverse=True))
    same(api("GET", f"/v2/sandboxes/{sandbox.id}/logs?level=error&search=first-line").json["logs"], [])
    refuses(api("GET", f"/v2/sandboxes/{UNKNOWN}/logs"), 404)
    refuses(api("GET", f"/sandboxes/{UNKNOWN}/logs"), 404)


@test("snapshots and forks: statuses and shapes")
def _():
    sandbox = fresh()
    a = api("POST", f"/sandboxes/{sandbox.id}/snapshots", {})
    same(a.status, 201, str(a))
    has(a.json, {"snapshotID": str, "names": list}, "SnapshotInfo")
    snapshot = a.json["snapshotID"]
    listed = api("GET", f"/snapshots?sandboxID={sandbox.id}").json
    same([s["snapshotID"] for s in listed], [snapshot])
    quoted = snapshot.replace("/", "%2F").replace(":", "%3A")
    empty(api("DELETE", f"/templates/{quoted}"))
    refuses(api("DELETE", f"/templates/{quoted}"), 404)
    a = api("POST", f"/sandboxes/{sandbox.id}/fork", {"count": 2, "timeout": 60})
    same(a.status, 201, str(a))
    same(len(a.json), 2)
    for item in a.json:
        has(item["sandbox"], SANDBOX, "fork")
        assert item["sandbox"]["envdAccessToken"], item
        api("DELETE", f"/sandboxes/{item['sandbox']['sandboxID']}")
    for bad in (0, -1, 101, 1.5, "2", 2**40):
        refuses(api("POST", f"/sandboxes/{sandbox.id}/fork", {"count": bad}), 400)


@test("templates: lists, one, aliases")
def _():
    for route in ("/templates", "/v2/templates"):
        a = api("GET", route)
        same(a.status, 200, str(a))
        assert any("base" in t.get("aliases", []) for t in a.json), f"{route}: {a}"
    a = api("GET", "/templates/aliases/base")
    same(a.status, 200, str(a))
    has(a.json, {"templateID": str}, "alias")
    same(a.json["public"], True)
    same(api("GET", f"/templates/{a.json['templateID']}").status, 200)
    refuses(api("GET", "/templates/aliases/no-such"), 404)
    refuses(api("DELETE", "/templates/no-such"), 404)
    refuses(api("DELETE", "/templates/base"), 403)


# How E2B's command line built templates before version 2: refused, and it says what to do.
OLD_BUILDS = """
    POST /templates
    POST /templates/mine
    POST /templates/mine/builds/b
"""


@test("what old command lines call is refused, with words")
def _():
    for line in OLD_BUILDS.split("\n"):
        if line.strip():
            method, path = line.split()
            body = {} if method in ("POST", "PATCH") else None
            refuses(api(method, path, body), 400, "update @e2b/cli")


@test("what E2B does not have either is 404 or 405")
def _():
    for path in ("/", "/nothing", "/sandboxes/", "/v3/sandboxes", "//sandboxes", "/sandboxes/..;/", "/SANDBOXES"):
        a = api("GET", path)
        assert a.status in (404, 400), f"{path}: {a}"
        same(a.json["code"], a.status, path)
    for method, path in (("PATCH", "/sandboxes"), ("PUT", "/v2/sandboxes"), ("DELETE", "/snapshots")):
        a = api(method, path)
        refuses(a, 405)
        assert a.headers.get("allow"), a.headers


@test("no key, wrong keys: 401 on every route, whatever it names")
def _():
    sandbox = fresh()
    routes = [("GET", "/sandboxes"), ("GET", "/v2/sandboxes"), ("POST", "/sandboxes"), ("POST", "/v2/sandboxes")]
    routes += [("GET", f"/sandboxes/{i}") for i in (sandbox.id, UNKNOWN)]
    routes += [("DELETE", f"/sandboxes/{sandbox.id}"), ("GET", "/snapshots"), ("GET", "/templates")]
    routes += [("POST", "/volumes")]
    wrong = ["", "x", "e2b_", KEY[:-1], KEY + "0", KEY.upper(), KEY[:-1] + ("0" if KEY[-1] != "0" else "1"), "e2b_" + "0" * 5000]
    for method, path in routes:
        body = {} if method == "POST" else None
        refuses(api(method, path, body, key=None), 401)
        for key in wrong if path == "/v2/sandboxes" else wrong[3:4]:
            a = ask(method, path, body, {"X-API-KEY": key})
            assert a.status in (401, 431), f"{method} {path} {key[:50]}: {a}"
    same(api("GET", f"/sandboxes/{sandbox.id}").status, 200)


@test("a key in the wrong place is none")
def _():
    wrong = KEY[:-1] + ("0" if KEY[-1] != "0" else "1")
    for headers in ({"X-API-KEY": f"Bearer {KEY}"}, {"E2B-API-KEY": KEY}, {"Authorization": f"Bearer {wrong}"}, {"Authorization": KEY}):
        refuses(ask("GET", "/v2/sandboxes", None, headers), 401)
    refuses(ask("GET", f"/v2/sandboxes?X-API-KEY={KEY}&apiKey={KEY}"), 401)


@test("ids in paths: encoded ones are decoded once, odd ones are 404")
def _():
    sandbox = fresh()
    encoded = "".join(f"%{ord(c):02x}" for c in sandbox.id)
    same(api("GET", f"/sandboxes/{encoded}").status, 200)
    same(api("GET", f"/sandboxes/{sandbox.id}-6532622b").status, 200)
    for odd in (encoded.replace("%", "%25"), sandbox.id.upper(), sandbox.id + "x", sandbox.id[:-1], "%00", "%ff", "..",
                "a" * 3000, f"{sandbox.id}%2F"):
        a = api("GET", f"/sandboxes/{odd}")
        assert a.status in (400, 404), f"{odd[:60]}: {a}"


@test("a paused sandbox with autoResume is woken only by who may use it")
def _():
    sandbox = fresh({"autoPause": True, "autoResume": {"enabled": True}})
    state = lambda: api("GET", f"/sandboxes/{sandbox.id}").json["state"]
    to_envd = {"E2b-Sandbox-Id": sandbox.id, "E2b-Sandbox-Port": "49983"}
    empty(api("POST", f"/sandboxes/{sandbox.id}/pause"))
    same(ask("GET", "/envs", headers=to_envd).status, 401)
    same(ask("GET", "/envs", headers={**to_envd, "X-Access-Token": "0" * 40}).status, 401)
    same(ask("GET", "/files?path=/etc/hostname&signature=v1_x", headers=to_envd).status, 401)
    same(ask("GET", "/health", headers=to_envd).status, 502)
    same(state(), "paused")
    same(ask("GET", "/envs", headers={**to_envd, "X-Access-Token": sandbox.token}).status, 200)
    same(state(), "running")
