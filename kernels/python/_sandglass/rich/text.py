"""The text of a value, as a notebook shows it.

Lists, tuples, sets and dicts that do not fit in a line are broken into one item per line, and show
at most their first 1000 items: a client that prints the text of a result then prints a page, not a
megabyte. All others show their own repr.
"""

import builtins
import types

from .plain import clean

WIDTH = 79
MAX_ITEMS = 1000
MAX_NESTING = 200

_BRACKETS = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}


class ReprFailed(Exception):
    """The value's repr raised. The message says what, as a line to show instead."""


def describe(obj):
    """Text of any value; ReprFailed if its repr raises."""
    try:
        if type(obj) in _BRACKETS:
            out = []
            _render(_build(obj, []), 0, 0, 0, out)
            return clean("".join(out))
        return clean(_leaf(obj))
    except Exception as error:
        raise ReprFailed(failure(obj, error)) from None


def failure(obj, error):
    """The line that is shown for a value whose repr raised."""
    return f"<{clean(type(obj).__name__)} object, whose repr raised {reason(error)}>"


def reason(error):
    """Name and message of an error."""
    try:
        message = str(error)
    except Exception:
        message = "?"
    return clean(f"{type(error).__name__}: {message}" if message else type(error).__name__)


def _leaf(obj):
    if isinstance(obj, type):
        return _class_name(obj)
    if isinstance(obj, (types.FunctionType, types.BuiltinFunctionType)):
        return _function(obj)
    printer = getattr(type(obj), "_repr_pretty_", None)
    if callable(printer):
        page = Page()
        obj._repr_pretty_(page, False)
        return str(page)
    if type(obj).__repr__ is object.__repr__:
        return f"<{_qualified(type(obj))} at {id(obj):#x}>"
    return repr(obj)


def _qualified(obj):
    module = getattr(obj, "__module__", None)
    name = obj.__qualname__
    return name if module in (None, "builtins") else f"{module}.{name}"


def _class_name(cls):
    if type(cls).__repr__ is not type.__repr__:
        return repr(cls)
    return _qualified(cls)


def _function(function):
    import inspect

    try:
        signature = str(inspect.signature(function))
    except ValueError:
        signature = ""
    return f"<function {_qualified(function)}{signature}>"


def _build(obj, parents):
    """A leaf is (width, text); a container (width, open, [(prefix, node)], close). A width of None
    means that it takes several lines whatever the room is."""
    brackets = _BRACKETS.get(type(obj))
    if brackets is None:
        text = _leaf(obj)
        return (None if "\n" in text else len(text)), text
    start, end = brackets
    if not obj:
        text = builtins.repr(obj)
        return len(text), text
    if any(obj is parent for parent in parents) or len(parents) > MAX_NESTING:
        return len(start) + 3 + len(end), f"{start}...{end}"
    parents.append(obj)
    items = _items(obj, parents)
    parents.pop()
    if type(obj) is tuple and len(obj) == 1:
        end = ",)"
    width = len(start) + len(end) + 2 * (len(items) - 1)
    for prefix, node in items:
        width = None if width is None or node[0] is None else width + len(prefix) + node[0]
    return width, start, items, end


def _items(obj, parents):
    items = []
    for item in obj:
        if len(items) == MAX_ITEMS:
            items.append(("", (3, "...")))
            break
        if type(obj) is dict:
            key = []
            _flat(_build(item, parents), key)
            items.append(("".join(key) + ": ", _build(obj[item], parents)))
        else:
            items.append(("", _build(item, parents)))
    return items


def _flat(node, out):
    if len(node) == 2:
        out.append(node[1])
        return
    _, start, items, end = node
    out.append(start)
    for index, (prefix, item) in enumerate(items):
        if index:
            out.append(", ")
        out.append(prefix)
        _flat(item, out)
    out.append(end)


def _render(node, column, indent, trail, out):
    """Appends a node that begins in the column. The trail is how many characters follow it before
    the line can be broken again; indent is where the lines of the container around it begin."""
    if len(node) == 2:
        out.append(node[1].replace("\n", "\n" + " " * indent))
        return
    width, start, items, end = node
    if width is not None and column + width + trail <= WIDTH:
        _flat(node, out)
        return
    inner = indent + len(start)
    column += len(start)
    out.append(start)
    for index, (prefix, item) in enumerate(items):
        if index:
            out.append(",\n" + " " * inner)
            column = inner
        out.append(prefix)
        last = index == len(items) - 1
        _render(item, column + len(prefix), inner, trail + len(end) if last else 1, out)
    out.append(end)


class Page:
    """What `_repr_pretty_` methods write to: their text, without breaking lines."""

    def __init__(self):
        self.parts = []
        self.indentation = 0

    def __str__(self):
        return "".join(self.parts)

    def text(self, text):
        self.parts.append(text)

    def breakable(self, sep=" "):
        self.parts.append(sep)

    def break_(self):
        self.parts.append("\n" + " " * self.indentation)

    def pretty(self, obj):
        self.parts.append(describe(obj))

    def begin_group(self, indent=0, open=""):
        self.parts.append(open)
        self.indentation += indent

    def end_group(self, dedent=0, close=""):
        self.indentation -= dedent
        self.parts.append(close)

    def group(self, indent=0, open="", close=""):
        return _Group(self, indent, open, close)

    def indent(self, indent):
        return _Group(self, indent, "", "")


class _Group:
    def __init__(self, page, indent, start, end):
        self.page, self.width, self.start, self.end = page, indent, start, end

    def __enter__(self):
        self.page.begin_group(self.width, self.start)

    def __exit__(self, *_):
        self.page.end_group(self.width, self.end)
