"""V06: more output than anybody takes: from the code, and to clients that do not read."""
import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from contexts import Mcp, Paths, RUN_CODE, grown  # noqa: E402
from host import check, finish, poll, rss_mib  # noqa: E402
from server import Site  # noqa: E402

MIB = 1 << 20
CLIENTS = 24
KEPT_MIB = 256  # of what clients do not take, of all of them; and as much of what runs have gathered
FLOOD = "import os\nb = b'x' * 999 + b'\\n'\nfor _ in range(1 << 20): os.write(1, b)"
LESS = FLOOD.replace("1 << 20", "1 << 17")
LARGE = ("class R:\n    def _repr_html_(self): return 'x' * (%d << 20)\n"
         "%s\nR()")
HEAVY = ("class R:\n    def _repr_mimebundle_(self, **_):\n"
         "        return {'application/json': [{}] * 2_000_000}, {}\nR()")


def highest(site):
    """The most memory that the front has had, in MiB."""
    with open(f"/proc/{site.front()}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024


def forget_highest(site):
    with open(f"/proc/{site.front()}/clear_refs", "w") as f:
        f.write("5")


def gigabyte(site, paths):
    """Everything is taken from the code, a little of it is kept."""
    wrong = []
    forget_highest(site)
    before = highest(site)
    a = paths.code("flood", "json", FLOOD)
    o = a.json()
    if a.status != 200 or not o["truncated"]["stdout"] or len(o["stdout"]) > MIB or not o["success"]:
        wrong.append(f"1 GiB of output: {a}")
    failed, text = Mcp(site, conversation="flood").call("run_code", code=LESS, pathId="json")
    if failed or len(text) > 2 * MIB:
        wrong.append(f"128 MiB by MCP: {text[:200]}")
    a = paths.ask("POST", "/v1/execute", {"code": LESS, "timeoutSeconds": 20})
    if a.status != 200 or not a.json()["truncated"]["stdout"] or len(a.body) > 8 * MIB:
        wrong.append(f"128 MiB of a program: {a}")
    most = highest(site) - before
    return wrong + ([f"the front had {most:.0f} MiB more"] if most > 32 else []), f"{most:.0f} MiB"


def results(site, paths):
    """What is too large for an answer is left out, and said to be."""
    wrong = []
    a = paths.code("large", "p", LARGE % (100, ""))
    if a.status != 200 or len(a.body) > MIB or b"left out" not in a.body:
        wrong.append(f"100 MiB: {a}")
    a = paths.code("large", "p", LARGE % (30, "import sys\nfor _ in range(3): sys.displayhook(R())"))
    if a.status != 200 or len(a.body) > 40 * MIB:
        wrong.append(f"several of 30 MiB: {a.status}, {len(a.body)} bytes")
    forget_highest(site)
    before = highest(site)
    failed, text = Mcp(site, conversation="large").call("run_code", code=HEAVY, pathId="p")
    if len(text) > 10 * MIB:
        wrong.append(f"a heavy result by MCP: {len(text)} bytes")
    most = highest(site) - before
    return wrong + ([f"a result of small values took {most:.0f} MiB"] if most > 160 else [])


def unread(site, start):
    """Clients that ask, and take nothing."""
    before, clients = rss_mib(site.front()), []
    forget_highest(site)
    for i in range(CLIENTS):
        s = start(i)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        clients.append(s)
    most = 0
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        most = max(most, rss_mib(site.front()) - before)
        time.sleep(0.1)
    return clients, most


def no_readers(site, paths):
    wrong, notes = [], []
    code = LARGE % (30, "")
    body = {"conversationId": "unread", "code": code}
    mcp = Mcp(site, conversation="unread")

    def by_mcp(i):
        data = json.dumps(mcp.message("tools/call", {"name": "run_code", "arguments": {
            "code": LARGE % (7, ""), "pathId": str(i % 4)}})).encode()
        s = site.connect()
        s.sendall(b"POST /mcp HTTP/1.1\r\nHost: h\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in mcp.headers("text/event-stream").items()).encode()
            + f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        return s

    for what, start in (
        ("JSON", lambda i: paths.post(RUN_CODE, {**body, "pathId": str(i % 4)})),
        ("streams", lambda i: paths.post(RUN_CODE, {**body, "pathId": str(i % 4)}, "text/event-stream")),
        ("MCP", by_mcp),
    ):
        clients, most = unread(site, start)
        notes.append(f"{what}: {most:.0f} MiB for {CLIENTS}")
        # What waits, what is gathered, and one answer that is being written.
        if most > 2 * KEPT_MIB + 128:
            wrong.append(f"{what}: {most:.0f} MiB")
        began = time.monotonic()
        wrong += paths.trouble("unread-others", what)
        if time.monotonic() - began > 5:
            wrong.append(f"{what}: another client waited {time.monotonic() - began:.1f} s")
        for s in clients:
            s.close()
        if not poll(lambda: not grown(site, start_mib, 96, ""), 5):
            wrong += grown(site, start_mib, 96, f"after {what}")
    return wrong, ", ".join(notes)


def endless_stream(site, paths):
    """Its client does not read: the code stands still, and ends with its time."""
    before = rss_mib(site.front())
    s = paths.post(RUN_CODE, {"conversationId": "endless", "pathId": "p", "timeoutSeconds": 2,
                              "code": FLOOD.replace("1 << 20", "1 << 40")}, "text/event-stream")
    time.sleep(1.5)
    wrong = grown(site, before, 24, "a stream that nobody reads")
    s.settimeout(10)
    got, ended = b"", False
    while not ended:
        piece = s.recv(1 << 20)
        got = (got + piece)[-4 * MIB:]
        ended = not piece or b"\r\n0\r\n\r\n" in got[-16:]
    s.close()
    tail = got.split(b"event: done\ndata: ")
    if len(tail) != 2 or b'"exitCode":124' not in tail[1]:
        wrong.append(f"it ended with {got[-200:]}")
    return wrong


def many_streams(site, paths):
    """Hundreds of streams at once; the others go on."""
    paths.code("many", "p", "1")
    clients = [paths.post(RUN_CODE, {"conversationId": "many", "pathId": "p", "code": "2"},
                          "text/event-stream") for _ in range(400)]
    wrong = paths.trouble("many-others", "p")
    told = {"done": 0, "refused": 0}
    for s in clients:
        s.settimeout(20)
        got = b""
        while b"event: done" not in got and b'"code":' not in got:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
        told["done" if b"event: done" in got else "refused"] += 1
        if b"event: done" not in got and b" 429 " not in got and b" 503 " not in got:
            wrong.append(f"{got[:200]}")
        s.close()
    return wrong[:3] + ([] if told["done"] >= 64 else [f"{told}"]), f"{told}"


with Site("--conversation-contexts", "10", "--tenant-contexts", "20") as site:
    paths = Paths(site)
    wrong = paths.trouble()
    start_mib = rss_mib(site.front())
    more, note = gigabyte(site, paths)
    check("V06 a gigabyte of output costs little memory", wrong + more, note)
    check("V06 results that are too large are left out", results(site, paths))
    more, note = no_readers(site, paths)
    check("V06 clients that do not read share what there is for them", more, note)
    check("V06 a stream that nobody reads stands still, and ends", endless_stream(site, paths))
    more, note = many_streams(site, paths)
    check("V06 hundreds of streams at once", more, note)
    check("V06 the server goes on", site.trouble() + paths.trouble())
finish()
