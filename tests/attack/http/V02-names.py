"""V02: names of conversations and paths that are more than names: SQL, paths, edges of UTF-8."""
import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from contexts import Mcp, Paths, RUN_CODE  # noqa: E402
from host import check, finish  # noqa: E402
from server import Site, answered  # noqa: E402

# Each is a name like any other: kept, told and found as it is, and the row of nobody else.
ODD = (
    "' OR '1'='1", "'; DROP TABLE context; --", '" OR ""="', "x\\'; --", "$1", "%", "_", "*", "?1",
    "../../../etc/passwd", "..", ".", "/", "//", "\\", "a/b", "a%2fb", "a%00b", "NULL", "null",
    "0", "-1", "true", "main ", " main", "MAIN", "e\u0301", "\u00e9", "\u202e", "\u2028", "\ufeff",
    "\ufffd", "\U0010ffff", "\u0130", "a" * 256, "\u00e9" * 128, "\U0001f480" * 64, "{}", "<script>",
    "${jndi:x}", "`id`", "$(id)", "-rf", "--help", "__proto__", "constructor", "event: done",
)
# Refused, wherever they are written.
WRONG = {
    "empty": "", "NUL": "a\0b", "newline": "a\nb", "return": "a\rb", "escape": "\x1b[2J",
    "delete": "a\x7f", "C1": "a\x9b31m", "257 bytes": "a" * 257, "257 bytes of pairs": "\u00e9" * 128 + "a",
    "10 KB": "a" * 10240, "a number": 7, "null": None, "a list": ["a"], "an object": {"$ne": ""},
}
# Bytes of a body, and of a query, that are no text.
NO_TEXT = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"\x00")


def as_names(paths):
    """All at once in one conversation, and as conversations; none meets another."""
    wrong = []
    for i, name in enumerate(ODD):
        other = ODD[i - 1]
        a = paths.ask("POST", "/v1/contexts/branch",
                      {"conversationId": "odd", "fromPathId": name, "toPathId": other})
        if a.status != 201 or a.json()["parentPathId"] != name or a.json()["pathId"] != other:
            wrong.append(f"branch {name!r}: {a}")
    listed = paths.ask("GET", "/v1/paths?conversationId=odd").json()["paths"]
    if sorted(p["pathId"] for p in listed) != sorted(ODD):
        wrong.append(f"{set(ODD) ^ {p['pathId'] for p in listed}} are not what they were")
    parents = {p["pathId"]: p["parentPathId"] for p in listed}
    wrong += [f"the parent of {ODD[i - 1]!r} is {parents[ODD[i - 1]]!r}"
              for i in range(len(ODD)) if parents[ODD[i - 1]] != ODD[i]]
    for name in ODD:
        a = paths.ask("GET", f"/v1/paths?conversationId={urllib.parse.quote(name, safe='')}")
        if a.status != 200 or a.json()["paths"]:
            wrong.append(f"PWNED the conversation {name!r} has paths: {a}")
        a = paths.ask("POST", "/v1/contexts/cleanup", {"conversationId": name})
        if a.status != 200 or a.json()["terminated"]:
            wrong.append(f"PWNED cleanup of {name!r}: {a}")
    return wrong


def with_sandboxes(paths):
    wrong, ids = [], set()
    for name in ODD[:6] + ODD[13:15]:
        a = paths.put(name, name)
        ids.add(a.json()["context"]["id"])
        found = paths.ask("GET", "/v1/contexts?" + urllib.parse.urlencode(
            {"conversationId": name, "pathId": name})).json()["contexts"]
        if a.status != 201 or [c["pathId"] for c in found] != [name]:
            wrong.append(f"{name!r}: {a}, found {found}")
        wrong += answered("end", paths.ask("DELETE", f"/v1/contexts/{a.json()['context']['id']}"), 200)
    return wrong + ([] if len(ids) == 8 else ["names share contexts"])


def routes(name):
    """Every place where a body has a name."""
    code = {"code": "1", "conversationId": "c", "pathId": "p"}
    for field in ("conversationId", "pathId"):
        yield "PUT", "/v1/contexts", {"conversationId": "c", "pathId": "p", field: name}
        yield "POST", RUN_CODE, {**code, field: name}
        yield "POST", "/v1/tools/run_analysis", {**code, "analysisType": "custom", field: name}
    for target, fields in (("branch", ("fromPathId", "toPathId")),
                           ("merge", ("sourcePathId", "targetPathId"))):
        body = {"conversationId": "c", fields[0]: "p", fields[1]: "q"}
        for field in body:
            yield "POST", f"/v1/contexts/{target}", {**body, field: name}
    if name is not None:
        yield "POST", "/v1/contexts/cleanup", {"conversationId": name}


def refused(site, paths):
    wrong = []
    for what, name in WRONG.items():
        for method, target, body in routes(name):
            a = paths.ask(method, target, body)
            wrong += answered(f"{what} in {method} {target} {list(body)}", a, 400)
    for raw in NO_TEXT:
        body = b'{"conversationId":"' + raw + b'","pathId":"p","code":"1"}'
        wrong += answered(f"{raw} in a body", paths.ask("POST", RUN_CODE, body), 400)
        quoted = urllib.parse.quote(raw)
        for target in (f"/v1/paths?conversationId={quoted}", f"/v1/contexts?conversationId={quoted}",
                       f"/v1/contexts?pathId={quoted}"):
            wrong += answered(target, paths.ask("GET", target), 400)
        wrong += answered("a bound call", paths.ask(
            "POST", f"{RUN_CODE}?conversationId={quoted}&pathId=p", {"code": "1"}), 400)
    for escape in ("\\ud800", "\\udfff", "\\ud800x", "\\udc00\\ud800", "\\u0000"):
        body = '{"conversationId":"%s","pathId":"p","code":"1"}' % escape
        wrong += answered(escape, paths.ask("POST", RUN_CODE, body), 400)
    m = Mcp(site)
    for what, name in WRONG.items():
        if name is not None:  # null is as if it were not there, and the session has a name
            failed, text = m.call("run_code", code="1", conversationId=name)
            wrong += [] if failed else [f"{what} by MCP: {text}"]
    for raw in ("\x01", "a\x7f", "\xff\xfe", "a" * 257):
        a = m.post(m.message("tools/list"), **{"Sandglass-Conversation-Id": raw})
        wrong += answered(f"{raw[:9]!r} as a header", a, 400)
    return wrong


def ids(paths):
    wrong = []
    for id_ in ("x", "..", "%2e%2e", "'", "%27%20OR%201=1--", "A" * 20, "a" * 19, "a" * 21, "%00",
                "a" * 5000, "%ff%fe", "..%2f..%2fetc", "{}", "*", "branch%00", "_" * 20):
        for method, tail in (("GET", ""), ("DELETE", ""), ("POST", "/touch")):
            a = paths.ask(method, f"/v1/contexts/{id_}{tail}")
            wrong += answered(f"{method} {id_[:30]}{tail}", a, 404, 405, 400, 414)
    for query in ("cursor=x", "cursor=" + "f" * 36, "cursor=" + "7" + "f" * 15 + "'" * 20,
                  "cursor=%00", "limit=0", "limit=201", "limit=-1", "limit=1;drop", "limit=1e2",
                  "status=ready'--", "status=", "status=all,", "status=READY", "sandboxId='",
                  "sandboxId=%00", "sandboxId=" + "a" * 4000):
        wrong += answered(query[:40], paths.ask("GET", f"/v1/contexts?{query}"), 400)
    for query in ("from=x", "from=2026-13-01", "from=2026-01-01'--", "from=9999-99-99",
                  "from=2026-02-01&to=2026-01-01", "from=0001-01-01&to=9999-12-31"):
        wrong += answered(query, paths.ask("GET", f"/v1/usage?{query}"), 400)
    a = paths.ask("GET", "/v1/contexts?cursor=" + "7" + "f" * 15 + "z" * 20)
    return wrong + answered("a cursor of the end of time", a, 200)


with Site("--tenant-contexts", "50") as site:
    paths = Paths(site)
    check("V02 odd names are names", as_names(paths))
    check("V02 odd names have sandboxes of their own", with_sandboxes(paths))
    check("V02 what is no name is refused, everywhere", refused(site, paths))
    check("V02 what is no id, page or day is refused", ids(paths))
    left = paths.ask("GET", "/v1/contexts?limit=200").json()["contexts"]
    check("V02 nothing was made for what was refused",
          [f"{c['conversationId']!r} {c['pathId']!r}" for c in left])
    check("V02 the server goes on", site.trouble() + paths.trouble())
finish()
