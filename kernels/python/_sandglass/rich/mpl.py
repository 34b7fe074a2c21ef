"""matplotlib: figures as PNG and as chart.

Figures are drawn by Agg unless the user asks for another backend. As in a notebook, plt.show()
shows the open figures and closes them, and so does the end of a cell. A figure that was shown
already (as the value of the cell, by display() or by its own show()) is not shown again, unless
something was drawn on it since.
"""

import io
import os
import sys
import warnings

from . import charts
from . import mime
from .displays import publish

_SHOWN = "_sandglass_shown"


def prepare_backend(matplotlib):
    """Agg, unless the environment says otherwise, or a matplotlibrc names a backend that draws to
    files too. One that opens windows is a distribution's default: nobody would see them."""
    chosen = os.environ.get("MPLBACKEND")
    if chosen:
        # A copy of a zygote gets its environment after the zygote has imported matplotlib.
        if matplotlib.get_backend().lower() != chosen.lower():
            matplotlib.use(chosen)
        return
    current = dict.__getitem__(matplotlib.rcParams, "backend")
    windows = {name.lower() for name in matplotlib.rcsetup.interactive_bk}
    if not isinstance(current, str) or current.lower() in windows:
        matplotlib.use("agg")


def prepare_figure(module):
    """fig.show() cannot open a window: it shows the figure here."""
    window = module.Figure.show

    def show(self, warn=True):
        """Shows the figure."""
        if _has_window():
            return window(self, warn)
        publish(make(self))

    if not hasattr(window, _SHOWN):
        setattr(show, _SHOWN, True)
        module.Figure.show = show


def prepare_pyplot(module):
    window = module.show

    def show(*args, **kwargs):
        """Shows all open figures, and closes them."""
        if _has_window():
            return window(*args, **kwargs)
        for shown in flush():
            publish(shown)

    if not hasattr(window, _SHOWN):
        setattr(show, _SHOWN, True)
        module.show = show


def _has_window():
    """A backend other than Agg was asked for: it knows how to show."""
    return sys.modules["matplotlib"].get_backend().lower() != "agg"


def flush():
    """Bundles of the open figures that have not been shown; closes all figures."""
    managers = sys.modules["matplotlib._pylab_helpers"].Gcf
    figures = [manager.canvas.figure for manager in managers.get_all_fig_managers()]
    if not figures:
        return []
    try:
        return [make(fig) for fig in figures if fig.stale or not getattr(fig, _SHOWN, False)]
    finally:
        managers.destroy_all()


def make(fig):
    """The bundle of a figure. One without axes has nothing to draw."""
    out = {"text": repr(fig)}
    if not (fig.axes or fig.lines or fig.texts or fig.images or fig.patches):
        setattr(fig, _SHOWN, True)
        fig.stale = False
        return out
    # The chart comes first: it reads the figure as the user left it, before layouts move things.
    try:
        chart = charts.of_figure(fig)
    except charts.TooLarge as error:
        out["text"] += f"\n<chart left out: {error}>"
        chart = None
    out["png"] = mime.base64(_png(fig))
    if chart is not None:
        out["chart"] = chart
    setattr(fig, _SHOWN, True)
    fig.stale = False
    return out


def _png(fig):
    options = {
        "format": "png",
        "dpi": fig.dpi,
        "facecolor": fig.get_facecolor(),
        "edgecolor": fig.get_edgecolor(),
    }
    buffer = io.BytesIO()
    try:
        fig.canvas.print_figure(buffer, bbox_inches="tight", **options)
    except (ValueError, MemoryError, RuntimeError):
        # Something far outside makes the tight box too large to draw.
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fig.canvas.print_figure(buffer, **options)
    return buffer.getvalue()
