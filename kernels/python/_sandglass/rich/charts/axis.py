"""One axis of a chart: label, unit, scale, ticks, and the values behind its coordinates.

matplotlib draws with floats. An axis of dates or categories has a converter for what was plotted;
here its coordinates are turned back: dates to ISO 8601, categories to their names.
"""

import re
import sys

from ..plain import clean

# A unit stands in brackets, as in "time (s)" or "speed [m/s]"; "f(x)" has none.
_UNIT = re.compile(r"(?:^|\s)\(([^()]+)\)|\[([^\[\]]+)\]")


def text_or_none(text):
    return clean(text) if text else None


def title(ax):
    for place in ("center", "left", "right"):
        text = ax.get_title(loc=place)
        if text:
            return clean(text)
    return None


def head(ax, kind):
    """The fields that all charts with two axes have."""
    x_label, y_label = ax.get_xlabel(), ax.get_ylabel()
    return {
        "type": kind,
        "title": title(ax),
        "x_label": text_or_none(x_label),
        "y_label": text_or_none(y_label),
        "x_unit": unit(x_label),
        "y_unit": unit(y_label),
    }


def unit(label):
    found = _UNIT.search(label or "")
    return clean((found.group(1) or found.group(2)).strip()) if found else None


def numbers(values):
    """A list of numbers, None where there is none. Takes arrays, masked ones too."""
    if hasattr(values, "filled"):
        values = values.astype(float).filled(float("nan"))
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    return [number(value) for value in values]


def number(value):
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        value = float(value)
    return value if abs(value) < float("inf") else None


class Axis:
    """Reads one axis of matplotlib's."""

    def __init__(self, axis):
        self.axis = axis
        self.names = _categories(axis)
        self.date = None if self.names else _dates(axis)
        self.own = None
        self.reach = 0.5

    @property
    def scale(self):
        if self.names is not None:
            return "categorical"
        if self.date is not None:
            return "datetime"
        return self.axis.get_scale()

    def values(self, coordinates):
        """What was plotted at the coordinates."""
        plain = numbers(coordinates)
        if self.names is not None:
            return [value if value is None else self._category(value) or value for value in plain]
        if self.date is not None:
            return [None if value is None else self.date(value) for value in plain]
        return plain

    def ticks(self):
        """Values and labels of the ticks that can be seen."""
        low, high = sorted(self.axis.get_view_interval())
        slack = (high - low) * 1e-9
        places = numbers(self.axis.get_majorticklocs())
        seen = [
            (place, label)
            for place, label in zip(places, self.labels(places))
            if place is not None and low - slack <= place <= high + slack
        ]
        # Ticks are computed by adding up steps: what that leaves in the last digits is no value.
        values = self.values([float(place) for place, _ in seen])
        values = [float(f"{value:.12g}") if type(value) is float else value for value in values]
        return values, [label for _, label in seen]

    def labels(self, places):
        """Labels of all ticks: a formatter may go by their order."""
        return [clean(str(text)) for text in self.axis.get_major_formatter().format_ticks(places)]

    def name(self, coordinate):
        """The name of a bar or a box: of its category, else of the tick label that the user has put
        near it, else its value."""
        label = self._category(coordinate) if self.names else None
        label = label or self._written(coordinate)
        if label:
            return label
        value = self.values([coordinate])[0]
        if isinstance(value, float):
            return f"{value:.10g}"
        return str(value)

    def _category(self, coordinate):
        """Categories are one apart; what is drawn beside a category (a group of bars, points that
        were spread to be seen) still belongs to it."""
        if not -0.5 < coordinate - round(coordinate) < 0.5:
            return None
        return self.names.get(round(coordinate))

    def _written(self, coordinate):
        """A label that the user gave to the tick nearest to the coordinate."""
        if self.own is None:
            self.own = self._own_labels()
        if not self.own:
            return None
        near = min(self.own, key=lambda place: abs(place - coordinate))
        return self.own[near] if abs(near - coordinate) <= self.reach else None

    def _own_labels(self):
        """Coordinate -> label, if the user has labelled the ticks. A label reaches half way to the
        next tick."""
        if not _has_own_labels(self.axis):
            return {}
        places = numbers(self.axis.get_majorticklocs())
        ordered = sorted(set(places))
        gaps = [after - before for before, after in zip(ordered, ordered[1:])]
        self.reach = min(gaps) / 2 if gaps else 0.5
        return dict(zip(places, self.labels(places)))


def _has_own_labels(axis):
    """Whether labels were set as text. set_ticklabels() leaves a formatter with a table in it."""
    formatter = axis.get_major_formatter()
    if type(formatter).__name__ == "FixedFormatter":
        return True
    table = getattr(getattr(formatter, "func", None), "func", None)
    return getattr(table, "__name__", "") == "_format_with_dict"


def _categories(axis):
    """Coordinate -> name, for an axis of strings."""
    mapping = getattr(axis.units, "_mapping", None)
    if not mapping:
        return None
    return {float(place): clean(str(name)) for name, place in mapping.items()}


def _dates(axis):
    """Coordinate -> ISO 8601, for an axis of dates."""
    dates = sys.modules.get("matplotlib.dates")
    if dates is None:
        return None
    formatter, locator = axis.get_major_formatter(), axis.get_major_locator()
    if type(formatter).__name__ == "TimeSeries_DateFormatter":
        return _period(axis)
    known = (dates.DateFormatter, dates.AutoDateFormatter, dates.ConciseDateFormatter)
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    if not (
        isinstance(converter, (dates.DateConverter, dates._SwitchableDateConverter))
        or isinstance(formatter, known)
        or isinstance(locator, dates.DateLocator)
    ):
        return None
    zone = axis.units if hasattr(axis.units, "utcoffset") else None

    def iso(coordinate):
        moment = dates.num2date(coordinate, zone)
        return (moment if zone is not None else moment.replace(tzinfo=None)).isoformat()

    return iso


def _period(axis):
    """pandas plots the index of a time series as numbers of periods."""
    pandas = sys.modules["pandas"]
    freq = axis.get_major_formatter().freq

    def iso(coordinate):
        return pandas.Period(ordinal=int(coordinate), freq=freq).to_timestamp().isoformat()

    return iso
