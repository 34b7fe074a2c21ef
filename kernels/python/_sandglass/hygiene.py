"""What a copy of a zygote, or of a kernel that ran, must not share with the other copies.

Everything in a zygote's memory is in each kernel made from it. What was drawn from the system's
randomness is drawn anew here; what depends on a process id is too, since in its own
sandbox a copy may well have the same one as the next. The environment starts empty.

A copy of a kernel that ran keeps its environment, and what is the user's: a random generator that a
cell has made is a value like any other, and goes on in the copy as it would have gone on.
"""

import array
import os
import sys

from . import copies
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
    copies.track()
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
    _generators[:] = [
        o
        for o in gc.get_objects()
        if isinstance(o, kinds) and not isinstance(o, random.SystemRandom)
    ]


def refresh():
    """In a copy, before anything else."""
    _reseed()
    _names()
    matplotlib = sys.modules.get("matplotlib")
    if matplotlib is not None:
        _forget_folders(matplotlib)
    if os.environ:
        os.environ.clear()
    sys.dont_write_bytecode = False


def renew():
    """In a copy of a kernel that ran."""
    _reseed()
    _names()
    uuid = sys.modules.get("uuid")
    if uuid is not None:
        # C's library has drawn a node and a sequence if it was used, and cannot be made to forget.
        uuid._generate_time_safe = None
        uuid._node = uuid._random_getnode()


def _reseed():
    shared = [
        getattr(sys.modules.get("random"), "_inst", None),
        getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None),
    ]
    known = {id(generator): generator for generator in _generators + shared}
    for generator in known.values():
        try:
            _draw(generator)
        except (AttributeError, TypeError, ValueError, NotImplementedError):
            pass  # one with a fixed sequence, or none
    ssl = sys.modules.get("_ssl")
    if ssl is not None:
        # OpenSSL would reseed itself by the process id alone.
        ssl.RAND_add(os.urandom(64), 64.0)


def _draw(generator):
    bits = getattr(generator, "bit_generator", None)
    if bits is not None:
        bits.state = type(bits)().state
    elif type(getattr(generator, "_bit_generator", None)).__name__ == "MT19937":
        # What its seed() would compute for long, the system has at once.
        words = array.array("I", os.urandom(4 * 624))
        generator.set_state(("MT19937", words, 624, 0, 0.0))
    else:
        generator.seed()


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


def _forget_folders(matplotlib):
    """matplotlib remembers the folders of the zygote's home; let it look again."""
    for name in ("get_configdir", "get_cachedir"):
        function = getattr(matplotlib, name, None)
        cells = getattr(function, "__closure__", None) or ()
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        for variable, cell in zip(names, cells):
            if variable == "called":
                cell.cell_contents = False
