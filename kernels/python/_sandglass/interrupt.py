"""SIGINT: a KeyboardInterrupt while a cell's own code runs, nothing at any other time.

`armed` is true while the cell's code runs, or what it defined (a repr). In between, a signal is
only noted, and raised when the kernel arms again. A signal that comes while the kernel is idle is
dropped, unless a cell has been sent already: then it was meant for that one.
"""

import _signal
import _thread


class _State:
    armed = False  # raise at once
    pending = False  # came while the kernel itself was at work
    main = _thread.get_ident()
    arrived = None  # tells whether a cell is on its way; None while one runs
    idle_loop = None  # given the frame: whether an event loop was interrupted, and has been told


state = _State()


class Shield:
    """Keeps KeyboardInterrupt out of a block; raises it at the end of it instead."""

    def __init__(self):
        self._armed = False

    def __enter__(self):
        if _thread.get_ident() == state.main:
            self._armed = state.armed
            state.armed = False

    def __exit__(self, kind, value, trace):
        if _thread.get_ident() == state.main and self._armed:
            arm()


def arm():
    """From here on SIGINT raises; so does one that came before."""
    state.armed = True
    if state.pending:
        state.pending = False
        raise KeyboardInterrupt


def disarm():
    state.armed = False


def cell_begins():
    """Signals are for the cell now."""
    state.arrived = None


def cell_ends(arrived):
    """Signals are for nobody, unless `arrived()` says that the next cell has come."""
    state.armed = False
    state.pending = False
    state.arrived = arrived
    if _signal.getsignal(_signal.SIGINT) is not on_sigint:
        install()


def on_sigint(_number, frame):
    if state.armed:
        if state.idle_loop is None or not state.idle_loop(frame):
            raise KeyboardInterrupt
    elif state.arrived is None or state.arrived():
        state.pending = True


def install():
    """Takes the signal over: at the start, and again after a cell that had its own handler."""
    state.main = _thread.get_ident()
    _signal.signal(_signal.SIGINT, on_sigint)
