"""Libraries are prepared when the user imports them, and only then.

A finder in front of sys.meta_path knows a few module names. For these it lets the others find the
module, and runs a function of this package once the module's own code has run, or right before.
For all other names it costs one look into a dict. Modules that are loaded already (by a zygote) are
prepared at once.
"""

import importlib
import sys

from . import displays

# Module of a library -> module of this package, and the function there that prepares it.
_PREPARE = {
    "matplotlib": ("mpl", "prepare_backend"),
    "matplotlib.axes._axes": ("charts.box", "prepare_axes"),
    "matplotlib.figure": ("mpl", "prepare_figure"),
    "matplotlib.pyplot": ("mpl", "prepare_pyplot"),
    "pandas": ("frames", "prepare"),
    "PIL.Image": ("images", "prepare"),
    "plotly.basedatatypes": ("plotly_figures", "prepare"),
    "IPython.core.display_functions": ("ipython", "prepare"),
}

# The same, but before the module's own code runs.
_BEFORE = {
    "pandas.core.config_init": ("frames", "be_notebook"),
    "pandas.io.formats.console": ("frames", "be_notebook"),
}


def install(publish=None):
    """Hooks in. publish(bundle) sends what is displayed. May be called again, after a fork too."""
    if publish is not None:
        displays.set_publisher(publish)
    for table in (_BEFORE, _PREPARE):
        for name in table:
            if sys.modules.get(name) is not None:
                _prepare(table, sys.modules[name])
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        from .standin import Finder

        sys.meta_path.insert(0, _Finder())
        sys.meta_path.append(Finder())


def figures():
    """Bundles of the figures that are open at the end of a cell; closes them."""
    if "matplotlib._pylab_helpers" not in sys.modules:
        return []
    from . import mpl

    return mpl.flush()


def _prepare(table, module):
    """A library that cannot be prepared works as it does elsewhere."""
    if module.__name__ not in table:
        return
    place, function = table[module.__name__]
    try:
        getattr(importlib.import_module("." + place, __package__), function)(module)
    except Exception:
        pass


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name not in _PREPARE and name not in _BEFORE:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader:
    """Stands in for a module's loader until the module's code is about to run."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        _prepare(_BEFORE, module)
        self.loader.exec_module(module)
        _prepare(_PREPARE, module)
