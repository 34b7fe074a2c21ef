"""plotly: a figure as HTML, and as the JSON that notebooks draw."""

import json

from . import plain
from .displays import publish

_MIME = "application/vnd.plotly.v1+json"


def prepare(module):
    """fig.show() would open a browser."""

    def show(self, *args, **kwargs):
        """Shows the figure."""
        publish(make(self))

    module.BaseFigure.show = show


def make(fig):
    out = {"text": plain.clean(repr(fig))}
    # plotly's own encoder knows arrays, dates and missing values.
    drawn = json.loads(fig.to_json())
    out["html"] = plain.clean(fig.to_html(include_plotlyjs="cdn", full_html=False))
    out["extra"] = {_MIME: {key: drawn[key] for key in ("data", "layout") if key in drawn}}
    return out
