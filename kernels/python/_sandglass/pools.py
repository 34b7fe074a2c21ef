"""Thread pools of numeric libraries, which rest while a copy is made.

Only one thread can be copied. OpenBLAS, OpenMP, numexpr and joblib keep workers between calls, and all
of them can be told to let these go; the first three are back in microseconds when they are needed. The
agent asks for it before a kernel that has threads is copied, and a zygote does it before it idles. Nobody
notices: sizes stay what they were, and results are those of the same number of workers.

    library      by                                       workers are back
    OpenBLAS     blas_thread_shutdown_, what it does      with the next product
                 itself before a fork()
    OpenMP       omp_pause_resource_all                   with the next parallel region
    numexpr      set_num_threads(1)                       with the next evaluate()
    joblib       shutdown of its idle processes           with the next Parallel

Which libraries are loaded the dynamic linker tells; each is looked at once. Wheels carry their own
OpenBLAS and OpenMP, under other names of files and functions, perhaps several of them.

A library that is asked while it computes could wait for ever. So nothing is done while another thread of Python's
exists: there is no copy to be had then anyway. What cannot be rested stays, and is in the way.
"""

import _ctypes
import _thread
import os
import re
import sys
import time

# What says how many threads, in the order in which each library looks.
SIZES = {
    "openblas": ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"),
    "openmp": ("OMP_NUM_THREADS",),
    "numexpr": ("NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS"),
}
VARIABLES = frozenset(name.encode() for names in SIZES.values() for name in names)
MOST = 1024

_LIKELY = re.compile(rb"openblas|libblas|liblapack|libgomp|libomp|libiomp|libmkl", re.I)
_PREFIXES = ("", "scipy_", "numpy_")
_SUFFIXES = ("", "64_", "_64")
_FUNCTIONS = {  # that lets threads rest, says how many, sets how many
    "openmp": ("omp_pause_resource_all", "omp_get_max_threads", "omp_set_num_threads"),
    "openblas": ("blas_thread_shutdown_", "openblas_get_num_threads", "openblas_set_num_threads"),
}
_HARD = 2  # omp_pause_hard: of the soft one LLVM's OpenMP keeps its threads
_NOLOAD, _LAZY = 4, 1
_EXIT_S = 0.02  # for threads that have been joined to be gone for the kernel too


def _simple(code):
    """By _ctypes alone, see world.Libc."""
    return type("Simple_" + code, (_ctypes._SimpleCData,), {"_type_": code})


_int, _pointer, _text = _simple("i"), _simple("P"), _simple("z")
_AT_NAME = 8


class _Node(_ctypes.Array):
    """The beginning of struct link_map: address, name, dynamic section, the next. A handle of
    dlopen is a pointer to one."""

    _type_ = _pointer
    _length_ = 4


class _Function(_ctypes.CFuncPtr):
    """Of C, with int arguments. Python's lock is not held: whoever is waited for may want it."""

    _flags_ = 1
    _restype_ = _int


_rests = []  # what there is to be called: (which, rest, get size, set size)
_known = set()  # addresses of those functions
_seen = set()  # libraries that have been looked at
_numexpr = 0  # how many threads it had when it was last put to rest
_resize = False  # the environment says another size


def threads():
    """How many this process has; 0: a zygote, which sees the /proc of others, does not know."""
    try:
        return os.stat("/proc/self/task").st_nlink - 2
    except OSError:
        return 0


# ---- libraries ----------------------------------------------------------------------------------


def look():
    """Finds what has been loaded since the last time."""
    node = _ctypes.dlopen(None, 0)
    while node:
        address, _, dynamic, after = _Node.from_address(node)
        if (node, address, dynamic) not in _seen:
            _seen.add((node, address, dynamic))
            path = _text.from_address(node + _AT_NAME).value or b""
            if _LIKELY.search(path.rpartition(b"/")[2]):
                _learn(path)
        node = after


def _learn(path):
    try:
        library = _ctypes.dlopen(os.fsdecode(path), _NOLOAD | _LAZY)
    except OSError:
        return
    for which, names in _FUNCTIONS.items():
        rest, get, put = (_find(library, name) for name in names)
        if rest and rest not in _known:
            _known.add(rest)
            _rests.append((which, *(_Function(a) if a else None for a in (rest, get, put))))


def _find(library, name):
    """Its address, under any of the names that builds give it; or 0."""
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            try:
                return _ctypes.dlsym(library, prefix + name + suffix)
            except OSError:
                pass
    return 0


# ---- resting ------------------------------------------------------------------------------------


def rest():
    """Whether it came to that is for whoever copies to see."""
    if threads() == 1:
        return
    _attempt(_rest_joblib)
    if _thread._count() == 0:
        look()
        _attempt(_rest_numexpr)
        for which, function, get, put in _rests:
            if which == "openmp":
                _rest_openmp(function, get, put)
            else:
                function()
        _wait()


def _attempt(function, *arguments):
    """Modules may be somebody's own, or broken: then they stay so."""
    try:
        function(*arguments)
    except Exception:
        pass


def _rest_openmp(pause, get, put):
    """LLVM's forgets how many threads were asked for."""
    before = get() if get else 0
    pause(_HARD)
    if put and before and get() != before:
        put(before)


class _Gate:
    """In the place of the lock that numexpr evaluates under: who comes first starts its threads."""

    def __init__(self, compiler):
        self.compiler, self.lock = compiler, compiler.evaluate_lock
        compiler.evaluate_lock = self

    def __enter__(self):
        self.compiler.evaluate_lock = self.lock
        _attempt(_wake_numexpr)
        return self.lock.__enter__()

    def __exit__(self, *error):
        return self.lock.__exit__(*error)


def _rest_numexpr():
    global _numexpr
    numexpr = sys.modules.get("numexpr")
    compiler = sys.modules.get("numexpr.necompiler")
    if numexpr is None or not hasattr(compiler, "evaluate_lock"):
        return
    before = numexpr.set_num_threads(1)
    if before > 1:
        _numexpr = before
        _Gate(compiler)


def _wake_numexpr():
    """Where no thread can be started numexpr would end the process."""
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(done.release, ())
    done.acquire()
    sys.modules["numexpr"].set_num_threads(_numexpr)


def _rest_joblib():
    """Its processes would not be in a copy; what watches over them are threads of Python's. One that still has work
    to do, or other threads beside it, stays."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(loky, "_executor", None)
    if executor is None or executor._pending_work_items or executor._running_work_items:
        return
    own = [executor._executor_manager_thread, getattr(executor._call_queue, "_thread", None)]
    if _thread._count() > sum(t is not None and t.is_alive() for t in own):
        return
    executor.shutdown(wait=True, kill_workers=True)
    loky._executor = None
    del executor
    import gc

    gc.collect()  # its semaphores are shared memory
    if own[1] is not None:
        own[1].join(_EXIT_S)


def _wait():
    end = time.monotonic() + _EXIT_S
    while threads() > 1 and time.monotonic() < end:
        time.sleep(0.0001)


def after_cell():
    """numba keeps a lock between processes when it has compiled: memory that could not be copied. It
    makes another when it needs one."""
    numba = sys.modules.get("numba.np.ufunc.parallel")
    if numba is not None and getattr(numba, "_backend_init_process_lock", None) is not None:
        numba._backend_init_process_lock = None


# ---- other sizes -----------------------------------------------------------------


def changed(key):
    """A variable of the environment was given to a kernel whose libraries may be loaded already."""
    global _resize
    if key in VARIABLES and (_rests or "numexpr" in sys.modules):
        _resize = True


def before_cell():
    """Sizes that were given since count from now on."""
    global _resize
    if _resize:
        _resize = False
        _attempt(_set_sizes)


def _wanted(which):
    for name in SIZES[which]:
        text = os.environ.get(name, "")
        if text.isdecimal() and 0 < int(text) <= MOST:
            return int(text)
    return 0


def _set_sizes():
    global _numexpr
    most = len(os.sched_getaffinity(0))
    for which, _, get, put in _rests:
        count = _wanted(which)
        if which == "openblas":  # has no more when it counts itself
            count = min(count, most)
        if count and get and put and get() != count:
            put(count)
    if _numexpr and _wanted("numexpr"):
        _numexpr = _wanted("numexpr")
