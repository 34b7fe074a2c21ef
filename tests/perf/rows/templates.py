"""Sandboxes of templates that are root file systems: the first, the second, those that wait; their kernels; start commands."""
import http.client
import json
import subprocess
import sys
import tempfile
import time

from . import programs
from .report import Times
from .server import Server

sys.path.insert(0, str(programs.ROOT / "tests/system"))
import world_root  # noqa: E402
from server_client import Client, until  # noqa: E402

OPTIONS = ("--tenant-rate", "0", "--tenant-sandboxes", "200")
COLD, ROUNDS, REST_S, STANDBY_ROUNDS = 10, 150, 0.06, 20
START = "touch /tmp/ready; exec sleep 100000"


class Caller:
    """One kept connection."""

    def __init__(self, server):
        self.key, self.kept = server.key, http.client.HTTPConnection("127.0.0.1", server.port)
        self.client = Client(server, 60)

    def ask(self, method, path, body=None, **headers):
        began = time.perf_counter_ns()
        self.kept.request(method, path, json.dumps(body), {"X-API-Key": self.key, "Content-Type": "application/json"} | headers)
        answer = self.kept.getresponse()
        data = answer.read()
        usec = (time.perf_counter_ns() - began) / 1000
        if answer.status not in (200, 201, 202, 204):
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:200]}")
        return data, usec

    def create(self, template):
        data, usec = self.ask("POST", "/v2/sandboxes", {"templateID": template, "timeout": 300})
        return json.loads(data), usec

    def cell(self, sandbox):
        headers = self.client.data_headers(sandbox, "application/json") | {"E2b-Sandbox-Port": "49999"}
        return self.ask("POST", "/execute", {"code": "1+1"}, **headers)[1]

    def kill(self, sandbox):
        self.ask("DELETE", f"/sandboxes/{sandbox['sandboxID']}")


def imported(server, name, tar):
    subprocess.run([programs.SANDGLASS, "world", "import", "--state", server.state, "--name", name, tar], check=True,
                   stdout=subprocess.DEVNULL, env=programs.ENVIRONMENT)


def built(caller, name, **fields):
    made = json.loads(caller.ask("POST", "/v3/templates", {"name": name})[0])
    ids = f"/templates/{made['templateID']}/builds/{made['buildID']}"
    caller.ask("POST", f"/v2{ids}", {"fromTemplate": "base", "steps": [], "force": True} | fields)
    until(lambda: json.loads(caller.ask("GET", f"{ids}/status?logsOffset=0")[0])["status"] == "ready", 60, 0.2)


def without_pool(report, tar):
    first, second = [], []
    with Server(*OPTIONS, "--pool-min", "0", "--pool-max", "0") as server:
        caller = Caller(server)
        caller.kill(caller.create("base")[0])
        for i in range(COLD):
            imported(server, f"cold{i}", tar)
            one, usec = caller.create(f"cold{i}")
            first.append(usec)
            two, usec = caller.create(f"cold{i}")
            second.append(usec)
            caller.kill(one)
            caller.kill(two)
    report.save("templates-cold", [{"first": first, "second": second}])
    report.row("first sandbox of a template, no pool", Times(first).quantile(0.5), 150, "ms", str(Times(first)))
    report.row("second sandbox of it, no pool", Times(second).quantile(0.5), 50, "ms", str(Times(second)))


def with_pool(report, tar):
    """In turns with the plain template."""
    creates, cells = {"base": [], "warm": []}, {"base": [], "warm": []}
    with Server(*OPTIONS) as server:
        caller = Caller(server)
        imported(server, "warm", tar)
        for name in creates:
            sandbox, _ = caller.create(name)
            caller.cell(sandbox)
        time.sleep(1)
        for _ in range(ROUNDS):
            for name in creates:
                sandbox, usec = caller.create(name)
                creates[name].append(usec)
                cells[name].append(caller.cell(sandbox))
                caller.kill(sandbox)
                time.sleep(REST_S)
    report.save("templates-warm", [{"creates": creates, "cells": cells}])
    report.compare("a sandbox of a template that waits, plain template = 1", Times(creates["warm"]), Times(creates["base"]), 1.25)
    report.compare("first 1+1 there, plain template = 1", Times(cells["warm"]), Times(cells["base"]))


def started(report):
    """With a start command; no faster than they are made."""
    times = []
    with Server(*OPTIONS) as server:
        caller = Caller(server)
        built(caller, "started", startCmd=START, readyCmd="test -e /tmp/ready")
        sandbox, miss = caller.create("started")
        for _ in range(STANDBY_ROUNDS):
            caller.kill(sandbox)
            time.sleep(1.5)
            sandbox, usec = caller.create("started")
            times.append(usec)
    report.save("templates-started", [{"miss": miss, "times": times}])
    report.time("a sandbox with a start command that waits", Times(times))
    report.time("one that does not", Times([miss]))


def templates(report):
    with tempfile.TemporaryDirectory(prefix="sandglass-bench-") as folder:
        tar = f"{folder}/root.tar"
        world_root.make(tar)
        without_pool(report, tar)
        with_pool(report, tar)
        started(report)
