"""Packages that are installed while the kernel runs.

Python looks for the folders of added packages once, at its start: the user's own, and that of
the machine in /usr/local. In a sandbox they appear with the first `pip install`, and a kernel that is
a copy does not even have its home yet when it starts. So a folder is looked for before every
cell until it is there, and again when a module is not found, for a cell that installs and imports.
"""

import importlib
import os
import sys
from importlib.machinery import PathFinder

_VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_MACHINE = f"/usr/local/lib/{_VERSION}/dist-packages"

_absent = []  # where they would be
_user = None


def locate():
    """The environment has changed: find out where the user's folder would be."""
    global _user
    base = os.environ.get("PYTHONUSERBASE") or os.environ.get("HOME", "") + "/.local"
    _user = os.path.join(base, "lib", _VERSION, "site-packages")
    _absent[:] = [folder for folder in (_user, _MACHINE) if folder not in sys.path]
    site = sys.modules.get("site")
    if site is not None:
        site.USER_BASE, site.USER_SITE = base, _user


def forget():
    """Takes out what belonged to another user: the zygote's."""
    site = sys.modules.get("site")
    theirs = {_user, getattr(site, "USER_SITE", None)}
    sys.path[:] = [p for p in sys.path if p not in theirs]


def look():
    """Adds the folders that are there now to sys.path: whether any was."""
    found = False
    for folder in _absent[:] if _absent else ():
        if os.access(folder, os.X_OK):
            _absent.remove(folder)
            _add(folder)
            found = True
    if found:
        importlib.invalidate_caches()
    return found


def _add(folder):
    """In front of the packages that were there before, the user's in front of the machine's."""
    import site

    at = next((i for i, p in enumerate(sys.path) if p.endswith("-packages")), len(sys.path))
    if folder == _MACHINE and _user in sys.path:
        at = sys.path.index(_user) + 1
    known = sys.path[:]
    sys.path_importer_cache.pop(folder, None)
    site.addsitedir(folder)
    new = [p for p in sys.path if p not in known]
    sys.path[:] = known[:at] + new + known[at:]


def refresh():
    """A program has run, and may have installed something."""
    look()
    importlib.invalidate_caches()


class _Finder:
    """The last finder: asked only for modules that nobody else has found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is None and look():
            return PathFinder.find_spec(name)
        return None


def install():
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
