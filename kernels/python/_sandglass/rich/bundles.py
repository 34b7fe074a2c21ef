"""The bundle of a value.

Three ways, the first that fits: plain values have text only and are made at once, because most
results are plain; values of known libraries have a maker of their own, found by the name of their
class, so nothing needs to be imported to look; all others are asked by the `_repr_*_` methods that
notebooks use.
"""

import importlib

from . import mime
from . import plain
from . import text

_PLAIN = {
    int: repr,
    float: repr,
    bool: repr,
    complex: repr,
    type(None): repr,
    bytes: repr,
    range: repr,
    # E2B shows a str without its quotes, escapes and all.
    str: lambda value: repr(value)[1:-1],
}

# Class -> module of this package that has its make(obj).
_MAKERS = {
    ("matplotlib.figure", "Figure"): "mpl",
    ("pandas.core.frame", "DataFrame"): "frames",
    ("pandas.core.series", "Series"): "frames",
    ("PIL.Image", "Image"): "images",
    ("plotly.basedatatypes", "BaseFigure"): "plotly_figures",
}

_METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}

_CANARY = "_sandglass_asks_for_a_method_that_nobody_has_"


def bundle(obj):
    """Fields of the result that shows the value; {} if the value has shown itself."""
    fast = _PLAIN.get(type(obj))
    try:
        return {"text": fast(obj)} if fast is not None else _rich(obj)
    except Exception as error:
        return {"text": text.failure(obj, error)}


def _rich(obj):
    if type(obj) in (list, dict):
        return _with_json(obj, _with_text(obj, {}))
    if isinstance(obj, type):
        return _with_text(obj, {})
    made, trouble = _made(obj)
    if made is not None:
        return made
    out = _asked(obj)
    if out is None:
        return {}
    if "text" not in out:
        _with_text(obj, out)
    if trouble is not None:
        out["text"] = f"{out.get('text', '')}\n<not shown in full: {text.reason(trouble)}>"
    if isinstance(obj, (list, dict)) and "json" not in out:
        _with_json(obj, out)
    return out


def _made(obj):
    """By the maker of its class. One that fails leaves the value to the general way, and says why:
    a figure may have a formula in its title that cannot be drawn."""
    for cls in type(obj).__mro__:
        module = _MAKERS.get((cls.__module__, cls.__qualname__))
        if module is not None:
            maker = importlib.import_module("." + module, __package__)
            try:
                return maker.make(obj), None
            except Exception as error:
                return None, error
    return None, None


def _with_text(obj, out):
    try:
        shown = text.describe(obj)
    except text.ReprFailed as failed:
        if not out:
            out["text"] = str(failed)
        return out
    if isinstance(obj, str) and shown[:1] == shown[-1:] and shown[:1] in ("'", '"'):
        shown = shown[1:-1]
    out["text"] = shown
    return out


def _with_json(obj, out):
    try:
        out["json"] = plain.strict(obj)
    except Exception:
        pass
    return out


def _asked(obj):
    """By its `_repr_*_` methods. None: it has `_ipython_display_`, which did all there is to do."""
    out = {}
    if _method(obj, _CANARY) is not None:
        return out
    own = _method(obj, "_ipython_display_")
    if own is not None:
        try:
            own()
            return None
        except Exception:
            pass
    for kind, value in _mimebundle(obj).items():
        mime.put(out, kind, value)
    for name, kind in _METHODS.items():
        if mime.FIELDS[kind] in out:
            continue
        method = _method(obj, name)
        if method is None:
            continue
        try:
            value = method()
        except Exception:
            continue
        mime.put(out, kind, _data(value))
    return out


def _method(obj, name):
    """A method of the object. One that pretends to have every attribute has the canary too."""
    try:
        method = getattr(obj, name, None)
    except Exception:
        return None
    return method if callable(method) else None


def _mimebundle(obj):
    method = _method(obj, "_repr_mimebundle_")
    if method is None:
        return {}
    try:
        data = _data(method(include=None, exclude=None))
    except TypeError:
        try:
            data = _data(method())
        except Exception:
            return {}
    except Exception:
        return {}
    return data if isinstance(data, dict) else {}


def _data(value):
    """Representations may come as (data, metadata); nobody here has a use for the metadata."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], (dict, type(None))):
        return value[0]
    return value
