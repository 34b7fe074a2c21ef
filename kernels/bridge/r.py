"""R, driven by driver.R."""
import os

from . import driver
from .child import find_program

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver.R")


class Interpreter(driver.Interpreter):
    name = "R"

    def command(self):
        return [find_program("R"), "--no-echo", "--no-restore", "--no-save", f"--file={PROGRAM}",
                "--args"]

    def environment(self):
        """R takes text for ASCII if nobody says otherwise."""
        environment = super().environment()
        if not any(environment.get(name) for name in (b"LC_ALL", b"LC_CTYPE", b"LANG")):
            environment[b"LANG"] = b"C.UTF-8"
        return environment
