"""What a value looks like: MIME bundles of Python objects.

A *bundle* is a dict with the field names of kernels/README.md: `text html markdown svg png jpeg pdf
latex javascript` are str (png, jpeg and pdf in base64), `json data chart extra` are Python objects
made of JSON's types only. An empty bundle means: nothing to send.

    install(publish)   hook the libraries a cell may import; publish(bundle) sends what is displayed
    bundle(obj)        the bundle of a value
    display(*objs)     what a cell calls
    figures()          bundles of the figures a cell left open; closes them

No library is imported here unless the user has imported it: the kernel starts in milliseconds, and
most cells never draw.
"""

from .bundles import bundle
from .displays import display
from .displays import set_publisher
from .hooks import figures
from .hooks import install
from .mime import from_mime

__all__ = ["bundle", "display", "figures", "from_mime", "install", "set_publisher"]
