"""pandas: frames as text, HTML and columns."""

from . import plain
from .plain import clean

MAX_CELLS = 500_000


class _zmq_shell:
    """What pandas takes for a notebook's shell."""

    kernel = None


def be_notebook(module):
    """pandas asks get_ipython() whether it is in a terminal, when it is imported and with each
    frame it shows. The answer is known here; asking would import IPython."""
    module.get_ipython = _zmq_shell


def prepare(pandas):
    """Notebooks show 20 columns; a pandas that was imported too early for be_notebook() shows as
    many as a terminal has room for."""
    if pandas.get_option("display.max_columns") == 0:
        pandas.set_option("display.max_columns", 20)


def make(obj):
    out = {"text": clean(repr(obj))}
    if obj.ndim == 1:
        frame = obj.to_frame()
    else:
        frame = obj
        html = frame._repr_html_()
        if isinstance(html, str):
            out["html"] = clean(html)
    if frame.size > MAX_CELLS:
        out["text"] += f"\n<data of {frame.size} cells left out: the limit is {MAX_CELLS}>"
    else:
        out["data"] = columns(frame)
    return out


def columns(frame):
    """Column -> list of its values. Columns of the same name are numbered as read_csv() does it."""
    out = {}
    for position in range(frame.shape[1]):
        name = base = plain.key(frame.columns[position])
        count = 0
        while name in out:
            count += 1
            name = f"{base}.{count}"
        out[name] = _values(frame.iloc[:, position])
    return out


def _values(series):
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iub" and type(series.dtype).__module__.startswith("numpy"):
        return series.tolist()
    if kind == "f" and type(series.dtype).__module__.startswith("numpy"):
        return [None if bad else value for value, bad in zip(series.tolist(), _unusable(series))]
    return [_cell(value) for value in series.tolist()]


def _unusable(series):
    values = series.to_numpy()
    return (~(abs(values) < float("inf"))).tolist()


def _cell(value):
    try:
        return plain.lenient(value)
    except plain.NotPlain:
        return clean(str(value)[:1000])
