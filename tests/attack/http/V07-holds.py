"""V07: a path that nobody uses ends, whatever its code does; and one whose code ends everything goes on."""
import json
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from contexts import Mcp, Paths, RUN_CODE  # noqa: E402
from host import check, finish, poll  # noqa: E402
from server import Site  # noqa: E402

TTL_S, PATIENCE_S = 1, 12
STUBBORN = ("import signal\nwhile True:\n    try:\n        signal.signal(2, signal.SIG_IGN)\n"
            "        while True: pass\n    except BaseException: pass")
LONG = "import time\nfor i in range(3000):\n    time.sleep(0.1)\n    print(i, flush=True)"

# In a sandbox, without a client.
INSIDE = {
    "processes": "import subprocess\nfor _ in range(5):\n    subprocess.Popen(['sh', '-c', "
                 "'while :; do date; sleep 0.1; done'], start_new_session=True)",
    "threads that print": "import threading, time\n"
                          "threading.Thread(target=lambda: [(time.sleep(0.1), print(1)) for _ in "
                          "range(9999)]).start()",
    "files that change": "import subprocess\nsubprocess.Popen(['sh', '-c', "
                         "'while :; do touch /tmp/x; sleep 0.05; done'])",
    "a server": "import subprocess\np = subprocess.Popen(['python3', '-m', 'http.server', '8000'])",
}


def vanish(client):
    """As a process that is killed."""
    client.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: reset
    client.close()


def first_bytes(client):
    client.settimeout(10)
    return client.recv(20)


def start_all(site, paths):
    """Contexts that something tries to keep, by what does."""
    kept = {}
    for i, (what, code) in enumerate(INSIDE.items()):
        kept[what], sandbox = paths.obtain(f"inside{i // 4}", what, ttlSeconds=TTL_S)
        paths.code(f"inside{i // 4}", what, code)
        if what == "files that change":
            sandbox.rpc("filesystem.Filesystem/CreateWatcher", {"path": "/tmp"})
        if what == "a server":
            ask = f"GET / HTTP/1.1\r\nHost: h\r\nE2b-Sandbox-Id: {sandbox.id}\r\nE2b-Sandbox-Port: 8000\r\n\r\n"
            poll(lambda: site.say(ask.encode(), 0.3).startswith(b"HTTP/1.1 200"), 5)
            idle.append(site.connect())
            idle[-1].sendall(ask.encode())  # and stays open
    for what, code, accept in (("a stream", LONG, "text/event-stream"),
                               ("an answer", LONG, "application/json"),
                               ("code that will not stop", STUBBORN, "text/event-stream")):
        kept[f"{what} that nobody waits for"], _ = paths.obtain("outside", what, ttlSeconds=TTL_S)
        s = paths.post(RUN_CODE, {"conversationId": "outside", "pathId": what, "code": code,
                                  "timeoutSeconds": 300}, accept)
        if accept != "application/json":
            first_bytes(s)
        vanish(s)
    mcp = Mcp(site, conversation="outside")
    kept["MCP that nobody waits for"], _ = paths.obtain("outside", "mcp", ttlSeconds=TTL_S)
    body = json.dumps(mcp.message("tools/call", {"name": "run_code", "arguments": {
        "code": LONG, "pathId": "mcp", "timeoutSeconds": 300}})).encode()
    s = site.connect()
    s.sendall(b"POST /mcp HTTP/1.1\r\nHost: h\r\n" + "".join(
        f"{k}: {v}\r\n" for k, v in mcp.headers().items()).encode()
        + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    vanish(s)
    return kept


def expire(site, paths):
    kept = start_all(site, paths)
    used, _ = paths.obtain("outside", "used", ttlSeconds=TTL_S)
    client = paths.post(RUN_CODE, {"conversationId": "outside", "pathId": "used", "code": LONG,
                                   "timeoutSeconds": 300}, "text/event-stream")
    left, deadline = dict(kept), time.monotonic() + PATIENCE_S
    while left and time.monotonic() < deadline:
        left = {what: id_ for what, id_ in left.items() if paths.status(id_) != "terminated"}
        time.sleep(0.2)
    wrong = [f"{what} keeps its context: {paths.ask('GET', f'/v1/contexts/{id_}')}"
             for what, id_ in left.items()]
    check("V07 nothing keeps a context but a client", wrong, f"{len(kept)} have ended")
    check("V07 control: one with a client has not ended",
          [] if paths.status(used) == "ready" else ["it has"])
    client.close()
    check("V07 its sandboxes are gone too",
          [] if poll(lambda: not site.api("GET", "/v2/sandboxes").json(), 8) else ["some are there"])


def interrupted(paths):
    """Whoever comes next does not wait for code that nobody waits for."""
    wrong = []
    paths.code("next", "p", "kept = 1")
    for accept in ("text/event-stream", "application/json"):
        clients = [paths.post(RUN_CODE, {"conversationId": "next", "pathId": "p", "code": LONG,
                                         "timeoutSeconds": 300}, accept) for _ in range(5)]
        time.sleep(0.5)
        for s in clients:
            vanish(s)
        began = time.monotonic()
        a = paths.code("next", "p", "kept", timeoutSeconds=10)
        if a.status != 200 or a.json()["results"][0]["text"] != "1" or time.monotonic() - began > 8:
            wrong.append(f"{accept}: {a} after {time.monotonic() - began:.1f} s")
    return wrong


SUICIDE = {
    "leaves": "import os\nos._exit(7)", "kills itself": "import os, signal\nos.kill(os.getpid(), 9)",
    "kills all": "import os\nos.kill(-1, 9)",
    "kills all as root": "import os\nos.system('sudo sh -c \"kill -9 -1\"')",
    "closes what it has": "import os\nos.closerange(0, 64)", "is too deep": "def f(): f()\nimport sys\n"
    "sys.setrecursionlimit(1 << 30)\nf()", "takes all memory": "x = []\nwhile True: x.append(bytearray(b'x') * (1 << 26))",
}


def suicides(paths):
    """Each is told, and the path goes on, however often."""
    wrong = []
    for what, code in SUICIDE.items():
        for _ in range(2):
            a = paths.code("suicide", "p", code, timeoutSeconds=15)
            if a.status not in (200, 503) or a.json() is None:
                wrong.append(f"{what}: {a}")
        wrong += [f"after one that {what}: {w}" for w in paths.trouble("suicide", "p")]
    return wrong


def replaced(site, paths):
    """A sandbox that is lost again and again is replaced, and the old one is not there."""
    wrong, seen = [], set()
    id_, sandbox = paths.obtain("lost", "p")
    for _ in range(10):
        seen.add(sandbox.id)
        sandbox.kill()
        a = paths.put("lost", "p")
        if a.status != 201 or not a.json()["replaced"] or a.json()["context"]["id"] != id_:
            wrong.append(f"a lost sandbox: {a}")
            break
        sandbox.id = a.json()["sandbox"]["sandboxID"]
    there = {b["sandboxID"] for b in site.api("GET", "/v2/sandboxes").json()}
    if sandbox.id in seen or seen & there or sandbox.id not in there:
        wrong.append(f"{len(seen)} were lost, {len(seen & there)} of them are there")
    active = paths.ask("GET", "/v1/contexts?conversationId=lost").json()["contexts"]
    return wrong + ([] if len(active) == 1 else [f"{len(active)} contexts"])


idle = []
with Site("--reap-every", "1s", "--conversation-contexts", "10", "--tenant-contexts", "20",
          "--sandbox-memory", "128M") as site:
    paths = Paths(site)
    expire(site, paths)
    check("V07 code that nobody waits for is interrupted", interrupted(paths))
    check("V07 code that ends its kernel, or all, ends neither path nor server", suicides(paths))
    check("V07 lost sandboxes are replaced, one by one", replaced(site, paths))
    check("V07 the server goes on", site.trouble() + paths.trouble())
finish()
