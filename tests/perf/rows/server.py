"""The server over HTTP on loopback: sandboxes made and used, bytes moved, small requests."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from . import programs
from .report import Times, by_case

sys.path.insert(0, str(programs.ROOT / "tests/system"))
import server_client  # noqa: E402

LOAD = programs.OUTPUT / "load"
BARE = programs.OUTPUT / "bare"
LLHTTP = pathlib.Path("/usr/share/llhttp")
CREATES = 500
COMMANDS = 300
BURST = 100
PAUSES = 200
CHURN_S = 10
STREAMS = 1000
STREAMS_S = 20
TRANSFER_MIB = 1024
HEALTH_ROUNDS = 5
SDK_ROUNDS = 100


def build():
    sources = [str(p) for p in (programs.SOURCES / "server").glob("*.c") if p.name != "bare.c"]
    subprocess.run(["gcc", *programs.WARNINGS, *sources, "-o", LOAD, "-lpthread"], check=True)
    subprocess.run(["gcc", "-std=gnu17", "-O2", "-w", "-I/usr/share/include/llhttp",
                    programs.SOURCES / "server/bare.c", *LLHTTP.glob("*.c"), "-o", BARE, "-luv"],
                   check=True)


class Server(server_client.Server):
    """One that is there for a `with`."""

    def __init__(self, *options):
        super().__init__(programs.SANDGLASS, tempfile.mkdtemp(prefix="sandglass-bench-"), *options)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.state, ignore_errors=True)

    def memory_mib(self, field="VmRSS"):
        with open(f"/proc/{self.front()}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024

    def load(self, *arguments, at_checkpoint=None):
        command = [LOAD, str(self.port), self.key, *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env=programs.ENVIRONMENT)
        samples = []
        for line in process.stdout:
            sample = json.loads(line)
            if "checkpoint" in sample:
                at_checkpoint(sample["checkpoint"])
                process.stdin.write("\n")
                process.stdin.flush()
            else:
                samples.append(sample)
        if process.wait() != 0:
            raise RuntimeError(f"'load {arguments[0]}' ended with {process.returncode}")
        return samples


def server(report):
    build()
    with Server() as s:
        lives(report, s)
        streams(report, s)
        health(report, s)
        sdk(report, s)
    with Server("--sandbox-memory", "3G", "--sandbox-disk", "1536M") as s:
        transfer(report, s)


def percentile(report, measure, times, q, limit):
    report.row(f"{measure}, p{q}", times.quantile(q / 100), limit, "ms", str(times))


def lives(report, s):
    samples = s.load("create", CREATES)
    report.save("server-create", samples)
    times = by_case(samples)
    percentile(report, "POST /v2/sandboxes from a warm pool", times["create"], 50, 1.5)
    percentile(report, "POST /v2/sandboxes from a warm pool", times["create"], 99, 10)
    report.time("DELETE /sandboxes/{id}", times["kill"])

    samples = s.load("interactive", COMMANDS)
    report.save("server-interactive", samples)
    times = by_case(samples)
    percentile(report, "create to the end of 'true'", times["create to command finished"], 50, 6)
    report.time("a second 'true' in the same sandbox", times["second command"])

    samples = s.load("burst", BURST)
    report.save("server-burst", samples)
    times = by_case(samples)
    report.row(f"{BURST} creates and a command each, at once, all done",
               times["all of the burst"].p50, 1000, "ms", f"each: {times['burst']}")

    samples = s.load("churn", CHURN_S, 4)
    report.save("server-churn", samples)
    rate = samples[0]["a_second"]
    report.row("create and kill, sustained: ms each", 1000 / rate, 1000 / 300, "ms",
               f"{rate:.0f} a second, 4 clients, {CHURN_S} s")

    samples = s.load("pause", PAUSES)
    report.save("server-pause", samples)
    times = by_case(samples)
    percentile(report, "pause, memory kept", times["pause"], 50, 3)
    percentile(report, "resume, memory kept", times["resume"], 50, 3)


def streams(report, s):
    memory = []
    samples = s.load("streams", STREAMS, STREAMS_S,
                     at_checkpoint=lambda _: memory.append(s.memory_mib()))
    report.save("server-streams", samples)
    found = samples[0]
    report.row(f"{STREAMS} open command streams: memory of the front", memory[0], 64, "MiB",
               f"{found['lines']} lines in {found['seconds']} s, fewest {found['fewest']}")
    report.row(f"{STREAMS} open command streams: streams lost", found["lost"], 0)


def transfer(report, s):
    memory = {}
    samples = s.load("transfer", TRANSFER_MIB,
                     at_checkpoint=lambda name: memory.setdefault(name, s.memory_mib()))
    report.save("server-transfer", samples)
    for sample in samples:
        rate = sample["mib"] * 1.048576 / (sample["us"] / 1000)
        report.row(f"{sample['case']} of {TRANSFER_MIB} MiB: ms a GB", 1000 / rate, 2000, "ms",
                   f"{rate:.2f} GB/s")
    report.row("the same: growth of the front", max(memory.values()) - memory["before"], 4, "MiB",
               ", ".join(f"{name} {value:.1f}" for name, value in memory.items()))


def health(report, s):
    """In turns, so that whatever else the machine does meets both alike."""
    bare = subprocess.Popen([BARE], stdout=subprocess.PIPE, text=True)
    try:
        port = int(bare.stdout.readline())
        ours, theirs = [], []
        for _ in range(HEALTH_ROUNDS):
            ours.append(s.load("health", 2)[0]["a_second"])
            run = subprocess.run([LOAD, str(port), "none", "health", "2"], check=True,
                                 capture_output=True, text=True)
            theirs.append(json.loads(run.stdout)["a_second"])
    finally:
        bare.kill()
        bare.wait()
    time_of = lambda rates: Times([1e6 / r for r in rates])
    report.row("GET /health: time of a request, bare libuv and llhttp = 1",
               time_of(ours).p50 / time_of(theirs).p50, 1 / 0.6, "x",
               f"{sorted(ours)[len(ours) // 2]:.0f} against "
               f"{sorted(theirs)[len(theirs) // 2]:.0f} a second")


def sdk(report, s):
    """Through the SDK from npm."""
    modules = programs.ROOT / "build/e2e"
    node = programs.ROOT / "build/node/node_modules/node-22/bin/node"
    for name in ("e2e", "node"):
        subprocess.run([programs.ROOT / "tools/npm-modules", name], check=True, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{s.port}"
    run = subprocess.run([node, programs.SOURCES / "server/sdk.mjs", modules, str(SDK_ROUNDS)],
                         check=True, capture_output=True, text=True,
                         env=programs.ENVIRONMENT | {"E2B_API_KEY": s.key, "E2B_API_URL": url,
                                                     "E2B_SANDBOX_URL": url})
    samples = [json.loads(line) for line in run.stdout.splitlines()]
    report.save("server-sdk", samples)
    for name, times in by_case(samples).items():
        report.time(name, times)
