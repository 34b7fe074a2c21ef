"""The process that kernels are copied from: everything imported and used once, then idle.

It has one thread, since those of libraries rest (pools.py), nothing open but descriptors 0 to 3, and as few pages as possible that a
copy would change. It draws no randomness if that can be avoided; what was drawn
nevertheless, hygiene.py draws again.
"""

import gc
import importlib
import importlib.util
import linecache
import os
import sys

from . import hygiene
from . import pools
from . import session as sessions
from . import world

STANDARD = (
    "abc argparse ast array base64 binascii bisect calendar collections concurrent.futures "
    "contextlib copy csv dataclasses datetime decimal difflib email enum fnmatch fractions "
    "functools glob gzip hashlib heapq hmac html http.client inspect io itertools json "
    "linecache locale logging math numbers operator os pathlib pickle platform pprint queue "
    "random re secrets select shlex shutil signal socket ssl statistics string struct "
    "subprocess sys tempfile textwrap threading time timeit traceback types typing "
    "unicodedata urllib.parse urllib.request uuid warnings weakref zipfile zlib asyncio"
).split()
SCIENCE = ("numpy", "pandas", "matplotlib", "matplotlib.pyplot")

# Run once and forgotten: what they leave behind is code that is loaded and tables that are filled.
WARM = (
    "1+1",
    "x = 1\nx",
    "print(end='')",
    "import os, json\njson.loads(json.dumps({'a': [1, 2.5, None]}))",
    "def f(n):\n    return n and f(n - 1)\nf(3)",
    "1/0",
    "def",
    "[1, 2, {'a': 'b'}]",
    "display('x')",
)
# The same for libraries, where they were loaded.
WARM_SCIENCE = {
    "numpy": "import numpy as np\nnp.arange(6).reshape(2, 3) @ np.ones(3)",
    "pandas": "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})",
    "matplotlib.pyplot": "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('t')\nplt.show()",
}


class Nowhere:
    """A sink for results nobody sees."""

    @staticmethod
    def is_here():
        return True

    @staticmethod
    def send_result(kind, fields):
        from . import protocol

        protocol.prepare(kind, fields)
        return True


_scratch = sessions.Session(Nowhere())


def names(imports):
    """The modules that `--imports` asks for, the standard library always first."""
    wanted = list(STANDARD)
    for name in imports.split(","):
        name = name.strip()
        if name == "science":
            wanted += SCIENCE
        elif name == "auto":
            wanted += [module for module in SCIENCE if importlib.util.find_spec(module.split(".")[0])]
        elif name and name != "standard":
            wanted.append(name)
    return wanted


def load(imports):
    """Imports and warms up. A module that is not there is left out: cells that need it say so."""
    sys.dont_write_bytecode = True
    for name in names(imports):
        try:
            importlib.import_module(name)
        except Exception as error:
            print(f"zygote: {name} is left out: {type(error).__name__}: {error}", file=sys.stderr)
    for cell in WARM:
        _scratch.execute(cell)
    if {"science", "auto"} & set(imports.split(",")):
        for cell in [cell for name, cell in WARM_SCIENCE.items() if name in sys.modules]:
            _scratch.execute(cell)


def touch():
    """In a copy that waits: a cell by the way that real ones go, so that the pages which it changes
    are the copy's own by then. What it displays goes nowhere: the socket takes nothing while
    no cell runs."""
    _scratch.execute(WARM[0])


def freeze():
    """The last thing before idling."""
    global _scratch
    pools.look()
    pools.rest()
    _scratch = sessions.Session(Nowhere())
    for name in [n for n in linecache.cache if n.startswith("Cell In[")]:
        del linecache.cache[name]
    for name in ("last_type", "last_value", "last_traceback"):
        if hasattr(sys, name):
            delattr(sys, name)
    _close_fonts()
    hygiene.prepare()
    gc.collect()
    _fill_holes()
    world.Libc().trim_memory()
    gc.freeze()


def _close_fonts():
    """matplotlib keeps the files of fonts open, and a copy has none of the zygote's files."""
    manager = sys.modules.get("matplotlib.font_manager")
    cached = getattr(manager, "_get_font", None)
    if hasattr(cached, "cache_clear"):
        cached.cache_clear()


_plugs = []


def _fill_holes():
    """Fills the free blocks that are scattered over Python's small-object memory. A copy's
    new objects would go there, and change a page each; now they share fresh ones.

    Python has pools of 16 KiB, each for one size. When a pool has been filled from its first block
    to its last, there was no other with room."""
    pool_bits, header = 14, 48
    for size in range(512, 0, -16):
        capacity = ((1 << pool_bits) - header) // size
        found = {}
        for _ in range(1 << 16):
            plug = bytes(size - 33) if size >= 48 else 0.5 + len(_plugs) if size == 32 else object()
            _plugs.append(plug)
            pool = id(plug) >> pool_bits
            found[pool] = found.get(pool, 0) + 1
            if found[pool] >= capacity:
                break
