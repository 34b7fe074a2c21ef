"""Contexts of a server: its routes under /v1, and its MCP."""
import json
import time

import host
from server import Sandbox

RUN_CODE, RUN_ANALYSIS = "/v1/tools/run_code", "/v1/tools/run_analysis"
MCP_VERSION = "2025-06-18"


class Paths:
    """What an application with this key does."""

    def __init__(self, site, key=None):
        self.site, self.key = site, key or site.key

    def ask(self, method, target, body=None):
        return self.site.api(method, target, body, self.key)

    def put(self, conversation, path, **more):
        return self.ask("PUT", "/v1/contexts",
                        {"conversationId": conversation, "pathId": path, **more})

    def obtain(self, conversation, path, **more):
        """The id of a context, and its sandbox."""
        a = self.put(conversation, path, **more)
        if a.status not in (200, 201):
            raise RuntimeError(f"no context: {a}")
        return a.json()["context"]["id"], Sandbox(self.site, a.json()["sandbox"])

    def status(self, id_):
        return (self.ask("GET", f"/v1/contexts/{id_}").json() or {}).get("sandboxStatus")

    def code(self, conversation, path, code, **more):
        return self.ask("POST", RUN_CODE,
                        {"conversationId": conversation, "pathId": path, "code": code, **more})

    def analysis(self, conversation, path, type_, parameters=None, **more):
        return self.ask("POST", RUN_ANALYSIS, {
            "conversationId": conversation, "pathId": path, "analysisType": type_,
            "parameters": parameters, **more})

    def post(self, target, body, accept="application/json"):
        """The same on a connection that is handed over before the answer is read."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        s = self.site.connect()
        s.sendall(f"POST {target} HTTP/1.1\r\nHost: h\r\nX-API-Key: {self.key}\r\n"
                  f"Accept: {accept}\r\nContent-Type: application/json\r\n"
                  f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        return s

    def trouble(self, conversation="after", path="all"):
        """Complaints, if a path cannot be used. After a flood the tenant's requests of a second can be used up."""
        a = self.code(conversation, path, "6 * 7")
        for _ in range(3):
            if a.status == 429 and a.header("Retry-After"):
                time.sleep(1)
                a = self.code(conversation, path, "6 * 7")
        good = a.status == 200 and a.json()["success"] and a.json()["results"][0]["text"] == "42"
        return [] if good else [f"a path cannot be used: {a}"]


class Mcp:
    """A session of MCP with this key."""

    def __init__(self, site, key=None, conversation=None):
        self.site, self.key, self.n = site, key or site.key, 0
        self.more = {"Sandglass-Conversation-Id": conversation} if conversation else {}
        self.id = None
        a = self.send("initialize", {
            "protocolVersion": MCP_VERSION, "capabilities": {},
            "clientInfo": {"name": "attack", "version": "1"}})
        self.id = (a.header("Mcp-Session-Id") or [None])[0]

    def headers(self, accept="application/json"):
        found = {"X-API-Key": self.key, "Content-Type": "application/json", "Accept": accept,
                 **self.more}
        if self.id:
            found |= {"Mcp-Session-Id": self.id, "Mcp-Protocol-Version": MCP_VERSION}
        return found

    def message(self, method, params=None, **more):
        self.n += 1
        return {"jsonrpc": "2.0", "id": self.n, "method": method, "params": params or {}, **more}

    def post(self, body, **headers):
        body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self.site.ask("POST", "/mcp", {**self.headers(), **headers}, body)

    def send(self, method, params=None, **headers):
        return self.post(self.message(method, params), **headers)

    def call(self, tool, **arguments):
        """(failed, text) of a tool."""
        a = self.send("tools/call", {"name": tool, "arguments": arguments})
        result = (a.json() or {}).get("result")
        if result is None:
            return True, str(a)
        text = "".join(c.get("text", "") for c in result["content"])
        return result.get("isError", False), text


def events(body):
    """Server-sent events as a client takes them: (type, data) of each."""
    found, kind, data = [], "message", []
    for line in body.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line and data:
            found.append((kind, "\n".join(data)))
            kind, data = "message", []
        elif line.startswith("event:"):
            kind = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
    return found


def grown(site, before, most, what):
    """Complaints, if the front has become larger than that, in MiB."""
    now = host.rss_mib(site.front()) - before
    return [f"the front has grown by {now:.0f} MiB: {what}"] if now > most else []
