"""`--once FILE`: the code of one file as one cell, without the protocol.

Standard input, output and error are the caller's. Results are printed where they happen.
"""

import _signal
import os
import sys

from . import interrupt
from . import protocol
from . import usersite
from . import world
from .session import Session
from .streams import Streams


class Printer:
    """A sink that prints, and keeps a record if there is a file for it."""

    def __init__(self, stream, record):
        self.stream = stream
        self.record = record
        self.pid = os.getpid()

    def is_here(self):
        return os.getpid() == self.pid

    def send_result(self, kind, fields):
        if kind == "e":
            print(fields["traceback"], file=sys.__stderr__)
            return
        # As an agent would get them: within the limits.
        kept = {}
        for _, key, data in protocol.prepare(kind, fields):
            name = key.decode()
            kept[name] = data.decode() if name == "text" else fields[name]
        if "text" in kept:
            print(kept["text"], file=self.stream)
        if self.record:
            line = protocol.to_json({"main": kind == "m", **kept})
            with open(self.record, "ab") as file:
                file.write(line + b"\n")


def _status(error):
    """The exit status of a cell that ended with this exception."""
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    return 1


class Once(Session):
    """A session whose only cell may exit like a script."""

    def _fail(self, error):
        if not isinstance(error, SystemExit):
            super()._fail(error)
        elif not isinstance(error.code, (int, type(None))):
            print(error.code, file=sys.stderr)


def main(arguments):
    path, record = arguments[1], arguments[3] if len(arguments) > 3 else None
    try:
        with open(path, "rb") as file:
            code = file.read()
    except OSError as error:
        sys.exit(f"cannot read the code: {error}")
    streams = Streams(ordered=False)
    streams.install()
    session = Once(Printer(streams.stdout, record))
    world.enter(session)
    world.whole_prints(streams)
    world.Libc().unbuffer_stdout()
    usersite.locate()
    interrupt.install()
    interrupt.cell_begins()
    error = session.execute(code.decode("utf-8", "surrogateescape"))
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)  # while threads are waited for
    sys.exit(_status(error))
