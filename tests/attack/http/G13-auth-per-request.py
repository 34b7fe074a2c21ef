"""G13: a key opens one request, not the connection that it came on."""
import http.client
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site  # noqa: E402


def keep_alive(site, other, sandbox):
    c = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    wrong, socket_before = [], None
    for headers, expected, ids in (
        ({"X-API-Key": site.key}, 200, [sandbox.id]), ({}, 401, None),
        ({"X-API-Key": other}, 200, []), ({"X-API-Key": "e2b_wrong"}, 401, None),
        ({"X-API-Key": site.key}, 200, [sandbox.id]),
    ):
        c.request("GET", "/v2/sandboxes", headers=headers)
        r = c.getresponse()
        body = json.loads(r.read())
        if r.status != expected or (ids is not None and [b["sandboxID"] for b in body] != ids):
            wrong.append(f"{headers.keys()}: {r.status} {body}")
        if socket_before and c.sock is not socket_before:
            wrong.append("the connection was not kept")
        socket_before = c.sock
    c.close()
    return wrong


def pipelined(site, other, sandbox):
    def request(key):
        header = f"X-API-Key: {key}\r\n" if key else ""
        return f"GET /sandboxes/{sandbox.id} HTTP/1.1\r\nHost: h\r\n{header}".encode()

    got = site.say(request(site.key) + b"\r\n" + request(None) + b"\r\n" + request(other) + b"\r\n"
                   + request(site.key) + b"Connection: close\r\n\r\n")
    statuses = re.findall(rb"HTTP/1\.1 (\d\d\d) ", got)
    return [] if statuses == [b"200", b"401", b"404", b"200"] else [f"{statuses} {got[:300]}"]


def data_plane(site, sandbox, other_sandbox):
    """The same for a sandbox's token."""
    c = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    wrong = []
    for one, token, expected in ((sandbox, sandbox.token, 200), (sandbox, "", 401),
                                 (other_sandbox, sandbox.token, 401), (sandbox, other_sandbox.token, 401),
                                 (sandbox, sandbox.token, 200)):
        c.request("GET", "/envs", headers={"E2b-Sandbox-Id": one.id, "X-Access-Token": token})
        r = c.getresponse()
        r.read()
        if r.status != expected:
            wrong.append(f"expected {expected}: {r.status}")
    c.close()
    return wrong


with Site() as site:
    other = site.key_of("other")
    sandbox = site.create()
    check("G13 every request on a connection is judged by itself", keep_alive(site, other, sandbox))
    check("G13 also when they come together", pipelined(site, other, sandbox))
    check("G13 the same for tokens of sandboxes", data_plane(site, sandbox, site.create(other)))
    check("G13 the server goes on", site.trouble())
finish()
