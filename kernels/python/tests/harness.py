"""Drives the real program as the agent does: a control socket, two pipes, and signals."""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import time
import unittest

KERNEL = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = "/usr/bin/python3"  # the one that templates have
DEADLINE = 60

_WITHOUT = f"""
import runpy, sys
from importlib.machinery import PathFinder
find, hidden = PathFinder.find_spec, sys.argv[1]
def hide(name, path=None, target=None):
    return None if name.partition(".")[0] == hidden else find(name, path, target)
PathFinder.find_spec = hide
sys.argv = sys.argv[1:]
sys.path.insert(0, "")
runpy.run_path({KERNEL!r}, run_name="__main__")
"""


def without(package):
    """The program in an interpreter that does not have a package."""
    return PYTHON, "-c", _WITHOUT, package


class Result(dict):
    """A result: its fields by name, and which kind it is."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind


class Cell:
    """Everything that came back for a cell."""

    def __init__(self):
        self.events = []  # ('out', bytes), ('err', bytes), Result, in the order they came
        self.over = False
        self.died = False

    def _text(self, which):
        return b"".join(e[1] for e in self.events if isinstance(e, tuple) and e[0] == which)

    @property
    def out(self):
        return self._text("out").decode("utf-8", "replace")

    @property
    def err(self):
        return self._text("err").decode("utf-8", "replace")

    @property
    def results(self):
        return [e for e in self.events if isinstance(e, Result)]

    def _of(self, kind):
        return [r for r in self.results if r.kind == kind]

    @property
    def main(self):
        found = self._of("m")
        return found[0] if found else None

    @property
    def text(self):
        return self.main["text"] if self.main else None

    @property
    def shown(self):
        return self._of("d")

    @property
    def error(self):
        found = self._of("e")
        return found[0] if found else None


class Kernel:
    """One process of the program, and the agent's ends of what it has."""

    def __init__(self, *arguments, program=(PYTHON, KERNEL), environment=None, ready=True):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control = ours
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        os.set_inheritable(theirs.fileno(), True)
        if environment is None:
            environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
        # The shell puts the socket where the program expects it.
        number = theirs.fileno()
        place = f'exec "$0" "$@" 3<&{number} {number}<&-' if number != 3 else 'exec "$0" "$@"'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", place, *program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            pass_fds=(number,),
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        os.close(out)
        os.close(err)
        self.number = 0
        if ready:
            self.wait_ready()

    def wait_ready(self):
        cell = self._collect()
        if cell.died:
            raise AssertionError(f"the kernel did not start: {cell.err}")

    def send(self, kind, payload=b""):
        data = payload.encode() if isinstance(payload, str) else payload
        self.control.send(kind.encode() + data)

    def start(self, code):
        """Sends a cell. Returns its number."""
        data = code.encode() if isinstance(code, str) else code
        self.number += 1
        while len(data) > 100_000:
            self.send("C", data[:100_000])
            data = data[100_000:]
        self.send("X", struct.pack("<I", self.number) + data)
        return self.number

    def run(self, code, interrupt_when=None):
        """Runs a cell. `interrupt_when`: send SIGINT when this was printed."""
        self.start(code)
        return self.finish(interrupt_when)

    def finish(self, interrupt_when=None):
        return self._collect(interrupt_when)

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def interrupt_until_it_ends(self, every=0.02):
        """As the agent does: a signal may come before the cell has begun, and is repeated."""
        self.interrupt()
        while not select.select([self.control], [], [], every)[0]:
            self.interrupt()
        return self.finish()

    def _collect(self, interrupt_when=None):
        """Reads until the cell is over, output before packets, as the agent does."""
        cell, result, end = Cell(), None, time.monotonic() + DEADLINE
        while not cell.over:
            if time.monotonic() > end:
                raise AssertionError(f"nothing came within {DEADLINE} s after {cell.events}")
            ready, _, _ = select.select([self.control, self.out, self.err], [], [], 1)
            if self._drain(ready, cell):
                if interrupt_when is not None and interrupt_when in cell.out:
                    interrupt_when = None
                    time.sleep(0.05)  # for the cell to get beyond its print
                    self.interrupt()
                continue
            if self.control not in ready:
                continue
            # There was no output: what was written before this packet has been read.
            result = self._packet(self.control.recv(1 << 18), cell, result)
        return cell

    def _drain(self, ready, cell):
        got = False
        for fd, name in ((self.out, "out"), (self.err, "err")):
            if fd in ready:
                data = os.read(fd, 1 << 16)
                if data:
                    cell.events.append((name, data))
                    got = True
        return got

    def _packet(self, packet, cell, result):
        kind, payload = packet[:1].decode(), packet[1:]
        assert len(packet) <= 64 * 1024, "a packet is too long"
        if kind == "":
            cell.died = cell.over = True
        elif kind == "R":
            assert result is None, "a result inside a result"
            return Result(payload.decode())
        elif kind in "TJ":
            key, _, text = payload.partition(b"\0")
            key = key.decode()
            result[key] = result.get(key, "") + text.decode()
            if kind == "J":
                result.setdefault("_json", set()).add(key)
            return result
        elif kind == "r":
            for key in result.pop("_json", ()):
                result[key] = json.loads(result[key])
            cell.events.append(result)
        elif kind == "F":
            assert result is None, "a cell ends inside a result"
            assert struct.unpack("<I", payload)[0] == self.number, "the wrong cell ends"
            cell.over = True
        elif kind in "QP":
            cell.over = True
        else:
            raise AssertionError(f"a packet of unknown type: {packet[:50]}")
        return None

    def close(self):
        self.control.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.err)


class KernelTest(unittest.TestCase):
    """Tests that share a kernel. Those that may break it ask for their own."""

    program = (PYTHON, KERNEL)

    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel(program=cls.program)

    @classmethod
    def tearDownClass(cls):
        cls.kernel.close()

    def own(self, *arguments, **options):
        kernel = Kernel(*arguments, program=self.program, **options)
        self.addCleanup(kernel.close)
        return kernel

    def run_cell(self, code, **options):
        return self.kernel.run(code, **options)

    def value(self, code):
        """The text of a cell's value; the cell must not fail."""
        cell = self.run_cell(code)
        self.assertIsNone(cell.error, cell.error)
        return cell.text

    def fails(self, code, name):
        """The error of a cell, which must have this name."""
        cell = self.run_cell(code)
        self.assertIsNotNone(cell.error, cell.events)
        self.assertEqual(cell.error["name"], name)
        return cell.error
