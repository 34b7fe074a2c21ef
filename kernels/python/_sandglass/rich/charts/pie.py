"""Pies: wedges and nothing else but their shadows."""

from .axis import number
from .axis import title
from . import series


def make(ax):
    patches = [patch for patch in ax.patches if type(patch).__name__ != "Shadow"]
    if not patches or not all(type(patch).__name__ == "Wedge" for patch in patches):
        return None
    labels = [patch.get_label() for patch in patches]
    labels = [label if series.is_own(label) else "" for label in labels]
    entries = series.legend_labels(ax)
    if not any(labels) and len(entries) == len(labels):
        labels = entries
    elements = [
        {"label": label, "angle": _angle(patch), "radius": number(patch.r)}
        for label, patch in zip(labels, patches)
    ]
    return {"type": "pie", "title": title(ax), "elements": elements}


def _angle(wedge):
    """pie() computes in single precision: what is beyond it is not the user's."""
    return round(abs(number(wedge.theta2) - number(wedge.theta1)), 4)
