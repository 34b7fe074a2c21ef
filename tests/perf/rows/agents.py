"""Hosted agents: what a message costs on its way, and how many get through. And that work inside has all of its processor."""
import base64
import io
import json
import pathlib
import subprocess
import tarfile
import tempfile

from . import programs
from .report import by_case
from .server import Server, server_client

LOAD = programs.OUTPUT / "acp-load"
TRIPS = 2000
TRIP_SIZE = 200
COUNT = 100_000
EACH_WAY = 50_000
SHARE_S = 3
SHARE_ROUNDS = 4


def build(directory):
    """The agents that are put in: one in C, one in Node."""
    sources = programs.SOURCES / "acp"
    subprocess.run(["gcc", *programs.WARNINGS, sources / "load.c", sources / "peer.c", "-o", LOAD], check=True)
    subprocess.run(["musl-gcc", *programs.WARNINGS, "-static", "-s", sources / "echo.c", "-o", directory / "echo"],
                   check=True)
    (directory / "echo.mjs").write_text((sources / "echo.mjs").read_text())


def load(*arguments):
    run = subprocess.run([LOAD, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True,
                         stdin=subprocess.DEVNULL, env=programs.ENVIRONMENT)
    return [json.loads(line) for line in run.stdout.splitlines()]


def start(server, directory, command):
    """An agent of the server; what `load` needs to talk to it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(directory, arcname=".")
    body = {"command": command, "timeout": 600,
            "source": {"type": "tar", "data": base64.b64encode(buffer.getvalue()).decode()}}
    status, answer = server_client.Client(server).api("POST", "/v1/agents", body)
    if status != 201:
        raise RuntimeError(f"POST /v1/agents: {status} {answer}")
    return [server.port, server.key, answer["agentId"]]


def contenders(directory, server, command):
    """The same agent bare, through `sandglass acp` and through the server."""
    bare = [str(directory / part) if (directory / part).exists() else part for part in command]
    hosted = [programs.SANDGLASS, "acp", "--quiet", "--source", directory, "--timeout", "600s", "--", *command]
    return ["@", "pipe", "bare", *bare, "@", "pipe", "acp", *hosted, "@",
            "ws", "websocket", *start(server, directory, command), "@"]


def acp(report):
    with tempfile.TemporaryDirectory() as name, Server() as server:
        directory = pathlib.Path(name)
        build(directory)
        for language, command in (("C", ["./echo"]), ("Node", ["node", "echo.mjs"])):
            samples = load("trips", TRIPS, TRIP_SIZE, *contenders(directory, server, command))
            report.save(f"acp-trips-{language.lower()}", samples)
            times = by_case(samples)
            for way, what, limit in (("acp", "sandglass acp", 0.3), ("websocket", "the WebSocket", 0.6)):
                report.row(f"message of {TRIP_SIZE} bytes there and back through {what}, agent in {language}: more than bare",
                           times[way].p50 - times["bare"].p50, limit, "ms",
                           f"{times[way]} against {times['bare']}")
        rates(report, load("rates", COUNT, *contenders(directory, server, ["./echo"])))


def rates(report, samples):
    report.save("acp-rates", samples)
    ways = {"to": "to the agent", "from": "from the agent", "both": "both ways at once"}
    for case, what in (("acp", "sandglass acp"), ("websocket", "the WebSocket"), ("bare", "a pipe")):
        for way, words in ways.items():
            found = sorted(s["a_second"] for s in samples if (s["case"], s["way"]) == (case, way))
            rate = found[len(found) // 2]
            report.row(f"messages of 1 KB through {what}, {words}: us each", 1e6 / rate,
                       None if case == "bare" else 1e6 / EACH_WAY, "us", f"{rate:,} a second")


BUSY = """
import os, time
children = []
for _ in range({processes}):
    pid = os.fork()
    if pid == 0:
        end = time.monotonic() + {seconds}
        while time.monotonic() < end:
            for _ in range(10000):
                pass
        os._exit(0)
began = time.monotonic()
for _ in range({processes}):
    os.wait()
t = os.times()
print((t.children_user + t.children_system) / (time.monotonic() - began))
"""


def busy(processes):
    return BUSY.format(processes=processes, seconds=SHARE_S)


def cpu_share(report):
    """What a sandbox gets of the processor time that it may have. In turns with a process that nothing holds back: what the
    machine has no time for is not the sandbox's loss."""
    with Server("--sandbox-cpus", "1") as whole, Server("--sandbox-cpus", "0.5") as half:
        samples = []
        clients = [server_client.Client(s, timeout_s=60) for s in (whole, half)]
        sandboxes = [(client, client.create()) for client in clients]
        inside = {"1 process, 1 cpu": (sandboxes[0], 1), "2 processes, 1 cpu": (sandboxes[0], 2),
                  "1 process, 0.5 cpus": (sandboxes[1], 1)}
        for _ in range(SHARE_ROUNDS):
            run = subprocess.run([programs.PYTHON, "-c", busy(1)], check=True, capture_output=True, text=True)
            samples.append({"case": "bare", "cpus": float(run.stdout)})
            for case, ((client, sandbox), processes) in inside.items():
                status, output = client.run(sandbox, f"exec python3 -c '{busy(processes)}'")
                if status != 0:
                    raise RuntimeError(f"the busy loop ended with {status}")
                samples.append({"case": case, "cpus": float(output)})
        report.save("cpu-share", samples)
    got = {case: sum(s["cpus"] for s in samples if s["case"] == case) / SHARE_ROUNDS for case in ("bare", *inside)}
    for case in inside:
        share = got["bare"] * (0.5 if "0.5" in case else 1)
        report.row(f"busy for {SHARE_ROUNDS} x {SHARE_S} s, {case}: missed of its share", (1 - got[case] / share) * 100, 1,
                   "%", f"{got[case]:.4f} cpus, bare {got['bare']:.4f}")
