"""The chart of a matplotlib figure: what was plotted, as numbers.

Each axes becomes a chart of the first type that recognises what is drawn on it; several axes become
a superchart. Colour bars and axes without anything drawn do not count. What has been drawn but is
no known type is `unknown`; a figure without anything is {}.
"""

from . import bars
from . import box
from . import pie
from . import points
from .axis import text_or_none
from .axis import title
from .points import TooLarge

__all__ = ["TooLarge", "of_figure"]

_MAKERS = (box.make, pie.make, bars.make, points.make)


def of_figure(fig):
    """The chart, {} if there is nothing on the figure; TooLarge if it has more points than are
    worth sending."""
    drawn = [ax for ax in fig.axes if _counts(ax)]
    if not drawn:
        return {}
    over = getattr(fig, "_suptitle", None)
    over = text_or_none(over.get_text()) if over is not None else None
    elements = [_of_axes(ax) for ax in drawn]
    if len(elements) == 1:
        chart = elements[0]
        chart["title"] = chart["title"] or over
        return chart
    return {"type": "superchart", "title": over, "elements": elements}


def _counts(ax):
    if not ax.get_visible() or ax.get_label() == "<colorbar>" or hasattr(ax, "_colorbar"):
        return False
    return ax.has_data()


def _of_axes(ax):
    if ax.name != "3d":
        for maker in _MAKERS:
            try:
                chart = maker(ax)
            except TooLarge:
                raise
            except Exception:
                # Artists may hold anything; a chart that cannot be read is an unknown one.
                continue
            if chart is not None:
                return chart
    return {"type": "unknown", "title": title(ax), "elements": []}
