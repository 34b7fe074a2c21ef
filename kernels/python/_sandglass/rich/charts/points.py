"""Lines and scattered points.

Lines across the whole axes (axhline and its like) are marks, not data. Points that are scattered
around lines, as with a fit, are further series of the line chart.
"""

from .axis import Axis
from .axis import head
from . import series

MAX_POINTS = 150_000


class TooLarge(Exception):
    """More points than are worth sending."""


def make(ax):
    parts = series.Parts(ax)
    lines = [line for line in ax.lines if _is_line(ax, line, parts)]
    clouds = [cloud for cloud in ax.collections if _is_cloud(ax, cloud)]
    if not lines and not clouds:
        return None
    pairs = [(line.get_xdata(orig=False), line.get_ydata(orig=False)) for line in lines]
    for cloud in clouds:
        offsets = cloud.get_offsets()
        pairs.append((offsets[:, 0], offsets[:, 1]))
    total = sum(len(x) for x, _ in pairs)
    if total > MAX_POINTS:
        raise TooLarge(f"it has {total} points, the limit is {MAX_POINTS}")
    return _chart(ax, _labels(ax, lines, clouds, parts), pairs, "line" if lines else "scatter")


def _is_line(ax, line, parts):
    if id(line) in parts.hidden or type(line).__name__ in ("_AxLine", "AxLine"):
        return False
    transform = line.get_transform()
    # matplotlib has mended the spelling since 3.6.
    spelled = "contains_branch_separately", "contains_branch_seperately"
    in_data = next(getattr(transform, name) for name in spelled if hasattr(transform, name))
    return all(in_data(ax.transData)) and line.get_visible() and len(line.get_xdata(orig=False)) > 0


def _is_cloud(ax, cloud):
    """Contours are path collections too, but are not placed by offsets."""
    if type(cloud).__name__ != "PathCollection" or not cloud.get_visible():
        return False
    placed = cloud.get_offset_transform().contains_branch(ax.transData)
    return placed and len(cloud.get_offsets()) > 0


def _labels(ax, lines, clouds, parts):
    labels = [parts.label(line) for line in lines]
    labels += [cloud.get_label() for cloud in clouds]
    colours = [series.colour(artist) for artist in (*lines, *clouds)]
    fallbacks = ["Line"] * len(lines) + ["Scatter"] * len(clouds)
    return series.names(ax, labels, colours, fallbacks)


def _chart(ax, labels, pairs, kind):
    out = head(ax, kind)
    x_axis, y_axis = Axis(ax.xaxis), Axis(ax.yaxis)
    for name, axis in (("x", x_axis), ("y", y_axis)):
        out[f"{name}_scale"] = axis.scale
        out[f"{name}_ticks"], out[f"{name}_tick_labels"] = axis.ticks()
    out["elements"] = [
        {
            "label": label,
            "points": [list(point) for point in zip(x_axis.values(x), y_axis.values(y))],
        }
        for label, (x, y) in zip(labels, pairs)
    ]
    return out
