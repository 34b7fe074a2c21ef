"""Exceptions as name, value and traceback.

The traceback begins in the cell: frames of the kernel, and of the event loop that drives it, are
taken out, in causes, contexts and groups too. Nothing an exception does in its own __str__ can
keep the cell from ending.
"""

import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
FRAMES_MAX = 40  # of one traceback: recursion over several functions is not folded by Python
CHAIN_MAX = 25
CELL = r'\A([ |+-]*)File "(Cell In\[\d+\])", line (\d+)(?:, in <module>)?'


def describe(error):
    """The fields of an `e` result."""
    name = _name(error)
    try:
        value = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        value = "<the exception's str() failed>"
    limit = sys.getrecursionlimit()
    try:
        if limit < 1000:  # set by the cell, and not enough for what follows
            sys.setrecursionlimit(1000)
        text = _format(error)
    except KeyboardInterrupt:
        raise
    except BaseException as failure:
        text = f"{name}: {value}\n<its traceback cannot be shown: {_name(failure)}>"
    finally:
        sys.setrecursionlimit(limit)
    return {"name": name, "value": value, "traceback": text.rstrip("\n")}


def interrupted(error):
    """The same for an exception whose own code had to be interrupted."""
    text = f"{_name(error)}: <interrupted while it was being shown>"
    return {"name": "KeyboardInterrupt", "value": "", "traceback": text + "\nKeyboardInterrupt"}


def _name(error):
    name = type(error).__name__
    return name if isinstance(name, str) else "Exception"


def _format(error):
    import re
    import traceback

    _trim_all(error)
    shown = traceback.TracebackException(
        type(error), error, error.__traceback__, limit=None, compact=True
    )
    _bound(shown, CHAIN_MAX)
    return "".join(re.sub(CELL, _cell_line, chunk, count=1) for chunk in shown.format())


def _cell_line(found):
    return f"{found[1]}{found[2]}, line {found[3]}"


def _trim_all(error):
    """Cuts the tracebacks of an exception and of all it is chained to."""
    seen, waiting = set(), [error]
    while waiting and len(seen) < 1000:
        one = waiting.pop()
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = trim(one.__traceback__)
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def is_cell(code):
    return code.co_filename.startswith("Cell In[")


def _hidden(filename):
    if filename.startswith(HERE) or filename == "<frozen _sitebuiltins>":
        return True
    return f"{os.sep}IPython{os.sep}core{os.sep}" in filename


def trim(trace):
    """The traceback from the first frame of a cell on, without the kernel's frames, and without the
    middle of a very long one."""
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    start = next((i for i, t in enumerate(entries) if is_cell(t.tb_frame.f_code)), 0)
    kept = [t for t in entries[start:] if not _hidden(t.tb_frame.f_code.co_filename)]
    result = None
    for entry in reversed(kept):
        result = types.TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def _bound(shown, depth):
    """No header where no frame is left, no endless stack, no endless chain."""
    while shown is not None:
        stack = shown.stack
        if not stack:
            shown.stack = None
        elif len(stack) > FRAMES_MAX and not _folds(stack):
            shown.stack = _Cut(stack)
        for inner in shown.exceptions or ():
            _bound(inner, depth)
        depth -= 1
        if depth == 0:
            shown.__cause__ = shown.__context__ = None
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


def _folds(stack):
    """Whether Python itself will say `Previous line repeated` for nearly all of it."""
    lines = {(frame.filename, frame.lineno) for frame in stack}
    return len(lines) <= 4 and stack[-2].lineno == stack[-3].lineno


class _Cut:
    """A stack that shows its two ends."""

    def __init__(self, stack):
        self.stack = stack

    def format(self, **options):
        import traceback

        half = FRAMES_MAX // 2
        head = traceback.StackSummary.from_list(self.stack[:half])
        tail = traceback.StackSummary.from_list(self.stack[-half:])
        left = len(self.stack) - 2 * half
        return head.format() + [f"  <{left} frames left out>\n"] + tail.format()
