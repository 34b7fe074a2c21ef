"""Requests to one server, over connections that are kept until `close`."""
from __future__ import annotations

import base64
import json
import os
import struct
import time
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import quote, urlencode, urljoin, urlsplit

from .._net import Clock, Connection
from ..errors import ConnectionFailedError, InvalidError, error_of, error_of_stream

REDIRECTS_MAX = 3
RETRY_AFTER_MAX_S = 30
IDLE_MAX_S = 60
HEADERS_MAX = 100
FRAME_MAX = 64 << 20
SAFE = "/?%:@!$&'()*+,;=~-._"  # what stays as it is in an address


def given(**values: Any) -> Dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def part(id: str) -> str:
    """An id as a part of a path."""
    return quote(id, "")


def in_ms(seconds: Optional[float]) -> Optional[int]:
    return None if seconds is None else round(seconds * 1000)


def frame_of(message: Any) -> bytes:
    """A message as Connect's streams have it: a flag, a length, JSON."""
    data = json.dumps(message).encode()
    return struct.pack(">BI", 0, len(data)) + data


class Answer:
    """An answer whose body is still to come. To be left with `with`."""

    def __init__(self, http: Http, place: Tuple[str, int, bool], connection: Connection):
        self._http, self._place, self._connection = http, place, connection
        self.status = 0
        self.headers: Dict[str, str] = {}
        self._buffer = bytearray()
        self._left: Optional[int] = 0  # of the body, or of a chunk of it; None: until the end
        self._chunked = self._over = False

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._over and self._left is not None and self.headers.get("connection", "").lower() != "close":
            self._http.keep(self._place, self._connection)
        else:
            self._connection.close()

    def begin(self) -> None:
        """Reads the head."""
        words = (self._connection.read_line()).split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
            raise ConnectionFailedError("the server closed the connection")
        self.status = int(words[1])
        for _ in range(HEADERS_MAX):
            name, _, value = (self._connection.read_line()).decode("latin-1").partition(":")
            if not name.strip():
                break
            self.headers[name.lower()] = value.strip()
        self._chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        length = self.headers.get("content-length")
        if self.status in (101, 204, 304) or length == "0":
            self._over = True
        elif not self._chunked:
            self._left = int(length) if length else None

    @property
    def request_id(self) -> Optional[str]:
        return self.headers.get("x-request-id")

    def _piece(self) -> bytes:
        """The next bytes of the body; none at its end."""
        if self._over:
            return b""
        if self._chunked and self._left == 0:
            size = self._connection.read_line()
            self._left = int(size.split(b";")[0] or b"x", 16)
            if self._left == 0:
                while (self._connection.read_line()).strip():
                    pass
                self._over = True
                return b""
        data = self._connection.read(FRAME_MAX if self._left is None else self._left)
        if self._left is None:
            self._over = not data
            return data
        if not data:
            raise ConnectionFailedError("the answer broke off")
        self._left -= len(data)
        if self._left == 0 and self._chunked:
            self._connection.read_line()
        self._over = self._left == 0 and not self._chunked
        return data

    def read(self) -> bytes:
        """All of it."""
        pieces: List[bytes] = [bytes(self._buffer)]
        while True:
            piece = self._piece()
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)

    def line(self) -> Optional[str]:
        """The next line; None at the end."""
        while b"\n" not in self._buffer:
            piece = self._piece()
            if not piece:
                return None
            self._buffer += piece
        end = self._buffer.index(b"\n")
        line = self._buffer[:end].decode(errors="replace")
        del self._buffer[:end + 1]
        return line

    def event(self) -> Optional[Tuple[str, Any]]:
        """The next of server-sent events, and its object."""
        kind = ""
        while True:
            line = self.line()
            if line is None:
                return None
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                return kind, json.loads(line[6:])

    def _exactly(self, length: int) -> bytes:
        while len(self._buffer) < length:
            piece = self._piece()
            if not piece:
                raise ConnectionFailedError("the stream broke off")
            self._buffer += piece
        data = bytes(self._buffer[:length])
        del self._buffer[:length]
        return data

    def frame(self) -> Optional[Dict[str, Any]]:
        """The next message of one of Connect's streams; None at its end."""
        flags, length = struct.unpack(">BI", self._exactly(5))
        if length > FRAME_MAX:
            raise ConnectionFailedError("the server sent a frame that is too long")
        message = json.loads(self._exactly(length))
        if not flags & 2:
            return message
        self.read()
        if "error" in message:
            raise error_of_stream(message["error"], self.request_id)
        return None

    def upgraded(self) -> Connection:
        """The connection, which is the caller's from here on."""
        return self._connection


class Http:
    def __init__(self, url: Optional[str], api_key: Optional[str], request_timeout_seconds: float, retries: int):
        domain = os.environ.get("E2B_DOMAIN")
        url = url or os.environ.get("E2B_API_URL") or (f"https://api.{domain}" if domain else None)
        key = api_key or os.environ.get("E2B_API_KEY")
        if not url or not key:
            raise ValueError("set E2B_API_URL and E2B_API_KEY, or give url and api_key: `sandglass serve` prints both")
        self.url = url.rstrip("/")
        self._key, self._timeout, self._retries = key, request_timeout_seconds, retries
        self._kept: List[Tuple[Tuple[str, int, bool], Connection]] = []

    def send(self, method: str, path: str, *, query: Optional[Dict[str, Any]] = None, headers: Optional[Dict[str, str]] = None,
                   body: Any = None, extra_seconds: float = 0, keyless: bool = False) -> Answer:
        """The answer, whose status is one of success. Other statuses are errors. `keyless`: what it is for is run by code that
        must not have the key."""
        if not path.startswith("/"):
            raise InvalidError(f"the path '{path}' does not begin with '/'")  # it could name another host
        raw = body is None or isinstance(body, bytes)
        data = body if raw else json.dumps(body).encode()
        own = {**({} if keyless else {"X-API-Key": self._key}), **({} if raw else {"Content-Type": "application/json"}), **(headers or {})}
        asked = given(**(query or {}))
        url = self.url + path + (f"?{urlencode(asked)}" if asked else "")
        redirects = tries = 0
        while True:
            answer = self._once(method, url, own, data, self._timeout + extra_seconds)
            if answer.status < 300 or answer.status == 416:
                return answer
            with answer:
                told = _body_of(answer.read())
            if answer.status == 307 and "location" in answer.headers and redirects < REDIRECTS_MAX:
                redirects += 1
                url = urljoin(url, answer.headers["location"])
                continue
            # The server has not begun with it, and says when to come again.
            after = answer.headers.get("retry-after", "")
            if answer.status not in (429, 503) or not after.isdigit() or tries >= self._retries:
                raise error_of(answer.status, told, answer.request_id)
            tries += 1
            Clock.sleep(min(int(after), RETRY_AFTER_MAX_S))

    def json(self, method: str, path: str, **request: Any) -> Any:
        with self.send(method, path, **request) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def upgrade(self, path: str, query: Dict[str, Any]) -> Answer:
        """A WebSocket's handshake."""
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode()}
        return self.send("GET", path, query=query, headers=headers)

    def _once(self, method: str, url: str, headers: Dict[str, str], data: Optional[bytes], timeout: float) -> Answer:
        parts = urlsplit(url)
        tls = parts.scheme == "https"
        place = (parts.hostname or "", parts.port or (443 if tls else 80), tls)
        target = quote(parts.path or "/", SAFE) + (f"?{quote(parts.query, SAFE)}" if parts.query else "")
        head = [f"{method} {target} HTTP/1.1", f"Host: {parts.netloc}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        if data is not None or method in ("POST", "PUT"):
            head.append(f"Content-Length: {len(data or b'')}")
        if any("\r" in line or "\n" in line for line in head):
            raise ValueError("a header or an address has a line end in it")
        request = "\r\n".join(head).encode() + b"\r\n\r\n" + (data or b"")
        while True:
            connection = self._take(place)
            reused = connection is not None
            if connection is None:
                connection = Connection.open(*place, timeout)
            connection.timeout = timeout
            answer = Answer(self, place, connection)
            try:
                connection.write(request)
                answer.begin()
                return answer
            except ConnectionFailedError:
                connection.close()
                # A kept connection that the server closed meanwhile. What is no POST can be sent again.
                if not reused or method == "POST" or answer.status:
                    raise
            except BaseException:
                connection.close()
                raise

    def _take(self, place: Tuple[str, int, bool]) -> Optional[Connection]:
        for entry in self._kept[::-1]:
            if entry[0] != place:
                continue
            try:
                self._kept.remove(entry)
            except ValueError:
                continue  # another thread was first
            if time.monotonic() - entry[1].used < IDLE_MAX_S and not entry[1].is_stale():
                return entry[1]
            entry[1].close()
        return None

    def keep(self, place: Tuple[str, int, bool], connection: Connection) -> None:
        connection.used = time.monotonic()
        self._kept.append((place, connection))

    def close(self) -> None:
        while self._kept:
            self._kept.pop()[1].close()


def _body_of(text: bytes) -> Dict[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {"message": text[:2000].decode(errors="replace")}
