"""IPython's shell, made to fit: imports IPython, so it is imported by ipython.py only."""

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from . import rich


class Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **_more):
        rich.display(data, raw=True)

    def clear_output(self, wait=False):
        """What is sent is sent."""


class Hook(DisplayHook):
    def __call__(self, result=None):
        if result is not None:
            rich.display(result)


class Shell(InteractiveShell):
    """Shows by this kernel, raises instead of printing tracebacks, starts programs as `!` does."""

    def showtraceback(self, *_args, **_options):
        raise

    showsyntaxerror = showindentationerror = showtraceback

    def system(self, command):
        self.session.magics().system(command)

    system_raw = system_piped = system

    def enable_gui(self, gui=None):
        pass

    def ask_exit(self):
        raise SystemExit


def make(session):
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.xmode = "Plain"
    config.InteractiveShell.cache_size = 0
    Shell.session = session
    Shell._instance = None
    shell = Shell.instance(
        config=config,
        user_module=session.main,
        user_ns=session.namespace,
        displayhook_class=Hook,
        display_pub_class=Publisher,
    )
    # Ours take precedence there too, for run_line_magic() and %lsmagic.
    magics, known = session.magics(), shell.magics_manager.magics
    known["line"].update(magics.lines)
    for name, function in magics.cells.items():
        known["cell"][name] = lambda line, cell, function=function: function(line, cell, 2)
    return shell
