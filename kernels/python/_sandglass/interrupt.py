"""SIGINT: a KeyboardInterrupt while a cell's own code runs, nothing at any other time.

`armed` is true while the cell's code runs, or what it defined (a repr). In between, a signal is
only noted, and raised when the kernel arms again. A signal that comes while the kernel is idle is
dropped, even if a cell has been sent already: it may have been meant for the one before, and the
agent repeats it if it was not.

Some packages cannot be imported again if their first import was interrupted: their C half has kept
what their Python half has lost. While one of these is being imported the signal waits.
"""

import _signal
import _thread
import os
import time

WHOLE_IMPORTS = frozenset(("asyncio", "numpy", "pandas"))


class _State:
    armed = False  # raise at once
    pending = False  # came while the kernel itself was at work
    cell = 0  # counts them
    main = _thread.get_ident()
    in_cell = False
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


def disarm_for_sure():
    """Also in a storm of signals, each of which raises until this has come to its end."""
    while state.armed:
        try:
            state.armed = False
        except KeyboardInterrupt:
            pass


def cell_begins():
    """Signals are for the cell now."""
    state.in_cell = True
    state.cell += 1


def cell_ends():
    """Signals are for nobody."""
    state.in_cell = state.armed = state.pending = False
    if _signal.getsignal(_signal.SIGINT) is not on_sigint:
        install()


def _in_import(frame):
    """Whether one of these packages is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "_find_and_load" and frame.f_locals.get("name") in WHOLE_IMPORTS:
            return True
        frame = frame.f_back
    return False


def _again(cell):
    time.sleep(0.02)
    if state.cell == cell and state.in_cell:
        os.kill(os.getpid(), _signal.SIGINT)


def on_sigint(_number, frame):
    if state.armed:
        if _in_import(frame):
            _thread.start_new_thread(_again, (state.cell,))
        elif state.idle_loop is None or not state.idle_loop(frame):
            raise KeyboardInterrupt
    elif state.in_cell:
        state.pending = True


def install():
    """Takes the signal over: at the start, and again after a cell that had its own handler."""
    state.main = _thread.get_ident()
    _signal.signal(_signal.SIGINT, on_sigint)
