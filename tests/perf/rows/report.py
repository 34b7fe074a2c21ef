"""Raw figures, what is worked out from them, and the table."""
import json
import statistics


class Report:
    def __init__(self, directory):
        self.directory = directory
        self.rows = []

    def save(self, name, samples):
        """Keeps raw figures: one JSON object a line."""
        with open(self.directory / f"{name}.json", "w", encoding="utf-8") as file:
            for sample in samples:
                file.write(json.dumps(sample) + "\n")

    def row(self, measure, figure, limit=None, unit="", detail=""):
        """One line of the table. Without a limit it is for information only."""
        self.rows.append({"measure": measure, "figure": round(figure, 4), "unit": unit,
                          "limit": limit, "detail": detail,
                          "met": None if limit is None else figure <= limit})

    def compare(self, measure, ours, theirs, limit=None, remark=""):
        """A ratio of medians."""
        self.row(measure, ours.p50 / theirs.p50, limit, "x", f"{ours} against {theirs}{remark}")

    def time(self, measure, times):
        self.row(measure, times.p50, None, "ms", str(times))

    def print_table(self):
        cells = [("measure", "figure", "bar", "verdict", "n, p50 (p90) in ms")]
        for r in sorted(self.rows, key=lambda r: r["limit"] is None):
            bar = "" if r["limit"] is None else f"<= {number(r['limit'], r['unit'])}"
            verdict = {None: "", True: "met", False: "NOT MET"}[r["met"]]
            cells.append((r["measure"], number(r["figure"], r["unit"]), bar, verdict, r["detail"]))
        widths = [max(len(line[i]) for line in cells) for i in range(4)]
        for i, line in enumerate(cells):
            left, *middle, last = line
            print("  ".join([left.ljust(widths[0]), *(c.rjust(w) for c, w in
                                                      zip(middle, widths[1:])), last]).rstrip())
            if i == 0:
                print("  ".join("-" * w for w in widths))
        self.save("table", self.rows)


def number(value, unit):
    text = f"{value:.2f}" if unit in ("x", "ms", "us", "%") else str(round(value))
    return text + ("" if unit in ("x", "") else " ") + unit


class Times:
    """Durations of one contender, in milliseconds."""

    def __init__(self, values_us):
        if not values_us:
            raise RuntimeError("a contender has no figures")
        self.values = sorted(v / 1000 for v in values_us)

    def quantile(self, q):
        return self.values[min(int(len(self.values) * q), len(self.values) - 1)]

    @property
    def p50(self):
        return statistics.median(self.values)

    def __str__(self):
        return f"{len(self.values)}: {self.p50:.2f} ({self.quantile(0.9):.2f})"


def by_case(samples, key="us"):
    """{case: Times} of what bench printed."""
    found = {}
    for sample in samples:
        if key in sample:
            found.setdefault(sample["case"], []).append(sample[key])
    return {case: Times(values) for case, values in found.items()}
