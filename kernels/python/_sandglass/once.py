"""`--once FILE`: the code of one file as one cell, without the protocol.

Standard input, output and error are the caller's. Results are printed where they happen.
"""

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
        import os

        self.stream = stream
        self.record = record
        self._getpid, self.pid = os.getpid, os.getpid()

    def is_here(self):
        return self._getpid() == self.pid

    def send_result(self, kind, fields):
        if kind == "e":
            print(fields["traceback"], file=sys.__stderr__)
            return
        fields = self._within_limits(kind, fields)
        if "text" in fields:
            print(fields["text"], file=self.stream)
        if self.record:
            line = protocol.to_json({"main": kind == "m", **fields})
            with open(self.record, "ab") as file:
                file.write(line + b"\n")

    @staticmethod
    def _within_limits(kind, fields):
        """The fields as an agent would get them."""
        sent = {key.decode() for _, key, _ in protocol.prepare(kind, fields)}
        kept = {key: value for key, value in fields.items() if key in sent}
        for tag, key, data in protocol.prepare(kind, fields):
            if key == b"text":
                kept["text"] = data.decode()
        return kept


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
    sys.exit(_status(error))
