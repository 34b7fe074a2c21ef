"""G15: spellings of routes that go around the check of the key."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site, answered  # noqa: E402

PATHS = ("//v2/sandboxes", "/v2//sandboxes", "/v2/sandboxes/", "/v2/sandboxes//", "/./v2/sandboxes",
         "/v2/../v2/sandboxes", "/v2/sandboxes/..;/", "/health/../v2/sandboxes", "/%76%32/sandboxes",
         "/v2%2fsandboxes", "%2fv2/sandboxes", "/v2/sandboxes%00", "/v2/sandboxes%20",
         "/v2/sandboxes;x=y", "/V2/SANDBOXES", "/v2/sandboxes.json", "/v2/sandboxes%3f",
         "/v2/sandboxes#", "/health;/v2/sandboxes", "/health/v2/sandboxes", "/%2e%2e/v2/sandboxes",
         "\\v2\\sandboxes", "/v2\\sandboxes", "http://127.0.0.1/v2/sandboxes", "/v2/sandboxes?",
         "/v2/sandboxes?X-API-Key=x", "*", "/", "")
INTERNAL = ("/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade")
OVERRIDES = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL",
             "X-Rewrite-URL", "X-Forwarded-Host", "X-Forwarded-Prefix")


def without_key(site):
    wrong = []
    for path in PATHS:
        for method in ("GET", "POST", "PUT", "HEAD", "TRACE", "FOO"):
            a = site.ask(method, path, {"Content-Length": "0"})
            if a.status < 400:
                wrong.append(f"PWNED {method} {path}: {a}")
    for name in OVERRIDES:
        a = site.ask("GET", "/health", {name: "/v2/sandboxes"})
        if b"sandboxID" in a.body:
            wrong.append(f"PWNED {name}: {a}")
    return wrong


def with_key(site, sandbox):
    """An id is one segment: nothing in it reaches another route."""
    wrong = []
    for name in ("..", "%2e%2e", ".", "", "%2e", f"{sandbox.id}/../{sandbox.id}", f"{sandbox.id}%2f",
                 f"{sandbox.id}%2fpause", f"..%2f{sandbox.id}", f"{sandbox.id}%00", f"{sandbox.id};",
                 sandbox.id.upper(), f"{sandbox.id}x", f"%20{sandbox.id}", "a" * 7000):
        a = site.api("DELETE", f"/sandboxes/{name}")
        wrong += answered(f"DELETE {name[:40]!r}", a, 4)
    a = site.ask("POST", f"/sandboxes/{sandbox.id}", {"X-API-Key": site.key, "X-HTTP-Method-Override":
                                                      "DELETE", "Content-Length": "0"})
    wrong += answered("a method in a header", a, 4)
    return wrong


def internal(site, sandbox):
    wrong = []
    for path in INTERNAL:
        for spelt in (path, path + "/", "/" + path, "/." + path, path + "?x", path.upper(),
                      "/%" + f"{ord(path[1]):02x}" + path[2:]):
            for method in ("POST", "GET", "PUT"):
                a = site.ask(method, spelt, sandbox.headers(), b"{}" if method != "GET" else None)
                wrong += answered(f"{method} {spelt}", a, 4)
    return wrong


def ports(site, sandbox):
    wrong = []
    for port in ("0", "65536", "-1", "+80", "0x50", "80 80", "8e1", "49983.0", "99999999999", ""):
        a = site.ask("GET", "/health", sandbox.headers(**{"E2b-Sandbox-Port": port}))
        wrong += answered(f"port {port!r}", a, 4)
    for name in ("..", "%2e", sandbox.id + "/", sandbox.id[:-1], sandbox.id + "\u00e9".encode().decode("latin1")):
        a = site.ask("GET", "/envs", {"E2b-Sandbox-Id": name, "X-Access-Token": sandbox.token})
        wrong += answered(f"id {name!r}", a, 4, 502)
    return wrong


with Site() as site:
    sandbox = site.create()
    check("G15 no spelling of a route needs no key", without_key(site))
    check("G15 no spelling of an id is another route", with_key(site, sandbox))
    check("G15 internal paths cannot be reached", internal(site, sandbox))
    check("G15 ports and ids are taken as they are, or not at all", ports(site, sandbox))
    check("G15 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
