"""A sandbox: commands, files, ports, forks. What E2B has is asked by E2B's routes: docs/e2b.md."""
from __future__ import annotations

import base64
import codecs
import json
import time
from typing import Any, Awaitable, Callable, Dict, List, Optional, Tuple, Union

from .. import types as t
from .._net import AsyncClock
from ..errors import ConflictError, NotFoundError, SandglassError, TimedOutError, UnavailableError
from ..policies import Policy, fields_of
from .http import AsyncAnswer, AsyncHttp, frame_of, given, in_ms, part
from .process import AsyncProcess
from .session import AsyncSession

ENVD, INTERPRETER = 49983, 49999
POLL_S = 0.1
TYPES = {"FILE_TYPE_FILE": "file", "FILE_TYPE_DIRECTORY": "directory", "FILE_TYPE_SYMLINK": "symlink"}

OnText = Optional[Callable[[str], None]]


class AsyncSandbox:
    def __init__(self, http: AsyncHttp, made: Dict[str, Any]):
        self._http, self._made = http, made
        self.id: str = made["sandboxID"]
        self.template_id: str = made["templateID"]

    @classmethod
    async def find(cls, http: AsyncHttp, id: str) -> AsyncSandbox:
        return cls(http, await http.json("GET", f"/sandboxes/{part(id)}"))

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, *_: Any) -> None:
        try:
            await self.kill()
        except SandglassError:
            pass  # it has a deadline

    # ---- commands -------------------------------------------------------------------------------

    async def exec(self, command: str, *, cwd: Optional[str] = None, envs: Optional[Dict[str, str]] = None, user: Optional[str] = None,
                   stdin: Optional[str] = None, timeout_seconds: float = 60, on_stdout: OnText = None, on_stderr: OnText = None) -> t.ExecResult:
        """Runs a command in a shell of its own, to its end. `timeout_seconds`: 0 for none."""
        began, end, pid = time.monotonic(), None, None
        out, err = _Text(on_stdout), _Text(on_stderr)
        try:
            async with await self.start_shell(command, cwd=cwd, envs=envs, user=user, stdin=stdin is not None,
                                              timeout_seconds=timeout_seconds) as events:
                while True:
                    message = await events.frame()
                    if message is None:
                        break
                    event = message.get("event", {})
                    if "start" in event:
                        pid = event["start"]["pid"]
                        if stdin is not None:
                            await self.send_input({"pid": pid}, stdin)
                            await self.close_input({"pid": pid})
                    elif "end" in event:
                        end = event["end"]
                    data = event.get("data", {})
                    out.add(data.get("stdout"))
                    err.add(data.get("stderr"))
        finally:
            if pid is not None and end is None:
                await self._give_up(pid)
        if end is None:
            raise SandglassError("the command has no end")
        code = _exit_code_of(end)
        return t.ExecResult(code == 0, code, out.close(), err.close(), time.monotonic() - began)

    async def _give_up(self, pid: int) -> None:
        """Nobody waits for it any more."""
        try:
            await self.signal({"pid": pid}, "SIGKILL")
        except SandglassError:
            pass

    async def start(self, command: str, *, id: Optional[str] = None, cwd: Optional[str] = None, envs: Optional[Dict[str, str]] = None,
                    user: Optional[str] = None, stdin: bool = False) -> AsyncProcess:
        """Starts a command in the background. What it writes is kept in the sandbox, and read by `logs`. With `stdin` it reads
        what `send_input` sends; otherwise it has nothing to read."""
        return await AsyncProcess.start(self, command, id=id, cwd=cwd, envs=envs, user=user, stdin=stdin)

    async def get_process(self, id: str) -> Optional[AsyncProcess]:
        """A command that `start` has started, whoever did; None if there is none of that name."""
        return await AsyncProcess.find(self, id)

    async def list_processes(self) -> List[AsyncProcess]:
        return await AsyncProcess.list(self)

    async def session(self, *, id: Optional[str] = None, cwd: Optional[str] = None, envs: Optional[Dict[str, str]] = None) -> AsyncSession:
        """A shell whose directory, variables and functions stay from one `exec` to the next; with `id`, one that is open."""
        return await AsyncSession.open(self, id, cwd, envs)

    async def wait_for_port(self, port: int, *, mode: str = "tcp", path: str = "/", status: Union[int, Tuple[int, int]] = (200, 399),
                            timeout_seconds: float = 30) -> None:
        """Waits until something listens on a port; with the mode `http`, until it answers a request for `path` with `status`."""
        await self.wait_for_port_of(port, mode, path, status, timeout_seconds)

    async def wait_for_port_of(self, port: int, mode: str, path: str, status: Union[int, Tuple[int, int]], timeout_seconds: float,
                               running: Optional[Callable[[], Awaitable[None]]] = None) -> None:
        least, most = (status, status) if isinstance(status, int) else status
        deadline = time.monotonic() + timeout_seconds
        while True:
            is_open = await self._listens(port) if mode == "tcp" else await self._answers(port, path, least, most)
            if is_open:
                return
            if running:
                await running()
            if time.monotonic() > deadline:
                what = "listens" if mode == "tcp" else f"answers {path} as it should"
                raise TimedOutError(f"port {port}: nothing {what} after {timeout_seconds} s")
            await AsyncClock.sleep(POLL_S)

    async def _listens(self, port: int) -> bool:
        tried = await self.exec(f"exec 3<>/dev/tcp/localhost/{int(port)}")
        return tried.success

    async def _answers(self, port: int, path: str, least: int, most: int) -> bool:
        try:
            async with await self.fetch(port, path) as answer:
                return least <= answer.status <= most
        except UnavailableError as err:
            if "sandboxId" in err.body and "port" not in err.body:
                raise  # it is not there
            return least <= (err.status or 0) <= most
        except SandglassError as err:
            return least <= (err.status or 0) <= most

    # ---- files ----------------------------------------------------------------------------------

    async def read_file(self, path: str) -> str:
        return (await self.read_bytes(path)).decode(errors="replace")

    async def read_bytes(self, path: str, offset: int = 0) -> bytes:
        """From an offset on, if there is one."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        async with await self.fetch(ENVD, "/files", query={"path": path}, headers=headers) as answer:
            data = await answer.read()
            return b"" if answer.status == 416 else data

    async def write_file(self, path: str, data: Union[str, bytes]) -> None:
        body = data.encode() if isinstance(data, str) else data
        async with await self.fetch(ENVD, "/files", method="POST", query={"path": path}, body=body,
                                    headers={"Content-Type": "application/octet-stream"}) as answer:
            await answer.read()

    async def list_files(self, path: str) -> List[t.FileInfo]:
        found = await self.rpc("filesystem.Filesystem/ListDir", {"path": path, "depth": 1})
        return [t.FileInfo(e["name"], e["path"], TYPES.get(e.get("type", ""), "other"), int(e.get("size", 0))) for e in found.get("entries", [])]

    async def file_exists(self, path: str) -> bool:
        try:
            await self.rpc("filesystem.Filesystem/Stat", {"path": path})
            return True
        except NotFoundError:
            return False

    async def make_dir(self, path: str) -> None:
        """With those above it. One that is there is fine."""
        try:
            await self.rpc("filesystem.Filesystem/MakeDir", {"path": path})
        except ConflictError:
            pass

    async def move_file(self, source: str, to: str) -> None:
        await self.rpc("filesystem.Filesystem/Move", {"source": source, "destination": to})

    async def remove_file(self, path: str) -> None:
        """A directory with all that is in it."""
        await self.rpc("filesystem.Filesystem/Remove", {"path": path})

    # ---- ports ----------------------------------------------------------------------------------

    def get_host(self, port: int) -> str:
        """The name of a port, for browsers: PORT-ID.DOMAIN."""
        if not self._made.get("domain"):
            raise SandglassError("the server has no domain (sandglass serve --domain): use fetch")
        return f"{port}-{self.id}.{self._made['domain']}"

    async def fetch(self, port: int, path: str, *, method: str = "GET", query: Optional[Dict[str, Any]] = None,
                    headers: Optional[Dict[str, str]] = None, body: Any = None) -> AsyncAnswer:
        """A request to a port, through the server. To be used in a `with`: `status`, `headers`, `read()`, `line()`."""
        own = port in (ENVD, INTERPRETER)
        name, token = ("X-Access-Token", "envdAccessToken") if own else ("E2B-Traffic-Access-Token", "trafficAccessToken")
        place = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(port), **given(**{name: self._made.get(token)})}
        return await self._http.send(method, path, query=query, headers={**place, **(headers or {})}, body=body, keyless=True)

    # ---- life -----------------------------------------------------------------------------------

    async def info(self) -> t.SandboxInfo:
        return t.build(t.SandboxInfo, await self._http.json("GET", f"/sandboxes/{self.id}"))

    async def fork(self, count: int = 1, *, timeout_seconds: Optional[int] = None, inherit: Optional[str] = None,
                   wait_seconds: Optional[float] = None) -> List[AsyncFork]:
        """Copies with its variables and files, as they are now. docs/fork.md."""
        forks = await self._ask("fork", (wait_seconds or 0) + 60, count=count, timeout=timeout_seconds, inherit=inherit, waitMs=in_ms(wait_seconds))
        return [AsyncFork(AsyncSandbox(self._http, f["sandbox"]), [t.build(t.Kernel, k) for k in f.get("kernels", [])]) for f in forks]

    async def snapshot(self, name: Optional[str] = None) -> t.Snapshot:
        """Its files, and its variables as long as the server lives: `create_sandbox` takes the id as a template."""
        return t.build(t.Snapshot, await self._ask("snapshots", 60, name=name))

    async def checkpoint(self, label: Optional[str] = None) -> t.Checkpoint:
        made = await self._ask("checkpoints", label=label)
        return t.build(t.Checkpoint, made["checkpoint"])

    async def checkpoints(self) -> List[t.Checkpoint]:
        found = await self._http.json("GET", f"/sandboxes/{self.id}/checkpoints")
        return [t.build(t.Checkpoint, one) for one in found["checkpoints"]]

    async def rewind(self, *, label: Optional[str] = None, checkpoint_id: Optional[str] = None, accept: Optional[str] = None) -> None:
        await self._ask("rewind", label=label, checkpointId=checkpoint_id, accept=accept)

    async def set_network(self, policy: Policy) -> None:
        await self._http.json("PUT", f"/sandboxes/{self.id}/network", body=fields_of(policy))

    async def set_timeout(self, seconds: int) -> None:
        """From now on."""
        await self._ask("timeout", timeout=seconds)

    async def pause(self) -> None:
        await self._ask("pause", 60)

    async def resume(self, timeout_seconds: int = 300) -> None:
        """Wakes it, or lets it live longer."""
        await self._http.json("POST", f"/v2/sandboxes/{self.id}/connect", body={"timeout": timeout_seconds}, extra_seconds=60)

    async def kill(self) -> None:
        try:
            await self._http.json("DELETE", f"/sandboxes/{self.id}")
        except NotFoundError:
            pass

    async def _ask(self, what: str, extra_seconds: float = 0, **body: Any) -> Any:
        return await self._http.json("POST", f"/sandboxes/{self.id}/{what}", body=given(**body), extra_seconds=extra_seconds)

    # ---- envd's calls ---------------------------------------------------------------------------

    async def rpc(self, method: str, message: Dict[str, Any]) -> Dict[str, Any]:
        async with await self.fetch(ENVD, f"/{method}", method="POST", body=message, headers={"Connect-Protocol-Version": "1"}) as answer:
            return json.loads(await answer.read() or b"{}")

    async def start_shell(self, command: str, *, cwd: Optional[str] = None, envs: Optional[Dict[str, str]] = None, user: Optional[str] = None,
                          stdin: bool = False, timeout_seconds: float = 0, tag: Optional[str] = None) -> AsyncAnswer:
        """The events of a shell that runs a command."""
        process = given(cmd="/bin/bash", args=["-l", "-c", command], envs=envs, cwd=cwd)
        headers = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1", "Keepalive-Ping-Interval": "20"}
        if timeout_seconds:
            headers["Connect-Timeout-Ms"] = str(in_ms(timeout_seconds))
        if user:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:".encode()).decode()
        return await self.fetch(ENVD, "/process.Process/Start", method="POST", headers=headers,
                                body=frame_of(given(process=process, tag=tag, stdin=stdin)))

    async def send_input(self, process: Dict[str, Any], text: str) -> None:
        await self.rpc("process.Process/SendInput", {"process": process, "input": {"stdin": base64.b64encode(text.encode()).decode()}})

    async def close_input(self, process: Dict[str, Any]) -> None:
        await self.rpc("process.Process/CloseStdin", {"process": process})

    async def signal(self, process: Dict[str, Any], signal: str) -> None:
        await self.rpc("process.Process/SendSignal", {"process": process, "signal": f"SIGNAL_{signal}"})


class AsyncFork:
    """A copy of a sandbox, and what came of each kernel."""

    def __init__(self, sandbox: AsyncSandbox, kernels: List[t.Kernel]):
        self.sandbox, self.kernels = sandbox, kernels


class _Text:
    """One stream of output: whole characters, as they come."""

    def __init__(self, listener: OnText):
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pieces: List[str] = []
        self._listener = listener

    def add(self, data: Optional[str], final: bool = False) -> None:
        text = self._decoder.decode(base64.b64decode(data or ""), final)
        if text:
            self._pieces.append(text)
            if self._listener:
                self._listener(text)

    def close(self) -> str:
        self.add(None, True)
        return "".join(self._pieces)


def _exit_code_of(end: Dict[str, Any]) -> int:
    """A signal is told in words, and shells say 128 + its number."""
    if end.get("exited"):
        return end.get("exitCode", 0)
    return 143 if end.get("status") == "signal: terminated" else 137
