"""Connect-RPC in JSON as E2B's Python SDK speaks it: indented, with headers that say `identity`."""
import base64
import http.client
import json
import struct

from wire.http import URL, Answer

IDENTITY = {"Connect-Protocol-Version": "1", "Connect-Content-Encoding": "identity", "Accept-Encoding": "gzip, deflate, br"}


def envelope(data, flags=0):
    return struct.pack(">BI", flags, len(data)) + data


def unary(sandbox, method, message, headers=None):
    """POST of one message; `method` is such as filesystem.Filesystem/Stat."""
    body = json.dumps(message, indent=2).encode()
    more = {**IDENTITY, "Content-Type": "application/json", "Content-Encoding": "identity", **(headers or {})}
    return sandbox.request("POST", f"/{method}", body, more)


class Stream:
    """A stream of the server; iterating gives messages, `end` is what the last envelope said."""

    def __init__(self, sandbox, method, message, headers=None, codec="json", raw=None):
        self.connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=20)
        body = raw if raw is not None else envelope(json.dumps(message, indent=2).encode())
        more = {
            **sandbox.headers(),
            **IDENTITY,
            "Content-Type": f"application/connect+{codec}",
            "Keepalive-Ping-Interval": "50",
            **(headers or {}),
        }
        self.connection.request("POST", f"/{method}", body, more)
        self.response = self.connection.getresponse()
        self.status, self.codec, self.end = self.response.status, codec, None
        self.type = self.response.getheader("Content-Type")

    def read(self, n):
        data = b""
        while len(data) < n:
            part = self.response.read(n - len(data))
            assert part, f"the stream ended after {len(data)} of {n} bytes"
            data += part
        return data

    def __iter__(self):
        assert self.status == 200, f"{Answer(self.response)}"
        assert self.type == f"application/connect+{self.codec}", self.type
        while self.end is None:
            flags, length = struct.unpack(">BI", self.read(5))
            data = self.read(length)
            if flags == 2:
                self.end = json.loads(data)
                assert self.response.read() == b"", "bytes after the last envelope"
            else:
                assert flags == 0, f"flags {flags}"
                yield json.loads(data) if self.codec == "json" else data

    def close(self):
        self.response.close()
        self.connection.close()


def start(sandbox, command, headers=None, **more):
    """A shell command; `more` goes into the request beside the process."""
    config = {"cmd": "/bin/bash", "args": ["-l", "-c", command], **more.pop("process", {})}
    return Stream(sandbox, "process.Process/Start", {"process": config, **more}, headers)


def events(stream):
    return [message["event"] for message in stream]


def run(sandbox, command, **more):
    """(output, end event) of a command."""
    output = b""
    for event in events(start(sandbox, command, stdin=False, **more)):
        output += base64.b64decode(event.get("data", {}).get("stdout", ""))
        if "end" in event:
            return output.decode(), event["end"]
    raise AssertionError("no end event")


def error_of(stream):
    """The error that a stream ended with, which came with status 200."""
    messages = list(stream)
    assert not messages, f"messages before the error: {messages}"
    return stream.end.get("error", {})
