"""Magics: what `%name`, `%%name`, `!command` and `name?` do.

Those that are used all the time are here, and work the same with IPython and without it; they cost
no import of it, which takes longer than most cells. All others are IPython's, where it is
installed.
"""

import importlib.util
import os
import shlex
import sys

from . import compiler
from . import errors
from . import ipython
from . import rich
from . import shell
from . import usersite

ALIASES = ("cat", "cp", "ls", "mkdir", "mv", "rm", "rmdir")
SCRIPTS = {"bash": "bash", "sh": "sh", "python": "python3", "python3": "python3", "perl": "perl"}
SHOWN = {
    "html": "text/html",
    "HTML": "text/html",
    "javascript": "application/javascript",
    "js": "application/javascript",
    "latex": "text/latex",
    "markdown": "text/markdown",
    "svg": "image/svg+xml",
    "SVG": "image/svg+xml",
}
# About how a notebook looks. Results look the same always.
IGNORED = ("matplotlib", "config", "colors", "xmode", "autosave", "pylab", "gui")


class UsageError(Exception):
    """A magic that does not exist, or was used in a wrong way."""

    __module__ = "builtins"


class Magics:
    """The calls that syntax.py puts into the code."""

    def __init__(self, session):
        self.session = session
        self.namespace = session.namespace
        self.lines = {}
        self.cells = {}
        self._previous = None
        for name in dir(self):
            if name.startswith("line_"):
                self.lines[name[5:]] = getattr(self, name)
            elif name.startswith("cell_"):
                self.cells[name[5:]] = getattr(self, name)
        for name in ALIASES:
            self.lines[name] = lambda text, name=name: self.system(f"{name} {text}")
        for name in IGNORED:
            self.lines[name] = lambda text: None
        for name, program in SCRIPTS.items():
            self.cells[name] = lambda text, body, at, p=program: self._script(p, text, body)
        for name, kind in SHOWN.items():
            self.cells[name] = lambda text, body, at, k=kind: rich.display({k: body}, raw=True)

    def line(self, name, text):
        """`%name text`"""
        if name in self.lines:
            return self.lines[name](text)
        theirs = ipython.shell(self.session)
        if theirs is None or theirs.find_line_magic(name) is None:
            raise UsageError(self._unknown(f"%{name}", self.lines, "%", theirs))
        return theirs.run_line_magic(name, text)

    def cell(self, name, text, body, at=2):
        """`%%name text`, and the lines below, the first of which is line `at` of the cell."""
        if name in self.cells:
            return self.cells[name](text, body, at)
        theirs = ipython.shell(self.session)
        if theirs is None or theirs.find_cell_magic(name) is None:
            raise UsageError(self._unknown(f"%%{name}", self.cells, "%%", theirs))
        return theirs.run_cell_magic(name, text, body)

    def system(self, command):
        """`!command`"""
        status = shell.system(shell.expand(command, self.namespace))
        self.namespace["_exit_code"] = status

    def output(self, command):
        """`x = !command`"""
        lines, status = shell.output(shell.expand(command, self.namespace))
        self.namespace["_exit_code"] = status
        return lines

    def help(self, name, level):
        """`name?` and `name??`"""
        import inspect
        import pydoc

        try:
            found = eval(name, self.namespace)
        except Exception:
            raise UsageError(f"there is no {name} to describe") from None
        if level > 1:
            try:
                print(inspect.getsource(found))
                return
            except (OSError, TypeError):
                pass
        print(pydoc.plain(pydoc.render_doc(found)))

    @staticmethod
    def _unknown(name, known, mark, theirs):
        more = "" if theirs else " IPython, which has more, is not installed."
        names = ", ".join(mark + n for n in sorted(known))
        return f"there is no magic {name}. There are: {names}.{more}"

    # -- running code -------------------------------------------------------------------------

    def _run(self, source, at):
        """Runs code of the cell that is running, as if it stood in its line `at`."""
        filename = compiler.name_of(self.session.count)
        code = compiler.compile_cell("\n" * (at - 1) + source, filename, self.session.flags)
        return self.session.run_code(code)

    @staticmethod
    def _here():
        """The line of the cell that is running now."""
        frame = sys._getframe(1)
        while frame is not None and not errors.is_cell(frame.f_code):
            frame = frame.f_back
        return frame.f_lineno if frame is not None else 1

    def line_time(self, text):
        from . import timing

        at = self._here()
        return timing.time_run(lambda: self._run(text, at))

    def cell_time(self, text, body, at):
        from . import timing

        return timing.time_run(lambda: self._run(f"{text}\n{body}" if text else body, at))

    def line_timeit(self, text):
        return self._timeit(text, None)

    def cell_timeit(self, text, body, _at):
        return self._timeit(text, body)

    def _timeit(self, text, body):
        """-n loops, -r runs, -q prints nothing, -o returns the result. In a cell, the first line
        is what to do before."""
        from . import timing

        options, statement = _options(text, "nr", "qopct")
        setup, statement = ("pass", statement) if body is None else (statement or "pass", body)
        result = timing.measure(
            statement, setup, self.namespace, int(options.get("n", 0)), int(options.get("r", 7))
        )
        if "q" not in options:
            print(result)
        return result if "o" in options else None

    def line_run(self, text):
        """A file, as if its text stood in the cell's module; with -i or without."""
        words = [word for word in shlex.split(text) if word != "-i"]
        if not words:
            raise UsageError("%run needs the name of a file")
        with open(os.path.expanduser(words[0]), "rb") as file:
            code = compile(file.read(), words[0], "exec", 0, True)
        before, sys.argv = sys.argv, words
        self.namespace["__file__"] = words[0]
        try:
            exec(code, self.namespace)
        finally:
            sys.argv = before
            self.namespace.pop("__file__", None)

    # -- programs -----------------------------------------------------------------------------

    def line_pip(self, text):
        if importlib.util.find_spec("pip") is None:
            raise UsageError("pip is not installed here: add python3-pip to the template")
        words = shlex.split(shell.expand(text, self.namespace))
        command = [sys.executable or "python3", "-m", "pip", *words]
        self.namespace["_exit_code"] = shell.run(command, env=shell.environment("pip"))
        usersite.refresh()

    def line_sx(self, text):
        return self.output(text)

    line_system = line_sx

    def cell_script(self, text, body, _at):
        words = shlex.split(text)
        if not words:
            raise UsageError("%%script needs the name of a program")
        self._script(words[0], " ".join(words[1:]), body)

    def _script(self, program, text, body):
        import subprocess

        command = [program, *shlex.split(text)]
        try:
            status = shell.run(command, text=body, env=shell.environment(body))
        except FileNotFoundError:
            raise UsageError(f"{program} is not installed in this sandbox") from None
        if status:
            raise subprocess.CalledProcessError(status, command)

    # -- environment --------------------------------------------------------------------------

    def line_env(self, text):
        if not text:
            return dict(os.environ)
        mark = "=" if "=" in text else " "
        name, found, value = text.partition(mark)
        if not found:
            if name not in os.environ:
                raise UsageError(f"there is no variable {name} in the environment")
            return os.environ[name]
        name, value = name.strip(), shell.expand(value.strip(), self.namespace)
        os.environ[name] = value
        print(f"env: {name}={value}")
        return None

    line_set_env = line_env

    def line_pwd(self, _text):
        return os.getcwd()

    def line_cd(self, text):
        here = os.getcwd()
        folder = shell.expand(text, self.namespace).strip().strip("'\"") or "~"
        if folder == "-":
            if self._previous is None:
                raise UsageError("%cd -: there was no other directory before")
            folder = self._previous
        os.chdir(os.path.expanduser(folder))
        self._previous = here
        print(os.getcwd())

    # -- names --------------------------------------------------------------------------------

    def line_who_ls(self, text):
        kinds = text.split()
        hidden = ("In", "Out", "get_ipython", "exit", "quit")
        return sorted(
            name
            for name, value in self.namespace.items()
            if not name.startswith("_") and name not in hidden
            and (not kinds or type(value).__name__ in kinds)
        )

    def line_who(self, text):
        names = self.line_who_ls(text)
        print("\t ".join(names) if names else "Interactive namespace is empty.")

    def line_whos(self, text):
        rows = [("Variable", "Type", "Data/Info")]
        for name in self.line_who_ls(text):
            value = self.namespace[name]
            rows.append((name, type(value).__name__, _short(value)))
        wide = [max(len(row[i]) for row in rows) for i in (0, 1)]
        for row in rows:
            print(f"{row[0]:{wide[0]}}   {row[1]:{wide[1]}}   {row[2]}")

    def line_history(self, _text):
        for source in self.session.inputs[1:-1]:
            print(source)

    line_hist = line_history

    def line_lsmagic(self, _text):
        print("Line magics:", " ".join("%" + name for name in sorted(self.lines)))
        print("Cell magics:", " ".join("%%" + name for name in sorted(self.cells)))

    # -- output -------------------------------------------------------------------------------

    def cell_writefile(self, text, body, _at):
        options, name = _options(text, "", "a")
        name = os.path.expanduser(name.strip("'\""))
        if not name:
            raise UsageError("%%writefile needs the name of a file")
        exists = os.path.exists(name)
        with open(name, "a" if "a" in options else "w", encoding="utf-8") as file:
            file.write(body if body.endswith("\n") else body + "\n")
        done = "Appending to" if "a" in options else "Overwriting" if exists else "Writing"
        print(f"{done} {name}")

    def cell_capture(self, text, body, at):
        import contextlib
        import io

        name = next((w for w in text.split() if not w.startswith("-")), None)
        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                self._run(body, at)
        finally:
            if name is not None:
                self.namespace[name] = Captured(out.getvalue(), err.getvalue())


class Captured:
    """What %%capture keeps."""

    def __init__(self, stdout, stderr):
        self.stdout, self.stderr = stdout, stderr

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)

    __call__ = show

    def __str__(self):
        return self.stdout


def _options(text, with_value, without):
    """Options at the start of a magic's text, each by itself: `-n 10`, `-n10`, `-q`."""
    options, rest = {}, text.lstrip()
    while rest.startswith("-") and rest[1:2] and rest[1] in with_value + without:
        letter, rest = rest[1], rest[2:].lstrip()
        if letter in with_value:
            options[letter], _, rest = rest.partition(" ")
        else:
            options[letter] = True
        rest = rest.lstrip()
    return options, rest


def _short(value):
    """A value in half a line, for %whos."""
    try:
        text = repr(value).replace("\n", " ")
    except Exception:
        text = "?"
    return text if len(text) <= 60 else text[:57] + "..."
