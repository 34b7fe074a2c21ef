"""`IPython.display` for templates that have no IPython.

Much code that was written for notebooks imports it for display(), HTML() or Markdown() and needs
nothing else. The finder comes last in sys.meta_path: an IPython that is installed wins.
"""

import importlib.machinery
import sys
import types

from . import displays

_PACKAGES = ("IPython", "IPython.core")
_MODULES = ("IPython.display", "IPython.core.display", "IPython.core.display_functions")


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in _PACKAGES or (name in _MODULES and _is_ours(name.partition(".")[0])):
            return importlib.machinery.ModuleSpec(name, _Loader(), is_package=name in _PACKAGES)
        return None


def _is_ours(package):
    spec = getattr(sys.modules.get(package), "__spec__", None)
    return spec is not None and isinstance(spec.loader, _Loader)


class _Loader:
    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        if module.__name__ == "IPython":
            module.version_info = (0, 0, 0)
            module.__version__ = "0.0.0"
            module.get_ipython = lambda: None
        elif module.__name__ in _MODULES:
            vars(module).update(_exports())


def _exports():
    names = ("display", "update_display", "publish_display_data", "clear_output", "DisplayHandle")
    out = {name: getattr(displays, name) for name in names}
    for cls in (HTML, Markdown, SVG, Latex, Math, Javascript, JSON, Image, Pretty):
        out[cls.__name__] = cls
    return out


class DisplayObject:
    """Data, or a file with it, and the one method that shows it."""

    _mode = "r"

    def __init__(self, data=None, url=None, filename=None, **kwargs):
        if data is None and filename is not None:
            with open(filename, self._mode) as file:
                data = file.read()
        self.data = data
        self.url = url

    def __repr__(self):
        return f"<IPython.core.display.{type(self).__name__} object>"


class HTML(DisplayObject):
    def _repr_html_(self):
        return self.data


class Markdown(DisplayObject):
    def _repr_markdown_(self):
        return self.data


class SVG(DisplayObject):
    def _repr_svg_(self):
        return self.data.decode() if isinstance(self.data, bytes) else self.data


class Latex(DisplayObject):
    def _repr_latex_(self):
        return self.data


class Math(Latex):
    def _repr_latex_(self):
        return "$\\displaystyle " + self.data.strip("$") + "$"


class Javascript(DisplayObject):
    def _repr_javascript_(self):
        return self.data


class JSON(DisplayObject):
    def _repr_json_(self):
        return self.data


class Pretty(DisplayObject):
    def __repr__(self):
        return self.data


class Image(DisplayObject):
    """Bytes of an image, or a file with it; by its first bytes PNG, JPEG or GIF."""

    _mode = "rb"

    def __init__(self, data=None, url=None, filename=None, **kwargs):
        if isinstance(data, str):
            if data.startswith(("http://", "https://")):
                data, url = None, data
            else:
                data, filename = None, data
        super().__init__(data, url, filename)

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.data is None:
            return {"text/html": f'<img src="{self.url}"/>'}
        kinds = {b"\x89PNG": "image/png", b"\xff\xd8": "image/jpeg", b"GIF8": "image/gif"}
        for magic, kind in kinds.items():
            if self.data.startswith(magic):
                return {kind: self.data}
        return {}
