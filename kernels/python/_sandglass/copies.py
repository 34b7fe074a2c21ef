"""What a copy of a kernel that ran must do before its first cell.

A copy has all of the memory, the working directory and the open regular files. It has nothing else
that belonged to the process: sockets, pipes, epoll descriptors, child processes, timers, and the
signal handlers that were set since the kernel was born. Objects for these are still there, and would
close a descriptor that is somebody else's by then. So each such number gets a socket whose
peer has hung up: who reads from it finds the end, who writes gets EPIPE, and libraries that
keep connections connect again.

Which objects there are is noted when they are made: to look for them in the copy would change the
reference counts of everything, and with them all memory that it shares. For the same reason nothing is done
here that need not be: every page that is touched for the first time costs.
"""

import _ctypes
import _signal
import functools
import os
import stat
import sys
import weakref

from . import errors

FIRST = 4  # the descriptors below are the kernel's

_sockets, _selectors, _loops, _programs = {}, {}, {}, {}  # weak references, by id()
_TRACKED = (
    ("socket", "socket", _sockets),
    ("selectors", "_BaseSelectorImpl", _selectors),
    ("asyncio.selector_events", "BaseSelectorEventLoop", _loops),
    ("subprocess", "Popen", _programs),
)
_TRACKERS = (
    "multiprocessing.resource_tracker",
    "joblib.externals.loky.backend.resource_tracker",
)
_handlers = {}  # of signals, in the zygote
_hooks = []  # that were registered since, if any


class _AfterFork(_ctypes.CFuncPtr):
    """What Python itself does in a child. By _ctypes alone, see world.Libc; the flags are those of
    a call that keeps Python's lock."""

    _flags_ = 1 | 4
    _restype_ = None


_after_fork = _AfterFork(_ctypes.dlsym(_ctypes.dlopen(None, 0), "PyOS_AfterFork_Child"))


def track():
    """In a zygote: from now on note what a copy has to know."""
    for module, name, made in _TRACKED:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None:
            kind.__init__ = _noting(kind.__init__, made)
    note_handlers()
    register = os.register_at_fork

    @functools.wraps(register)
    def register_at_fork(**options):
        register(**options)
        _hooks.append("after_in_child" in options)

    os.register_at_fork = register_at_fork


def note_handlers():
    """Of signals, as a zygote has them."""
    for number in _signal.valid_signals():
        _handlers[number] = _signal.getsignal(number)


def _noting(original, made):
    @functools.wraps(original)
    def __init__(self, *arguments, **options):
        original(self, *arguments, **options)
        key = id(self)
        made[key] = weakref.ref(self, lambda _: made.pop(key, None))

    return __init__


def wake_up():
    """In the copy, first: nothing of the kernel's own is open yet but 0 to 3."""
    if _sockets or _selectors or _programs:
        _mend()
    for name in _TRACKERS:
        if name in sys.modules:
            _attempt(_forget_tracker, sys.modules[name])
    if any(_hooks):
        # Those of the standard library mend locks that other threads may have held. There were none.
        _after_fork()
    for number, before in _handlers.items():
        handler = _signal.getsignal(number)
        if handler is not before:
            _signal.signal(number, handler)


def _mend():
    sockets, selectors, loops, programs = (
        [o for o in (r() for r in list(made.values())) if o is not None]
        for made in (_sockets, _selectors, _loops, _programs)
    )
    _bury(_lost(sockets, selectors, programs))
    for program in programs:
        if program.returncode is None:
            program.returncode = -_signal.SIGKILL
    loops = [loop for loop in loops if not loop.is_closed()]
    of_loops = {id(loop._selector) for loop in loops}
    for selector in selectors:
        if id(selector) not in of_loops:
            _attempt(_renew_selector, selector, lambda key: True)
    _signal.set_wakeup_fd(-1)
    for loop in loops:
        _attempt(_renew_loop, loop)


def _forget_tracker(module):
    """Of shared memory: a process, which is not in the copy."""
    module._resource_tracker._fd = module._resource_tracker._pid = None


def _attempt(function, *arguments):
    """Objects may be of somebody's own kind, or broken: then they stay so."""
    try:
        return function(*arguments)
    except Exception:
        return None


def _lost(sockets, selectors, programs):
    """The numbers of descriptors that did not come along."""
    found = set()
    holders = sockets + [getattr(s, "_selector", None) for s in selectors]
    for program in programs:
        holders += program.stdin, program.stdout, program.stderr
    for holder in holders:
        if hasattr(holder, "fileno"):
            found.add(_attempt(holder.fileno))
    for selector in selectors:
        found.update(selector._fd_to_key)
    return [fd for fd in found if isinstance(fd, int) and fd >= FIRST and _is_lost(fd)]


def _is_lost(fd):
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return True
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISCHR(mode))


def _bury(numbers):
    if not numbers:
        return
    import _socket

    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    theirs.close()
    spare = ours.detach()
    for fd in numbers:
        if fd != spare:
            os.dup2(spare, fd, False)
    if spare not in numbers:
        os.close(spare)


def _renew_selector(selector, stays):
    """An epoll descriptor of its own."""
    old = selector._selector
    if not hasattr(old, "fileno"):
        return  # poll() and select() have none
    keys = [key for key in selector._fd_to_key.values() if stays(key)]
    old.close()
    selector._selector = type(old)()
    selector._fd_to_key.clear()
    for key in keys:
        _attempt(selector.register, key.fileobj, key.events, key.data)


def _renew_loop(loop):
    """An event loop: what waits for time goes on to wait, what waits for a peer finds it gone."""
    waker = loop._ssock.fileno()
    _renew_selector(loop._selector, lambda key: key.fd != waker and _ends(key.data))
    loop._ssock.close()
    loop._csock.close()
    loop._internal_fds -= 1
    loop._make_self_pipe()
    if getattr(loop, "_signal_handlers", None):
        _signal.set_wakeup_fd(loop._csock.fileno())


def _ends(handles):
    """Whether those who are told of a hang-up let go. The others, and who knows what
    somebody's own would do, would be told again and again."""
    for handle in handles:
        callback = getattr(handle, "_callback", None)
        kind = type(getattr(callback, "__self__", None)).__name__
        if callback is not None and (
            not getattr(callback, "__module__", "").startswith("asyncio.")
            or callback.__name__ == "_accept_connection"
            or kind == "_SelectorDatagramTransport"
        ):
            return False
    return True


def run_hook(hook):
    """The user's own. What it prints, and the errors it has, come with the next cell."""
    try:
        hook()
    except BaseException as error:
        _attempt(lambda: sys.stderr.write(errors.describe(error)["traceback"] + "\n"))
