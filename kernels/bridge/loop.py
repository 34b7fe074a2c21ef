"""The loop of every bridge: packets in, cells to the interpreter, results out.

An interpreter is started when its first cell comes. By then environment and directory are known,
which some of them cannot change later. It is an object with

    run(code, variables)   a cell: bytes, and a list of (name, value) for it alone. Returns the
                           status it ended with, where the language has such a thing
    set(name, value)       a variable of the environment, from now on
    chdir(path)            go there, from now on
    close()                the end
"""
import importlib
import importlib.util
import os
import re

from _sandglass.protocol import Streams

from .interrupts import Interrupts

COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class CannotRun(Exception):
    """The interpreter is not there, or did not start. The text tells the user."""


class Bridge:
    """What interpreters are given: the way to the agent."""

    def __init__(self, control):
        self.control = control
        self.streams = Streams()
        self.streams.guard()
        control.keep_order_with(self.streams)
        self.interrupts = Interrupts()

    def result(self, kind, fields):
        self.control.send_result(kind, fields)

    def error(self, name, value, traceback=""):
        traceback = COLOURS.sub("", traceback) or (f"{name}: {value}" if value else name)
        self.result("e", {"name": name, "value": COLOURS.sub("", value), "traceback": traceback})

    def interrupted(self):
        self.error("KeyboardInterrupt", "the cell was interrupted")

    def settle(self):
        """Waits until the agent has read what is in the pipes, and the results."""
        for fd in (1, 2):
            self.streams.wait(fd)
        if self.streams.result_sent:
            self.streams.wait_for_results()

    def note(self, text):
        """A line of ours, to standard error."""
        self.streams.stderr.write(text + "\n")


class Kernel:
    """One kernel: what has been said about the next cell, and the interpreter."""

    def __init__(self, control, language):
        self.bridge = Bridge(control)
        self.language = language
        self.interpreter = None
        self.code = []
        self.variables = []

    def serve(self):
        control = self.bridge.control
        handlers = {"G": self.on_set, "D": self.on_directory, "V": self.on_variable,
                    "C": self.code.append, "X": self.on_run}
        control.ready()
        while True:
            kind, payload = control.recv()
            if not kind:
                break
            handlers[kind](payload)
        if self.interpreter:
            self.interpreter.close()

    def on_set(self, payload):
        name, value = split(payload)
        os.environb[name] = value
        if self.interpreter:
            self.interpreter.set(name, value)

    def on_directory(self, payload):
        go_to(payload)
        if self.interpreter:
            self.interpreter.chdir(os.getcwdb())

    def on_variable(self, payload):
        self.variables.append(split(payload))

    def on_run(self, payload):
        number = int.from_bytes(payload[:4], "little")
        code = b"".join(self.code) + payload[4:]
        variables = self.variables[:]
        self.code.clear()
        self.variables.clear()
        self.bridge.interrupts.begin()
        status = None
        try:
            if self.interpreter is None:
                self.interpreter = start(self.bridge, self.language)
            status = self.interpreter.run(code, variables)
        except CannotRun as e:
            self.interpreter = None
            self.bridge.error("KernelError", str(e))
        self.bridge.interrupts.end()
        self.bridge.control.finished(number, status or 0)


def split(payload):
    name, _, value = payload.partition(b"=")
    return name, value


def go_to(path):
    """Changes to the directory, made if it can be; else to the home."""
    for directory in (path, os.environb.get(b"HOME", b"/"), b"/"):
        try:
            os.makedirs(directory, exist_ok=True)
            os.chdir(directory)
            return
        except OSError:
            pass


def start(bridge, language):
    """The module of that name has the interpreter. Other languages are looked for among the kernelspecs."""
    own = language.isidentifier() and importlib.util.find_spec("." + language, __package__)
    module = importlib.import_module("." + language, __package__) if own else None
    if not hasattr(module, "Interpreter"):
        module = importlib.import_module(".jupyter", __package__)
    return module.Interpreter(bridge, language)


def serve(control, language):
    """Is the kernel for the language, until the agent closes the socket."""
    Kernel(control, language).serve()
