"""A server to attack: `sandglass serve` with a state directory of its own, and its callers.

    with Site() as site:
        sandbox = site.create()
        sandbox.get("/etc/hostname").status
"""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import host
import program

sys.path.insert(0, f"{program.TOP}/tests/system")
import server_client  # noqa: E402

PATIENCE_S = 30  # for what takes milliseconds on a machine with nothing else to do


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def header(self, name):
        return [v for k, v in self.headers if k.lower() == name.lower()]

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def __str__(self):
        return f"{self.status} {self.body[:300]!r}"


class Site:
    def __init__(self, *options, tls=False, env=None):
        self.options, self.tls = options, tls
        self.env = {**os.environ, **env} if env else None
        self.dir = tempfile.mkdtemp(prefix="sandglass-attack-", dir="/var/tmp")
        os.chmod(self.dir, 0o755)
        self.state, self.log = f"{self.dir}/state", f"{self.dir}/log"
        self.port, self.key, self.process = 0, None, None

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program.SANDGLASS, "serve", "--listen", "127.0.0.1:0", "--state", self.state,
                 "--drain-timeout", "5s", *self.options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                env=self.env)
        for line in self.process.stdout:
            found = re.search(r"Serving on https?://[\d.]+:(\d+)", line)
            self.port = int(found[1]) if found else self.port
            found = re.search(r"E2B_API_KEY=(\w+)", line)
            if found:
                self.key = found[1]
                break
        if not self.key:
            with open(self.log) as f:
                raise RuntimeError(f"the server did not start: {f.read()}")
        self.client = server_client.Client(self, PATIENCE_S)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            host.check("the server ends when it is told to", ["it does not"])
        self.process.stdout.close()
        subprocess.run(["rm", "-rf", self.dir], check=True)

    def front(self):
        """The pid of the process that speaks HTTP."""
        return next(pid for pid in host.children(self.process.pid)
                    if host.status(pid).get("Name", "").startswith("sandglass-front"))

    def key_of(self, tenant):
        p = subprocess.run([program.SANDGLASS, "key", "create", "--state", self.state, "--tenant",
                            tenant, "--json"], capture_output=True, text=True, check=True)
        return re.search(r"e2b_[0-9a-f]{40}", p.stdout)[0]

    def connect(self, timeout=PATIENCE_S):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def ask(self, method, target, headers=None, body=None):
        """One request on a connection of its own; the target goes out as it is."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        c._validate_path = lambda url: None  # hostile targets are the point
        try:
            c.request(method, target, body, headers or {})
            r = c.getresponse()
            return Answer(r.status, r.getheaders(), r.read())
        finally:
            c.close()

    def api(self, method, target, body=None, key=None):
        headers = {"X-API-Key": key or self.key}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        return self.ask(method, target, headers, body)

    def say(self, data, timeout=5.0):
        """Sends bytes as they are; everything that comes back until the server closes."""
        with self.connect(timeout) as s:
            got = b""
            with contextlib.suppress(OSError):
                s.sendall(data)
                while piece := s.recv(65536):
                    got += piece
            return got

    def create(self, key=None, **fields):
        body = {"templateID": "base", "timeout": 300} | fields
        a = self.api("POST", "/v2/sandboxes", body, key)
        if a.status != 201:
            raise RuntimeError(f"no sandbox: {a}")
        return Sandbox(self, a.json())

    def trouble(self):
        """Complaints, if the server is not what it was."""
        began = time.monotonic()
        try:
            status = self.ask("GET", "/health").status
        except OSError as e:
            return [f"the server does not answer: {e}"]
        took = time.monotonic() - began
        wrong = [f"the server's health is {status}"] if status not in (200, 204) else []
        if took > 5:
            wrong.append(f"the server took {took:.1f} s to answer")
        if self.process.poll() is not None:
            wrong.append(f"the server has ended with status {self.process.returncode}")
        with open(self.log, errors="replace") as f:
            starts = len(re.findall(r"front \d+ started", f.read()))
        return wrong + ([f"the front was started {starts} times"] if starts != 1 else [])


class Cell:
    def __init__(self, lines):
        said = {"stdout": [], "stderr": []}
        self.text, self.error = None, None
        for line in lines:
            if line["type"] in said:
                said[line["type"]].append(line["text"])
            elif line["type"] == "result" and line["is_main_result"]:
                self.text = line.get("text")
            elif line["type"] == "error":
                self.error = f"{line['name']}: {line['value']}"
        self.out, self.err = ("".join(said[name]) for name in ("stdout", "stderr"))

    def __str__(self):
        return f"{self.error or self.text}\n{self.out[-1500:]}\n{self.err[-1500:]}"


class Sandbox:
    def __init__(self, site, made):
        self.site, self.made = site, made
        self.id, self.token = made["sandboxID"], made.get("envdAccessToken", "")

    def headers(self, **more):
        return {"E2b-Sandbox-Id": self.id, "X-Access-Token": self.token, **more}

    def target(self, path, user=None, quote=True):
        path = urllib.parse.quote(path, safe="/") if quote else path
        return f"/files?path={path}" + (f"&username={urllib.parse.quote(user)}" if user else "")

    def get(self, path, user=None, quote=True, **headers):
        return self.site.ask("GET", self.target(path, user, quote), self.headers(**headers))

    def put(self, path, data, user=None, quote=True, **headers):
        headers = {"Content-Type": "application/octet-stream", **headers}
        return self.site.ask("POST", self.target(path, user, quote), self.headers(**headers), data)

    def rpc(self, method, message):
        return self.site.ask("POST", f"/{method}", self.headers(
            **{"Content-Type": "application/json", "Connect-Protocol-Version": "1"}),
            json.dumps(message))

    def run(self, command):
        """(status, output) of a shell command as `user`."""
        return self.site.client.run(self.made, command)

    def spawn(self, command):
        return self.site.client.spawn(self.made, command)

    def says(self, command):
        return self.run(command)[1]

    def python(self, code):
        """Puts a program into the home and starts it."""
        self.put("attack.py", code)
        return self.spawn("exec python3 attack.py")

    def cell(self, code, **more):
        """What came of a cell of the code interpreter."""
        headers = self.headers(**{"Content-Type": "application/json", "E2b-Sandbox-Port": "49999"})
        a = self.site.ask("POST", "/execute", headers, json.dumps({"code": code, **more}))
        if a.status != 200:
            raise RuntimeError(f"no cell: {a}")
        return Cell([json.loads(line) for line in a.body.splitlines()])

    def kill(self):
        return self.site.api("DELETE", f"/sandboxes/{self.id}")

    def trouble(self):
        """Complaints, if the sandbox cannot be used any more."""
        try:
            status, out = self.run("echo still $((6 * 7))")
        except (OSError, RuntimeError, ValueError) as e:
            return [f"the sandbox cannot be used: {e}"]
        return [] if (status, out) == (0, "still 42\n") else [f"the sandbox says {out!r}"]


def answered(what, answer, *statuses):
    """Complaints about an answer that has none of these statuses: 4 stands for all of 4xx."""
    if answer.status in statuses or answer.status // 100 in statuses:
        return []
    return [f"{what}: {answer}"]
