"""sys.stdin of a cell: there is nobody to ask."""

import io

WHAT_TO_DO = (
    "a cell cannot read from standard input: nobody is there to type. Put the value into the code, "
    "a file, or a variable of the environment"
)


class StdinNotImplementedError(EOFError):
    """An EOFError, because that is what code that reads its input is prepared for."""

    __module__ = "builtins"  # so tracebacks show the bare name


def refuse(*_args, **_options):
    raise StdinNotImplementedError(WHAT_TO_DO)


def input(prompt="", /):
    """Reads a line from standard input, which a cell does not have."""
    raise StdinNotImplementedError("input() is not available: " + WHAT_TO_DO)


class Stdin(io.TextIOBase):
    encoding = "utf-8"
    errors = "strict"
    name = "<stdin>"
    mode = "r"
    read = readline = readlines = __next__ = refuse

    @property
    def buffer(self):
        return self

    def readable(self):
        return True

    def fileno(self):
        return 0

    def close(self):
        """exit() closes it, and the next cell goes on."""
