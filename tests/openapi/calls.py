"""What is asked of the server: every operation, every status that can be brought about, and all kinds
of bad input."""
import json
import sqlite3
import time
from urllib.parse import quote

UNKNOWN = "unknown0000000000000"
LONG = "x" * 10240

# Values of a conversation's or path's id that are refused.
BAD_NAMES = [("empty", ""), ("10 KB", LONG), ("a newline", "a\nb"), ("DEL", "a\x7f"),
             ("a C1 control", "a\x85b"), ("a number", 7), ("an object", {}), ("null", None)]
ODD_NAMES = ["ü 漢字 😀", "../../etc/passwd", "'; DROP TABLE context; --", "%2e%2e/%00", "a" * 256,
             "<script>", "\\\"'{}[]", "\u202e\ufeff"]


def target_of(path):
    return path.replace("{id}", UNKNOWN)


def refusals(session, server):
    """What every operation answers to a caller who is nobody, or somebody else."""
    for method, path in session.document.operations:
        target = target_of(path)
        session.call(server, 401, method, target, key=False, what="no key")
        session.call(server, 403, method, f"{target}?tenantId={UNKNOWN}", raw=b"{}",
                     what="another tenant", says="tenantId")


def bodies(session, server):
    """What every operation with a body answers to one that is none."""
    for (method, path), operation in session.document.operations.items():
        if "requestBody" not in operation:
            continue
        for what, raw in (("no JSON", b"{"), ("an array", b"[]"), ("a key twice", b'{"a":1,"a":2}'),
                          ("no UTF-8", b'{"a":"\xff"}'), ("too deep", b'{"a":' + b"[" * 99)):
            session.call(server, 400, method, target_of(path), raw=raw, what=what)
        session.call(server, 400, method, target_of(path), raw=b'{"nonsense":1}',
                     what="an unknown field", says="nonsense")
        session.call(server, 403, method, target_of(path), raw=b'{"tenantId":"someoneelse"}',
                     what="another tenant in the body", says="tenantId")
        session.call(server, 413, method, target_of(path), announced=1 << 30, what="1 GiB")


def down(session, server):
    """The database cannot be reached: what needs it is 503, with a time to try again."""
    for method, path in session.document.operations:
        if (503 not in session.document.statuses((method, path)) or
                path in ("/v1/execute", "/v1/audit")):
            continue
        body = {"/v1/contexts/branch": {"conversationId": "c", "fromPathId": "a", "toPathId": "b"},
                "/v1/contexts/merge": {"conversationId": "c", "sourcePathId": "a",
                                       "targetPathId": "b"},
                "/v1/contexts": {"conversationId": "c", "pathId": "p"} if method == "PUT" else None,
                "/v1/contexts/{id}/rewind": {"messageId": "m"},
                "/v1/contexts/{id}/explore": {"codes": ["1"]},
                "/v1/contexts/{id}/adopt": {"candidateId": UNKNOWN},
                "/v1/agents": {"conversationId": "c", "pathId": "p", "command": ["cat"]},
                "/v1/tools/run_code": {"conversationId": "c", "pathId": "p", "code": "1"},
                "/v1/tools/run_analysis": {"conversationId": "c", "pathId": "p",
                                           "analysisType": "custom", "code": "1"}}.get(path)
        query = "?conversationId=c" if path == "/v1/paths" else ""
        session.call(server, 503, method, target_of(path) + query, body, what="no database")


def too_often(session, server):
    """More requests than a tenant may make in a second."""
    for operation in session.document.operations:
        for _ in range(20):
            page = "?limit=1" if operation[1] == "/v1/events" else ""  # else it never ends
            answer = session.send(server, operation[0], target_of(operation[1]) + page)
            if answer.status == 429:
                break
        session.judge(operation, answer, 429, "too often")


# ---- contexts ------------------------------------------------------------------------------------

def contexts(session, server):
    def put(status, what="", says="", **fields):
        return session.call(server, status, "PUT", "/v1/contexts", fields, what=what, says=says)

    made = put(201, conversationId="conv", pathId="main", template="base", ttlSeconds=600,
               metadata={"k": "v"}, envs={"A": "b"}, network={"allowPublicTraffic": False})
    put(200, conversationId="conv", pathId="main")
    tenant, context = made["context"]["tenantId"], made["context"]["id"]
    put(200, what="the own tenant", conversationId="conv", pathId="main", tenantId=tenant)
    put(404, says="nowhere", conversationId="conv", pathId="main", template="nowhere")
    for name in ("conversationId", "pathId"):
        rest = {"conversationId": "conv", "pathId": "main"}
        for what, value in BAD_NAMES:
            put(400, f"{name}: {what}", name, **rest | {name: value})
        del rest[name]
        put(400, f"without {name}", name, **rest)
    for what, ttl in (("negative", -1), ("zero", 0), ("a year", 31536000), ("a fraction", 1.5),
                      ("text", "60"), ("huge", 10 ** 30)):
        put(400, f"ttlSeconds: {what}", "" if what == "huge" else "ttlSeconds",
            conversationId="conv", pathId="main", ttlSeconds=ttl)
    for field, value in (("template", 7), ("template", "no such!"), ("metadata", []),
                         ("metadata", {"a": 1}), ("envs", {"a": 1}), ("envs", {"=": "x"}),
                         ("network", "none")):
        put(400, f"{field}: {value}", conversationId="conv", pathId="main", **{field: value})
    for name in ODD_NAMES:
        answer = put(201, f"odd names: {ascii(name)[:30]}", conversationId=name, pathId=name,
                     template="base")
        same = answer["context"]["pathId"] == name == answer["context"]["conversationId"]
        session.check(f"{ascii(name)[:30]} comes back as it was", [] if same else [answer])
        end(session, server, answer["context"]["id"])
    one(session, server, context)


def end(session, server, context):
    return session.call(server, 200, "DELETE", f"/v1/contexts/{context}")


def one(session, server, context):
    target = f"/v1/contexts/{context}"
    session.call(server, 200, "GET", target)
    for odd in (UNKNOWN, "x", "%20", "..%2f..", LONG[:4000]):
        session.call(server, 404, "GET", f"/v1/contexts/{odd}", what=odd[:20])
        session.call(server, 404, "DELETE", f"/v1/contexts/{odd}", what=odd[:20])
        session.call(server, 404, "POST", f"/v1/contexts/{odd}/touch", {}, what=odd[:20])
    session.call(server, 200, "POST", f"{target}/touch")
    session.call(server, 200, "POST", f"{target}/touch", {"ttlSeconds": 1200})
    session.call(server, 400, "POST", f"{target}/touch", {"ttlSeconds": 0})
    listing(session, server)
    # What it used is added up a moment later.
    ended, again = (end(session, server, context) | {"resourceUsage": None} for _ in range(2))
    same = again == ended
    session.check("ending twice is ending once", [] if same else [ended])
    session.call(server, 200, "GET", target, what="one that has ended")
    session.call(server, 404, "POST", f"{target}/touch", {}, what="one that has ended")


def listing(session, server):
    def get(status, query, what=""):
        return session.call(server, status, "GET", f"/v1/contexts?{query}", what=what or query[:40])

    get(200, "")
    get(200, "conversationId=conv&pathId=main&limit=1")
    get(200, f"sandboxId={UNKNOWN}")
    page = get(200, "status=all&limit=2")
    seen = [c["id"] for c in page["contexts"]]
    while page["nextCursor"]:
        page = get(200, f"status=all&limit=2&cursor={page['nextCursor']}", "the next page")
        seen += [c["id"] for c in page["contexts"]]
    twice = len(seen) != len(set(seen))
    session.check("pages have each context once", [seen] if twice or len(seen) < 3 else [])
    for query in ("limit=0", "limit=201", "limit=x", "status=none", "status=", "cursor=x",
                  "sandboxId=x", "conversationId=", "pathId=", "conversationId=%ff", "pathId=%0a"):
        get(400, query)


# ---- paths ---------------------------------------------------------------------------------------

def paths(session, server):
    def branch(status, what="", says="", **fields):
        asked = {"conversationId": "tree", "fromPathId": "root", "toPathId": "leaf"} | fields
        return session.call(server, status, "POST", "/v1/contexts/branch", asked, what, says=says)

    def merge(status, what="", **fields):
        asked = {"conversationId": "tree", "sourcePathId": "leaf", "targetPathId": "root"} | fields
        return session.call(server, status, "POST", "/v1/contexts/merge", asked, what)

    branch(201, "from a path without a context")
    branch(201, "files of a path without a context", inherit="files", envs={"A": "b"})
    session.call(server, 201, "PUT", "/v1/contexts",
                 {"conversationId": "tree", "pathId": "root", "template": "base"})
    branch(201, "files", inherit="files", ttlSeconds=60, metadata={"k": "v"})
    branch(409, "onto a path with a context", "leaf")
    branch(409, "the same with files", "leaf", inherit="files")
    branch(201, "state", inherit="state", toPathId="copy", waitMs=1000)
    for value in ("all", "", 7):
        branch(400, f"inherit: {value}", "inherit", inherit=value)
    branch(400, "to itself", toPathId="root")
    branch(400, "a wish without files", "ttlSeconds", ttlSeconds=60)
    branch(400, "a moment with files", "atMessageId", inherit="files", atMessageId="m")
    branch(400, "two moments", "checkpointId", inherit="state", atMessageId="m",
           checkpointId=UNKNOWN)
    for field, value in (("waitMs", -1), ("waitMs", 600001), ("waitMs", "1"), ("checkpointId", "x"),
                         ("atMessageId", ""), ("atMessageId", 7)):
        branch(400, f"{field}: {value}", field, inherit="state", **{field: value})
    branch(404, "a moment that never was", toPathId="other", inherit="state", atMessageId="never")
    for name in ("conversationId", "fromPathId", "toPathId"):
        for what, value in BAD_NAMES:
            branch(400, f"{name}: {what}", name, **{name: value})
    session.call(server, 200, "GET", "/v1/paths?conversationId=tree")
    session.call(server, 200, "GET", "/v1/paths?conversationId=unknown")
    session.call(server, 400, "GET", "/v1/paths")
    session.call(server, 400, "GET", "/v1/paths?conversationId=")

    merge(200)
    merge(200, "once more")
    merge(400, "into itself", targetPathId="leaf")
    for name in ("conversationId", "sourcePathId", "targetPathId"):
        for what, value in BAD_NAMES:
            merge(400, f"{name}: {what}", **{name: value})
    for body in (None, {}, {"conversationId": "tree"}):
        session.call(server, 200, "POST", "/v1/contexts/cleanup", body)
    session.call(server, 400, "POST", "/v1/contexts/cleanup", {"conversationId": ""})


# ---- checkpoints ---------------------------------------------------------------------------------

def checkpoints(session, server):
    """Messages, going back, and copies side by side. The server keeps three checkpoints at most."""
    names = {"conversationId": "talk", "pathId": "main"}

    def run(code, message):
        return session.call(server, 200, "POST", "/v1/tools/run_code",
                            names | {"code": code, "messageId": message}, f"message {message}")

    def value(code):
        answer = session.call(server, 200, "POST", "/v1/tools/run_code", names | {"code": code})
        return answer["results"][0]["text"] if answer["results"] else answer["error"]

    def same(what, got, wanted):
        session.check(what, [] if got == wanted else [got])

    first = run("x = [1]", "m1")
    context = first["contextId"]
    run("x.append(2); open('f', 'w').write('2')", "m2")
    third = run("x.append(3); open('f', 'w').write('3')", "m3")
    again = run("x.append(4)", "m3")
    same("a message of two calls has one checkpoint", again["checkpoint"], third["checkpoint"])
    there = session.call(server, 200, "GET", f"/v1/contexts/{context}/checkpoints")["checkpoints"]
    same("they are listed", [c["messageId"] for c in there], ["m1", "m2", "m3"])
    rewind(session, server, context, third["checkpoint"]["checkpointId"])
    same("variables and files are as they were", value("x, open('f').read()"), "([1, 2], '2')")
    session.call(server, 201, "POST", "/v1/contexts/branch",
                 {"conversationId": "talk", "fromPathId": "main", "toPathId": "before2",
                  "inherit": "state", "atMessageId": "m2", "accept": "files"}, "at a message")
    explore(session, server, context, value)
    for number in range(4, 9):
        run("1", f"m{number}")
    thinned(session, server, context)
    run("import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()", "m9")
    session.call(server, 409, "POST", f"/v1/contexts/{context}/explore", {"codes": ["1"]},
                 "a thread")
    session.call(server, 409, "POST", "/v1/contexts/branch",
                 {"conversationId": "talk", "fromPathId": "main", "toPathId": "x",
                  "inherit": "state"}, "a thread")
    skipped = run("1", "m10")["checkpoint"]
    same("what is in the way is told", list(skipped), ["skipped"])
    session.call(server, 200, "POST", "/v1/contexts/cleanup", {"conversationId": "talk"})
    session.call(server, 200, "GET", f"/v1/contexts/{context}/checkpoints", what="ended")
    session.call(server, 404, "GET", f"/v1/contexts/{UNKNOWN}/checkpoints")
    for name, body in (("rewind", {"messageId": "m1"}), ("explore", {"codes": ["1"]}),
                       ("adopt", {"candidateId": UNKNOWN})):
        session.call(server, 404, "POST", f"/v1/contexts/{context}/{name}", body, "it has ended")


def rewind(session, server, context, checkpoint):
    target = f"/v1/contexts/{context}/rewind"
    session.call(server, 200, "POST", target, {"checkpointId": checkpoint})
    session.call(server, 200, "POST", target, {"messageId": "m3"})
    session.call(server, 200, "POST", target, {"messageId": "m3", "accept": "files"})
    session.call(server, 404, "POST", target, {"messageId": "never"})
    session.call(server, 404, "POST", target, {"checkpointId": UNKNOWN})
    for body in ({}, {"messageId": ""}, {"messageId": 7}, {"checkpointId": "x"},
                 {"messageId": "m3", "accept": "less"},
                 {"messageId": "m1", "checkpointId": checkpoint}):
        session.call(server, 400, "POST", target, body, str(body))


def explore(session, server, context, value):
    target = f"/v1/contexts/{context}/explore"
    found = session.call(server, 200, "POST", target,
                         {"codes": ["x.append('a'); x", "x.append('b'); x", "1 / 0"],
                          "timeoutMs": 30000, "waitMs": 100, "keepSeconds": 60})
    got = [r["results"][0]["text"] if r["results"] else r["error"]["name"]
           for r in found["results"]]
    wanted = ["[1, 2, 'a']", "[1, 2, 'b']", "ZeroDivisionError"]
    session.check("each has its own", [] if got == wanted else [got])
    none = session.call(server, 200, "POST", target, {"codes": ["x"], "keepSeconds": 0})
    session.check("none is kept", [none] if "candidateId" in none["results"][0] else [])
    for what, body in (("none", {"codes": []}), ("65", {"codes": ["1"] * 65}), ("", {}),
                       ("empty", {"codes": [""]}), ("a number", {"codes": [1]}),
                       ("language", {"codes": ["1"], "language": "cobol"}),
                       ("timeoutMs", {"codes": ["1"], "timeoutMs": 0}),
                       ("keepSeconds", {"codes": ["1"], "keepSeconds": -1}),
                       ("waitMs", {"codes": ["1"], "waitMs": 1.5})):
        session.call(server, 400, "POST", target, body, what)
    session.call(server, 413, "POST", target, {"codes": ["#" * 200_000]}, "too much code")
    target = f"/v1/contexts/{context}/adopt"
    for body in ({}, {"candidateId": 7}, {"candidateId": "x"}):
        session.call(server, 400, "POST", target, body, str(body))
    session.call(server, 404, "POST", target, {"candidateId": UNKNOWN})
    adopted = session.call(server, 200, "POST", target,
                           {"candidateId": found["results"][1]["candidateId"]})
    session.check("the candidate is the context's",
                  [] if adopted["context"]["id"] == context and
                  adopted["context"]["sandboxId"] == found["results"][1]["candidateId"] and
                  value("x") == "[1, 2, 'b']" else [adopted])
    session.call(server, 404, "POST", target, {"candidateId": found["results"][0]["candidateId"]},
                 "another one")


def thinned(session, server, context):
    body = {"messageId": "m5"}  # the first of all stays
    session.call(server, 410, "POST", f"/v1/contexts/{context}/rewind", body, "thinned away")
    session.call(server, 410, "POST", "/v1/contexts/branch",
                 {"conversationId": "talk", "fromPathId": "main", "toPathId": "x",
                  "inherit": "state", "atMessageId": "m5"}, "thinned away")


def usage(session, server):
    session.call(server, 200, "GET", "/v1/usage")
    session.call(server, 200, "GET", "/v1/usage?from=2024-02-01&to=2024-02-29")
    session.call(server, 200, "GET", "/v1/usage?by=conversation&cursor=a")
    session.call(server, 200, "GET", "/v1/usage?by=tenant&conversationId=conv")
    for query in ("by=x", "by=", "conversationId=", "cursor=%00", "from=today", "to=2026-02-30",
                  "from=2026-02-02&to=2026-02-01", "from=2000-01-01&to=2026-01-01"):
        session.call(server, 400, "GET", f"/v1/usage?{query}", what=query)


def events(session, server):
    """A page; a stream has no end that could be waited for, and is read in tests/e2e."""
    page = session.call(server, 200, "GET", "/v1/events?limit=5")
    session.check("there are events, and more", [] if page["more"] and page["events"] else [page])
    session.call(server, 200, "GET", f"/v1/events?after={page['next']}", accept="application/json")
    session.call(server, 200, "GET", "/v1/events?limit=1000&types=context.*,sandbox.ended"
                 f"&sandboxId={UNKNOWN}&conversationId=conv")
    for query in ("limit=0", "limit=1001", "limit=x", "after=-1", "after=x", "after=", "types=",
                  "types=x", "types=sandbox.*,,", "sandboxId=x", "conversationId=", f"types={LONG[:300]}"):
        session.call(server, 400, "GET", f"/v1/events?{query}", what=query[:40])


def audit(session, server):
    """The record, after a sandbox was there whose policy is on it."""
    session.call(server, 200, "GET", "/v1/audit")
    session.call(server, 200, "GET", "/v1/audit?kind=flow&verdict=deny&name=*.a.test&limit=1"
                 f"&from=2026-01-01T00:00:00Z&to=2126-01-01T00:00:00.5Z&sandboxId={UNKNOWN}&cursor=9")
    for query in ("kind=x", "kind=", "verdict=maybe", "name=", "name=a%22b", "name=a%00", "limit=0",
                  "limit=1001", "limit=x", "from=today", "to=1", "cursor=x", "cursor=0",
                  "sandboxId=x", "sandboxId=%00", f"name={LONG[:300]}"):
        session.call(server, 400, "GET", f"/v1/audit?{query}", what=query[:40])


def diff(session, server):
    """What files differ, of the sandbox of a context."""
    made = session.call(server, 201, "PUT", "/v1/contexts", {"conversationId": "diff", "pathId": "p", "template": "base"})
    of = made["sandbox"]["sandboxID"]
    session.call(server, 200, "POST", "/v1/tools/run_code",
                 {"conversationId": "diff", "pathId": "p", "language": "bash",
                  "code": "mkdir d; (cd d; seq 1500 | xargs touch); echo four > new; sudo rm /etc/motd; sudo touch -d @1 /etc/passwd"})
    page = session.call(server, 200, "GET", f"/v1/diff?of={of}")
    changes = page["changes"]
    while page["nextCursor"]:
        page = session.call(server, 200, "GET", f"/v1/diff?of={of}&cursor={quote(page['nextCursor'])}", what="the next page")
        changes += page["changes"]
    seen = {change["path"]: (change["change"], change["type"], change["size"]) for change in changes}
    wanted = {"/home/user/new": ("added", "file", 5), "/home/user/d": ("added", "directory", 0),
              "/home/user/d/1500": ("added", "file", 0), "/etc/passwd": ("modified", "file", seen.get("/etc/passwd", (0, 0, 0))[2])}
    session.check("what was changed is listed", [path for path, told in wanted.items() if seen.get(path) != told])
    session.check("each once", [] if len(seen) == len(changes) > 1500 else [len(changes)])
    for query in ("", "of=", f"of={of}&against=", f"of={of}&cursor=x", f"of={of}&cursor=eA", "of=base", f"of={of}&against=base", f"of=%00&against={of}",
                  "of=a!b", f"of={LONG[:300]}"):
        session.call(server, 400, "GET", f"/v1/diff?{query}", what=query[:40])
    for query in (f"of={UNKNOWN}", f"of={of}&against={UNKNOWN}", f"of={of}&against={of}", "of=nothing:here"):
        session.call(server, 404, "GET", f"/v1/diff?{query}", what=query[:40])
    end(session, server, made["context"]["id"])


def links(session, server):
    """Addresses of ports, of a sandbox whose ports are public and of one whose are not."""
    def make(sandbox, status, body, what="", says=""):
        return session.call(server, status, "POST", f"/v1/sandboxes/{sandbox}/links", body, what, says)

    made = [json.loads(session.send(server, "POST", "/sandboxes", b'{"templateID":"base","secure":true,"network":{"allowPublicTraffic":%s}}' % public).body)["sandboxID"]
            for public in (b"true", b"false")]
    told = make(made[0], 201, {"port": 3000}, "ports are public")
    session.check("... and it says so", [] if told["public"] and told["endAt"] is None else [told])
    told = make(made[1], 201, {"port": 3000, "seconds": 60})
    session.check("a link has an end", [] if told["endAt"] and f"//3000-{made[1]}-" in told["url"] else [told])
    for field, value in (("port", 0), ("port", 65536), ("port", "80"), ("port", 49983), ("port", 49999), ("port", None), ("seconds", 0),
                         ("seconds", 10 ** 9), ("seconds", 1.5), ("for", 1)):
        make(made[1], 400, {"port": 3000, field: value}, f"{field} {value}", field)
    make(UNKNOWN, 404, {"port": 3000})
    for sandbox in made:
        session.send(server, "DELETE", f"/sandboxes/{sandbox}")


# ---- agents --------------------------------------------------------------------------------------

def agents(session, server):
    """All but their WebSockets, which tests/e2e has."""
    def start(status, what="", says="", **fields):
        asked = {"command": ["cat"]} | fields
        return session.call(server, status, "POST", "/v1/agents", asked, what, says)

    made = start(201, timeout=600, env={"A": "b"}, cwd="/tmp", user="root", template="base",
                 metadata={"k": "v"}, serveFs=False)
    sandbox = made["sandboxId"]
    shared = start(201, "in a sandbox that is there", sandboxId=sandbox)
    session.check("it is in that one", [] if shared["sandboxId"] == sandbox else [shared])
    bound = start(201, "on a path", conversationId="agents", pathId="main", ttlSeconds=600)
    session.check("it is on it", [] if bound["pathId"] == "main" else [bound])
    listed = [a["agentId"] for a in session.call(server, 200, "GET", "/v1/agents")["agents"]]
    wanted = [a["agentId"] for a in (bound, shared, made)]
    session.check("the newest is the first", [] if listed == wanted else [listed])
    refused_agents(start, sandbox)
    paused = json.loads(session.send(server, "POST", "/sandboxes", b'{"templateID":"base"}').body)
    session.send(server, "POST", f"/sandboxes/{paused['sandboxID']}/pause")
    start(409, "a paused sandbox", sandboxId=paused["sandboxID"])
    session.send(server, "DELETE", f"/sandboxes/{paused['sandboxID']}")
    one_agent(session, server, shared["agentId"])
    for agent in (made, bound):
        session.call(server, 200, "DELETE", f"/v1/agents/{agent['agentId']}")
    session.call(server, 200, "POST", "/v1/contexts/cleanup", {"conversationId": "agents"})


def refused_agents(start, sandbox):
    for what, value in (("empty", []), ("text", "cat"), ("numbers", [1]),
                        ("4097", ["x"] * 4097), ("an empty name", [""])):
        start(400, f"command: {what}", "command", command=value)
    start(400, "a command that is not there", "no-such-agent", command=["no-such-agent"])
    start(400, "a directory that is not there", "/none", cwd="/none")
    start(400, "a path and a sandbox", "exclude", sandboxId=sandbox, conversationId="c", pathId="p")
    start(400, "a template and a sandbox", "exclude", sandboxId=sandbox, template="base")
    start(400, "a secret in another's sandbox", "secret", sandboxId=sandbox,
          env={"A": "${e2b.secrets.none}"})
    start(400, "half a path", "pathId", conversationId="c")
    start(404, "an unknown sandbox", UNKNOWN, sandboxId=UNKNOWN)
    start(404, "an unknown template", template="nowhere")
    for field, value in (("timeout", 0), ("timeout", "1"), ("timeout", 10 ** 9), ("user", "nobody"),
                         ("env", {"a": 1}), ("env", {"=": "x"}), ("serveFs", 1), ("cwd", 7),
                         ("network", "none"), ("source", []), ("source", {"type": "zip"}),
                         ("source", {"type": "tar"}), ("source", {"type": "tar", "data": "!"}),
                         ("source", {"type": "tar", "data": "eA==", "path": "x"}),
                         ("source", {"type": "tar", "path": "/none"}),
                         ("source", {"type": "bundle", "data": "eA=="}),
                         ("source", {"type": "tar", "data": "eA==", "into": ""})):
        start(400, f"{field}: {str(value)[:40]}", **{field: value})


def one_agent(session, server, agent):
    target = f"/v1/agents/{agent}"
    session.call(server, 200, "GET", target)
    session.call(server, 200, "GET", f"{target}/logs")
    session.call(server, 200, "POST", f"{target}/timeout", {"timeout": 1200})
    for body in ({}, {"timeout": 0}, {"timeout": "1"}):
        session.call(server, 400, "POST", f"{target}/timeout", body, str(body))
    session.call(server, 426, "GET", f"{target}/acp", what="without an upgrade")
    for query in ("role=x", "role=", "after=x", "after=-1", "after=", "after=9", "takeover=maybe"):
        answer = session.upgrade(server, f"{target}/acp?{query}")
        session.judge(("GET", "/v1/agents/{id}/acp"), answer, 400, query)
    session.call(server, 200, "DELETE", target)
    session.call(server, 200, "GET", target, what="one that has ended")
    session.call(server, 409, "POST", f"{target}/timeout", {"timeout": 60}, "it has ended")
    session.call(server, 200, "DELETE", target, what="it is not listed any more")
    for odd in (agent, UNKNOWN, "x", "%20", LONG[:4000]):
        for method, more, body in (("GET", "", None), ("DELETE", "", None), ("GET", "/logs", None),
                                   ("GET", "/acp", None), ("POST", "/timeout", {"timeout": 60})):
            session.call(server, 404, method, f"/v1/agents/{odd}{more}", body, odd[:20])


# ---- tools ---------------------------------------------------------------------------------------

def tools(session, server):
    for query in ("", "?format=mcp", "?format=openai", "?format=anthropic",
                  "?conversationId=c&pathId=p"):
        session.call(server, 200, "GET", f"/v1/tools{query}", what=query)
    for query in ("?format=x", "?conversationId="):
        session.call(server, 400, "GET", f"/v1/tools{query}", what=query)
    run_code(session, server)
    run_analysis(session, server)


def stream(session, server, target, body):
    """The events of a run: the last of them is the answer."""
    operation = ("POST", target)
    for what, more, accept in (("asked for in the body", {"stream": True}, None),
                               ("asked for in a header", {}, "text/event-stream")):
        events = session.call(server, 200, "POST", target, body | more, accept=accept, what=what)
        content = session.document.operations[operation]["responses"]["200"]["content"]
        problems = session.document.schema_problems(content["application/json"]["schema"],
                                                    events[-1][1])
        names = [name for name, _ in events]
        if names[0] != "context" or names[-1] != "done" or "stdout" not in names:
            problems.append(names)
        session.check(f"a stream, {what}, ends with the answer", problems)


def sanitised(session, run):
    """What the code says is replaced, counted, or left; and the answer says so."""
    says, found = "ann@example.com 10.1.2.3 10.1.2.4\n", {"email": 1, "ip_address": 2}
    marks = "[EMAIL] [IP_ADDRESS] [IP_ADDRESS]\n"
    for mode, out, counts in ((None, marks, found), ("enforce", marks, found),
                              ("report-only", says, found), ("off", says, None)):
        answer = run(200, f"print({says[:-1]!r})", f"sanitise: {mode}",
                     **{"sanitise": mode} if mode else {})
        got = (answer["stdout"], answer.get("sanitised"))
        session.check(f"sanitise: {mode}", [] if got == (out, counts) else [got])


def run_code(session, server):
    target = "/v1/tools/run_code"

    def run(status, code, what="", says="", **fields):
        asked = {"conversationId": "tools", "pathId": "main", "code": code} | fields
        return session.call(server, status, "POST", target, asked, what or code[:30], says=says)

    answer = run(200, "import sys; print('out'); print('err', file=sys.stderr); 6 * 7")
    wanted = (True, "out\n", "err\n", 0, "42")
    got = (answer["success"], answer["stdout"], answer["stderr"], answer["exitCode"],
           answer["results"][0].get("text"))
    session.check("it ran", [] if got == wanted else [got])
    run(200, "1 / 0")
    run(200, "console.log(1)", language="javascript")
    run(200, "echo $A", language="bash", envs={"A": "b"}, timeoutSeconds=10)
    run(200, "import time; time.sleep(60)", "out of time", timeoutSeconds=0.5)
    sanitised(session, run)
    session.call(server, 200, "POST", f"{target}?conversationId=tools&pathId=main", {"code": "1"},
                 what="bound by the query")
    stream(session, server, target,
           {"conversationId": "tools", "pathId": "main", "code": "print(1)"})
    run(404, "1", "an unknown template", pathId="other", template="nowhere")
    run(413, "#" * 200_000, "more code than allowed", "limit")
    for field, value in (("code", ""), ("code", 7), ("language", "cobol"), ("timeoutSeconds", 0),
                         ("timeoutSeconds", 100000), ("envs", {"a": 1}), ("stream", "yes"),
                         ("sanitise", "on"), ("sanitise", 1), ("messageId", ""), ("messageId", 7),
                         ("messageId", "a\nb")):
        run(400, **{"code": "1", "what": f"{field}: {value}"} | {field: value})
    for name in ("conversationId", "pathId"):
        for what, value in BAD_NAMES:
            run(400, "1", f"{name}: {what}", name, **{name: value})


def run_analysis(session, server):
    target = "/v1/tools/run_analysis"

    def run(status, what="", **fields):
        asked = {"conversationId": "tools", "pathId": "main", "analysisType": "custom"} | fields
        return session.call(server, status, "POST", target, asked, what)

    echo = "import json; print(json.dumps(parameters)); parameters"
    answer = run(200, code=echo, parameters={"a": [1, "'\"\\", None]})
    same = answer["parsedOutput"] == {"a": [1, "'\"\\", None]} and answer["parseError"] is None
    session.check("parameters go in and come out", [] if same else [answer])
    answer = run(200, "no JSON", code="print('{')")
    told = answer["parseError"] and answer["stdout"] == "{\n"
    session.check("what cannot be parsed is told beside it", [] if told else [answer])
    run(200, "csv", code="print('a,b\\n1,2')", outputFormat="csv")
    run(200, "text", code="print(1)", outputFormat="text")
    run(200, "an error", code="1 / 0")
    run(200, "data_analysis", analysisType="data_analysis", parameters={"records": [{"a": 1}]})
    stream(session, server, target, {"conversationId": "tools", "pathId": "main",
                                     "analysisType": "custom", "code": "print(1)"})
    run(413, "more code than allowed", code="#" * 200_000)
    run(400, "custom without code")
    for field, value in (("analysisType", ""), ("analysisType", "../x"),
                         ("analysisType", "astrology"), ("outputFormat", "xml"),
                         ("timeoutSeconds", -1), ("code", 7)):
        run(400, f"{field}: {value}", **{"code": "1"} | {field: value})
    run(404, "an unknown template", pathId="other", template="nowhere", code="1")


def execute(session, server):
    target = "/v1/execute"

    def run(status, what="", says="", **fields):
        return session.call(server, status, "POST", target, fields, what, says)

    def became(wanted, what, **fields):
        answer = run(200, what, **fields)
        session.check(f"{what}: {wanted}", [] if answer["status"] == wanted else [answer])

    became("success", "code", code="print(input()[::-1])", stdin="olleh", sessionId="s",
           limits={"memoryMb": 128, "cpus": 0.5, "outputBytes": 1000}, envs={"A": "b"})
    became("success", "files", file="a/main.sh", language="sh",
           files=[{"path": "a/main.sh", "content": ". a/b"}, {"path": "a/b", "content": "echo b"}])
    became("execution_error", "an error", code="1 / 0")
    became("timeout", "out of time", code="while True: pass", timeoutSeconds=1)
    became("setup_error", "a path that cannot be", code="1",
           files=[{"path": "/proc/none", "content": ""}])
    answer = run(200, "sanitised", code="print('ann@example.com')")
    got = (answer["stdout"], answer.get("sanitised"))
    session.check("it is sanitised", [] if got == ("[EMAIL]\n", {"email": 1}) else [got])
    run(200, "not sanitised", code="print('ann@example.com')", sanitise="off")
    run(413, "more code than allowed", "limit", code="#" * 200_000)
    run(400, "nothing to run")
    for field, value in (("code", ""), ("code", 7), ("language", "cobol"), ("timeoutSeconds", 0),
                         ("timeoutSeconds", 301), ("timeoutSeconds", "1"), ("stdin", 7),
                         ("limits", {"memoryMb": 1}), ("limits", {"disk": 1}), ("file", "none"),
                         ("files", {}), ("envs", {"a": 1}), ("sessionId", "x" * 300)):
        run(400, f"{field}: {str(value)[:30]}", **{"code": "1"} | {field: value})


# ---- limits, and other servers -------------------------------------------------------------------

def limits(session, server, contexts_max):
    """As many sandboxes as the tenant may have, and then one more, in every way that makes one."""
    session.call(server, 200, "POST", "/v1/contexts/cleanup", {"conversationId": "tools"})
    for number in range(contexts_max):
        answer = session.send(server, "PUT", "/v1/contexts",
                              b'{"conversationId":"full","pathId":"%d","template":"base"}' % number)
        session.judge(("PUT", "/v1/contexts"), answer, 201, f"{number + 1} of {contexts_max}")
    for target, body in (("/v1/contexts", {"conversationId": "full", "pathId": "x"}),
                         ("/v1/contexts/branch", {"conversationId": "full", "fromPathId": "0",
                                                  "toPathId": "x", "inherit": "files"}),
                         ("/v1/agents", {"conversationId": "full", "pathId": "x",
                                         "command": ["cat"]}),
                         ("/v1/tools/run_code", {"conversationId": "full", "pathId": "x",
                                                 "code": "1"}),
                         ("/v1/tools/run_analysis", {"conversationId": "full", "pathId": "x",
                                                     "analysisType": "custom", "code": "1"})):
        method = "PUT" if target == "/v1/contexts" else "POST"
        refused = session.call(server, 429, method, target, body, "one too many", str(contexts_max))
        if "tools" in target:
            session.check("the tool says that it is unavailable",
                          [] if refused.get("unavailable") is True else [refused])
    session.call(server, 200, "POST", "/v1/contexts/cleanup", {"conversationId": "full"})


def elsewhere(session, server):
    """A context whose sandbox another server has: the database is made to say so."""
    made = session.call(server, 201, "PUT", "/v1/contexts",
                        {"conversationId": "far", "pathId": "a", "template": "base"})
    context, node = made["context"]["id"], "another0000000000000"
    database = sqlite3.connect(f"{server.state}/front/server.db", timeout=10)
    with database:
        database.execute("INSERT INTO node (id, url, seen_ms) VALUES (?, ?, ?)",
                         (node, "https://other.example/", int(time.time() * 1000)))
        database.execute("UPDATE context SET node = ? WHERE id = ?", (node, context))
    for method, target, body in (
            ("PUT", "/v1/contexts", {"conversationId": "far", "pathId": "a"}),
            ("POST", f"/v1/contexts/{context}/touch", {}),
            ("DELETE", f"/v1/contexts/{context}", None),
            ("GET", f"/v1/contexts/{context}/checkpoints", None),
            ("POST", f"/v1/contexts/{context}/rewind", {"messageId": "m"}),
            ("POST", f"/v1/contexts/{context}/explore", {"codes": ["1"]}),
            ("POST", f"/v1/contexts/{context}/adopt", {"candidateId": UNKNOWN}),
            ("POST", "/v1/contexts/merge", {"conversationId": "far", "sourcePathId": "a",
                                            "targetPathId": "b"}),
            ("POST", "/v1/contexts/branch", {"conversationId": "far", "fromPathId": "a",
                                             "toPathId": "b", "inherit": "files"}),
            ("POST", "/v1/agents", {"conversationId": "far", "pathId": "a", "command": ["cat"]}),
            ("POST", "/v1/tools/run_code?x=%20", {"conversationId": "far", "pathId": "a",
                                                  "code": "1"}),
            ("POST", "/v1/tools/run_analysis", {"conversationId": "far", "pathId": "a",
                                                "analysisType": "custom", "code": "1"})):
        session.call(server, 307, method, target, body, location=f"https://other.example{target}")
    with database:
        database.execute("DELETE FROM node WHERE id = ?", (node,))
    database.close()
