"""G08: what a page in a browser may do with the server."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site  # noqa: E402

EVIL = "https://evil.example"


def preflights(site, sandbox):
    wrong = []
    to_sandbox = {"E2b-Sandbox-Id": sandbox.id}
    for path, more in (("/v2/sandboxes", {}), (f"/sandboxes/{sandbox.id}", {}), ("/health", to_sandbox),
                       ("/files?path=x", to_sandbox), ("/process.Process/Start", to_sandbox)):
        for method in ("OPTIONS", "GET"):
            a = site.ask(method, path, {"Origin": EVIL, "Access-Control-Request-Method": "POST",
                                        "Access-Control-Request-Headers": "x-api-key",
                                        "Cookie": "session=1", **more})
            if a.header("Access-Control-Allow-Credentials"):
                wrong.append(f"{method} {path}: credentials are allowed")
            if EVIL in a.header("Access-Control-Allow-Origin"):
                wrong.append(f"{method} {path}: the origin is reflected")
            if a.header("Set-Cookie"):
                wrong.append(f"{method} {path}: a cookie is set")
            if method == "GET" and path != "/health" and a.status < 300:
                wrong.append(f"PWNED {method} {path}: {a}")
    return wrong


def upgrades(site, sandbox):
    wrong = []
    for path, to in (("/", ""), ("/v2/sandboxes", f"X-API-Key: {site.key}\r\n"),
                     ("/process.Process/Start", f"E2b-Sandbox-Id: {sandbox.id}\r\n"),
                     ("/files", f"E2b-Sandbox-Id: {sandbox.id}\r\nX-Access-Token: {sandbox.token}\r\n")):
        for protocol in ("websocket", "h2c", "tcp"):
            got = site.say((f"GET {path} HTTP/1.1\r\nHost: h\r\nOrigin: {EVIL}\r\nConnection: Upgrade, "
                            f"HTTP2-Settings, close\r\nUpgrade: {protocol}\r\nHTTP2-Settings: AAMAAABk\r\n"
                            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                            f"AAAAAAAAAAAAAAAAAAAAAA==\r\n{to}\r\n").encode())
            if got.startswith(b"HTTP/1.1 101"):
                wrong.append(f"PWNED {path} {protocol}: {got[:200]}")
    return wrong


def sniffing(sandbox):
    sandbox.put("page.html", b"<script>alert(1)</script>")
    a = sandbox.get("page.html")
    wrong = []
    if a.header("X-Content-Type-Options") != ["nosniff"]:
        wrong.append("a download may be sniffed")
    if a.header("Content-Type") != ["application/octet-stream"]:
        wrong.append(f"a download is {a.header('Content-Type')}")
    if not a.header("Content-Disposition")[0].startswith("attachment"):
        wrong.append("a download is shown in the page")
    return wrong


with Site() as site:
    sandbox = site.create()
    check("G08 no origin gets credentials, no page gets in", preflights(site, sandbox))
    check("G08 nothing but ports of sandboxes changes the protocol", upgrades(site, sandbox))
    check("G08 files of a sandbox do not become pages", sniffing(sandbox))
    check("G08 the server goes on", site.trouble())
finish()
