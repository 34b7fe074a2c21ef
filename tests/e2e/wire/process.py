"""The process service in JSON, as other clients than the JavaScript SDK use it."""
import base64
import json
import time

from wire.connect import IDENTITY, Stream, envelope, error_of, events, run, start, unary
from wire.http import UNKNOWN, Sandbox, api, ask, common, eventually, fresh
from wire.tap import same, test


def b64(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def output(got, name="stdout"):
    return b"".join(base64.b64decode(e["data"][name]) for e in got if name in e.get("data", {})).decode()


def listed(sandbox):
    return unary(sandbox, "process.Process/List", {}).json.get("processes", [])


@test("health needs no token; metrics and envs do, and have their fields")
def _():
    sandbox = fresh({"envVars": {"COLOUR": "blue"}})
    bare = {"E2b-Sandbox-Id": sandbox.id, "E2b-Sandbox-Port": "49983"}
    a = ask("GET", "/health", None, bare)
    same((a.status, a.body), (204, b""))
    for path in ("/metrics", "/envs"):
        same(ask("GET", path, None, bare).status, 401, path)
    m = sandbox.request("GET", "/metrics").json
    wanted = {"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache", "disk_used", "disk_total"}
    assert wanted <= set(m) and all(isinstance(m[k], (int, float)) for k in wanted), m
    a = sandbox.request("GET", "/envs")
    same(a.json["COLOUR"], "blue")
    same(a.headers.get("cache-control"), "no-store")


@test("a wrong token: the same words on every service")
def _():
    sandbox = common()
    wrong = {**sandbox.headers(), "X-Access-Token": "wrong"}
    for path in ("/process.Process/List", "/filesystem.Filesystem/Stat"):
        a = ask("POST", path, b"{}", {**wrong, "Content-Type": "application/json"})
        same(a.status, 401, str(a))
        assert a.json["message"].startswith("unauthorized access"), a
    a = ask("GET", "/envs", None, wrong)
    same((a.status, a.json["code"]), (401, 401))


@test("Start: the events of a program that ends well, badly, and by a signal")
def _():
    sandbox = common()
    got = events(start(sandbox, "echo hi; echo oh >&2"))
    assert list(got[0]) == ["start"] and got[0]["start"]["pid"] > 1, got
    same((output(got), output(got, "stderr")), ("hi\n", "oh\n"))
    same(got[-1], {"end": {"exited": True, "status": "exit status 0"}})
    got = events(start(sandbox, "exit 3"))
    same(got[-1], {"end": {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}})
    end = events(start(sandbox, "kill -9 $$"))[-1]["end"]
    same((end["exitCode"], end.get("exited", False), end["status"], end["error"]), (-1, False, "signal: killed", "signal: killed"))


@test("Start: the last envelope is an empty end of stream")
def _():
    stream = start(common(), "true")
    list(stream)
    same(stream.end, {})


@test("Start: without `stdin` it is open, with false it is /dev/null")
def _():
    sandbox = common()
    stream = start(sandbox, "cat; echo ended")
    it = iter(stream)
    pid = next(it)["event"]["start"]["pid"]
    for part in ("one ", "two\n"):
        a = unary(sandbox, "process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(part)}})
        same((a.status, a.json), (200, {}), str(a))
    same(unary(sandbox, "process.Process/CloseStdin", {"process": {"pid": pid}}).json, {})
    got = [m["event"] for m in it]
    same(output(got), "one two\nended\n")
    same(run(sandbox, "cat; readlink /proc/self/fd/0")[0], "/dev/null\n")


@test("names in snake_case, numbers as strings, enums as numbers are understood")
def _():
    sandbox = common()
    it = iter(start(sandbox, "sleep 1000"))
    pid = next(it)["event"]["start"]["pid"]
    a = unary(sandbox, "process.Process/SendSignal", {"process": {"pid": str(pid)}, "signal": 15})
    same(a.status, 200, str(a))
    end = list(it)[-1]["event"]["end"]
    same(end["status"], "signal: terminated")
    it = iter(start(sandbox, "sleep 1000"))
    pid = next(it)["event"]["start"]["pid"]
    a = unary(sandbox, "process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})
    same(a.status, 200)
    same(list(it)[-1]["event"]["end"]["status"], "signal: killed")
    a = unary(sandbox, "filesystem.Filesystem/ListDir", {"path": "/home", "depth": "1", "unknown_field": [1]})
    same([e["name"] for e in a.json["entries"]], ["user"])


@test("List: the configuration as it was given, the tag, and what can be selected by it")
def _():
    sandbox = fresh()
    process = {"envs": {"A": "1", "B": ""}, "cwd": "/tmp"}
    it = iter(start(sandbox, "cat; sleep 1000", process=process, tag="my-tag"))
    pid = next(it)["event"]["start"]["pid"]
    (only,) = listed(sandbox)
    same((only["pid"], only["tag"]), (pid, "my-tag"))
    same(only["config"], {"cmd": "/bin/bash", "args": ["-l", "-c", "cat; sleep 1000"], **process})
    selected = {"process": {"tag": "my-tag"}}
    same(unary(sandbox, "process.Process/SendInput", {**selected, "input": {"stdin": b64("by tag\n")}}).status, 200)
    same(output([next(it)["event"]]), "by tag\n")
    again = Stream(sandbox, "process.Process/Connect", selected)
    same(next(iter(again))["event"], {"start": {"pid": pid}})
    again.close()
    same(unary(sandbox, "process.Process/SendSignal", {**selected, "signal": "SIGNAL_SIGKILL"}).status, 200)
    same(list(it)[-1]["event"]["end"]["status"], "signal: killed")
    eventually("it is not listed any more", lambda: not listed(sandbox))


@test("a client that goes away does not end its program")
def _():
    sandbox = fresh()
    stream = start(sandbox, "sleep 1000")
    pid = next(iter(stream))["event"]["start"]["pid"]
    stream.close()
    time.sleep(0.5)
    same([p["pid"] for p in listed(sandbox)], [pid])


@test("the end is kept for who comes late")
def _():
    sandbox = common()
    got = events(start(sandbox, "exit 9"))
    again = events(Stream(sandbox, "process.Process/Connect", {"process": {"pid": got[0]["start"]["pid"]}}))
    same((again[0], again[-1]["end"]["exitCode"]), (got[0], 9))


@test("Connect-Timeout-Ms: the stream ends with deadline_exceeded, and so does the program")
def _():
    sandbox = fresh()
    stream = start(sandbox, "echo before; sleep 1000", headers={"Connect-Timeout-Ms": "600"})
    got = events(stream)
    same(output(got), "before\n")
    same(stream.end["error"]["code"], "deadline_exceeded")
    eventually("nothing runs", lambda: not listed(sandbox))


@test("keepalives: as often as asked for, and never before the start")
def _():
    stream = start(common(), "sleep 2.5", headers={"Keepalive-Ping-Interval": "1"})
    kinds = [list(e)[0] for e in events(stream)]
    same((kinds[0], kinds[-1]), ("start", "end"))
    assert kinds.count("keepalive") in (1, 2, 3), kinds


@test("errors of streams: status 200, and the code in the last envelope")
def _():
    sandbox = common()
    for stream, code, words in (
        (Stream(sandbox, "process.Process/Connect", {"process": {"pid": 4000000}}),
         "not_found", "process with pid 4000000 not found"),
        (Stream(sandbox, "process.Process/Connect", {"process": {"tag": "none"}}), "not_found", "none"),
        (Stream(sandbox, "process.Process/Connect", {}), "invalid_argument", ""),
        (start(sandbox, "true", process={"cwd": "/no/such"}), "invalid_argument", "cwd '/no/such' does not exist"),
        (start(sandbox, "true", headers=sandbox.headers(user="nobody-here")),
         "unauthenticated", "invalid username: 'nobody-here'"),
        (Stream(sandbox, "filesystem.Filesystem/WatchDir", {"path": "/no/such"}), "not_found", "/no/such"),
        (Stream(sandbox, "filesystem.Filesystem/WatchDir", {"path": "/etc/passwd"}), "invalid_argument", ""),
    ):
        error = error_of(stream)
        same(error.get("code"), code, str(error))
        assert words in error["message"], error


@test("errors of single calls: the status that goes with the code")
def _():
    sandbox = common()
    none = {"process": {"pid": 4000000}}
    for method, message, status, code in (
        ("process.Process/SendInput", {**none, "input": {"stdin": "eA=="}}, 404, "not_found"),
        ("process.Process/SendSignal", {**none, "signal": 9}, 404, "not_found"),
        ("process.Process/CloseStdin", none, 404, "not_found"),
        ("process.Process/Update", {**none, "pty": {"size": {"cols": 1, "rows": 1}}}, 404, "not_found"),
        ("filesystem.Filesystem/Stat", {"path": "/no/such"}, 404, "not_found"),
        ("filesystem.Filesystem/MakeDir", {"path": "/home/user"}, 409, "already_exists"),
        ("filesystem.Filesystem/ListDir", {"path": "/etc/passwd"}, 400, "invalid_argument"),
        ("filesystem.Filesystem/Stat", {"path": "~root/x"}, 400, "invalid_argument"),
        ("filesystem.Filesystem/Stat", {"path": 7}, 400, "invalid_argument"),
        ("process.Process/SendSignal", {"process": {"pid": "x"}, "signal": 9}, 400, "invalid_argument"),
        ("process.Process/SendInput", {**none, "input": {"stdin": "%%%"}}, 400, "invalid_argument"),
        ("process.Process/NoSuch", {}, 404, None),
        ("no.Such/Service", {}, 404, None),
    ):
        a = unary(sandbox, method, message)
        if code is None:
            assert a.status in (404, 501), f"{method}: {a}"
            continue
        same((a.status, a.json.get("code")), (status, code), f"{method} {message}: {a}")
        assert isinstance(a.json["message"], str) and a.json["message"], a


@test("the user: of the header, and only its name counts")
def _():
    sandbox = common()
    for header, name in (("root:", "root"), ("user:", "user"), ("root:ignored", "root")):
        auth = {"Authorization": "Basic " + b64(header)}
        got = events(start(sandbox, "id -un", headers=auth, stdin=False))
        same(output(got), f"{name}\n")
    for bad in ("Basic", "Basic !!!", "Bearer x", "Basic " + b64("nocolon")):
        got = start(sandbox, "id -un", headers={"Authorization": bad}, stdin=False)
        assert got.status in (200, 400, 401), f"{bad}: {got.status}"
        got.close()


@test("content types: JSON with a charset is JSON, text is not")
def _():
    sandbox = common()
    for kind, status in (("application/json; charset=utf-8", 200), ("application/json", 200), ("text/plain", 415), ("application/connect+json", 415)):
        a = sandbox.request("POST", "/process.Process/List", b"{}", {**IDENTITY, "Content-Type": kind})
        same(a.status, status, f"{kind}: {a}")
    for kind in ("text/plain", "application/json"):
        a = sandbox.request("POST", "/process.Process/Start", envelope(b"{}"), {**IDENTITY, "Content-Type": kind})
        same(a.status, 415, f"{kind}: {a}")


@test("a stream of input")
def _():
    sandbox = common()
    it = iter(start(sandbox, "head -c 11"))
    pid = next(it)["event"]["start"]["pid"]
    parts = [{"start": {"process": {"pid": pid}}}, {"data": {"input": {"stdin": b64("hello ")}}}, {"keepalive": {}}, {"data": {"input": {"stdin": b64("world")}}}]
    body = b"".join(envelope(json.dumps(p).encode()) for p in parts)
    stream = Stream(sandbox, "process.Process/StreamInput", None, raw=body)
    same(list(stream), [{}])
    same(stream.end, {})
    same(output([m["event"] for m in it]), "hello world")


@test("a terminal: pty bytes, its size, and its change")
def _():
    sandbox = common()
    request = {"process": {"cmd": "/bin/bash", "args": ["-c", "read x; stty size; read x; stty size"]}, "pty": {"size": {"cols": 91, "rows": 31}}}
    it = iter(Stream(sandbox, "process.Process/Start", request))
    selected = {"process": {"pid": next(it)["event"]["start"]["pid"]}}
    screen = ""

    def until(text):
        nonlocal screen
        while text not in screen:
            screen += output([next(it)["event"]], "pty")

    enter = {**selected, "input": {"pty": b64("\r")}}
    same(unary(sandbox, "process.Process/SendInput", enter).status, 200)
    until("31 91\r\n")
    same(unary(sandbox, "process.Process/Update", {**selected, "pty": {"size": {"cols": 40, "rows": 10}}}).json, {})
    same(unary(sandbox, "process.Process/SendInput", enter).status, 200)
    until("10 40\r\n")


@test("a sandbox that is not there, or asleep: 502 on calls, streams and files")
def _():
    asleep = fresh()
    api("POST", f"/sandboxes/{asleep.id}/pause", {})
    nowhere = Sandbox({"sandboxID": UNKNOWN, "envdAccessToken": "x"})
    for sandbox in (asleep, nowhere):
        gone = {"sandboxId": sandbox.id, "message": "The sandbox was not found", "code": 502}
        for a in (
            unary(sandbox, "process.Process/List", {}),
            sandbox.request("GET", "/health"),
            sandbox.request("GET", "/files?path=/etc/passwd"),
            sandbox.request("POST", "/process.Process/Start", envelope(b"{}"),
                            {"Content-Type": "application/connect+json"}),
        ):
            same((a.status, a.json), (502, gone))
