"""V09: MCP over HTTP: pages of strangers, sessions of others, and more messages than make sense."""
import concurrent.futures
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from contexts import MCP_VERSION, Mcp, Paths, grown  # noqa: E402
from host import check, finish, poll, rss_mib  # noqa: E402
from server import Site, answered  # noqa: E402

DOMAIN = "glass.example"
STRANGERS = (
    "http://evil.example", "https://evil.example:3000", "null", "", "http://localhost.evil.example",
    "http://127.0.0.1.evil.example", "http://evil.example/localhost", "http://localhost@evil.example",
    "http://evil.example#localhost", "http://evil.example?localhost", "http://[::1].evil.example",
    "http://[::1]evil", "http://127.0.0.2", "http://2130706433", "http://0", "file://", "file://localhost",
    "chrome-extension://localhost", "localhost", "http://", "http://:80", "http://localhost evil.example",
    "http://localhost\\.evil.example", "http://localhost%00.evil.example", "http://localhost.",
    f"http://3000-abc.{DOMAIN}", f"http://{DOMAIN}.evil.example", f"http://evil{DOMAIN}",
    f"http://api.api.{DOMAIN}", "http://api.localhost", "javascript://localhost",
)
FRIENDS = ("http://localhost", "http://localhost:8080", "https://127.0.0.1:1", "http://[::1]:9",
           f"https://{DOMAIN}", f"https://api.{DOMAIN}:8443", f"HTTPS://{DOMAIN.upper()}")
LONG = "import time\nfor _ in range(1200): time.sleep(0.05)"


def origins(site):
    wrong, m = [], Mcp(site)
    for origin in STRANGERS:
        for method, key in (("POST", site.key), ("OPTIONS", None), ("DELETE", site.key), ("GET", site.key)):
            headers = {**m.headers(), "Origin": origin}
            headers = headers if key else {"Origin": origin, "Access-Control-Request-Method": "POST"}
            body = json.dumps(m.message("ping")) if method == "POST" else None
            a = site.ask(method, "/mcp", headers, body)
            wrong += answered(f"{method} of {origin!r}", a, 403)
            if a.header("Access-Control-Allow-Origin"):
                wrong.append(f"PWNED {origin!r} may read: {a.headers}")
    for origin in FRIENDS:
        a = m.post(m.message("ping"), Origin=origin)
        wrong += answered(f"control: {origin}", a, 200)
        if a.header("Access-Control-Allow-Origin") != [origin]:
            wrong.append(f"control: {origin} is told {a.headers}")
        wrong += answered(f"{origin} without a key", site.ask("POST", "/mcp", {"Origin": origin}, "{}"), 401)
    return wrong


def sessions(site, owner, other):
    """An id is good for the tenant that it was made for, as it is."""
    wrong = []
    id_ = owner.id
    flipped = id_[:-1] + ("0" if id_[-1] != "0" else "1")
    for what, key, session in (
        ("another tenant's", other.key, id_), ("one that was changed", site.key, flipped),
        ("half of one", site.key, id_[:32]), ("zeros", site.key, "0" * 64), ("empty", site.key, ""),
        ("upper case", site.key, id_.upper()), ("long", site.key, id_ * 100),
        ("halves of two", site.key, id_[:32] + other.id[32:]), ("SQL", site.key, "' OR 1=1 --"),
        ("a path", site.key, "../" * 20),
    ):
        headers = {**owner.headers(), "X-API-Key": key, "Mcp-Session-Id": session}
        for method, body in (("POST", json.dumps(owner.message("tools/list"))), ("DELETE", None)):
            a = site.ask(method, "/mcp", headers, body)
            wrong += answered(f"{method} with {what}", a, 400, 404)
    wrong += answered("control: one's own", owner.send("tools/list"), 200)
    return wrong


def cancels(site, paths, owner, other):
    """Only the session that asked can take it back."""
    done = {}
    body = {**owner.message("tools/call", {"name": "run_code", "arguments": {
        "code": "import time\ntime.sleep(2)\nprint('came', 'through')"}}), "id": "the-call"}
    t = threading.Thread(target=lambda: done.update(a=owner.post(body)))
    t.start()
    time.sleep(0.7)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "the-call"}}
    second = Mcp(site)
    wrong = []
    for m in (other, second):
        wrong += answered("a cancellation", m.post(cancel), 202)
        for id_ in (None, True, [], {"a": 1}, 1.5, "x" * 10_000):
            m.post({**cancel, "params": {"requestId": id_}})
    stolen = {**other.headers(), "Mcp-Session-Id": owner.id}
    wrong += answered("with a stolen id", site.ask("POST", "/mcp", stolen, json.dumps(cancel)), 404)
    t.join()
    if b"came through" not in done["a"].body:
        wrong.append(f"PWNED the call was cancelled: {done['a']}")
    # Control: its own can.
    t = threading.Thread(target=lambda: done.update(b=owner.post({**body, "params": {
        "name": "run_code", "arguments": {"code": LONG, "timeoutSeconds": 60}}}, Accept="text/event-stream")))
    t.start()
    time.sleep(0.7)
    began = time.monotonic()
    wrong += answered("its own cancellation", owner.post(cancel), 202)
    t.join()
    if time.monotonic() - began > 10 or b"result" in done["b"].body:
        wrong.append(f"control: it was not cancelled: {done['b']}")
    return wrong


def messages(site):
    """What is no message, or many of them."""
    wrong, m = [], Mcp(site)
    ping = m.message("ping")
    for what, body, statuses in (
        ("nothing", "", (400,)), ("no JSON", "{", (400,)), ("a number", "7", (400,)), ("null", "null", (400,)),
        ("no version", {"id": 1, "method": "ping"}, (400,)), ("another", {**ping, "jsonrpc": "1.0"}, (400,)),
        ("a method that is a number", {**ping, "method": 7}, (400,)), ("an id that is null", {**ping, "id": None}, (400,)),
        ("a long id", {**ping, "id": "x" * 300}, (400,)), ("an id that is a list", {**ping, "id": []}, (400,)),
        ("params that are a list", {**ping, "params": []}, (400,)), ("a key twice", '{"jsonrpc":"2.0","jsonrpc":"2.0"}', (400,)),
        ("a batch in this version", [ping], (400,)), ("an unknown method", {**ping, "method": "x" * 5000}, (200,)),
        ("a response", {"jsonrpc": "2.0", "id": 1, "result": {}}, (202,)),
        ("an unknown tool", m.message("tools/call", {"name": "../run_code"}), (200,)),
        ("no tool", m.message("tools/call", {}), (200,)), ("arguments that are a list", m.message(
            "tools/call", {"name": "run_code", "arguments": []}), (200,)),
        ("a cursor", m.message("tools/list", {"cursor": "x"}), (200,)),
        ("a version of nobody", m.message("initialize", {"protocolVersion": 7}), (200,)),
        ("methods of the server's", m.message("sampling/createMessage"), (200,)),
    ):
        a = m.post(body)
        wrong += answered(what, a, *statuses)
        if a.status == 200 and what != "a version of nobody" and b'"error"' not in a.body:
            wrong.append(f"{what}: {a}")
    for headers in ({"Mcp-Protocol-Version": "x"}, {"Mcp-Protocol-Version": "9999-99-99"},
                    {"Content-Type": "text/plain"}, {"Accept": "text/html"}):
        wrong += answered(str(headers), m.post(ping, **headers), 400, 406, 415)
    old = {**m.headers(), "Mcp-Protocol-Version": "2025-03-26"}
    for what, batch, statuses in (("32", [ping] * 32, (200,)), ("33", [ping] * 33, (400,)), ("none", [], (400,)),
                                  ("lists", [[]] * 30, (200, 400)), ("100,000", [7] * 100_000, (400,)),
                                  ("one that is in another", [[ping]], (200, 400))):
        a = site.ask("POST", "/mcp", old, json.dumps(batch))
        wrong += answered(f"a batch of {what}", a, *statuses)
    batch = [m.message("tools/call", {"name": "run_code", "arguments": {"code": LONG, "pathId": "batch"}}),
             {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": m.n}}, ping]
    wrong += answered("one that cancels what it asks for", site.ask("POST", "/mcp", old, json.dumps(batch)), 200)
    return wrong


def ended(site):
    """A session that was ended is over, with what ran in it; others are not."""
    wrong, m, rest = [], Mcp(site), Mcp(site)
    for each in (m, rest):
        each.call("run_code", code="x = 1")
    wrong += answered("DELETE", site.ask("DELETE", "/mcp", m.headers()), 204)
    wrong += answered("afterwards", m.send("tools/list"), 404)
    wrong += answered("DELETE again", site.ask("DELETE", "/mcp", m.headers()), 404)
    failed, text = rest.call("run_code", code="print(x + 41)")
    return wrong + ([] if not failed and "42" in text else [f"another session: {text}"])


def many_calls(site, paths):
    """Thousands of calls on many connections: each is answered or told to wait, and others are served."""
    before = rss_mib(site.front())
    m = Mcp(site, conversation="many")
    counts, strange, stop = {}, set(), time.monotonic() + 3

    def worker(n):
        i = 0
        while time.monotonic() < stop:
            i += 1
            tool = ("run_code", "list_contexts", "read_file", "nothing")[i % 4]
            failed, text = m.call(tool, **({"code": str(i)} if tool == "run_code" else
                                           {"path": "/etc/hostname"} if tool == "read_file" else {}))
            kind = (tool, failed)
            if failed and tool != "nothing" and "Too many requests of this tenant" not in text:
                strange.add(text[:200])
            counts[kind] = counts.get(kind, 0) + 1

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        jobs = [pool.submit(worker, n) for n in range(32)]
        time.sleep(0.5)
        wrong = paths.trouble("many-others", "p")
        for job in jobs:
            job.result()
    total = sum(counts.values())
    if not counts.get(("run_code", False)) or counts.get(("nothing", False)) or strange:
        wrong.append(f"{counts} {strange}")
    return wrong + grown(site, before, 48, f"{total} calls"), f"{total} calls: {counts}"


with Site("--domain", DOMAIN) as site:
    key = site.key_of("other")
    paths, owner, other = Paths(site), Mcp(site), Mcp(site, key)
    check("V09 pages of strangers may not ask", origins(site))
    check("V09 a session is its tenant's, and cannot be made up", sessions(site, owner, other))
    check("V09 nobody takes back what another asked for", cancels(site, paths, owner, other))
    check("V09 what is no message is refused", messages(site))
    check("V09 a session that was ended is over", ended(site))
    more, note = many_calls(site, paths)
    check("V09 thousands of calls", more, note)
    check("V09 the server goes on", site.trouble() + paths.trouble())
finish()
