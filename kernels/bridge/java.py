"""Java, driven by Driver.java through the JDK's own jshell."""
import os

from . import driver
from .child import find_program

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Driver.java")
OPTIONS = (
    # where System.getenv() keeps its map
    "--add-opens", "java.base/java.lang=ALL-UNNAMED",
    "--add-opens", "java.base/java.util=ALL-UNNAMED",
    "-Dfile.encoding=UTF-8",
    # A start is 1.9 s of processor time instead of 2.6: the optimizing compiler is for what is
    # really hot, and not for the compiler of the cells.
    "-XX:+UseSerialGC",
    "-XX:Tier4InvocationThreshold=50000", "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000", "-XX:Tier4BackEdgeThreshold=400000",
)


class Interpreter(driver.Interpreter):
    name = "Java"

    def command(self):
        return [find_program("java"), *OPTIONS, PROGRAM]

    def interrupt(self):
        """SIGINT would end the JVM."""
        self.send(b"i", b"")
