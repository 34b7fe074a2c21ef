"""What belongs together on an axes, and what it is called.

Error bars and stems are containers: they consist of lines that were not plotted for themselves.
A series without a label of its own may still have one in the legend.
"""

from ..plain import clean


def is_own(label):
    """Whether a label was given by the user: matplotlib's own begin with an underscore."""
    return bool(label) and not label.startswith("_")


def legend_labels(ax):
    legend = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend is not None else []


def names(ax, labels, colours, fallbacks):
    """Names of the series: labels of their own, else the legend's, else the fallback and the number
    that matplotlib gave. The legend is matched by colour, else by order if it has one for each."""
    missing = [index for index, label in enumerate(labels) if not is_own(label)]
    entries = legend_labels(ax) if missing else []
    by_order = len(entries) == len(labels) == len(missing)
    # An entry that is a series' own label is nobody else's.
    by_colour = {
        shade: entry for shade, entry in _legend_colours(ax, entries).items() if entry not in labels
    }
    out = []
    for index, label in enumerate(labels):
        if index not in missing:
            out.append(clean(label))
        elif colours[index] in by_colour:
            out.append(clean(by_colour[colours[index]]))
        elif by_order:
            out.append(clean(entries[index]))
        else:
            digits = "".join(filter(str.isdigit, label or ""))
            out.append(f"{fallbacks[index]} {digits or index}")
    return out


def _legend_colours(ax, entries):
    """Colour -> entry of the legend, where an entry's colour is its alone."""
    if not entries:
        return {}
    legend = ax.get_legend()
    handles = getattr(legend, "legend_handles", None) or getattr(legend, "legendHandles", [])
    found, seen = {}, set()
    for handle, entry in zip(handles, entries):
        shade = colour(handle)
        if shade in seen:
            found.pop(shade, None)
        else:
            found[shade] = entry
        seen.add(shade)
    found.pop(None, None)
    return found


def colour(artist):
    """The colour of a line, a patch or a collection, not how transparent it is; None if it has
    several."""
    from matplotlib.colors import to_rgb

    try:
        for getter in ("get_color", "get_facecolor"):
            if hasattr(artist, getter):
                value = getattr(artist, getter)()
                if getattr(value, "ndim", 1) == 2:
                    if len(value) != 1:
                        return None
                    value = value[0]
                return to_rgb(value)
    except (ValueError, TypeError):
        pass
    return None


class Parts:
    """Artists of an axes that are parts of something else, by their id."""

    def __init__(self, ax):
        self.hidden = set()
        self.labels = {}
        for container in ax.containers:
            kind = type(container).__name__
            if kind == "ErrorbarContainer":
                self._errorbar(container)
            elif kind == "StemContainer":
                self._stem(container)

    def _errorbar(self, container):
        line, caps, bars = container.lines
        self.hidden.update(id(artist) for artist in (*caps, *bars))
        if line is not None:
            self.labels[id(line)] = container.get_label()

    def _stem(self, container):
        stems = container.stemlines
        stems = stems if isinstance(stems, (list, tuple)) else [stems]
        self.hidden.update(id(artist) for artist in (container.baseline, *stems))
        self.labels[id(container.markerline)] = container.get_label()

    def label(self, artist):
        label = self.labels.get(id(artist))
        return label if is_own(label) else artist.get_label()
