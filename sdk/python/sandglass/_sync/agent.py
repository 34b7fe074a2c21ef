"""Agents that speak the Agent Client Protocol, on the server: docs/agents.md."""
from __future__ import annotations

import collections
import json
import os
import struct
from typing import Any, Deque, Dict, List, Optional, Tuple, Union

from .. import types as t
from .._net import Clock, Connection
from ..errors import ConflictError, ConnectionFailedError, SandglassError
from .http import Http

RECONNECTS_MAX = 10
KEPT_MAX = 16 << 20
MESSAGE_MAX = 64 << 20
DROPPED = 1006  # no code: the connection broke
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Agent:
    def __init__(self, http: Http, info: Dict[str, Any]):
        self._http = http
        #: As the server told it last.
        self.info = t.build(t.AgentInfo, info)

    @property
    def id(self) -> str:
        return self.info.agent_id

    def refresh(self) -> Agent:
        self.info = t.build(t.AgentInfo, self._http.json("GET", f"/v1/agents/{self.id}"))
        return self

    def logs(self) -> List[t.AgentLog]:
        """What it wrote to standard error, noise on its output, and what happened."""
        found = self._http.json("GET", f"/v1/agents/{self.id}/logs")
        return [t.build(t.AgentLog, one) for one in found["entries"]]

    def set_timeout(self, seconds: int) -> None:
        """From now on."""
        self.info = t.build(t.AgentInfo, self._http.json("POST", f"/v1/agents/{self.id}/timeout", body={"timeout": seconds}))

    def stop(self) -> None:
        """Answers when it has ended."""
        self.info = t.build(t.AgentInfo, self._http.json("DELETE", f"/v1/agents/{self.id}"))

    def connect(self, *, role: str = "writer", takeover: bool = False) -> AgentLine:
        """Its messages, over a connection that is made again when it breaks: none is lost, none comes twice."""
        line = AgentLine(self._http, f"/v1/agents/{self.id}/acp", role, takeover)
        line.open()
        return line


class AgentLine:
    """The agent's messages, one after the other; `send` is for messages to it."""

    def __init__(self, http: Http, path: str, role: str, takeover: bool):
        self._http, self._path = http, path
        self._query: Dict[str, Any] = {"role": role, "takeover": "true" if takeover else None}
        #: Why it is over: the agent's end in words.
        self.close_code: Optional[int] = None
        self.close_reason = ""
        self._socket: Optional[_Socket] = None
        self._got: Optional[int] = None  # messages of the agent that we have
        self._given = 0  # messages of ours that the agent was given, as far as we know
        self._outbox: Deque[str] = collections.deque()  # those after that
        self._kept = 0  # bytes of them
        self._closed = False

    def open(self) -> None:
        tries = 0
        while True:
            try:
                answer = self._http.upgrade(self._path, {**self._query, "after": self._got})
                break
            except SandglassError as err:
                # The server may not have noticed yet that the last connection is gone.
                again = self._got is not None and (isinstance(err, ConflictError) or err.status is None)
                if not again or tries >= RECONNECTS_MAX:
                    raise
                Clock.sleep(0.05 * 2 ** min(tries, 6))
                tries += 1
        self._socket = _Socket(answer.upgraded())
        self._query["takeover"] = None
        received = int(answer.headers["sandglass-acp-received"])
        if self._got is None:
            self._got, self._given = int(answer.headers["sandglass-acp-next"]) - 1, received
        if received < self._given:
            raise ConnectionFailedError(f"messages to the agent were lost: it was given {received}, and those after that are not kept")
        while self._given < received and self._outbox:
            self._forget()
        self._given = received
        for message in self._outbox:
            self._socket.send(TEXT, message.encode())

    def _forget(self) -> None:
        self._kept -= len(self._outbox.popleft())
        self._given += 1

    def send(self, message: Union[str, Dict[str, Any]]) -> None:
        """A message to the agent: an object, or the text of one."""
        text = message if isinstance(message, str) else json.dumps(message)
        self._outbox.append(text)
        self._kept += len(text)
        while self._kept > KEPT_MAX and len(self._outbox) > 1:
            self._forget()
        try:
            if self._socket:
                self._socket.send(TEXT, text.encode())
        except SandglassError:
            pass  # it is sent again when there is a connection

    def receive(self) -> Optional[Any]:
        """The next message; None when the agent has ended."""
        while self._socket and not self._closed:
            text, code, reason = self._socket.receive()
            if text is not None:
                self._got = (self._got or 0) + 1
                return json.loads(text)
            self.close_code, self.close_reason = code, reason
            if code != DROPPED:
                break
            self.open()
        return None

    def __iter__(self) -> AgentLine:
        return self

    def __next__(self) -> Any:
        message = self.receive()
        if message is None:
            raise StopIteration
        return message

    def __enter__(self) -> AgentLine:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._closed = True
        if self._socket:
            self._socket.close()


class _Socket:
    """The client's side of a WebSocket: text messages, pings, closing."""

    def __init__(self, connection: Connection):
        self._connection = connection
        connection.timeout = None
        self._buffer = bytearray()

    def receive(self) -> Tuple[Optional[str], int, str]:
        """A message; or None, and the code and reason that it was closed with."""
        message = b""
        try:
            while True:
                opcode, last, data = self._frame()
                if opcode == PING:
                    self.send(PONG, data)
                elif opcode == CLOSE:
                    self.send(CLOSE, data)
                    self._connection.close()
                    code = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005
                    return None, code, data[2:].decode(errors="replace")
                elif opcode <= TEXT:
                    message += data
                    if last:
                        return message.decode(errors="replace"), 0, ""
        except ConnectionFailedError:
            self._connection.close()
            return None, DROPPED, ""

    def _frame(self) -> Tuple[int, bool, bytes]:
        head = self._exactly(2)
        length = head[1] & 127
        if length == 126:
            length = struct.unpack(">H", self._exactly(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self._exactly(8))[0]
        if length > MESSAGE_MAX:
            raise SandglassError("the server sent a message that is too long")
        return head[0] & 15, bool(head[0] & 128), self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        while len(self._buffer) < length:
            data = self._connection.read(1 << 16)
            if not data:
                raise ConnectionFailedError("the connection broke")
            self._buffer += data
        data = bytes(self._buffer[:length])
        del self._buffer[:length]
        return data

    def send(self, opcode: int, data: bytes) -> None:
        length = len(data)
        size = struct.pack(">B", 128 | length) if length < 126 else struct.pack(">BH", 254, length) if length < 65536 else struct.pack(">BQ", 255, length)
        mask = os.urandom(4)
        key = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
        masked = (int.from_bytes(data, "big") ^ key).to_bytes(length, "big")
        self._connection.write(bytes([128 | opcode]) + size + mask + masked)

    def close(self) -> None:
        try:
            self.send(CLOSE, struct.pack(">H", 1000))
        except SandglassError:
            pass
        self._connection.close()
