"""The code interpreter's port: the stream line by line, and requests that no SDK sends."""
import http.client
import json
import time

from wire.http import OTHER_KEY, URL, ask, common, eventually, fresh
from wire.tap import same, test

PORT = 49999
FIELDS = {
    "number_of_executions": {"execution_count": int},
    "stdout": {"text": str, "timestamp": str},
    "stderr": {"text": str, "timestamp": str},
    "error": {"name": str, "value": str, "traceback": str},
    "end_of_execution": {},
    "keepalive": {},
}
TEXTS = "text html markdown svg png jpeg pdf latex javascript".split()


def call(sandbox, method, path, body=None, **headers):
    return ask(method, path, body, {**sandbox.headers(PORT), **headers})


def check_line(line):
    """One line of an answer, as strict readers have it."""
    message = json.loads(line, parse_constant=lambda name: 1 / 0)  # NaN is no JSON
    line.decode("ascii")
    kind = message.pop("type")
    if kind == "end_of_execution" and "exit_code" in message:  # ours: of a shell that failed
        assert isinstance(message.pop("exit_code"), int), line[:300]
    if kind == "result":
        assert isinstance(message.pop("is_main_result"), bool), line[:300]
        for name, value in message.items():
            wanted = str if name in TEXTS else (dict, list)
            assert isinstance(value, wanted), f"{name} of {line[:300]!r}"
    else:
        same({k: type(v) for k, v in message.items()}, FIELDS[kind], f"fields of {kind}")
    return {"type": kind, **message}


def lines_of(data):
    assert data.endswith(b"\n"), f"the last line has no end: {data[-200:]!r}"
    lines = data[:-1].split(b"\n")
    assert all(lines), "an empty line"
    messages = [check_line(line) for line in lines]
    kinds = [m["type"] for m in messages]
    same(kinds[-1], "end_of_execution", "the last line")
    same(kinds.count("end_of_execution"), 1, "number of ends")
    same(kinds.count("number_of_executions"), 1, "number of counts")
    assert kinds.count("error") <= 1, kinds
    return messages


def execute(sandbox, code, **more):
    a = call(sandbox, "POST", "/execute", {"code": code, **more})
    same(a.status, 200, str(a))
    return lines_of(a.body)


def text_of(messages, kind="stdout"):
    return "".join(m["text"] for m in messages if m["type"] == kind)


@test("interpreter: the lines of a cell")
def _():
    sandbox = common()
    got = execute(sandbox, "import sys\nprint('out')\nprint('err', file=sys.stderr)\ndisplay('shown')\n41 + 1",
                  context_id=None, language=None, env_vars=None)
    same([m["type"] for m in got],
         ["number_of_executions", "stdout", "stderr", "result", "result", "end_of_execution"])
    same((got[1]["text"], got[2]["text"]), ("out\n", "err\n"))
    same([m.get("text") for m in got[3:5]], ["shown", "42"])
    assert got[1]["timestamp"][:2] == "20" and got[1]["timestamp"].endswith("Z"), got[1]


@test("interpreter: an error is the line before the last")
def _():
    got = execute(common(), "print('before')\n1/0")
    same([m["type"] for m in got], ["number_of_executions", "stdout", "error", "end_of_execution"])
    same((got[2]["name"], got[2]["value"]), ("ZeroDivisionError", "division by zero"))


@test("interpreter: the answer says what it is, and arrives in pieces")
def _():
    sandbox = common()
    c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=20)
    c.request("POST", "/execute", json.dumps({"code": "import time\nprint('a', flush=True)\ntime.sleep(1.5)\nprint('b')"}),
              {**sandbox.headers(PORT), "Content-Type": "application/json"})
    r = c.getresponse()
    same(r.status, 200)
    assert r.getheader("Content-Type", "").startswith(("application/x-ndjson", "application/json", "text/")), r.getheaders()
    same(r.getheader("Cache-Control"), "no-store")
    began, got, first = time.monotonic(), b"", None
    while part := r.read1(65536):
        got += part
        if first is None and b'"a' in got:
            first = time.monotonic() - began
            assert b'"b' not in got, got
    c.close()
    assert first is not None
    same(text_of(lines_of(got)), "a\nb\n")


HOSTILE = {
    "invalid UTF-8": r"import os; os.write(1, bytes(range(256)) * 50); os.write(2, b'\xff\xfe\xc3' + b'x' * 5000)",
    "halves of letters": r"""
import os, time
for b in "ü☃🎉".encode(): os.write(1, bytes([b])); time.sleep(0.01)
os.write(1, b'\xe2\x98')""",
    "surrogates": r"print('a\ud800b\udfff'); display('\ud83d'); ['\ud800', '\ud83d\ude00']",
    "control characters": r"print(''.join(map(chr, range(32))) + '\x7f\x85\u2028\u2029\ufeff')",
    "lines of the protocol": r"""print('{"type":"end_of_execution"}\n{"type":"error","name":"x","value":"y","traceback":"z"}')""",
    "no line ends": r"import sys; sys.stdout.write('x' * 3_000_000);",
    "only line ends": r"print('\n' * 100_000)",
    "both streams at once": r"""
import sys
for i in range(5000): print(i); print(-i, file=sys.stderr)""",
    "numbers that JSON has not": r"[float('nan'), float('inf'), -float('inf'), 10 ** 400, -0.0, 1e308]",
    "deep values": r"""
x = []
for i in range(5000): x = [x]
x""",
    "values that contain themselves": r"x = {}; x['x'] = x; x",
    "an error full of bytes": r"raise ValueError('\ud800\x00\x1b[31mred' * 100)",
    "an error without end": r"raise ValueError('x' * 50_000_000)",
    "names of errors": r"raise type('Na\nme"+'"'+r"', (Exception,), {})('v')",
    "keys of many kinds": r"{1: 'a', None: 'b', (1, 2): 'c', 'é\ud800': 'd'}",
    "forged types": r"display({'text/plain': 5, 'text/html': b'\xff', 'image/png': 'not base64 é', 'application/json': '{', 'e2b/chart': [1], '': 1}, raw=True)",
    "a display without end": r"for i in range(2000): display(i)",
    "exit in the middle": r"import os; print('x' * 100_000); os._exit(1)",
    "kill in the middle of a result": r"""
import os, threading, time
class Slow:
    def __repr__(self):
        threading.Timer(0.01, os._exit, (1,)).start()
        return 'x' * 30_000_000
Slow()""",
    "recursion": r"def f(): f()" + "\nf()",
    "a syntax error": r"def (",
    "zero bytes": "print('a\0b')",
    "nothing": "",
}

for name, code in HOSTILE.items():

    @test(f"interpreter: every line is whole: {name}")
    def _(code=code):
        sandbox = common()
        execute(sandbox, code)
        eventually("the next cell", lambda: execute(sandbox, "'fine'")[-2].get("text") == "fine")


@test("interpreter: output comes out as it went in")
def _():
    sandbox = common()
    same(text_of(execute(sandbox, r"print('ü☃🎉\t\"\\/\x01 end')")), 'ü☃🎉\t"\\/\x01 end\n')
    same(text_of(execute(sandbox, r"import os; os.write(1, b'a\xffb\n');")), "a\ufffdb\n")
    got = text_of(execute(sandbox, "for i in range(100_000): print(i)"))
    same(got, "".join(f"{i}\n" for i in range(100_000)))


@test("interpreter: bodies that are no request")
def _():
    sandbox = common()
    for body in (b"", b"{", b"[]", b"null", b'"x"', b"{}", b'{"code": 5}', b'{"code": null}', b'{"code": "1", "language": 5}',
                 b'{"code": "1", "env_vars": []}', b'{"code": "1", "env_vars": {"A": 1}}', b'{"code": "1", "env_vars": {"A=B": "x"}}',
                 b'{"code": "1", "env_vars": {"": "x"}}', b'{"code": "1", "timeout": "x"}', b'{"code": "1", "timeout": -1}',
                 b'{"code": "1", "context_id": 7}', b'{"code": "\xff"}', b"[" * 100_000, b'{"code": "1"} x'):
        a = call(sandbox, "POST", "/execute", body, **{"Content-Type": "application/json"})
        assert a.status in (400, 422), f"{body[:60]!r}: {a}"
        assert a.body and b"\n" not in a.body.strip(), a
    same(execute(sandbox, "'fine'")[-2]["text"], "fine")


@test("interpreter: unknown contexts, in every form")
def _():
    sandbox = common()
    for id_ in ("x", "0" * 36, "0" * 5000, "..", "a%2fb", "%00"):
        for method, path in (("DELETE", f"/contexts/{id_}"), ("POST", f"/contexts/{id_}/restart"),
                             ("POST", f"/contexts/{id_}/interrupt")):
            a = call(sandbox, method, path)
            assert a.status in (400, 404), f"{path[:60]}: {a}"
    same(call(sandbox, "POST", "/execute", {"code": "1", "context_id": "0" * 36}).status, 404)
    same(call(sandbox, "GET", "/nothing").status, 404)
    same(call(sandbox, "PUT", "/execute", {"code": "1"}).status, 405)
    a = call(sandbox, "GET", "/health")
    same((a.status, a.json), (200, "OK"))


@test("interpreter: the shapes of contexts")
def _():
    sandbox = common()
    a = call(sandbox, "POST", "/contexts", {"language": None, "cwd": None})
    same(a.status, 200, str(a))
    same(set(a.json), {"id", "language", "cwd"})
    id_ = a.json["id"]
    assert a.json in call(sandbox, "GET", "/contexts").json
    for method, path in (("POST", f"/contexts/{id_}/restart"), ("POST", f"/contexts/{id_}/interrupt"),
                         ("DELETE", f"/contexts/{id_}")):
        a = call(sandbox, method, path)
        same(a.status, 200, f"{path}: {a}")
    same(call(sandbox, "DELETE", f"/contexts/{id_}").status, 404)


@test("interpreter: who may run code")
def _():
    sandbox, other = fresh(), fresh(key=OTHER_KEY)
    bare = {"E2b-Sandbox-Id": sandbox.id, "E2b-Sandbox-Port": str(PORT)}
    same(ask("POST", "/execute", {"code": "1"}, bare).status, 401)
    for token in ("wrong", "", other.token or "x"):
        a = ask("POST", "/execute", {"code": "1"}, {**bare, "X-Access-Token": token})
        same(a.status, 401, f"{token!r}: {a}")
        same(ask("GET", "/contexts", None, {**bare, "X-Access-Token": token or "x"}).status, 401)
    same(ask("GET", "/contexts", None, bare).status, 200)
    same(execute(sandbox, "'mine'")[-2]["text"], "mine")


@test("interpreter: a context of one sandbox is not known in another")
def _():
    one, two = fresh(), fresh()
    id_ = call(one, "POST", "/contexts", {}).json["id"]
    same(call(two, "POST", "/execute", {"code": "1", "context_id": id_}).status, 404)
    same(call(two, "DELETE", f"/contexts/{id_}").status, 404)
    assert id_ in [c["id"] for c in call(one, "GET", "/contexts").json]


@test("interpreter: cells that wait are refused beyond a number, and nobody else suffers")
def _():
    sandbox = fresh()
    connections = []
    for i in range(80):
        c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=20)
        c.request("POST", "/execute", json.dumps({"code": "import time; time.sleep(3)" if i == 0 else str(i)}),
                  {**sandbox.headers(PORT), "Content-Type": "application/json"})
        connections.append(c)
        if i == 0:
            time.sleep(0.3)
    bodies = [(r.status, r.read()) for r in (c.getresponse() for c in connections)]
    for c in connections:
        c.close()
    statuses = [s for s, _ in bodies]
    assert set(statuses) <= {200, 429}, statuses
    for status, body in bodies:
        if status == 200 and b'"error"' not in body:
            lines_of(body)
    same(execute(sandbox, "'fine'")[-2]["text"], "fine")


@test("interpreter: CORS")
def _():
    sandbox = common()
    a = ask("OPTIONS", "/execute", None, {**sandbox.headers(PORT), "Origin": "https://a.example",
                                          "Access-Control-Request-Method": "POST"})
    assert a.status in (200, 204) and a.headers.get("access-control-allow-origin"), a
