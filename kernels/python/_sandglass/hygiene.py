"""What a copy of a zygote must not share with the other copies.

Everything in a zygote's memory is in each kernel made from it. What was drawn from the system's
randomness is drawn anew here; what depends on a process id is too, since in its own
sandbox a copy may well have the same one as the next. The environment starts empty.
"""

import os
import sys

from . import usersite

_generators = []


def prepare():
    """In the zygote, when it is warm: what can be done once and for all. Each thing that a copy
    has to do itself costs it memory."""
    usersite.forget()
    os.environ.clear()
    for path in [p for p in sys.path_importer_cache if not p.startswith("/usr/")]:
        del sys.path_importer_cache[path]
    _find_generators()
    ssl = sys.modules.get("_ssl")
    if ssl is not None:
        # Have its tables made here, not by the first reseeding in each copy.
        ssl.RAND_add(os.urandom(64), 64.0)
        ssl.RAND_bytes(1)


def _find_generators():
    """Which random generators have libraries made? gc.freeze() hides them later."""
    import gc
    import random

    kinds = [random.Random]
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        kinds += [numpy_random.RandomState, numpy_random.Generator]
    kinds = tuple(kinds)
    _generators[:] = [o for o in gc.get_objects() if isinstance(o, kinds)]


def refresh():
    """In a copy, before anything else."""
    _reseed()
    _names()
    if os.environ:
        os.environ.clear()
    sys.dont_write_bytecode = False


def _reseed():
    for generator in _generators:
        try:
            bits = getattr(generator, "bit_generator", None)
            if bits is not None:
                bits.state = type(bits)().state
            else:
                generator.seed()
        except (TypeError, ValueError, NotImplementedError):  # one with a fixed sequence
            pass
    random = sys.modules.get("random")
    if random is not None:
        random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    ssl = sys.modules.get("_ssl")
    if ssl is not None:
        # OpenSSL would reseed itself by the process id alone.
        ssl.RAND_add(os.urandom(64), 64.0)


def _names():
    """Temporary names, time-based ids, keys of process pools."""
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile._name_sequence = None
        tempfile.tempdir = None
    uuid = sys.modules.get("uuid")
    if uuid is not None:
        uuid._last_timestamp = None
        uuid._node = None
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process()._config["authkey"] = process.AuthenticationString(os.urandom(32))
    synchronize = sys.modules.get("multiprocessing.synchronize")
    if synchronize is not None and tempfile is not None:
        synchronize.SemLock._rand = tempfile._RandomNameSequence()
    boundary = sys.modules.get("matplotlib")
    if boundary is not None:
        _forget_folders(boundary)


def _forget_folders(matplotlib):
    """matplotlib remembers the folders of the zygote's home; let it look again."""
    for name in ("get_configdir", "get_cachedir"):
        function = getattr(matplotlib, name, None)
        cells = getattr(function, "__closure__", None) or ()
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        for variable, cell in zip(names, cells):
            if variable == "called":
                cell.cell_contents = False
