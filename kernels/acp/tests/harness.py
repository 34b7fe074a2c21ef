"""An agent behind serve_fs.py, with the test as its client."""
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import unittest

ACP = pathlib.Path(__file__).resolve().parent.parent
PATIENCE_S = 30

# Agents in a few lines: `send` and `receive` are messages, `ask` is a request to the client and its answer.
AGENT = """
import json, sys
def send(m):
    sys.stdout.write(json.dumps(m) + "\\n"); sys.stdout.flush()
def receive():
    line = sys.stdin.readline()
    return json.loads(line) if line else None
def ask(method, params, id=1):
    send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    return receive()
S = {"sessionId": "s"}
"""


class Hosted:
    """A running pair of serve_fs.py and an agent."""

    def __init__(self, command, cwd):
        self.process = subprocess.Popen([sys.executable, "-I", str(ACP / "serve_fs.py"), "--", *command], cwd=cwd,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def send(self, value):
        self.write(json.dumps(value).encode() + b"\n")

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self):
        return self.lines.get(timeout=PATIENCE_S)

    def receive(self):
        line = self.line()
        return None if line is None else json.loads(line)

    def end(self):
        """Standard input is closed: what came since, the status, and what it said."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        rest = []
        while (line := self.line()) is not None:
            rest.append(line)
        status = self.process.wait(PATIENCE_S)
        said = self.process.stderr.read().decode()
        self.process.stderr.close()
        self.process.stdout.close()
        return b"".join(rest), status, said


class AgentTest(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self.root = os.path.realpath(self._directory.name)

    def host(self, *command):
        hosted = Hosted(command, self.root)
        self.addCleanup(self._give_up, hosted.process)
        return hosted

    @staticmethod
    def _give_up(process):
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass

    def agent(self, code):
        return self.host("/usr/bin/python3", "-c", AGENT + code)

    def result(self, code):
        """What an agent found out, which it tells its client last."""
        hosted = self.agent(code)
        found = hosted.receive()
        rest, status, said = hosted.end()
        self.assertEqual((rest, status, said), (b"", 0, ""))
        return found
