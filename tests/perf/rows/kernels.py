"""The code interpreter: first answers, cells in live kernels, what kernels hold, what cells write.

ipykernel takes turns with us where the two are compared."""
from . import footprint, programs, server
from .report import by_case

KERNELS = programs.OUTPUT / "kernels"
CONTENDER = (programs.PYTHON, programs.SOURCES / "kernels/contender.py")

FIRST_CELLS = 300
TURNS = 4
POOLED = 75  # these and the next three in each turn
CELLS = 500
COLD_STARTS = 3
ZMQ_CELLS = 100
POOLED_REST_US = 30000  # for the pool to make a sandbox and its kernel
UNPOOLED = 150
UNPOOLED_REST_US = 10000
HELD = 200
CROWD = 1000
CROWD_ROUNDS = 2
OUTPUT_MB = 1000

NO_POOL = ("--pool-min", "0", "--pool-max", "0")
LARGE = ("--tenant-sandboxes", str(CROWD + 10), "--tenant-rate", "0")
SETS = {"standard": "", "science": "science"}  # what the server calls them, what the provider does


def build():
    server.build()
    programs.link_inner(KERNELS, "kernels/main.c", "engine/tools.c")


def kernels(report):
    build()
    in_the_engine(report)
    with server.Server() as s:
        s.load("twins")
        against_ipykernel(report, s)
        output(report, s)
    for name, limit in (("standard", 6), ("science", 8)):
        with server.Server(*NO_POOL, "--warm-kernels", name) as s:
            unpooled(report, s, name, limit)
    for name, limit in (("standard", 1536), ("science", 2253)):
        held(report, name, limit)
    with server.Server(*LARGE) as s:
        crowd(report, s)


def percentiles(report, measure, times, limits):
    for q, limit in limits.items():
        server.percentile(report, measure, times, q, limit)


def in_the_engine(report):
    samples = programs.bench("first", FIRST_CELLS, "", program=(KERNELS,))
    report.save("kernels-engine", samples)
    times = by_case(samples)
    percentiles(report, "engine: first 1+1 in a sandbox from the pool", times["first cell"],
                {50: 0.3, 99: 2})
    report.time("engine: the next 1+1", times["next cell"])


def part_of(report, measure, ours, theirs, times_faster):
    report.row(measure, 100 * ours.p50 / theirs.p50, 100 / times_faster, "%",
               f"{theirs.p50 / ours.p50:.0f} x faster: {ours} against {theirs}")


def against_ipykernel(report, s):
    samples = []
    for _ in range(TURNS):
        samples += s.load("first-cells", POOLED, POOLED_REST_US)
        samples += s.load("cells", CELLS)
        samples += programs.bench(COLD_STARTS, ZMQ_CELLS, program=CONTENDER)
    report.save("kernels-http", samples)
    times = by_case(samples)
    first, cell = times["create to first answer"], times["cell"]
    percentiles(report, "create + first 1+1", first, {50: 3, 99: 15})
    report.time("create + first 1+1: the create", times["create"])
    report.time("create + first 1+1: the cell", times["first cell"])
    part_of(report, "the same, part of ipykernel's start and first cell", first,
            times["ipykernel: start to first answer"], 100)
    percentiles(report, "a cell in a live kernel", cell, {50: 0.5})
    part_of(report, "the same, part of ipykernel's over ZMQ", cell, times["ipykernel: cell"], 20)


def unpooled(report, s, name, limit):
    s.load("twins")
    samples = s.load("first-cells", UNPOOLED, UNPOOLED_REST_US)
    report.save(f"kernels-unpooled-{name}", samples)
    times = by_case(samples)
    percentiles(report, f"create + first 1+1, nothing pooled, {name}",
                times["create to first answer"], {50: limit})
    report.time(f"nothing pooled, {name}: the create", times["create"])
    report.time(f"nothing pooled, {name}: the cell", times["first cell"])


def held(report, name, limit_kib):
    session = footprint.Session("hold", HELD, SETS[name], program=KERNELS)
    counts = {}
    for place in ("empty", "full", "used"):
        session.wait(place)
        counts[place] = footprint.memory(session.pid)
        session.resume()
    session.finish()
    report.save(f"kernels-held-{name}", [counts])
    for place, what in (("full", "waiting"), ("used", "after a cell")):
        footprint.each(report, f"{HELD} sandboxes with a {name} Python, {what}", HELD,
                       counts["empty"], counts[place], limit_kib)


def crowd(report, s):
    s.load("twins")
    samples = s.load("crowd", CROWD, CROWD_ROUNDS)
    report.save("kernels-crowd", samples)
    times = by_case(samples)
    percentiles(report, f"{CROWD} sandboxes with live kernels: a cell", times["crowd: cell"],
                {99: 20})
    report.time(f"{CROWD} sandboxes with live kernels: create + first cell, no rest",
                times["crowd: create to first answer"])


def output(report, s):
    """Flat: the most that the front ever had, against what it had before."""
    memory = {}
    fields = {"before": "VmRSS", "after": "VmHWM"}
    samples = s.load("output", OUTPUT_MB,
                     at_checkpoint=lambda name: memory.setdefault(name,
                                                                  s.memory_mib(fields[name])))
    report.save("kernels-output", samples)
    rate = samples[0]["megabytes"] / (samples[0]["us"] / 1e6)
    report.row(f"stdout of {OUTPUT_MB} MB from a cell: ms a MB", 1000 / rate, 1000 / 300, "ms",
               f"{rate:.0f} MB/s")
    report.row("the same: growth of the front", memory["after"] - memory["before"], 4, "MiB",
               ", ".join(f"{name} {value:.1f}" for name, value in memory.items()))
