"""Top-level await: one event loop for all cells, made when the first cell needs it.

Tasks that a cell leaves behind go on when a later cell awaits; in between the kernel is idle, and
so is the loop.
"""

import asyncio
import os
import selectors

from .interrupt import state

_IN_LOOP = frozenset(("create_task", "ensure_future", "get_running_loop"))

_loop = None


def wants_loop(code):
    """Whether code that awaits nothing still counts on a running loop, as notebooks have it."""
    names = code.co_names
    return not _IN_LOOP.isdisjoint(names) and "run" not in names


def _usable(loop):
    """Not after a cell has closed it, or its descriptors."""
    if loop is None or loop.is_closed() or loop.is_running():
        return False
    try:
        for fd in (loop._selector.fileno(), loop._ssock.fileno(), loop._csock.fileno()):
            os.fstat(fd)
    except (OSError, ValueError):
        return False
    return True


def _get_loop():
    global _loop
    if not _usable(_loop):
        _loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_loop)
    return _loop


async def inside(code, namespace):
    """Runs plain code inside the loop."""
    return eval(code, namespace)


def run(coroutine):
    """Runs the coroutine to its end. An interrupt cancels it where it waits, so that the traceback
    shows that line; in the middle of its own code the interrupt is raised there, as always."""
    loop = _get_loop()
    task = loop.create_task(coroutine)
    waits = getattr(type(loop._selector), "select", selectors.DefaultSelector.select).__code__
    told = False

    def idle(frame):
        nonlocal told
        if told or frame is None or frame.f_code is not waits:
            return False
        told = True
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)
        return True

    state.idle_loop = idle
    try:
        return loop.run_until_complete(task)
    except asyncio.CancelledError as error:
        if not told:
            raise
        raise KeyboardInterrupt().with_traceback(error.__traceback__) from None
    except BaseException:
        _abandon(loop, task)
        raise
    finally:
        state.idle_loop = None


def _abandon(loop, task):
    """The loop was left by an exception of somebody else's: the cell's task ends with it."""
    if task.done() or loop.is_closed():
        return
    task.cancel()
    try:
        loop.run_until_complete(task)
    except BaseException:
        pass
