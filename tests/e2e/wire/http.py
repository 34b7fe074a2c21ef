"""Requests as they go over the wire, and sandboxes to send them to."""
import base64
import http.client
import json
import os
import socket
import time
import urllib.parse

KEY = os.environ["E2B_API_KEY"]
OTHER_KEY = os.environ["E2E_OTHER_KEY"]
URL = urllib.parse.urlsplit(os.environ["E2B_API_URL"])
UNKNOWN = "i" + "0" * 19
ENVD = 49983


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()
        try:
            self.json = json.loads(self.body)
        except ValueError:
            self.json = None

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


def ask(method, path, body=None, headers=None, chunked=False, connection=None):
    """One request on a connection of its own, or on `connection`. A body that is not bytes becomes JSON."""
    headers = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        headers.setdefault("Content-Type", "application/json")
    own = connection or http.client.HTTPConnection(URL.hostname, URL.port, timeout=20)
    try:
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
            parts = [body[i : i + 7] for i in range(0, len(body), 7)]
            own.request(method, path, iter(parts), headers, encode_chunked=True)
        else:
            own.request(method, path, body, headers)
        return Answer(own.getresponse())
    finally:
        if not connection:
            own.close()


def api(method, path, body=None, key=KEY, **more):
    headers = {"X-API-KEY": key} if key else {}
    return ask(method, path, body, {**headers, **more.pop("headers", {})}, **more)


def raw(data, seconds=10):
    """Sends bytes, and returns everything that comes until the server closes or falls silent."""
    with socket.create_connection((URL.hostname, URL.port), timeout=seconds) as s:
        s.sendall(data)
        got = b""
        deadline = time.monotonic() + seconds
        try:
            while part := s.recv(65536):
                got += part
                if time.monotonic() > deadline:
                    break
        except (TimeoutError, ConnectionResetError):
            pass
        return got


# ---- sandboxes -----------------------------------------------------------------------------------

alive = []
shared = {}


class Sandbox:
    def __init__(self, made, key=KEY):
        self.made, self.key = made, key
        self.id, self.token = made["sandboxID"], made.get("envdAccessToken")

    def headers(self, port=ENVD, user=None):
        h = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(port)}
        if self.token:
            h["X-Access-Token"] = self.token
        if user is not None:
            h["Authorization"] = "Basic " + base64.b64encode(f"{user}:".encode()).decode()
        return h

    def request(self, method, path, body=None, headers=None, **more):
        return ask(method, path, body, {**self.headers(), **(headers or {})}, **more)

    def kill(self):
        return api("DELETE", f"/sandboxes/{self.id}", key=self.key)


def fresh(body=None, route="/v2/sandboxes", key=KEY):
    """A sandbox that ends with the test."""
    a = api("POST", route, {"templateID": "base", "timeout": 120, **(body or {})}, key=key)
    assert a.status == 201, f"create: {a}"
    sandbox = Sandbox(a.json, key)
    alive.append(sandbox)
    return sandbox


def common():
    """One for all tests that do not mind each other."""
    if "sandbox" not in shared:
        a = api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300})
        assert a.status == 201, f"create: {a}"
        shared["sandbox"] = Sandbox(a.json)
    return shared["sandbox"]


def end_all():
    while alive:
        try:
            alive.pop().kill()
        except OSError:
            pass


def end_common():
    if "sandbox" in shared:
        shared["sandbox"].kill()


def eventually(what, fn, seconds=15):
    deadline = time.monotonic() + seconds
    while True:
        value = fn()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s, last {value!r}"
        time.sleep(0.05)
