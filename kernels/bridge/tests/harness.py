"""Drives the real program as the agent does: control socket, two output pipes, packets."""
import json
import os
import pathlib
import select
import signal
import socket
import struct
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"


class Answer:
    """What a cell gave."""

    def __init__(self):
        self.out, self.err = bytearray(), bytearray()
        self.pieces = []  # `out` as it was written
        self.results = []  # (kind, fields)
        self.finished = self.status = None

    @property
    def stdout(self):
        return self.out.decode(errors="replace")

    @property
    def stderr(self):
        return self.err.decode(errors="replace")

    @property
    def errors(self):
        return [fields for kind, fields in self.results if kind == "e"]

    @property
    def text(self):
        """Of the main result, if there is one."""
        for kind, fields in self.results:
            if kind == "m":
                return fields.get("text")
        return None


class Kernel:
    def __init__(self, language, environment=None, directory=None):
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.out, out = os.pipe2(os.O_DIRECT)  # a read gives what one write gave
        self.err, err = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        self.number = 0
        self.child = os.fork()
        if self.child == 0:
            try:
                os.setsid()
                for number, fd in enumerate((null, out, err, theirs.fileno())):
                    os.dup2(fd, 100 + number)
                for number in range(4):
                    os.dup2(100 + number, number)
                os.closerange(4, 1024)
                os.execve(PYTHON, [PYTHON, str(PROGRAM), language], {
                    "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp",
                    "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"})
            finally:
                os._exit(127)
        theirs.close()
        for fd in (out, err, null):
            os.close(fd)
        self.fields = None
        self.poll = select.poll()
        for fd in (self.control.fileno(), self.out, self.err):
            self.poll.register(fd, select.POLLIN)
        answer = Answer()
        self.collect(answer, lambda: self.is_ready, 10)
        for item in (environment or {}).items():
            self.send(b"G", "=".join(item).encode())
        if directory:
            self.send(b"D", directory.encode())

    is_ready = False

    def send(self, kind, payload=b""):
        self.control.send(kind + payload)

    def start(self, code, env=None, pieces=1):
        """Sends a cell, and does not wait."""
        code = code if isinstance(code, bytes) else code.encode()
        for item in (env or {}).items():
            self.send(b"V", "=".join(item).encode())
        size = max(1, -(-len(code) // pieces))
        chunks = [code[i:i + size] for i in range(0, len(code), size)] or [b""]
        for chunk in chunks[:-1]:
            self.send(b"C", chunk)
        self.number += 1
        self.send(b"X", struct.pack("<I", self.number) + chunks[-1])

    def finish(self, timeout=60, until=None):
        """The answer of the cell that runs; `until` looks at it and may end the wait early."""
        answer = Answer()
        self.collect(answer, lambda: answer.finished is not None or (until and until(answer)),
                     timeout)
        return answer

    def run(self, code, env=None, timeout=60, pieces=1):
        self.start(code, env, pieces)
        return self.finish(timeout)

    def interrupt(self):
        os.killpg(self.child, signal.SIGINT)

    def interrupt_between_cells(self):
        """Returns when the kernel has seen it: it would be meant for the next cell if it saw that first."""
        self.interrupt()
        deadline = time.monotonic() + 10
        while not self.sleeps():
            assert time.monotonic() < deadline, "the kernel does not come to rest"
            time.sleep(0.001)

    def sleeps(self):
        """A signal makes it run from the moment that it is sent."""
        text = pathlib.Path(f"/proc/{self.child}/stat").read_text()
        return text[text.rindex(")") + 2] == "S"

    def interrupt_until_end(self):
        """As the agent does it: SIGINT each second, for five."""
        answer = Answer()
        for _ in range(5):
            self.interrupt()
            try:
                self.collect(answer, lambda: answer.finished is not None, 1)
                return answer
            except TimeoutError:
                pass
        raise AssertionError(f"the cell cannot be interrupted: {answer.__dict__}")

    def collect(self, answer, done, timeout):
        deadline = time.monotonic() + timeout
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no end within {timeout} s: {answer.__dict__}")
            ready = {fd for fd, _ in self.poll.poll(left * 1000)}
            # As the agent does it: output that was written before a packet comes before it.
            self.drain(answer, ready)
            if self.control.fileno() in ready:
                packet = self.control.recv(70000)
                self.drain(answer, {fd for fd, _ in self.poll.poll(0)})
                if not packet:
                    raise EOFError(f"the kernel has gone: {answer.__dict__}")
                self.on_packet(answer, packet)

    def drain(self, answer, ready):
        while self.out in ready:
            answer.pieces.append(os.read(self.out, 1 << 20))
            answer.out += answer.pieces[-1]
            ready = {fd for fd, _ in self.poll.poll(0)} if answer.pieces[-1] else ()
        if self.err in ready:
            answer.err += os.read(self.err, 1 << 20)

    def on_packet(self, answer, packet):
        assert len(packet) <= 65536, len(packet)
        kind, payload = packet[:1], packet[1:]
        if kind == b"Q":
            self.is_ready = True
        elif kind == b"R":
            self.fields = {}
            answer.results.append((payload.decode(), self.fields))
        elif kind in b"TJ":
            key, _, value = payload.partition(b"\0")
            self.fields[key.decode()] = self.fields.get(key.decode(), b"") + value
        elif kind == b"r":
            for key, value in self.fields.items():
                text = value.decode()
                is_json = key in ("json", "data", "chart", "extra")
                self.fields[key] = json.loads(text) if is_json else text
            self.fields = None
        elif kind == b"F":
            answer.finished, = struct.unpack("<I", payload[:4])
            answer.status = payload[4] if len(payload) > 4 else 0
            assert answer.finished == self.number and self.fields is None
        else:
            raise AssertionError(f"unknown packet {packet[:20]}")

    def close(self):
        """Closes the socket, as the agent does, and returns the exit status."""
        self.control.close()
        deadline = time.monotonic() + 10
        while True:
            pid, status = os.waitpid(self.child, os.WNOHANG)
            if pid or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        try:
            os.killpg(self.child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.close(self.out)
        os.close(self.err)
        if not pid:
            os.waitpid(self.child, 0)
            raise AssertionError("the kernel did not exit when its socket was closed")
        return status


class KernelTest(unittest.TestCase):
    """A kernel for each test, or one for all of them where starting takes long."""
    language = None
    shared = False

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="bridge-test-")
        cls.kernel = cls.new_kernel() if cls.shared else None

    @classmethod
    def tearDownClass(cls):
        if cls.shared:
            cls.kernel.close()
        __import__("shutil").rmtree(cls.directory)

    @classmethod
    def new_kernel(cls, **options):
        options.setdefault("directory", cls.directory)
        return Kernel(options.pop("language", cls.language), **options)

    def setUp(self):
        if not self.shared:
            self.kernel = self.new_kernel()

    def tearDown(self):
        if not self.shared:
            self.kernel.close()

    def run_cell(self, code, **options):
        return self.kernel.run(code, **options)

    def interrupt_when(self, code, text, settle=lambda: None):
        """Runs the cell, interrupts it when it has written the text, and returns the answer."""
        self.kernel.start(code)
        before = self.kernel.finish(until=lambda a: text in a.stdout)
        self.assertIsNone(before.finished, "the cell ended before it was interrupted")
        settle()
        return self.kernel.interrupt_until_end()

    def process(self):
        """The interpreter's process."""
        with open(f"/proc/{self.kernel.child}/task/{self.kernel.child}/children") as file:
            return int(file.read().split()[0])


if __name__ == "__main__":
    sys.exit("this is a module of the tests")


class CellTest(KernelTest):
    """Cells of one kernel, one after the other, and what each is to answer."""

    shared = True

    def check(self, code, text=None, stdout="", stderr="", **options):
        answer = self.run_cell(code, **options)
        self.assertEqual((answer.text, answer.stdout, answer.stderr, answer.errors),
                         (text, stdout, stderr, []))
        return answer

    def error(self, code):
        error, = self.run_cell(code).errors
        return error
