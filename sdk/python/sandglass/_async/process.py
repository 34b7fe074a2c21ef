"""A command in the background, by its name. What it has written, and how it ended, is kept in the sandbox in
/tmp/.processes/NAME, so that anybody who has the sandbox can ask for it, also when it is over."""
from __future__ import annotations

import base64
import codecs
import re
import secrets
import time
from typing import TYPE_CHECKING, AsyncIterator, Callable, Dict, List, Optional, Pattern, Tuple, Union

from .. import types as t
from .._net import AsyncClock
from ..errors import ConflictError, InvalidError, NotFoundError, ProcessExitedError, TimedOutError

if TYPE_CHECKING:
    from .sandbox import AsyncSandbox

HOME = "/tmp/.processes"
KILLED = 137
POLL_S = 0.1
NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,64}\Z")

# A signal is for the command's whole group; the shell around it stays to note how it ended.
SCRIPT = f"""
mkdir -p -m 1777 {HOME} && cd "$SANDGLASS_CWD" && mkdir "{HOME}/$SANDGLASS_ID" || exit 1
at={HOME}/$SANDGLASS_ID command=$SANDGLASS_COMMAND
unset SANDGLASS_ID SANDGLASS_COMMAND SANDGLASS_CWD
printf %s "$command" >"$at/command"
: >"$at/stdout" >"$at/stderr"
trap : TERM INT HUP
echo started
exec >/dev/null 2>&1
/bin/bash -c "$command" >"$at/stdout" 2>"$at/stderr"
echo $? >"$at/.status"
mv "$at/.status" "$at/status\""""


class AsyncProcess:
    def __init__(self, sandbox: AsyncSandbox, id: str, command: str):
        self.sandbox, self.id, self.command = sandbox, id, command

    @classmethod
    async def start(cls, sandbox: AsyncSandbox, command: str, *, id: Optional[str], cwd: Optional[str], envs: Optional[Dict[str, str]],
                    user: Optional[str], stdin: bool) -> AsyncProcess:
        id = secrets.token_hex(8) if id is None else id
        if not NAME.match(id):
            raise InvalidError(f"'{id}' is no name of a process: up to 64 letters, digits, '.', '_' and '-'")
        variables = {**(envs or {}), "SANDGLASS_ID": id, "SANDGLASS_COMMAND": command, "SANDGLASS_CWD": cwd or "."}
        said = b""
        async with await sandbox.start_shell(SCRIPT, envs=variables, user=user, stdin=stdin, tag=id) as events:
            while True:
                message = await events.frame()
                if message is None:
                    break
                data = message.get("event", {}).get("data", {})
                said += base64.b64decode(data.get("stdout") or data.get("stderr") or "")
                if b"started\n" in said:
                    return cls(sandbox, id, command)
        raise ConflictError(f"the process '{id}' cannot be started: {said.decode(errors='replace').strip()}")

    @classmethod
    async def find(cls, sandbox: AsyncSandbox, id: str) -> Optional[AsyncProcess]:
        if not NAME.match(id):
            return None
        try:
            return cls(sandbox, id, await sandbox.read_file(f"{HOME}/{id}/command"))
        except NotFoundError:
            return None

    @classmethod
    async def list(cls, sandbox: AsyncSandbox) -> List[AsyncProcess]:
        try:
            entries = await sandbox.list_files(HOME)
        except NotFoundError:
            return []
        found = [await cls.find(sandbox, entry.name) for entry in entries]
        return [process for process in found if process]

    async def exit_code(self) -> Optional[int]:
        """Its status; None while it runs. 137 if it was killed."""
        noted = await self._noted()
        if noted is not None:
            return noted
        alive = await self.sandbox.rpc("process.Process/List", {})
        if any(one.get("tag") == self.id for one in alive.get("processes", [])):
            return None
        noted = await self._noted()
        return KILLED if noted is None else noted

    async def _noted(self) -> Optional[int]:
        try:
            return int(await self.sandbox.read_file(f"{HOME}/{self.id}/status"))
        except NotFoundError:
            return None

    async def logs(self) -> Tuple[str, str]:
        """All that it has written so far: stdout, stderr."""
        return (await self.sandbox.read_file(f"{HOME}/{self.id}/stdout"), await self.sandbox.read_file(f"{HOME}/{self.id}/stderr"))

    async def output(self) -> AsyncIterator[Tuple[str, str]]:
        """What it has written, and then what it writes, until it ends: `stdout` or `stderr`, and a text."""
        async for piece in self._pieces(lambda: None):
            yield piece

    async def _pieces(self, late: Callable[[], None]) -> AsyncIterator[Tuple[str, str]]:
        offsets = {"stdout": 0, "stderr": 0}
        decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in offsets}
        over = False
        while not over:
            over = await self.exit_code() is not None
            more = False
            for name, offset in offsets.items():
                data = await self.sandbox.read_bytes(f"{HOME}/{self.id}/{name}", offset)
                offsets[name] += len(data)
                text = decoders[name].decode(data, over)
                if text:
                    more = True
                    yield name, text
            late()
            if not over and not more:
                await AsyncClock.sleep(POLL_S)

    async def wait_for_log(self, pattern: Union[str, Pattern[str]], timeout_seconds: float = 30) -> t.LogLine:
        """Waits for a line, of either stream, that has a text or matches a pattern."""
        deadline = time.monotonic() + timeout_seconds
        rest = {"stdout": "", "stderr": ""}

        def late() -> None:
            if time.monotonic() > deadline:
                raise TimedOutError(f"process '{self.id}': no line with {pattern} after {timeout_seconds} s")

        async for name, text in self._pieces(late):
            *lines, rest[name] = (rest[name] + text).split("\n")
            for line in lines:
                hit = _found(pattern, line)
                if hit:
                    return hit
        hit = _found(pattern, rest["stdout"]) or _found(pattern, rest["stderr"])
        if hit:
            return hit
        code = await self.exit_code()
        raise ProcessExitedError(f"process '{self.id}' ended with {code} before a line with {pattern}", KILLED if code is None else code)

    async def wait_for_port(self, port: int, *, mode: str = "tcp", path: str = "/", status: Union[int, Tuple[int, int]] = (200, 399),
                            timeout_seconds: float = 30) -> None:
        """Waits until something listens on a port; an error if the process ends before."""
        async def running() -> None:
            code = await self.exit_code()
            if code is not None:
                raise ProcessExitedError(f"process '{self.id}' ended with {code} before port {port} was open", code)

        await self.sandbox.wait_for_port_of(port, mode, path, status, timeout_seconds, running)

    async def wait(self, timeout_seconds: float = float("inf")) -> int:
        """Waits for its end."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            code = await self.exit_code()
            if code is not None:
                return code
            if time.monotonic() > deadline:
                raise TimedOutError(f"process '{self.id}' runs after {timeout_seconds} s")
            await AsyncClock.sleep(POLL_S)

    async def send_input(self, text: str) -> None:
        """To its standard input, if it was started with `stdin`."""
        await self.sandbox.send_input({"tag": self.id}, text)

    async def close_input(self) -> None:
        """It finds the end of its input."""
        await self.sandbox.close_input({"tag": self.id})

    async def kill(self, signal: str = "SIGTERM") -> None:
        """It and its children. One that has ended is fine."""
        try:
            await self.sandbox.signal({"tag": self.id}, signal)
        except NotFoundError:
            pass


def _found(pattern: Union[str, Pattern[str]], line: str) -> Optional[t.LogLine]:
    if isinstance(pattern, str):
        return t.LogLine(line) if pattern in line else None
    match = pattern.search(line)
    return t.LogLine(line, match) if match else None
