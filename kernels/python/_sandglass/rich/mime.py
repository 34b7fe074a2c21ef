"""MIME types and the fields of a result they belong to."""

import binascii

from . import plain

FIELDS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "text/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}

BINARY = frozenset(("png", "jpeg", "pdf"))
OBJECTS = frozenset(("json", "data", "chart"))


def base64(data):
    """Base64 in one line."""
    return binascii.b2a_base64(data, newline=False).decode()


def put(out, mime, value):
    """Adds one representation to a bundle. What has the wrong type is left out."""
    if value is None:
        return
    name = FIELDS.get(mime)
    try:
        if name in OBJECTS:
            out[name] = plain.lenient(_parsed(value))
        elif name is None:
            out.setdefault("extra", {})[str(mime)] = _extra(value)
        else:
            text = _binary(value) if name in BINARY else _text(value)
            if text is not None:
                out[name] = text
    except plain.NotPlain:
        pass


def from_mime(data):
    """The bundle of a dict MIME type -> representation, as display(…, raw=True) takes it."""
    out = {}
    for mime, value in data.items():
        put(out, mime, value)
    return out


def only(bundle, include=None, exclude=None):
    """The bundle without the MIME types that were not asked for."""
    if not include and not exclude:
        return bundle
    keep = {FIELDS.get(mime, mime) for mime in include} if include else None
    drop = {FIELDS.get(mime, mime) for mime in exclude or ()}

    def wanted(name):
        return (keep is None or name in keep) and name not in drop

    out = {name: value for name, value in bundle.items() if name != "extra" and wanted(name)}
    extra = {mime: value for mime, value in bundle.get("extra", {}).items() if wanted(mime)}
    if extra:
        out["extra"] = extra
    return out


def _text(value):
    if isinstance(value, (list, tuple)) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    return plain.clean(value) if isinstance(value, str) else None


def _binary(value):
    """Bytes are encoded; a str is base64 already, perhaps in several lines."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64(value)
    if isinstance(value, str) and value.isascii():
        return "".join(value.split())
    return None


def _extra(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64(value)
    return plain.lenient(value)


def _parsed(value):
    if not isinstance(value, str):
        return value
    import json

    try:
        return json.loads(value)
    except ValueError:
        return value
