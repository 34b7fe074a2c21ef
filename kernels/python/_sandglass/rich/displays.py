"""display(): shows values while a cell runs."""

from . import mime
from .bundles import bundle

_publisher = None
_handles = 0


def set_publisher(function):
    """function(bundle) sends a bundle as something displayed."""
    global _publisher
    _publisher = function


def publish(shown):
    """Sends a bundle; without a publisher, prints its text."""
    if not shown:
        return
    if _publisher is None:
        print(shown.get("text", ""))
    else:
        _publisher(shown)


def display(
    *objs,
    include=None,
    exclude=None,
    metadata=None,
    transient=None,
    display_id=None,
    raw=False,
    clear=False,
    **kwargs,
):
    """Shows the objects. With raw=True they are dicts MIME type -> representation. With a
    display_id the answer is a handle; what is sent cannot be replaced, so an update shows anew."""
    for obj in objs:
        if raw:
            shown = mime.from_mime(obj)
        else:
            shown = bundle(obj)
        publish(mime.only(shown, include, exclude))
    if display_id is None:
        return None
    return DisplayHandle(None if display_id is True else display_id)


def update_display(obj, *, display_id=None, **kwargs):
    display(obj, **kwargs)


def publish_display_data(data, metadata=None, *, transient=None, **kwargs):
    publish(mime.from_mime(data))


def clear_output(wait=False):
    """What is sent is sent."""


class DisplayHandle:
    """What display(…, display_id=…) answers."""

    def __init__(self, display_id=None):
        global _handles
        if display_id is None:
            _handles += 1
            display_id = f"display-{_handles}"
        self.display_id = display_id

    def __repr__(self):
        return f"<DisplayHandle display_id={self.display_id}>"

    def display(self, obj, **kwargs):
        display(obj, **kwargs)

    def update(self, obj, **kwargs):
        display(obj, **kwargs)
