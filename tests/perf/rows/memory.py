"""Hostile tenants that want all memory there is, over a long run: whether Linux kills a process of the server, and what a
neighbour notices."""
import contextlib
import http.client
import itertools
import json
import os
import random
import sys
import threading
import time

from . import programs

sys.path.insert(0, str(programs.ROOT / "tests/attack/lib"))
os.environ.setdefault("SANDGLASS", str(programs.SANDGLASS))
import host  # noqa: E402
import server as attacked  # noqa: E402

MIB = 1 << 20
GROUP_MIB, SECONDS = 1536, int(os.environ.get("MEMORY_SECONDS", "180"))
TENANTS, EACH_S = 6, 10
PATIENCE_S = 60
OPTIONS = ("--sandbox-memory", "256M", "--sandbox-disk", "128M", "--tenant-rate", "0")
PROCESSES = ("sandglass-front", "sg-guard")

# ---- from inside: each is the code of a program that never ends by itself

GROW = "x = []\nwhile True: x.append(bytearray(b'x') * (1 << 20))"
FORKS = "import os, time\nfor _ in range(40):\n    if os.fork() == 0: break\n" + GROW
FILES = "while True:\n    try:\n        open('/tmp/f', 'ab').write(bytes(1 << 20))\n    except OSError:\n        open('/tmp/f', 'w')"
SEGMENTS = ("import ctypes\nlibc = ctypes.CDLL(None)\nlibc.shmat.restype = ctypes.c_void_p\nwhile True:\n"
            "    part = libc.shmget(0, 1 << 20, 0o1600)\n    ctypes.memset(libc.shmat(part, None, 0), 1, 1 << 20)")
SOCKETS = ("import socket\nheld = []\nwhile True:\n    try:\n        a, b = socket.socketpair()\n        a.setblocking(False)\n"
           "        held += [a, b]\n        while True: a.send(bytes(1 << 16))\n    except OSError:\n        pass")
CONNECTS = ("import socket\nheld = []\nn = 0\nwhile True:\n    s = socket.socket()\n    s.setblocking(False)\n    n += 1\n"
            "    s.connect_ex((f'203.0.113.{n % 250 + 1}', 80))\n    held = held[-200:] + [s]")
PROGRAMS = (GROW, FORKS, FILES, SEGMENTS, SOCKETS, CONNECTS)


def inside(site, key):
    sandbox = site.create(key)
    for code in random.sample(PROGRAMS, 2):
        sandbox.python(code)
    time.sleep(EACH_S)
    sandbox.kill()


# ---- from outside: what the server itself must keep


def copies(site, key):
    """Checkpoints and branches of a kernel with much in it."""
    sandbox = site.create(key, templateID="code-interpreter-v1")
    for n in range(8):
        sandbox.cell(f"x{n} = bytearray(b'x') * (16 << 20)")
        site.api("POST", f"/sandboxes/{sandbox.id}/checkpoints", {}, key)
        site.api("POST", f"/sandboxes/{sandbox.id}/fork", {"count": 4, "timeout": EACH_S}, key)
    sandbox.kill()


def unread(site, key):
    """Output that nobody takes."""
    sandbox = site.create(key)
    body = json.dumps({"process": {"cmd": "/usr/bin/yes", "args": []}}).encode()
    head = "".join(f"{k}: {v}\r\n" for k, v in sandbox.headers(**{"Content-Type": "application/connect+json"}).items())
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            s = stack.enter_context(site.connect())
            s.sendall(f"POST /process.Process/Start HTTP/1.1\r\nHost: x\r\n{head}Content-Length: {len(body) + 5}\r\n\r\n".encode()
                      + b"\0" + len(body).to_bytes(4, "big") + body)
        time.sleep(EACH_S)
    sandbox.kill()


def bodies(site, key):
    """Long bodies that do not end, and JSON of small values."""
    half = (f"POST /v1/tools/run_code HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {16 * MIB}\r\n\r\n").encode() + b'{"code":"' + b"x" * (512 << 10)
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(site.connect()).sendall(half)
        for _ in range(5):
            site.api("POST", "/v1/tools/run_code", b'{"code":[' + b"[]," * (2 << 20) + b"0]}", key)
        time.sleep(EACH_S / 2)


def results(site, key):
    """Results as large as an answer may be."""
    code = "class R:\n    def _repr_html_(self): return 'x' * (30 << 20)\nR()"
    for _ in range(3):
        site.api("POST", "/v1/tools/run_code", {"conversationId": "c", "pathId": "p", "code": code}, key)


ATTACKS = (inside, inside, copies, unread, bodies, results)


# ---- the run


@contextlib.contextmanager
def limited():
    """What is started inside has so much memory, with all that comes of it."""
    v1 = os.path.isdir("/sys/fs/cgroup/memory")
    top = "/sys/fs/cgroup/memory" if v1 else "/sys/fs/cgroup"
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = next(path for _, names, path in (line.strip().split(":", 2) for line in file)
                   if ("memory" in names.split(",") if v1 else names == ""))
    group = f"{top}/bench-memory-{os.getpid()}"
    os.mkdir(group)
    with open(f"{group}/{'memory.limit_in_bytes' if v1 else 'memory.max'}", "w", encoding="ascii") as file:
        file.write(str(GROUP_MIB * MIB))
    try:
        yield lambda inside: move(group if inside else top + own)
    finally:
        until(lambda: not open(f"{group}/cgroup.procs", encoding="ascii").read())
        os.rmdir(group)


def move(group):
    with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)


def processes(site):
    pids = {host.status(pid).get("Name", ""): pid for pid in host.children(site.process.pid)}
    return {"warden": site.process.pid} | {name: pids.get(name) for name in PROCESSES}


def attacker(site, key, end, done):
    while time.monotonic() < end:
        with contextlib.suppress(OSError, RuntimeError, ValueError, KeyError, http.client.HTTPException):
            random.choice(ATTACKS)(site, key)
            next(done)


def neighbour(site, key, end):
    """Statuses of its creates, and how many of its sandboxes did not answer."""
    statuses, silent = {}, 0
    while time.monotonic() < end:
        made = site.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60}, key)
        statuses[made.status] = statuses.get(made.status, 0) + 1
        if made.status == 201:
            sandbox = attacked.Sandbox(site, made.json())
            silent += bool(sandbox.trouble())
            sandbox.kill()
        time.sleep(0.5)
    return statuses, silent


def memory(report):
    with contextlib.ExitStack() as stack:
        go = stack.enter_context(limited())
        go(True)
        try:
            site = stack.enter_context(attacked.Site(*OPTIONS))
        finally:
            go(False)
        keys = [site.key_of(f"hostile{n}") for n in range(TENANTS)]
        before, end, done = processes(site), time.monotonic() + SECONDS, itertools.count()
        threads = [threading.Thread(target=attacker, args=(site, key, end, done)) for key in keys]
        for thread in threads:
            thread.start()
        statuses, silent = neighbour(site, site.key_of("neighbour"), end)
        for thread in threads:
            thread.join()
        after, attacks = processes(site), next(done)
    report.save("memory", [{"statuses": statuses, "silent": silent, "attacks": attacks, "before": before, "after": after}])
    what = f"{TENANTS} tenants that want all memory, {SECONDS} s, {GROUP_MIB} MiB"
    report.row(f"{what}: of front, guard and warden killed", sum(after[name] != pid for name, pid in before.items()), 0,
               detail=f"{attacks} attacks")
    report.row(f"{what}: answers to a neighbour's creates that are neither 201 nor 503",
               sum(n for status, n in statuses.items() if status not in (201, 503)), 0, detail=str(statuses))
    report.row(f"{what}: a neighbour's sandboxes that did not answer", silent)
