"""Packages that a user installs while the kernel runs.

Python looks for the user's own site-packages once, at its start. In a sandbox the folder appears
with the first `pip install`, and a kernel that is a copy does not even have its home yet when it
starts. So the folder is looked for before every cell until it is there, and again when a
module is not found, for a cell that installs and imports.
"""

import importlib
import os
import sys
from importlib.machinery import PathFinder

_added = None
_folder = None  # where it would be


def locate():
    """The environment has changed: find out where the folder would be."""
    global _folder
    base = os.environ.get("PYTHONUSERBASE") or os.environ.get("HOME", "") + "/.local"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    _folder = os.path.join(base, "lib", version, "site-packages")
    site = sys.modules.get("site")
    if site is not None:
        site.USER_BASE, site.USER_SITE = base, _folder


def forget():
    """Takes out what belonged to another user: the zygote's."""
    global _added
    site = sys.modules.get("site")
    theirs = {_added, getattr(site, "USER_SITE", None)}
    sys.path[:] = [p for p in sys.path if p not in theirs]
    _added = None


def look():
    """Adds the folder to sys.path if it is there now."""
    global _added
    if _added == _folder or not os.access(_folder, os.X_OK):
        return False
    _added = _folder
    if _folder in sys.path:
        return False
    at = next((i for i, p in enumerate(sys.path) if p.endswith("-packages")), len(sys.path))
    import site

    known = sys.path[:]
    site.addsitedir(_folder)
    new = [p for p in sys.path if p not in known]
    sys.path[:] = known[:at] + new + known[at:]
    importlib.invalidate_caches()
    return True


def refresh():
    """A program has run, and may have installed something."""
    look()
    importlib.invalidate_caches()


class _Finder:
    """The last finder: asked only for modules that nobody else has found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is None and _folder is not None and look():
            return PathFinder.find_spec(name)
        return None


def install():
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
