"""The kernel: packets in, cells run, results out.

Some modules are loaded here that others would load when they need them: a cell may have put
something else in their place by then, and a copy has them already."""

import ast  # noqa: F401
import importlib.util
import json  # noqa: F401
import os
import re  # noqa: F401
import sys
import traceback  # noqa: F401

from . import copies
from . import environment
from . import hygiene
from . import interrupt
from . import pools
from . import rehearsal
from . import usersite
from . import world
from . import zygote
from .protocol import Control
from .session import Session
from .streams import Streams


class Kernel:
    def __init__(self, fd=3):
        self.control = Control(fd)
        self.streams = Streams()
        self.control.keep_order_with(self.streams)
        self.session = None
        self.pieces = []
        self.cell_environment = []

    def settle_in(self):
        """Makes this interpreter a kernel's, but for what belongs to the process: descriptors,
        process id, environment. A zygote does this too, so that a copy has little left to do."""
        self.streams.install()
        self.session = Session(self.control)
        world.enter(self.session)
        world.whole_prints(self.streams)
        world.order_programs(self.streams)
        world.no_stdin()
        world.Libc().unbuffer_stdout()
        interrupt.install()
        interrupt.cell_ends()

    def take_over(self):
        """Makes this process the kernel."""
        self.control.guard()
        self.streams.guard()
        usersite.locate()

    def idle_as_zygote(self, imports, plain):
        """Waits, all warmed up, to be copied. Only in a copy does this return: its language."""
        zygote.load(imports)
        rehearsal.rehearse(Kernel)
        zygote.freeze()
        interrupt.cell_ends()
        self.control.ready()
        if plain:
            from .plain import wait_to_be_copied

            wait_to_be_copied()
        kind, payload = self.control.recv()
        if kind != "B":
            os._exit(0)
        hygiene.refresh()
        return payload.decode("utf-8", "replace") or "python"

    def serve(self):
        """Takes packets until the agent is gone. A KeyboardInterrupt that gets here came in the last
        moment of a cell: there is nothing left to interrupt."""
        alive = True
        while alive:
            try:
                alive = self.step()
            except KeyboardInterrupt:
                interrupt.disarm_for_sure()

    def step(self):
        """One packet."""
        kind, payload = self.control.recv()
        if kind == "X":
            self.run(int.from_bytes(payload[:4], "little"), payload[4:])
        elif kind == "C":
            self.pieces.append(payload)
        elif kind == "G":
            environment.give(payload)
        elif kind == "V":
            change = environment.set_variable(payload)
            if change is not None:
                self.cell_environment.append(change)
        elif kind == "D":
            environment.change_directory(payload)
        elif kind == "W":
            zygote.touch()
        elif kind == "Y":
            self.be_a_copy()
        elif kind == "P":
            pools.rest()
            self.control.rested()
        return kind != ""

    def be_a_copy(self):
        """This process is a copy of a kernel that ran. The descriptors below 4 are its own. A cell
        that comes waits until all is done; so the agent can be told early, unless the user has
        something to be done too, which may take any time."""
        copies.wake_up()
        self.control.guard()
        self.streams.guard()
        hook = self.session.namespace.get("__on_fork__")
        if hook is None:
            self.control.ready()
        hygiene.renew()
        if hook is not None:
            copies.run_hook(hook)
            self.control.ready()

    def run(self, number, code):
        """One cell, from its text to the packet that says it is over."""
        pools.before_cell()
        interrupt.cell_begins()
        if self.pieces:
            code = b"".join(self.pieces) + code
            self.pieces.clear()
        usersite.look()
        try:
            self.session.execute(code.decode("utf-8", "surrogateescape"))
        except KeyboardInterrupt:  # in its last moment: the cell is over, and must be told so
            interrupt.disarm_for_sure()
        self.clean_up()
        interrupt.cell_ends()
        self.control.finished(number)

    def clean_up(self):
        """Makes good what the cell may have broken, so that the next one works."""
        self.streams.settle()
        self.control.restore()
        pools.after_cell()
        if self.cell_environment:
            environment.put_back(self.cell_environment)
            self.cell_environment.clear()


def leave():
    """The end. Threads of cells may run on forever, so nobody waits for them."""
    import atexit

    try:
        atexit._run_exitfuncs()
    finally:
        os._exit(0)


def serve_bridge(control, language):
    """Hands over to the program that serves other languages, which lives beside this one."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = os.path.join(os.path.dirname(here), "bridge")
    spec = importlib.util.spec_from_file_location(
        "bridge", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    bridge = importlib.util.module_from_spec(spec)
    sys.modules["bridge"] = bridge
    spec.loader.exec_module(bridge)
    bridge.serve(control, language)


def main(arguments):
    """`arguments`: none, or --zygote or --plain [--imports NAMES]."""
    kernel, language = Kernel(), "python"
    kernel.settle_in()
    if arguments:
        imports = arguments[2] if len(arguments) > 2 else ""
        language = kernel.idle_as_zygote(imports, arguments[0] == "--plain")
    kernel.take_over()
    if language != "python":
        serve_bridge(kernel.control, language)
        return
    kernel.control.ready()
    kernel.serve()
    leave()
