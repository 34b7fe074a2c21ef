"""Values made of JSON's types only.

The control socket carries strict JSON, and whoever reads it knows no NaN, no number beyond 64 bits
and no lone surrogates. Two ways to treat what JSON does not know: `strict` refuses (a list of
objects has no JSON form), `lenient` takes its str (a cell of a table has to be something).
"""

import math
import sys

MAX_NODES = 200_000
MAX_TEXT = 4 << 20
MAX_DEPTH = 64

_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1


class NotPlain(Exception):
    """The value has no JSON form, or one that is too large to be worth sending."""


def clean(text):
    """The text without lone surrogates: it has to be encodable as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def strict(value):
    """JSON form of the value; NotPlain if it holds anything that JSON does not know."""
    return _Walk(_refuse).convert(value, 0)


def lenient(value):
    """JSON form of the value; what JSON does not know becomes text."""
    return _Walk(_describe).convert(value, 0)


def _refuse(value):
    raise NotPlain(type(value).__name__)


def _describe(value):
    """Text of a scalar that JSON does not know. Missing values of every library become None."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    if type(value).__name__ == "Decimal":
        return _real(float(value))
    iso = getattr(value, "isoformat", None)
    try:
        return clean(iso() if callable(iso) else str(value))
    except Exception:
        return None


def _real(value):
    return value if math.isfinite(value) else None


def _whole(value):
    if _INT_MIN <= value <= _INT_MAX:
        return int(value)
    try:
        return float(value)
    except OverflowError:
        return None


def key(value):
    """A key of a JSON object."""
    if type(value) is str:
        return clean(value)
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    try:
        return clean(str(value))
    except Exception:
        return f"<{type(value).__name__}>"


class _Walk:
    """One conversion: counts what it has seen, because values can be large, deep and cyclic."""

    def __init__(self, other):
        self.other = other
        self.nodes = 0
        self.chars = 0

    def convert(self, value, depth):
        kind = type(value)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise NotPlain("too many values")
        if kind is str:
            return self.string(value)
        if kind is int:
            return _whole(value)
        if kind is float:
            return _real(value)
        if value is None or kind is bool:
            return value
        if isinstance(value, dict):
            return self.mapping(value, depth + 1)
        if isinstance(value, (list, tuple)):
            return self.sequence(value, depth + 1)
        return self.scalar(value, depth)

    def string(self, value):
        self.chars += len(value)
        if self.chars > MAX_TEXT:
            raise NotPlain("too much text")
        return clean(value)

    def mapping(self, value, depth):
        self.check(depth)
        return {self.string(key(k)): self.convert(v, depth) for k, v in value.items()}

    def sequence(self, value, depth):
        self.check(depth)
        return [self.convert(item, depth) for item in value]

    def check(self, depth):
        if depth > MAX_DEPTH:
            raise NotPlain("too deep")

    def scalar(self, value, depth):
        if isinstance(value, str):
            return self.string(str.__str__(value))
        if isinstance(value, int):
            return _whole(int(value))
        if isinstance(value, float):
            return _real(float(value))
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray) and self.other is _describe:
            if self.nodes + value.size > MAX_NODES:
                raise NotPlain("too many values")
            return self.convert(value.tolist(), depth)
        if numpy is not None and isinstance(value, (numpy.bool_, numpy.number)):
            item = value.item()
            if type(item) in (bool, int, float):
                return self.convert(item, depth)
        return self.other(value)
