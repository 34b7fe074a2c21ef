"""Describes records: statistics of each column, groups, correlations. See README.md."""
import json
import math
import statistics
from collections import Counter

TOP = 10


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def computed(function, values):
    """JSON has no infinity: what is too large to be told is null."""
    try:
        value = function(values)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def read(parameters):
    """-> records, names of the columns in order, the column to group by or None."""
    if not isinstance(parameters, dict):
        raise ValueError("parameters must be an object with 'records'")
    unknown = set(parameters) - {"records", "columns", "groupBy", "correlations"}
    if unknown:
        raise ValueError(f"unknown parameter '{sorted(unknown)[0]}'")
    records = parameters.get("records")
    if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
        raise ValueError("'records' must be a list of objects")
    if not records:
        raise ValueError("'records' is empty: there is nothing to describe")
    present = list(dict.fromkeys(name for record in records for name in record))
    columns = parameters.get("columns", present)
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        raise ValueError("'columns' must be a list of names")
    group_by = parameters.get("groupBy")
    for name in columns + ([] if group_by is None else [group_by]):
        if name not in present:
            raise ValueError(f"no record has a column {name!r}")
    if not isinstance(parameters.get("correlations", False), bool):
        raise ValueError("'correlations' must be true or false")
    return records, columns, group_by


def values_of(records, name):
    return [record[name] for record in records if record.get(name) is not None]


def quartile(values, which):
    def function(numbers):
        return statistics.quantiles(numbers, n=4, method="inclusive")[which]
    return computed(function, values) if len(values) > 1 else values[0]


def describe_numbers(values):
    return {
        "sum": computed(math.fsum, values),
        "mean": computed(statistics.fmean, values),
        "std": computed(statistics.stdev, values) if len(values) > 1 else None,
        "min": min(values),
        "q1": quartile(values, 0),
        "median": quartile(values, 1),
        "q3": quartile(values, 2),
        "max": max(values),
    }


def describe_categories(values):
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    counts = Counter(texts)
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    return {"distinct": len(counts), "top": [{"value": v, "count": n} for v, n in top]}


def describe(records, name):
    values = values_of(records, name)
    numbers = bool(values) and all(map(is_number, values))
    return {
        "type": "number" if numbers else "category",
        "count": len(values),
        "missing": len(records) - len(values),
        **(describe_numbers(values) if numbers else describe_categories(values)),
    }


def describe_groups(records, group_by, number_columns):
    groups = {}
    for record in records:
        key = record.get(group_by)
        groups.setdefault(json.dumps(key, sort_keys=True), (key, []))[1].append(record)
    result = []
    for key, members in groups.values():
        columns = {}
        for name in number_columns:
            values = values_of(members, name)
            columns[name] = {
                "count": len(values),
                "sum": computed(math.fsum, values),
                "mean": computed(statistics.fmean, values) if values else None,
                "min": min(values, default=None),
                "max": max(values, default=None),
            }
        result.append({"key": key, "count": len(members), "columns": columns})
    return result


def correlate(records, x, y):
    pairs = [(r[x], r[y]) for r in records if r.get(x) is not None and r.get(y) is not None]
    try:
        r = statistics.correlation([a for a, _ in pairs], [b for _, b in pairs])
    except statistics.StatisticsError:  # fewer than two, or one of them does not vary
        r = None
    return {"x": x, "y": y, "count": len(pairs), "r": r}


def analyse(parameters):
    records, columns, group_by = read(parameters)
    described = {name: describe(records, name) for name in columns}
    numbers = [name for name in columns if described[name]["type"] == "number"]
    result = {"records": len(records), "columns": described}
    if group_by is not None:
        result["groups"] = describe_groups(records, group_by,
                                           [name for name in numbers if name != group_by])
    if parameters.get("correlations"):
        result["correlations"] = [correlate(records, x, y)
                                  for i, x in enumerate(numbers) for y in numbers[i + 1:]]
    return result


if __name__ == "__main__":
    print(json.dumps(analyse(parameters), ensure_ascii=False))
