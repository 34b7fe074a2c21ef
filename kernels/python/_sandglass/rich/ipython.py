"""IPython's display functions, as far as they need a shell: they show through this kernel."""

from . import displays


def prepare(module):
    for name in (
        "display",
        "update_display",
        "publish_display_data",
        "clear_output",
        "DisplayHandle",
    ):
        setattr(module, name, getattr(displays, name))
