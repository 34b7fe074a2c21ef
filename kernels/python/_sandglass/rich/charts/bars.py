"""Bars: upright, lying, grouped, stacked; histograms are bars too.

The value of a bar is its length. Where it begins, as in a stack, shows only in the picture.
"""

from .axis import Axis
from .axis import head
from .axis import number
from . import series


def make(ax):
    groups = [
        container
        for container in ax.containers
        if type(container).__name__ == "BarContainer" and len(container)
    ]
    if not groups:
        return None
    labels = [group.get_label() for group in groups]
    colours = [series.colour(group[0]) for group in groups]
    out = head(ax, "bar")
    out["elements"] = []
    axes = {False: Axis(ax.xaxis), True: Axis(ax.yaxis)}
    for group, name in zip(groups, series.names(ax, labels, colours, ["Group"] * len(groups))):
        lying = getattr(group, "orientation", None) == "horizontal"
        for bar in group:
            if lying:
                place, value = bar.get_y() + bar.get_height() / 2, bar.get_width()
            else:
                place, value = bar.get_x() + bar.get_width() / 2, bar.get_height()
            place = number(place)
            # seaborn draws a bar nowhere, to find out which colour is next.
            if place is not None:
                element = {"label": axes[lying].name(place), "value": number(value), "group": name}
                out["elements"].append(element)
    return out
