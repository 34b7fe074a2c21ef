"""IPython, where it is installed: for magics that are not in magics.py, and as get_ipython().

It is imported when a cell needs it and never before. Its shell works in the cells' own module; what
it displays goes the way of all results, and its errors are raised for the kernel to show.
Without IPython, get_ipython() is a small object with the methods that notebooks call most.
"""

import builtins
import importlib.util
import sys

_shell = None
_looked = False


def shell(session):
    """IPython's shell, or None if IPython is not installed."""
    global _shell, _looked
    if not _looked:
        _looked = True
        if _installed():
            try:
                _shell = _make(session)
            except Exception as error:
                print(f"IPython cannot be used: {error!r}", file=sys.stderr)
    if _shell is not None:
        _shell.execution_count = session.count
    return _shell


def _installed():
    """Not the stand-in for its display functions, which has no file."""
    try:
        spec = importlib.util.find_spec("IPython")
    except ValueError:
        spec = None
    return spec is not None and spec.origin is not None


def _make(session):
    keep = sys.displayhook, sys.excepthook, sys.modules["__main__"], builtins.display
    history = {name: session.namespace[name] for name in ("In", "Out", "_ih", "_oh")}
    try:
        from .ipython_shell import make

        return make(session)
    finally:
        sys.displayhook, sys.excepthook, sys.modules["__main__"], builtins.display = keep
        session.namespace.update(history)
        for name in ("get_ipython", "exit", "quit"):
            session.namespace.pop(name, None)


def getter(session):
    """The function get_ipython() of a session."""
    standin = None

    def get_ipython():
        """The shell that runs the cells."""
        nonlocal standin
        found = shell(session)
        if found is not None:
            return found
        if standin is None:
            standin = Standin(session)
        return standin

    return get_ipython


class Standin:
    """What get_ipython() is without IPython."""

    def __init__(self, session):
        self._session = session
        self.user_ns = session.namespace
        self.user_module = session.main

    def run_line_magic(self, name, line, _stack_depth=1):
        return self._session.magics().line(name, line)

    def run_cell_magic(self, name, line, cell):
        return self._session.magics().cell(name, line, cell)

    def magic(self, text):
        name, _, line = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, line)

    def system(self, command):
        return self._session.magics().system(command)

    def getoutput(self, command):
        return self._session.magics().output(command)

    def run_cell(self, source, *_args, **_options):
        from . import compiler

        return self._session.run_code(compiler.compile_cell(source, "<run_cell>"))

    def ev(self, expression):
        return eval(expression, self.user_ns)

    def ex(self, code):
        exec(code, self.user_ns)

    def push(self, variables):
        self.user_ns.update(variables)
