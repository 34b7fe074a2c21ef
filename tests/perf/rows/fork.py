"""Live fork: copies of what runs, checkpoints, and ways back, over HTTP."""
from . import footprint, programs, server
from .report import by_case

ROUNDS = 100
LARGE_ROUNDS = 30
REST_US = 60000  # for the pool to make a sandbox and its kernel
MIB, LARGE_MIB = 100, 1024
WIDTH, FANS = 64, 3
FAN_REST_US = 3000000
LEVELS = 20
HELD = 32

OPTIONS = ("--tenant-rate", "0", "--tenant-sandboxes", "200", "--sandbox-memory", "4G")
FULL_POOL = ("--pool-min", str(WIDTH + 2), "--pool-max", str(2 * WIDTH))
NO_POOL = ("--pool-min", "0", "--pool-max", "0")
KEPT = ("--checkpoint-keep", str(2 * HELD), "--checkpoint-max", str(2 * HELD),
        "--checkpoint-memory", "64G")


def fork(report):
    rests(report)
    server.build()
    with server.Server(*OPTIONS) as s:
        s.load("twins")
        copies(report, s, MIB, "huge", ROUNDS, {50: 6, 99: 20}, 3)
        copies(report, s, LARGE_MIB, "huge", LARGE_ROUNDS, {50: 8}, 3)
        copies(report, s, LARGE_MIB, "small", LARGE_ROUNDS, {50: 18}, 15)
        checkpoints(report, s)
        back(report, s)
        chain(report, s)
    with server.Server(*OPTIONS, *FULL_POOL) as s:
        s.load("twins")
        fan(report, s)
    with server.Server(*OPTIONS, *NO_POOL, *KEPT) as s:
        s.load("twins")
        held(report, s)


def rests(report):
    """What a kernel with threads of numeric libraries pays for a copy, beside all else."""
    samples = programs.bench(ROUNDS, program=(programs.PYTHON, "-B",
                                              programs.SOURCES / "kernels/rest.py"))
    report.save("fork-rests", samples)
    times = by_case(samples)
    for case in [name for name in times if name.endswith(": rest")]:
        use = case.replace(": rest", ": use")
        report.time(f"threads rest: {case.removesuffix(': rest')}", times[case])
        report.compare("the next use of it, one without a rest = 1", times[use + " after it"],
                       times[use])


def percentiles(report, measure, times, limits):
    for q, limit in limits.items():
        server.percentile(report, measure, times, q, limit)


def copies(report, s, mib, pages, rounds, limits, paused_limit):
    samples = s.load("forks", rounds, REST_US, mib, pages)
    report.save(f"fork-{mib}-{pages}", samples)
    times = by_case(samples)
    what = f"{mib} MB of numpy in {pages} pages and a file"
    percentiles(report, f"fork to first answer, {what}", times["fork to first answer"], limits)
    report.time(f"the same, {mib} MB, {pages} pages: the fork", times["fork"])
    report.time(f"the same, {mib} MB, {pages} pages: the cell", times["first cell"])
    percentiles(report, f"source stands still, {mib} MB, {pages} pages", times["paused"],
                {50: paused_limit})


def checkpoints(report, s):
    samples = s.load("checkpoints", ROUNDS, MIB)
    report.save("fork-checkpoints", samples)
    times = by_case(samples)
    percentiles(report, f"checkpoint before a cell, {MIB} MB", times["checkpoint"], {50: 3})
    report.time("the cell after it", times["cell after it"])
    report.compare("a cell without one, a sandbox that never had any = 1", times["the next cell"],
                   times["cell, never any"])


def back(report, s):
    samples = s.load("rewinds", ROUNDS, REST_US, MIB)
    report.save("fork-rewinds", samples)
    times = by_case(samples)
    percentiles(report, f"rewind to first answer, {MIB} MB", times["rewind to first answer"],
                {50: 6})
    report.time("the same: the rewind", times["rewind"])
    report.time("the same: the cell", times["rewind: first cell"])


def chain(report, s):
    samples = s.load("fork-chain", LEVELS, REST_US, MIB)
    report.save("fork-chain", samples)
    percentiles(report, f"chain of {LEVELS} forks, each kills its source: a level",
                by_case(samples)["chain: a level"], {50: 8})


def fan(report, s):
    samples = s.load("fork-fan", WIDTH, FANS, FAN_REST_US, MIB)
    report.save("fork-fan", samples)
    times = by_case(samples)
    percentiles(report, f"{WIDTH} branches of {MIB} MB, all have answered",
                times["fan: all have answered"], {50: 500})
    report.time("the same: they are there", times["fan: forked"])


def held(report, s):
    counts = {}
    samples = s.load("fork-idle", HELD, MIB, at_checkpoint=lambda name: counts.setdefault(
        name, footprint.memory(s.process.pid)))
    report.save("fork-idle", [*samples, counts])
    for what, before, after, limit_kib in (
            ("idle checkpoints", "empty", "checkpoints", 614),
            ("idle branches", "checkpoints", "branches", 1638),
            ("branches after a cell", "checkpoints", "used", None)):
        footprint.each(report, f"{HELD} {what}", HELD, counts[before], counts[after], limit_kib)
