"""The environment and the working directory, as the agent's packets set them."""

import os
import time

from . import pools
from . import usersite


_given = {}  # by give()


def give(payload):
    """`KEY=VALUE`, of the sandbox. A copy is given those of its own sandbox anew; one that cells
    have changed or removed since is theirs, and comes along as they left it."""
    key, _, value = payload.partition(b"=")
    if key not in _given or _given[key] == os.environb.get(key):
        set_variable(payload)
        pools.changed(key)
    _given[key] = value


def set_variable(payload):
    """`KEY=VALUE`. Returns what the variable was before: (key, value or None)."""
    key, found, value = payload.partition(b"=")
    if not found or not key or b"\0" in payload:
        return None
    before = os.environb.get(key)
    os.environb[key] = value
    _changed(key)
    return key, before


def put_back(changes):
    """Undoes set_variable(), the last first."""
    for key, value in reversed(changes):
        if value is None:
            os.environb.pop(key, None)
        else:
            os.environb[key] = value
        _changed(key)


def _changed(key):
    if key == b"TZ":
        time.tzset()
    elif key in (b"HOME", b"PYTHONUSERBASE"):
        usersite.locate()


def change_directory(payload):
    """Creates what does not exist; the home if that cannot be done."""
    path = os.fsdecode(payload)
    try:
        os.makedirs(path, exist_ok=True)
    except (OSError, ValueError):
        pass
    for folder in (path, os.path.expanduser("~"), "/"):
        try:
            os.chdir(folder)
            return
        except (OSError, ValueError):
            pass
