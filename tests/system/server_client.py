"""A server to test, and as much of E2B's protocol as a test needs: JSON over HTTP and Connect."""
import base64
import contextlib
import http.client
import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import time

ENVD_PORT = 49983
# Disks of sandboxes are in memory unless a test asks for something else: on disk, each server would take the room for all
# of them at its start.
os.environ.setdefault("SANDGLASS_WORLDS_DISK", "0")


class Server:
    """`sandglass serve` with a state directory of its own. The port stays the same when it is started
    again."""

    def __init__(self, program, state, *options):
        self.program, self.state, self.options = program, state, options
        self.port, self.key, self.process = 0, None, None

    def command(self):
        """What `serve` is given to."""
        return [self.program]

    def start(self, patience_s=20):
        self.process = subprocess.Popen(
            [*self.command(), "serve", "--listen", f"127.0.0.1:{self.port}", "--state", self.state,
             *self.options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + patience_s
        for line in self.process.stdout:
            found = re.search(r"Serving on https?://[\d.]+:(\d+)", line)
            if found:
                self.port = int(found[1])
                if self.key:
                    return
            found = re.search(r"E2B_API_KEY=(\w+)", line)
            if found:
                self.key = found[1]
                return
            if time.monotonic() > deadline:
                break
        raise RuntimeError(f"the server did not start: {self.process.stderr.read()}")

    def end(self):
        """Tells it to end."""
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        """Ends it as an operator would; the exit status."""
        self.end()
        return self.ended()

    def ended(self):
        status = self.process.wait(30)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def kill(self):
        self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()
        self.process.stderr.close()

    def is_written(self, sandbox):
        """Events are written some ten times a second: what is lost with a process that is killed is younger."""
        with contextlib.closing(sqlite3.connect(f"file:{self.state}/front/server.db?mode=ro", uri=True)) as db:
            return db.execute("SELECT 1 FROM event WHERE json LIKE ?", (f"%{sandbox}%",)).fetchone()

    def front(self):
        """The pid of the process that speaks HTTP, or None while there is none."""
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    comm, fields = file.read().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            if comm.startswith("sandglass-front") and fields.split()[0] != "Z" \
                    and int(fields.split()[1]) == self.process.pid:
                return int(name)
        return None


class Client:
    """One caller. Every request has a connection of its own, so that none depends on another."""

    def __init__(self, server, timeout_s=20):
        self.server, self.timeout_s = server, timeout_s

    def raw(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port,
                                                timeout=self.timeout_s)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def api(self, method, path, body=None):
        headers = {"X-API-Key": self.server.key}
        if body is not None:
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        status, data = self.raw(method, path, body, headers)
        return status, json.loads(data) if data else None

    def create(self, **fields):
        status, sandbox = self.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300}
                                   | fields)
        if status != 201:
            raise RuntimeError(f"create: {status} {sandbox}")
        return sandbox

    def data_headers(self, sandbox, content_type):
        return {"E2b-Sandbox-Id": sandbox["sandboxID"], "E2b-Sandbox-Port": str(ENVD_PORT),
                "X-Access-Token": sandbox["envdAccessToken"], "Connect-Protocol-Version": "1",
                "Content-Type": content_type}

    def unary(self, sandbox, method, message):
        status, data = self.raw("POST", "/" + method, json.dumps(message),
                                self.data_headers(sandbox, "application/json"))
        return status, json.loads(data) if data else None

    def stream(self, sandbox, method, message):
        """All messages of a server stream, and its error or None."""
        body = json.dumps(message).encode()
        status, data = self.raw("POST", "/" + method, struct.pack(">BI", 0, len(body)) + body,
                                self.data_headers(sandbox, "application/connect+json"))
        if status != 200:
            raise RuntimeError(f"{method}: {status} {data[:200]}")
        return split_envelopes(data)

    def run(self, sandbox, command, **fields):
        """(exit status, stdout) of a shell command."""
        messages, error = self.stream(sandbox, "process.Process/Start", shell(command) | fields)
        if error:
            raise RuntimeError(f"'{command}': {error}")
        return outcome(messages)

    def spawn(self, sandbox, command):
        """Starts a command and leaves it alone; its pid."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port,
                                                timeout=self.timeout_s)
        body = json.dumps(shell(command)).encode()
        connection.request("POST", "/process.Process/Start",
                           struct.pack(">BI", 0, len(body)) + body,
                           self.data_headers(sandbox, "application/connect+json"))
        answer = connection.getresponse()
        head = answer.read(5)
        message = json.loads(answer.read(struct.unpack(">BI", head)[1]))
        connection.close()
        return message["event"]["start"]["pid"]


def shell(command):
    return {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command]}, "stdin": False}


def split_envelopes(data):
    messages, error = [], None
    while data:
        flags, size = struct.unpack(">BI", data[:5])
        message, data = json.loads(data[5:5 + size]), data[5 + size:]
        if flags & 2:
            error = message.get("error")
        else:
            messages.append(message)
    return messages, error


def outcome(messages):
    output, status = b"", None
    for message in messages:
        event = message["event"]
        if "data" in event:
            output += base64.b64decode(event["data"].get("stdout", ""))
        if "end" in event:
            status = event["end"].get("exitCode", 0)
    return status, output.decode()


def until(predicate, patience_s=10, pause_s=0.02):
    """The first true answer, or the last one."""
    deadline = time.monotonic() + patience_s
    while True:
        answer = predicate()
        if answer or time.monotonic() > deadline:
            return answer
        time.sleep(pause_s)
