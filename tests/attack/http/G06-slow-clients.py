"""G06: many clients that take for ever: with their heads, their bodies, and their reading."""
import os
import select
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, rss_mib  # noqa: E402
from program import LONG  # noqa: E402
from server import Site  # noqa: E402

MANY = 1000 if LONG else 70  # of each kind
CUT_S = 40  # heads have 10 s, bodies as much before their rate counts
GROSS_S = 5


def open_all(site, sandbox):
    headers = f"Host: h\r\nE2b-Sandbox-Id: {sandbox.id}\r\nX-Access-Token: {sandbox.token}\r\n"
    kinds = {
        "head": "GET /health HTTP/1.1\r\nHost: h\r\nX",
        "body": f"POST /files?path=slow HTTP/1.1\r\n{headers}Content-Type: "
                "application/octet-stream\r\nContent-Length: 1000000\r\n\r\nx",
        "read": f"GET /files?path=big HTTP/1.1\r\n{headers}\r\n",
    }
    found = {kind: [] for kind in kinds}
    for _ in range(MANY):
        for kind, text in kinds.items():
            s = site.connect()
            s.sendall(text.encode())
            s.setblocking(False)
            found[kind].append(s)
    return found


def drip(sockets):
    """One more byte from each; those that were cut are dropped from the list."""
    gone = set(select.select(sockets, [], [], 0)[0]) if len(sockets) < 900 else set()
    for s in list(sockets):
        try:
            if s in gone and not s.recv(65536):
                raise OSError
            s.send(b"x")
        except BlockingIOError:
            pass
        except OSError:
            s.close()
            sockets.remove(s)


def hold(site, clients):
    wrong, times, deadline = [], [], time.monotonic() + CUT_S
    while time.monotonic() < deadline and (clients["head"] or clients["body"]):
        drip(clients["head"])
        drip(clients["body"])
        for _ in range(5):
            began = time.monotonic()
            if site.ask("GET", "/health").status not in (200, 204):
                wrong.append("the server is not well")
            times.append(time.monotonic() - began)
        time.sleep(0.5)
    if max(times) > GROSS_S:
        wrong.append(f"another client waited {max(times):.1f} s")
    times.sort()
    note = f"others: p50 {times[len(times) // 2] * 1e3:.1f} ms, worst {times[-1] * 1e3:.0f} ms"
    return wrong, note


with Site() as site:
    sandbox = site.create()
    sandbox.says("head -c 50000000 /dev/zero > big")
    before = rss_mib(site.front())
    clients = open_all(site, sandbox)
    wrong, note = hold(site, clients)
    check("G06 slow clients do not slow others down", wrong, note)
    check("G06 slow heads are cut", [f"{len(clients['head'])} are left"] if clients["head"] else [])
    check("G06 slow bodies are cut", [f"{len(clients['body'])} are left"] if clients["body"] else [])
    grown = rss_mib(site.front()) - before
    most = 8 + 3 * MANY * 0.6  # what waits for a reader is bounded for each
    check("G06 they cost little memory", [f"{grown:.0f} MiB"] if grown > most else [],
          f"{grown:.0f} MiB for {3 * MANY} clients")
    check("G06 slow uploads leave nothing", [] if sandbox.says("ls slow 2>/dev/null") == "" else ["a file"])
    for s in clients["read"]:
        s.close()
    check("G06 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
