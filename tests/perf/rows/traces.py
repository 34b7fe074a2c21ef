"""Traces: what they cost who is traced, and what becomes of them when nobody takes them."""
import contextlib
import http.server
import socket
import threading

from . import programs, server
from .report import by_case

TRACES = programs.OUTPUT / "traces"
TURNS = 16
FIRST = 25  # in each turn
REST_US = 30000  # for the pool to make a sandbox and its kernel
FOUND = 1000
RATE = 10_000
RATE_S = 5
BAR_PERCENT = 3
# The queue's own bound is 16 MiB; what is under way and the allocator's share come on top.
BAR_GROWTH_MIB = 24
NO_LIMIT = ("--tenant-rate", "0")


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes all there is, and looks at none of it."""
    protocol_version = "HTTP/1.1"
    posts = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Collector.posts += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def traces(report):
    server.build()
    programs.link_inner(TRACES, "traces/main.c", libraries=("-luv", "-lcurl", "-lm"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        on(report, collector.server_port)
        collector.shutdown()
    if Collector.posts == 0:
        raise RuntimeError("nothing was traced")
    down(report, free_port())
    spans(report, free_port())


def in_turns(variants, *loads):
    """{name: samples} of servers with these options and of one without, "off", asked in turns; and how much the
    fronts grew."""
    found, growth = {}, {}
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(server.Server(*NO_LIMIT, *options))
                   for name, options in ({"off": ()} | variants).items()}
        for name, s in servers.items():
            s.load("twins")
            s.load("paths-run", "bench-0", 1)
            growth[name] = -s.memory_mib()
        for turn in range(TURNS):
            for name in list(servers)[::-1 if turn % 2 else 1]:
                for load in loads:
                    found.setdefault(name, []).extend(servers[name].load(*load))
        for name, s in servers.items():
            growth[name] += s.memory_mib()
    return found, growth


def more(report, measure, ours, theirs, limit=None):
    report.row(measure, 100 * (ours.p50 / theirs.p50 - 1), limit, "%", f"{ours} against {theirs}")


def save(report, name, found):
    report.save(name, [sample | {"server": which} for which in found for sample in found[which]])


def on(report, port):
    """Everything is traced, and goes to a collector that takes it."""
    target = ("--otlp-endpoint", f"http://127.0.0.1:{port}")
    found, _ = in_turns({"on": target, "content": (*target, "--trace-content")},
                        ("first-cells", FIRST, REST_US), ("paths-run", "bench-0", 100))
    save(report, "traces-on", found)
    times = {name: by_case(samples) for name, samples in found.items()}
    for case, what in (("create to first answer", "create + first 1+1"), ("run_code", "run_code of 1+1")):
        limit = BAR_PERCENT if case != "run_code" else None
        more(report, f"traced: {what}, more than without", times["on"][case], times["off"][case], limit)
        more(report, f"traced, code and output too: {what}, more than without", times["content"][case],
             times["off"][case])


def down(report, port):
    """Each request makes a span, and nobody takes them."""
    found, growth = in_turns({"down": ("--otlp-endpoint", f"http://127.0.0.1:{port}")},
                             ("paths-found", "bench", 1, FOUND))
    save(report, "traces-down", found)
    times = {name: by_case(samples)["found"] for name, samples in found.items()}
    more(report, "collector down: PUT /v1/contexts, more than without", times["down"], times["off"])
    report.row(f"collector down: {TURNS * FOUND} requests, growth of the front", growth["down"], BAR_GROWTH_MIB,
               "MiB", f"without: {growth['off']:.1f}")


def spans(report, port):
    """The engine of it by itself, at a rate that a server of this size does not come to."""
    found = programs.bench(RATE, RATE_S, port, program=(TRACES,))[0]
    report.save("traces-spans", [found])
    said = f"{found['a_second']} a second, {found['us']:.2f} us of processor time each"
    report.row(f"{RATE} spans/s, collector down: growth", (found["after_kib"] - found["before_kib"]) / 1024,
               BAR_GROWTH_MIB, "MiB", f"{said}; {(found['after_kib'] - found['full_kib'])} KiB of it after 2 s")
    report.row(f"{RATE} spans/s, collector down: processor time of the front's loop",
               100 * found["us"] * found["a_second"] / 1e6, BAR_PERCENT, "%", said)
    report.row(f"{RATE} spans/s, collector down: longest that the loop was held up", found["late_ms"], None, "ms")
