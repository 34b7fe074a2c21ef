"""Box plots.

A box plot leaves nothing on the axes but lines, from which its figures could only be guessed. So
Axes.bxp(), which draws all of them (pandas' and seaborn's too), leaves a note of what it drew.
"""

import functools

from .axis import Axis
from .axis import head
from .axis import number
from .axis import numbers

_NOTES = "_sandglass_boxes"


def prepare_axes(module):
    draw = module.Axes.bxp
    if hasattr(draw, _NOTES):
        return

    @functools.wraps(draw)
    def bxp(self, bxpstats, *args, **kwargs):
        stats = list(bxpstats)
        drawn = draw(self, stats, *args, **kwargs)
        vars(self).setdefault(_NOTES, []).append((stats, drawn))
        return drawn

    setattr(bxp, _NOTES, True)
    module.Axes.bxp = bxp


def make(ax):
    alive = {id(line) for line in ax.lines}
    notes = [
        (stats, drawn)
        for stats, drawn in getattr(ax, _NOTES, ())
        if drawn["medians"] and id(drawn["medians"][0]) in alive
    ]
    if not notes:
        return None
    axes = {False: Axis(ax.xaxis), True: Axis(ax.yaxis)}
    out = head(ax, "box_and_whisker")
    out["elements"] = []
    seen = []
    for stats, drawn in notes:
        for entry, median in zip(stats, drawn["medians"]):
            place, lying = _place(median)
            element = _element(entry, axes[lying].name(place), bool(drawn["fliers"]))
            # Drawn twice in the same place, to style it: one box.
            if (place, element) not in seen:
                seen.append((place, element))
                out["elements"].append(element)
    return out


def _place(median):
    """Where a box stands, and whether it lies: its median is a line across it."""
    x, y = numbers(median.get_xdata(orig=False)), numbers(median.get_ydata(orig=False))
    lying = x[0] == x[-1]
    across = y if lying else x
    return (across[0] + across[-1]) / 2, lying


def _element(entry, label, with_outliers):
    return {
        "label": label,
        "min": number(entry["whislo"]),
        "first_quartile": number(entry["q1"]),
        "median": number(entry["med"]),
        "third_quartile": number(entry["q3"]),
        "max": number(entry["whishi"]),
        "outliers": numbers(entry.get("fliers", ())) if with_outliers else [],
    }
