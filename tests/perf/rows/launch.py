"""How long it takes from nothing to a program that has ended."""
import concurrent.futures
import contextlib
import os
import pathlib
import shutil

from . import programs
from .programs import BWRAP, CODE, INSIDE, PYTHON, SANDGLASS
from .report import by_case

PAIRS = 300
COMMAND_PAIRS = 200
BLOCKS = 12
CLI_EXTRA_MS = 4.0


@contextlib.contextmanager
def static_true():
    """A static program that every contender sees at the same place: below /usr, for this while."""
    place = pathlib.Path(f"/usr/lib/sandglass-bench-{os.getpid()}")
    place.mkdir()
    try:
        shutil.copy(INSIDE / "true", place)
        yield place
    finally:
        shutil.rmtree(place)


def engine(report):
    with static_true() as place:
        samples = programs.bench("engine", PAIRS, place)
    report.save("engine", samples)
    t = by_case(samples)
    report.compare("engine: sandbox around static true / bwrap", t["engine.static"],
                   t["engine.static.bwrap"], 0.40)
    report.compare("engine: sandbox around dynamic true / bwrap", t["engine.dynamic"],
                   t["engine.dynamic.bwrap"])
    for part in ("create", "exec", "close"):
        report.time(f"engine: {part}, static true", t[f"engine.static.{part}"])
    for part in ("create", "exec", "close"):
        report.time(f"engine: {part}, dynamic true", t[f"engine.dynamic.{part}"])
    report.time("bare static true", t["engine.static.bare"])


def in_a_row(report):
    with static_true() as place:
        measure_in_a_row(report, place)


def measure_in_a_row(report, place):
    samples = programs.bench("series", 2 * BLOCKS, place)
    report.save("series", samples)
    t = by_case(samples)
    report.compare("engine: sandboxes in a row, static true / bwrap", t["series.engine"],
                   t["series.bwrap"])
    report.row("engine: sandboxes a second, one process", 1000 / t["series.engine"].p50, unit="/s")

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        both = [pool.submit(programs.bench, "series", 2 * BLOCKS, place) for _ in range(2)]
        runs = [run.result() for run in both]
    report.save("series-parallel", runs[0] + runs[1])
    rate = sum(1000 / by_case(run)["series.engine"].p50 for run in runs)
    report.row("engine: sandboxes a second, two processes", rate, unit="/s")


def write_policy():
    path = programs.OUTPUT / "policy"
    path.write_text(f"mount-root {INSIDE}\n")
    return path


def command_line(report):
    static = str(INSIDE / "true")
    show = ["--mount", f"{INSIDE}:/bench", "--policy", str(write_policy())]
    sandglass = [str(SANDGLASS), "run"]
    contenders = {
        "python.bare": ([PYTHON, "-c", CODE], "2\n"),
        "python.sandglass": (sandglass + ["--", "python3", "-c", CODE], "2\n"),
        "python.code": (sandglass + [CODE], "2\n"),
        "python.bwrap": (BWRAP + [PYTHON, "-c", CODE], "2\n"),
        "python.runc": (programs.runc_bundle("python", [PYTHON, "-c", CODE]), "2\n"),
        "true.sandglass": (sandglass + show + ["--", "/bench/true"], ""),
        "true.bwrap": (BWRAP + [static], ""),
    }
    arguments = []
    for name, (command, expected) in contenders.items():
        programs.check_output(command, expected)
        arguments += ["::"] * bool(arguments) + [name, *command]
    samples = programs.bench("commands", COMMAND_PAIRS, *arguments)
    report.save("commands", samples)
    t = by_case(samples)
    for name, what in (("python.sandglass", "run -- python3 -c"), ("python.code", "run CODE")):
        report.row(f"cli: {what}, more than bare python", t[name].p50 - t["python.bare"].p50,
                   CLI_EXTRA_MS, "ms", f"{t[name]} against {t['python.bare']}")
    report.compare("cli: run -- python3 -c / bwrap", t["python.sandglass"], t["python.bwrap"], 0.95)
    report.compare("cli: run -- python3 -c / runc", t["python.sandglass"], t["python.runc"], 0.50)
    report.compare("cli: run CODE / bwrap python3 -c", t["python.code"], t["python.bwrap"])
    report.compare("cli: run -- static true / bwrap", t["true.sandglass"], t["true.bwrap"])
