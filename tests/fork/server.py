"""A sandbox as its users have it: cells, checkpoints and forks over HTTP, on one kept connection."""
import http.client
import json
import pathlib
import re
import time

INTERPRETER_PORT = "49999"
PATIENCE_S = 60
INSIDE = (pathlib.Path(__file__).parent / "inside.py").read_text()


class Wrong(Exception):
    """Something is not as it must be."""


def in_the_way(answer):
    """{(what, holds)} of a refusal. How many threads there are is left out: those of the machine's BLAS are among them, since
    they rest only where there are no others."""
    return {(way["what"], re.sub(r"^\d+ threads$", "threads", way["holds"])) for way in answer["inTheWay"]}


class Line:
    """One caller's connection."""

    def __init__(self, server):
        self.key = server.key
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)

    def close(self):
        self.connection.close()

    def ask(self, method, path, body=None, headers=None):
        """(status, the answer's bytes)"""
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                {"Content-Type": "application/json"} | (headers or {}))
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def api(self, method, path, body=None):
        status, data = self.ask(method, path, body, {"X-API-Key": self.key})
        return status, json.loads(data) if data else None

    def must(self, status, method, path, body=None):
        got, answer = self.api(method, path, body)
        if got != status:
            raise Wrong(f"{method} {path} {body or ''}: {got} instead of {status}: {answer}")
        return answer

    def create(self):
        """A sandbox in which programs can run."""
        sandbox = Sandbox(self, self.must(201, "POST", "/v2/sandboxes",
                                          {"templateID": "base", "timeout": 3600}))
        sandbox.cell(INSIDE)
        return sandbox


def wait_for_twins(server):
    """The first kernels of a server are not made as copies, and cannot be copied. Those that are have
    their parent outside."""
    line, end = Line(server), time.monotonic() + PATIENCE_S
    while True:
        sandbox = line.create()
        parent = sandbox.cell("print(os.getppid())").strip()
        sandbox.kill()
        if parent == "0":
            line.close()
            return
        if time.monotonic() > end:
            raise Wrong("kernels are not made by copying: see sandglass doctor")
        time.sleep(0.1)


class Sandbox:
    def __init__(self, line, answer):
        self.line, self.id = line, answer["sandboxID"]
        self.headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": INTERPRETER_PORT,
                        "X-Access-Token": answer["envdAccessToken"]}

    def lines(self, code):
        """What a cell says, line by line."""
        status, data = self.line.ask("POST", "/execute", {"code": code}, self.headers)
        if status != 200:
            raise Wrong(f"a cell was answered with {status}: {data[:500]}")
        return [json.loads(line) for line in data.splitlines()]

    def cell(self, code):
        """Its output. It must not fail."""
        lines = self.lines(code)
        for line in lines:
            if line["type"] == "error":
                raise Wrong(f"a cell failed: {line['traceback']}")
        return "".join(line["text"] for line in lines if line["type"] == "stdout")

    def report(self, code=""):
        return json.loads(self.cell(code + "\nreport()"))

    def kill(self):
        self.line.must(204, "DELETE", f"/sandboxes/{self.id}")

    def try_checkpoint(self, **body):
        return self.line.api("POST", f"/sandboxes/{self.id}/checkpoints", body)

    def try_fork(self, **body):
        return self.line.api("POST", f"/sandboxes/{self.id}/fork", body)

    def rewind(self, checkpoint):
        return self.line.must(200, "POST", f"/sandboxes/{self.id}/rewind",
                              {"checkpointId": checkpoint})

    def forget(self, checkpoint):
        self.line.must(204, "DELETE", f"/sandboxes/{self.id}/checkpoints/{checkpoint}")
