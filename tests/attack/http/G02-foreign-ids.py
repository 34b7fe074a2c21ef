"""G02: ids of another tenant are as unknown as those of nobody, to the byte."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site  # noqa: E402

SANDBOX = (
    ("GET", "/sandboxes/{}", None), ("DELETE", "/sandboxes/{}", None),
    ("POST", "/sandboxes/{}/timeout", {"timeout": 10}), ("POST", "/sandboxes/{}/refreshes", {}),
    ("POST", "/sandboxes/{}/pause", {}), ("POST", "/sandboxes/{}/resume", {"timeout": 10}),
    ("POST", "/sandboxes/{}/connect", {"timeout": 10}),
    ("POST", "/v2/sandboxes/{}/connect", {"timeout": 10}), ("GET", "/sandboxes/{}/metrics", None),
    ("GET", "/sandboxes/{}/logs", None), ("GET", "/v2/sandboxes/{}/logs", None),
    ("PUT", "/sandboxes/{}/network", {}), ("POST", "/sandboxes/{}/snapshots", {"name": "x"}),
    ("POST", "/sandboxes/{}/fork", {}),
)
TEMPLATE = (
    ("GET", "/templates/{}", None), ("DELETE", "/templates/{}", None),
    ("GET", "/templates/{}/tags", None), ("GET", "/templates/aliases/{}", None),
    ("PATCH", "/v2/templates/{}", {"public": True}),
    ("GET", "/templates/{}/builds/{}/status", None), ("GET", "/templates/{}/files/" + "a" * 64, None),
    ("POST", "/v2/templates/{}/builds/{}", {}),
)
OTHER = (("GET", "/volumes/{}", None), ("DELETE", "/volumes/{}", None), ("GET", "/secrets/{}", None),
         ("DELETE", "/secrets/{}", None))
SECRET_HEADERS = {"date", "x-request-id"}


def strip(answer, name):
    """What a stranger sees, without the name that he gave."""
    headers = sorted((k.lower(), v) for k, v in answer.headers if k.lower() not in SECRET_HEADERS)
    request = dict((k.lower(), v) for k, v in answer.headers)["x-request-id"]
    return answer.status, headers, answer.body.replace(name.encode(), b"NAME").replace(request.encode(), b"REQUEST")


def unknown(name):
    """As long as the other one, and nobody's."""
    return "z" * len(name)


def compare(site, key, routes, foreign):
    wrong = []
    for method, path, body in routes:
        a = site.api(method, path.replace("{}", foreign), body, key)
        b = site.api(method, path.replace("{}", unknown(foreign)), body, key)
        if strip(a, foreign) != strip(b, unknown(foreign)):
            wrong.append(f"{method} {path}: foreign {a}, unknown {b}")
        if a.status < 300:
            wrong.append(f"PWNED {method} {path}: {a}")
    return wrong


def lists(site, key, sandbox, snapshot):
    wrong = []
    for path in ("/sandboxes", "/v2/sandboxes", "/v2/sandboxes?state=running,paused", "/snapshots",
                 f"/snapshots?sandboxID={sandbox.id}", "/templates", "/v2/templates",
                 f"/sandboxes/metrics?sandbox_ids={sandbox.id}"):
        a = site.api("GET", path, key=key)
        if sandbox.id.encode() in a.body and a.status < 300 or snapshot.encode() in a.body:
            wrong.append(f"PWNED {path}: {a}")
    a = site.api("POST", "/v2/sandboxes", {"templateID": snapshot}, key)
    b = site.api("POST", "/v2/sandboxes", {"templateID": unknown(snapshot)}, key)
    if a.status < 300 or strip(a, snapshot) != strip(b, unknown(snapshot)):
        wrong.append(f"create from a foreign snapshot: {a}, from none: {b}")
    return wrong


with Site() as site:
    other = site.key_of("other")
    sandbox = site.create(metadata={"secret": "of the first tenant"})
    made = site.api("POST", f"/sandboxes/{sandbox.id}/snapshots", {"name": "mine"})
    snapshot = (made.json() or {}).get("snapshotID", "none").split("/")[-1].split(":")[0]
    check("G02 control: the owner sees and uses them",
          [str(a) for a in (made, site.api("GET", f"/sandboxes/{sandbox.id}")) if a.status >= 300])
    check("G02 a foreign sandbox is an unknown one", compare(site, other, SANDBOX, sandbox.id))
    check("G02 a foreign snapshot is an unknown one", compare(site, other, TEMPLATE, snapshot))
    check("G02 nothing else tells of foreign ids", compare(site, other, OTHER, sandbox.id))
    check("G02 lists show one's own", lists(site, other, sandbox, snapshot))
    check("G02 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
