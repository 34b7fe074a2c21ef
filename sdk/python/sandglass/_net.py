"""Connections and time, for programs that wait and for those that await. All else is written once, in `_async`: what is
here as Async... is there without it, and `tools/sdk-python` writes `_sync` from `_async` by these names."""
from __future__ import annotations

import asyncio
import io
import select
import socket
import ssl
import time
from typing import Any, Optional, cast

from .errors import ConnectionFailedError, TimedOutError

LINE_MAX = 64 << 10
PIECE_MAX = 64 << 10


def _failed(err: Exception) -> Exception:
    if isinstance(err, (socket.timeout, asyncio.TimeoutError)):
        return TimedOutError("the server is silent")
    return ConnectionFailedError(f"the server cannot be reached: {err or type(err).__name__}")


class AsyncConnection:
    """Bytes to a server and back. Each step has at most `timeout` seconds, which may be changed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: Optional[float]):
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()
        self.timeout = timeout
        self.used = time.monotonic()

    @classmethod
    async def open(cls, host: str, port: int, tls: bool, timeout: Optional[float]) -> AsyncConnection:
        context = ssl.create_default_context() if tls else None
        try:
            opening = asyncio.open_connection(host, port, ssl=context, limit=LINE_MAX)
            return cls(*await asyncio.wait_for(opening, timeout), timeout)
        except (OSError, asyncio.TimeoutError) as err:
            raise _failed(err) from err

    async def _step(self, step: Any) -> Any:
        try:
            return await asyncio.wait_for(step, self.timeout)
        except (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError, ValueError) as err:
            raise _failed(err) from err

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._step(self._writer.drain())

    async def read_line(self) -> bytes:
        return await self._step(self._reader.readline())

    async def read(self, most: int) -> bytes:
        return await self._step(self._reader.read(min(most, PIECE_MAX)))

    def is_stale(self) -> bool:
        return self._loop is not asyncio.get_running_loop() or self._reader.at_eof() or self._writer.is_closing()

    def close(self) -> None:
        try:
            self._writer.close()
        except RuntimeError:
            pass  # its loop has ended, and the connection with it


class Connection:
    """The same for a thread."""

    def __init__(self, sock: socket.socket, timeout: Optional[float]):
        self._socket = sock
        self._file = cast(io.BufferedReader, sock.makefile("rb", PIECE_MAX))
        self.timeout = timeout
        self.used = time.monotonic()

    @classmethod
    def open(cls, host: str, port: int, tls: bool, timeout: Optional[float]) -> Connection:
        try:
            sock = socket.create_connection((host, port), timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return cls(ssl.create_default_context().wrap_socket(sock, server_hostname=host) if tls else sock, timeout)
        except OSError as err:
            raise _failed(err) from err

    def write(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self.timeout)
            self._socket.sendall(data)
        except OSError as err:
            raise _failed(err) from err

    def read_line(self) -> bytes:
        try:
            self._socket.settimeout(self.timeout)
            return self._file.readline(LINE_MAX)
        except (OSError, ValueError) as err:
            raise _failed(err) from err

    def read(self, most: int) -> bytes:
        try:
            self._socket.settimeout(self.timeout)
            return self._file.read1(min(most, PIECE_MAX))
        except (OSError, ValueError) as err:
            raise _failed(err) from err

    def is_stale(self) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class AsyncClock:
    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)


class Clock:
    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(seconds)
