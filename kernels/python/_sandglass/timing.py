"""%time and %timeit."""

import math
import os
import time
import timeit


def show_seconds(seconds):
    """Three digits, with a unit that suits them."""
    if seconds >= 60:
        parts, rest = [], int(seconds)
        for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
            count, rest = divmod(rest, size)
            if count:
                parts.append(f"{count}{unit}")
        return " ".join(parts)
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def time_run(function):
    """Calls the function, prints how long it took, and returns its value."""
    before, start = os.times(), time.perf_counter()
    try:
        return function()
    finally:
        wall, after = time.perf_counter() - start, os.times()
        user, system = after.user - before.user, after.system - before.system
        print(
            f"CPU times: user {show_seconds(user)}, sys: {show_seconds(system)}, "
            f"total: {show_seconds(user + system)}\nWall time: {show_seconds(wall)}"
        )


class Measured:
    """The result of %timeit -o."""

    def __init__(self, loops, runs):
        self.loops, self.repeat = loops, len(runs)
        self.timings = [run / loops for run in runs]
        self.all_runs = runs
        self.best, self.worst = min(self.timings), max(self.timings)
        self.average = math.fsum(self.timings) / len(runs)
        squares = math.fsum((t - self.average) ** 2 for t in self.timings)
        self.stdev = math.sqrt(squares / len(runs))

    def __str__(self):
        return (
            f"{show_seconds(self.average)} ± {show_seconds(self.stdev)} per loop "
            f"(mean ± std. dev. of {self.repeat} run{'s' * (self.repeat != 1)}, "
            f"{self.loops:,} loop{'s' * (self.loops != 1)} each)"
        )

    def __repr__(self):
        return f"<TimeitResult : {self}>"


def measure(statement, setup, namespace, loops=0, repeat=7):
    """Runs the statement many times. 0 loops: as many as take 0.2 s."""
    timer = timeit.Timer(statement, setup, globals=namespace)
    if not loops:
        for exponent in range(10):
            loops = 10**exponent
            if timer.timeit(loops) >= 0.2:
                break
    return Measured(loops, timer.repeat(repeat, loops))
