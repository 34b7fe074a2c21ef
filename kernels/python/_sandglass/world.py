"""What a cell finds around it: an interpreter that looks as if nobody but the cell were in it."""

import builtins
import os
import sys

from . import compiler
from . import ipython
from . import rich
from . import stdin
from . import usersite


def enter(session):
    """Makes the session's module __main__, and hides the kernel's folder and arguments."""
    sys.modules["__main__"] = session.main
    sys.argv = [""]
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [""] + [p for p in sys.path if p and os.path.abspath(p) != folder]
    usersite.install()  # before the finder of rich, which comes when all others have failed
    builtins.display = rich.display
    builtins.get_ipython = ipython.getter(session)
    setattr(builtins, compiler.CALL, session.magics)
    rich.install(session.show)


def whole_prints(streams):
    """print() writes its text in one piece. Python's own writes every argument, separator and
    line end by itself, and with streams that keep nothing back a client would see each alone."""
    original = builtins.print
    stream_type = type(streams.stdout)

    def print(*values, sep=" ", end="\n", file=None, flush=False):
        stream = sys.stdout if file is None else file
        if type(stream) is not stream_type or type(sep) is not str or type(end) is not str:
            original(*values, sep=sep, end=end, file=file, flush=flush)
            return
        stream.write(sep.join(map(str, values)) + end)
        if flush:
            stream.flush()

    print.__qualname__, print.__module__, print.__doc__ = "print", "builtins", original.__doc__
    builtins.print = print


def order_programs(streams):
    """Programs write to the descriptors themselves. Before one is started, what the cell has
    written must have been read, or the agent sees it in the wrong order."""
    import subprocess

    def after_drain(function):
        def start(*arguments, **options):
            streams.drain()
            return function(*arguments, **options)

        start.__name__ = start.__qualname__ = function.__name__
        start.__doc__ = function.__doc__
        return start

    subprocess._fork_exec = after_drain(subprocess._fork_exec)
    for name in ("system", "posix_spawn", "posix_spawnp"):
        setattr(os, name, after_drain(getattr(os, name)))
    os.register_at_fork(before=streams.drain)


def no_stdin():
    """Reading from standard input is refused."""
    sys.stdin = sys.__stdin__ = stdin.Stdin()
    builtins.input = stdin.input


class Libc:
    """A few functions of C's library. By _ctypes alone: ctypes allocates a page of executable
    memory when it is imported."""

    def __init__(self):
        import _ctypes

        class Pointer(_ctypes._SimpleCData):
            _type_ = "P"

        self._ctypes, self._pointer = _ctypes, Pointer
        self._library = _ctypes.dlopen(None, 0)

    def _call(self, name, *arguments):
        self._ctypes.call_function(self._ctypes.dlsym(self._library, name), arguments)

    def unbuffer_stdout(self):
        """Has C's own stdout written at once as well, or what a C library prints comes last."""
        file = self._pointer.from_address(self._ctypes.dlsym(self._library, "stdout"))
        unbuffered = 2  # _IONBF
        self._call("setvbuf", file, self._pointer(None), unbuffered, self._pointer(0))

    def trim_memory(self):
        """Joins free memory now. Otherwise each copy of a zygote would, and change all of it."""
        self._call("malloc_trim", self._pointer(0))
