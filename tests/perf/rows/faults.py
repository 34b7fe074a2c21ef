"""How long service is away when a process of the server is killed or stopped, under load.

A probe that needs the process is begun every 100 ms from the signal on; counted is the time until the first that
succeeds."""
import contextlib
import http.server
import itertools
import json
import os
import signal
import sys
import threading
import time

from . import programs
from .neighbours import repeating
from .report import Times

sys.path.insert(0, str(programs.ROOT / "tests/attack/lib"))
os.environ.setdefault("SANDGLASS", str(programs.SANDGLASS))
import database  # noqa: E402
import host  # noqa: E402
import server as attacked  # noqa: E402

EACH_S, PATIENCE_S = 0.1, 30
KILLED_ROUNDS, STOPPED_ROUNDS = 10, 3
BARS_MS = {signal.SIGKILL: 500, signal.SIGSTOP: 7000}
# Every sandbox is made by the spawner, none waits.
OPTIONS = ("--pool-min", "0", "--pool-max", "0", "--tenant-rate", "0", "--warm-kernels", "standard")
# Nothing but the guard takes time: an interpreter's start, ten at once, took more than the guard's.
KNOCK = "exec 3<>/dev/tcp/203.0.113.1/80 && read -t 20 x <&3; true"
SETTLE_S = 2  # what is killed is a process that works, not one that starts


class Hook(http.server.ThreadingHTTPServer):
    """Takes webhooks about contexts."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.server.paths.add(body.get("pathId"))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.paths, self.number = set(), itertools.count()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.options = ("--webhook-url", f"http://127.0.0.1:{self.server_port}/", "--webhook-events", "context.created")

    def hears(self, site):
        """Whether a new context is told of."""
        path = f"told-{next(self.number)}"
        made = site.api("PUT", "/v1/contexts", {"conversationId": "faults", "pathId": path, "template": "base"})
        end = time.monotonic() + PATIENCE_S
        while path not in self.paths and time.monotonic() < end:
            time.sleep(0.005)
        site.api("DELETE", f"/v1/contexts/{made.json()['context']['id']}")
        return path in self.paths


def faults(report):
    with database.Database() as db, Hook() as hook, attacked.Site(*OPTIONS, *hook.options, "--store", db.url) as site:
        blocked = site.create(network={"allowOut": ["198.51.100.0/24"], "denyOut": ["0.0.0.0/0"]})
        probes = {
            "front": ("sandglass-front", lambda: site.ask("GET", "/health").status == 204),
            "guard": ("sg-guard", lambda: blocked.run(KNOCK)[0] == 0),
            "clerk": ("sandglass-clerk", lambda: site.api("PUT", "/v1/contexts", {
                "conversationId": "faults", "pathId": "p", "template": "base"}).status in (200, 201)),
            # The kernel keeps 15 characters of a name.
            "herald": ("sandglass-heral", lambda: hook.hears(site)),
            "spawner": ("sg-spawner", lambda: used(site, "base", lambda sandbox: sandbox.trouble() == [])),
            "broker": ("sg-broker", lambda: used(site, "code-interpreter-v1",
                                                 lambda sandbox: sandbox.cell("1+1").text == "2")),
        }
        for name, (comm, probe) in probes.items():
            begun = time.monotonic()
            if not tried(probe):
                raise RuntimeError(f"what needs the {name} does not work")
            calm = (time.monotonic() - begun) * 1000
            for how, rounds in ((signal.SIGKILL, KILLED_ROUNDS), (signal.SIGSTOP, STOPPED_ROUNDS)):
                with repeating(2, lambda: site.create().kill()):
                    away = [fault(site, comm, probe, how) for _ in range(rounds)]
                word = "killed" if how == signal.SIGKILL else "stopped"
                report.save(f"faults-{name}-{word}", [{"ms": ms} for ms in away])
                times = Times([ms * 1000 for ms in away])
                report.row(f"{name} {word}: service back, at most", max(away), BARS_MS[how], "ms",
                           f"{times}; the same undisturbed {calm:.0f}")


def used(site, template, use):
    sandbox = site.create(templateID=template)
    try:
        return use(sandbox)
    finally:
        sandbox.kill()


def tried(probe):
    with contextlib.suppress(OSError, RuntimeError, ValueError, KeyError, TypeError, attacked.http.client.HTTPException):
        return probe()
    return False


def children(site, comm):
    return {p for p in host.children(site.process.pid) if host.status(p).get("Name", "") == comm}


def fault(site, comm, probe, how):
    """Milliseconds until a probe that was begun after the signal has succeeded."""
    old, done, ended = until(lambda: children(site, comm)), threading.Event(), []

    def attempt():
        if tried(probe):
            ended.append(time.monotonic())
            done.set()

    for pid in old:
        os.kill(pid, how)
    began, threads = time.monotonic(), []
    while not done.wait(EACH_S) and time.monotonic() - began < PATIENCE_S:
        threads.append(threading.Thread(target=attempt))
        threads[-1].start()
    for thread in threads:
        thread.join()
    if not ended:
        raise RuntimeError(f"service did not come back after {comm} got {how.name}")
    until(lambda: children(site, comm) - old and not children(site, comm) & old)
    time.sleep(SETTLE_S)
    return (min(ended) - began) * 1000


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        if time.monotonic() > end:
            raise RuntimeError("a process was not replaced")
        time.sleep(0.02)
    return value
