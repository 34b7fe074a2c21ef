"""PIL: images as PNG, and as JPEG if that is what they were read from.

Image.show() shows the image as a result, and so does Image.save() to a file: code that makes images
often only saves them.
"""

import io
import os
import sys

from . import mime
from .displays import publish

# Modes that PNG can store.
_PNG_MODES = frozenset(("1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA"))

# Beyond, an image that is a JPEG is not shown as PNG too: it would be several times as large.
_MAX_SECOND = 2_000_000

_MARK = "_sandglass_shows"


def prepare(module):
    cls = module.Image
    if hasattr(cls.save, _MARK):
        return
    store, view = cls.save, cls.show

    def save(self, fp, format=None, **params):
        result = store(self, fp, format, **params)
        if isinstance(fp, (str, bytes, os.PathLike)) and not _in_library(sys._getframe(1)):
            _publish(self)
        return result

    def show(self, *args, **kwargs):
        _publish(self)

    save.__doc__, show.__doc__ = store.__doc__, view.__doc__
    setattr(save, _MARK, store)
    cls.save, cls.show = save, show


def _in_library(frame):
    """Libraries save images for reasons of their own: plt.savefig() does."""
    path = frame.f_code.co_filename
    return "/site-packages/" in path or "/dist-packages/" in path


def _publish(image):
    """Saving succeeded: an image that cannot be shown is not the user's mistake."""
    try:
        shown = make(image)
    except Exception:
        return
    publish(shown)


def make(image):
    out = {"text": repr(image)}
    jpeg = _jpeg(image) if image.format in ("JPEG", "MPO") else None
    if jpeg is not None:
        out["jpeg"] = jpeg
    if jpeg is None or image.width * image.height <= _MAX_SECOND:
        out["png"] = _encoded(_storable(image), "PNG")
    return out


def _jpeg(image):
    for options in ({"quality": "keep"}, {"quality": 90}):
        try:
            return _encoded(image, "JPEG", **options)
        except (ValueError, OSError):
            continue
    return None


def _storable(image):
    if image.mode in _PNG_MODES:
        return image
    return image.convert(
        "RGBA" if image.mode in ("RGBa", "PA", "La") else "L" if image.mode == "F" else "RGB"
    )


def _encoded(image, kind, **options):
    store = getattr(type(image).save, _MARK, type(image).save)
    buffer = io.BytesIO()
    store(image, buffer, kind, **options)
    return mime.base64(buffer.getvalue())
