"""V01: contexts of another tenant, by every name that they have."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from contexts import Mcp, Paths, RUN_CODE  # noqa: E402
from host import check, finish  # noqa: E402
from server import Site, answered  # noqa: E402

SECRET = "of the first tenant " + os.urandom(6).hex()
CONVERSATION = "conversation-" + os.urandom(6).hex()


def unknown(id_):
    return "z" * len(id_)


def same(site, method, target, foreign, body, key):
    """A foreign id is answered like one that nobody has."""
    a = site.api(method, target.format(foreign), body, key)
    b = site.api(method, target.format(unknown(foreign)), body, key)
    strip = [(x.status,
              x.body.replace(id_.encode(), b"ID").replace(x.header("X-Request-Id")[0].encode(), b"REQUEST"),
              sorted(k for k, _ in x.headers))
             for x, id_ in ((a, foreign), (b, unknown(foreign)))]
    wrong = [f"{method} {target}: foreign {a}, unknown {b}"] if strip[0] != strip[1] else []
    return wrong + ([f"PWNED {method} {target}: {a}"] if a.status < 300 else [])


def by_id(site, key, id_):
    return (same(site, "GET", "/v1/contexts/{}", id_, None, key)
            + same(site, "DELETE", "/v1/contexts/{}", id_, None, key)
            + same(site, "POST", "/v1/contexts/{}/touch", id_, {"ttlSeconds": 1}, key))


def by_name(other, owner, id_, sandbox):
    """The same names are the other's own, and hold nothing."""
    wrong = []
    for target in (f"/v1/contexts?conversationId={CONVERSATION}", f"/v1/contexts?sandboxId={sandbox.id}",
                   "/v1/contexts?status=all&limit=200", f"/v1/paths?conversationId={CONVERSATION}"):
        a = other.ask("GET", target)
        if a.status != 200 or id_.encode() in a.body or CONVERSATION.encode() in a.body:
            wrong.append(f"PWNED {target}: {a}")
    a = other.code(CONVERSATION, "main", "open('/tmp/secret').read()")
    if a.status != 200 or a.json()["success"] or SECRET.encode() in a.body:
        wrong.append(f"PWNED run_code: {a}")
    a = other.ask("POST", "/v1/contexts/branch", {"conversationId": CONVERSATION, "inherit": "files",
                                                  "fromPathId": "second", "toPathId": "stolen"})
    if a.status != 201 or a.json()["inherited"] != "none" or a.json()["context"]:
        wrong.append(f"PWNED branch: {a}")
    a = other.ask("POST", "/v1/contexts/merge", {"conversationId": CONVERSATION,
                                                 "sourcePathId": "second", "targetPathId": "main"})
    if a.status != 200 or a.json()["terminated"]:
        wrong.append(f"PWNED merge: {a}")
    a = other.ask("POST", "/v1/contexts/cleanup", {"conversationId": CONVERSATION})
    if a.status != 200 or a.json()["terminated"] != 1:  # its own, of the call above
        wrong.append(f"cleanup: {a}")
    return wrong + ([] if owner.status(id_) == "ready" else ["PWNED the owner's context has ended"])


def by_cursor(owner, other):
    a = owner.ask("GET", "/v1/contexts?limit=1")
    cursor = a.json()["nextCursor"]
    b = other.ask("GET", f"/v1/contexts?limit=200&status=all&cursor={cursor}")
    mine = {c["id"] for c in owner.ask("GET", "/v1/contexts?status=all").json()["contexts"]}
    theirs = {c["id"] for c in b.json()["contexts"]}
    return [f"PWNED {mine & theirs}"] if mine & theirs or not cursor else []


def by_tenant(owner, other, id_):
    """A tenant that is named is the key's, or the request is refused: in the body and the query."""
    tenant, wrong = owner.ask("GET", f"/v1/contexts/{id_}").json()["tenantId"], []
    place = {"conversationId": CONVERSATION, "pathId": "main"}
    bodies = (
        ("PUT", "/v1/contexts", place), ("POST", RUN_CODE, {**place, "code": "1"}),
        ("POST", "/v1/tools/run_analysis", {**place, "analysisType": "custom", "code": "1"}),
        ("POST", "/v1/contexts/branch", {"conversationId": CONVERSATION, "fromPathId": "main",
                                         "toPathId": "b"}),
        ("POST", "/v1/contexts/merge", {"conversationId": CONVERSATION, "sourcePathId": "main",
                                        "targetPathId": "b"}),
        ("POST", "/v1/contexts/cleanup", {"conversationId": CONVERSATION}),
        ("POST", f"/v1/contexts/{id_}/touch", {}), ("POST", "/v1/execute", {"code": "1"}),
        ("GET", f"/v1/contexts/{id_}", None), ("DELETE", f"/v1/contexts/{id_}", None),
        ("GET", "/v1/contexts", None), ("GET", "/v1/usage", None), ("GET", "/v1/tools", None),
    )
    for method, target, body in bodies:
        wrong += answered(f"{method} {target}, tenant in the query",
                          other.ask(method, f"{target}?tenantId={tenant}", body), 403)
        twice = f"{target}?tenantId={tenant}&tenantId=%00"
        wrong += answered(f"{method} {twice}", other.ask(method, twice, body), 403)
        if body is not None:
            wrong += answered(f"{method} {target}, tenant in the body",
                              other.ask(method, target, {**body, "tenantId": tenant}), 403)
    return wrong


def by_mcp(site, key, owner, id_, sandbox):
    """The tools of a session see the key's tenant."""
    wrong, m = [], Mcp(site, key, CONVERSATION)
    for tool, arguments in (
        ("end_context", {"contextId": id_}), ("end_context", {"pathId": "main"}),
        ("read_file", {"path": "/tmp/secret"}), ("list_contexts", {"allConversations": True}),
        ("list_files", {"path": "/tmp"}), ("run_code", {"code": "open('/tmp/secret').read()"}),
    ):
        failed, text = m.call(tool, **arguments)
        if SECRET in text or id_ in text and not failed or sandbox.id in text:
            wrong.append(f"PWNED {tool}: {text}")
    return wrong + ([] if owner.status(id_) == "ready" else ["PWNED the owner's context has ended"])


def without_key(site, id_, sandbox):
    """A sandbox's own token opens its sandbox, and nothing here."""
    wrong = []
    for headers in ({}, {"X-API-Key": sandbox.token}, {"Authorization": f"Bearer {sandbox.token}"},
                    {"X-Access-Token": sandbox.token, "E2b-Sandbox-Id": sandbox.id},
                    {"X-API-Key": ""}, {"X-API-Key": id_}, {"Cookie": f"X-API-Key={site.key}"}):
        for method, target in (("GET", f"/v1/contexts/{id_}"), ("GET", "/v1/contexts"),
                               ("POST", RUN_CODE), ("PUT", "/v1/contexts"), ("POST", "/mcp"),
                               ("GET", "/v1/usage"), ("DELETE", f"/v1/contexts/{id_}"),
                               ("GET", "/v1/tools"), ("GET", "/v1/nothing"), ("POST", "/v1/execute")):
            a = site.ask(method, target, headers, "{}" if method in ("POST", "PUT") else None)
            # With a sandbox named it is a request to that sandbox, whatever its path.
            wrong += answered(f"{method} {target} with {list(headers)}", a, 401, 404)
            if a.status == 404 and "E2b-Sandbox-Id" not in headers:
                wrong.append(f"{method} {target} is answered before its key is asked for: {a}")
    return wrong


with Site("--conversation-contexts", "10") as site:
    key = site.key_of("other")
    owner, other = Paths(site), Paths(site, key)
    id_, sandbox = owner.obtain(CONVERSATION, "main")
    owner.obtain(CONVERSATION, "second")
    owner.code(CONVERSATION, "main", f"open('/tmp/secret', 'w').write('{SECRET}')")
    a = owner.code(CONVERSATION, "main", "open('/tmp/secret').read()")
    check("V01 control: the owner reads it", [] if SECRET.encode() in a.body else [str(a)])
    check("V01 a foreign context is an unknown one", by_id(site, key, id_))
    check("V01 equal names are each tenant's own", by_name(other, owner, id_, sandbox))
    check("V01 a foreign cursor leads to one's own", by_cursor(owner, other))
    check("V01 a foreign tenant's id is refused", by_tenant(owner, other, id_))
    check("V01 MCP's tools see the key's tenant", by_mcp(site, key, owner, id_, sandbox))
    check("V01 nothing opens but a key", without_key(site, id_, sandbox))
    a = owner.code(CONVERSATION, "main", "open('/tmp/secret').read()")
    check("V01 the context goes on", [] if SECRET.encode() in a.body else [str(a)])
    check("V01 the server goes on", site.trouble())
finish()
