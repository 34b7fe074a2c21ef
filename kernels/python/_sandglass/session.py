"""What cells share: their module, the history, and how one of them is run.

The module is `__main__`, so classes that cells define can be pickled, and looks like that of a
script. Results go to a `sink`: the control socket, or standard output in `--once`.
"""

import builtins
import os
import sys
import types

from . import compiler
from . import errors
from . import interrupt
from . import rich

COROUTINE = 0x80
KEPT = 1000  # values in Out


class Session:
    def __init__(self, sink):
        self.sink = sink
        self.main = types.ModuleType("__main__")
        self.inputs = [""]
        self.outputs = {}
        self.flags = 0
        self.count = 0
        self._unders = {}
        self._magics = None
        self.namespace = self.main.__dict__
        self.namespace.update(
            __builtins__=builtins,
            In=self.inputs,
            Out=self.outputs,
            _ih=self.inputs,
            _oh=self.outputs,
        )
        for name in ("_", "__", "___"):
            self._unders[name] = self.namespace[name] = ""

    def execute(self, source):
        """Runs a cell and sends its results. Returns the exception it ended with, or None."""
        self.count += 1
        self.inputs.append(source)
        error = None
        try:
            try:
                interrupt.arm()
                self._run(source)
            except BaseException as e:
                error = e
            interrupt.disarm()
        except KeyboardInterrupt as e:  # one more, in the two lines above
            error = e
            interrupt.disarm()
        if not self.sink.is_here():
            self._leave(error)
        if error is not None:
            self._fail(error)
        return error

    def _run(self, source):
        filename = compiler.name_of(self.count)
        compiler.remember(filename, source)
        try:
            code = compiler.compile_cell(source, filename, self.flags)
            self.flags |= code.co_flags & compiler.FUTURES
            value = self.run_code(code)
            if value is not None:
                self._show(value)
        finally:
            for shown in rich.figures():
                self.sink.send_result("d", shown)
            _flush()

    def run_code(self, code):
        """Runs what compile_cell() made. Returns the value, if the code has one."""
        namespace = self.namespace
        if code.co_flags & COROUTINE:
            value = _aio().run(eval(code, namespace))
        elif ("asyncio" in sys.modules or "asyncio" in code.co_names) and _aio().wants_loop(code):
            value = _aio().run(_aio().inside(code, namespace))
        else:
            value = eval(code, namespace)
        return namespace.pop(compiler.VALUE, None) if value is None else value

    def magics(self):
        """What syntax.py's calls go to."""
        if self._magics is None:
            from .magics import Magics

            self._magics = Magics(self)
        return self._magics

    def _show(self, value):
        """The value of the cell: a result, and a part of the history."""
        fields = rich.bundle(value)
        namespace, unders = self.namespace, self._unders
        if fields:
            self.sink.send_result("m", fields)
        if value is self.outputs:
            return
        for name, new in (("___", unders["__"]), ("__", unders["_"]), ("_", value)):
            # A cell may use these names for itself; then they stay as they are.
            if namespace.get(name, "") is unders[name]:
                namespace[name] = new
            unders[name] = new
        namespace[f"_{self.count}"] = self.outputs[self.count] = value
        if len(self.outputs) > KEPT:
            oldest = next(iter(self.outputs))
            del self.outputs[oldest]
            namespace.pop(f"_{oldest}", None)

    def show(self, fields):
        """Something displayed while a cell runs. A child of the kernel has only its output."""
        if self.sink.is_here():
            self.sink.send_result("d", fields)
        else:
            print(fields.get("text", ""))

    def _fail(self, error):
        if isinstance(error, KeyboardInterrupt):
            _forget_orphans()
        sys.last_type, sys.last_value = type(error), error
        try:
            interrupt.arm()
            fields = errors.describe(error)
            interrupt.disarm()
        except BaseException:  # an interrupt, or worse, out of the exception's own code
            interrupt.disarm()
            fields = errors.interrupted(error)
        sys.last_traceback = error.__traceback__
        self.sink.send_result("e", fields)

    def _leave(self, error):
        """The end of a cell in a child that it has forked: what a script does at its end."""
        status = 0
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            status = 1
            print(errors.describe(error)["traceback"], file=sys.stderr)
        try:
            sys.stdout.flush()
        finally:
            os._exit(status & 0xFF)


def _flush():
    """The cell may have replaced the streams by some that keep things back."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except Exception:
            pass


def _aio():
    """Imported when it is needed, and never by half."""
    with interrupt.Shield():
        from . import aio
    return aio


def _forget_orphans():
    """An interrupt in the middle of an import leaves modules whose package is gone. With them the
    package could not be imported a second time."""
    modules = sys.modules
    for name in sorted(modules):
        package = name.rpartition(".")[0]
        if package and package not in modules:
            del modules[name]
