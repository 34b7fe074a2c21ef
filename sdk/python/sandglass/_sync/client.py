"""One server."""
from __future__ import annotations

import os
from typing import Any, Iterator, Callable, Dict, List, Optional, TypeVar, Union

from .. import types as t
from ..policies import Policy, fields_of
from .agent import Agent
from .context import Context
from .http import Http, given, part
from .sandbox import Sandbox

T = TypeVar("T")
Strings = Optional[Dict[str, str]]
Volumes = Optional[Dict[str, Union[str, t.Volume, Dict[str, Any]]]]


class Sandglass:
    """`url` and `api_key` are E2B_API_URL (or https://api. and E2B_DOMAIN) and E2B_API_KEY if they are left out.

    A request fails when nothing has come for `request_timeout_seconds`. It is sent again, `retries` times, if the server put
    it off, with 429 or 503 and `Retry-After`."""

    def __init__(self, url: Optional[str] = None, api_key: Optional[str] = None, *, request_timeout_seconds: float = 60, retries: int = 3):
        self._http = Http(url, api_key, request_timeout_seconds, retries)

    def close(self) -> None:
        """Closes the connections. Nothing on the server ends by that."""
        self._http.close()

    def __enter__(self) -> Sandglass:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # ---- contexts -------------------------------------------------------------------------------

    def get_or_create_context(self, conversation_id: str, path_id: str, *, template: Optional[str] = None,
                                    ttl_seconds: Optional[int] = None, metadata: Strings = None, envs: Strings = None,
                                    network: Optional[Policy] = None) -> Context:
        """The context of a path; its sandbox is made if it has none."""
        body = given(conversationId=conversation_id, pathId=path_id, template=template, ttlSeconds=ttl_seconds, metadata=metadata,
                     envs=envs, network=network)
        got = self._http.json("PUT", "/v1/contexts", body=body)
        return Context(self._http, got["context"], got)

    def get_context(self, id: str) -> Context:
        return Context(self._http, self._http.json("GET", f"/v1/contexts/{part(id)}"))

    def list_contexts(self, *, conversation_id: Optional[str] = None, path_id: Optional[str] = None,
                            sandbox_id: Optional[str] = None, status: Optional[str] = None) -> Iterator[Context]:
        """Those that are active, or with `status` others, the newest first."""
        query = given(conversationId=conversation_id, pathId=path_id, sandboxId=sandbox_id, status=status)
        while True:
            page = self._http.json("GET", "/v1/contexts", query=query)
            for info in page["contexts"]:
                yield Context(self._http, info)
            if page["nextCursor"] is None:
                return
            query["cursor"] = page["nextCursor"]

    def list_paths(self, conversation_id: str) -> List[t.PathInfo]:
        found = self._http.json("GET", "/v1/paths", query={"conversationId": conversation_id})
        return [t.build(t.PathInfo, one) for one in found["paths"]]

    def clean_up(self, conversation_id: Optional[str] = None) -> int:
        """Ends expired contexts, or all of a conversation. How many ended."""
        ended = self._http.json("POST", "/v1/contexts/cleanup", body=given(conversationId=conversation_id))
        return ended["terminated"]

    # ---- one program ----------------------------------------------------------------------------

    def execute_code(self, code: str, language: Optional[str] = None, *, stdin: Optional[str] = None,
                           timeout_seconds: Optional[float] = None, files: Optional[Dict[str, str]] = None, envs: Strings = None,
                           limits: Optional[Dict[str, float]] = None, session_id: Optional[str] = None,
                           sanitise: Optional[str] = None) -> t.ExecutionResult:
        """Runs a program in a sandbox of its own, which ends with it. `limits`: memoryMb, cpus, outputBytes."""
        return self._execute({"code": code}, files or {}, language=language, stdin=stdin, timeoutSeconds=timeout_seconds, envs=envs,
                                   limits=limits, sessionId=session_id, sanitise=sanitise)

    def execute_file(self, path: Union[str, os.PathLike[str]], language: Optional[str] = None, *, stdin: Optional[str] = None,
                           timeout_seconds: Optional[float] = None, files: Optional[Dict[str, str]] = None, envs: Strings = None,
                           limits: Optional[Dict[str, float]] = None, session_id: Optional[str] = None,
                           sanitise: Optional[str] = None) -> t.ExecutionResult:
        """The same with a file of this machine; its suffix is the language."""
        name = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            every = {name: file.read(), **(files or {})}
        return self._execute({"file": name}, every, language=language, stdin=stdin, timeoutSeconds=timeout_seconds, envs=envs,
                                   limits=limits, sessionId=session_id, sanitise=sanitise)

    def _execute(self, what: Dict[str, str], files: Dict[str, str], **options: Any) -> t.ExecutionResult:
        body = {**what, **given(**options)}
        if files:
            body["files"] = [{"path": path, "content": content} for path, content in files.items()]
        patience = options["timeoutSeconds"] or 30
        return t.build(t.ExecutionResult, self._http.json("POST", "/v1/execute", body=body, extra_seconds=patience))

    # ---- sandboxes and volumes ------------------------------------------------------------------

    def create_sandbox(self, template: str = "code-interpreter-v1", *, timeout_seconds: Optional[int] = None, metadata: Strings = None,
                             envs: Strings = None, network: Optional[Policy] = None, volumes: Volumes = None,
                             auto_pause: bool = False) -> Sandbox:
        """`volumes` by the path that they have inside. With `auto_pause` it is paused at its end, and the next use wakes it."""
        body = given(templateID=template, timeout=timeout_seconds, metadata=metadata, envVars=envs,
                     network=None if network is None else fields_of(network))
        if volumes:
            body["volumeMounts"] = [{"path": path, **_mount(volume)} for path, volume in volumes.items()]
        if auto_pause:
            body.update(autoPause=True, autoResume={"enabled": True})
        return Sandbox(self._http, self._http.json("POST", "/v2/sandboxes", body=body))

    def get_sandbox(self, id: str) -> Sandbox:
        """One that runs, or sleeps: it wakes with its next use."""
        return Sandbox.find(self._http, id)

    def with_sandbox(self, work: Callable[[Sandbox], T], template: str = "code-interpreter-v1", **options: Any) -> T:
        """A sandbox for as long as a function runs. It ends in every case. `options` as for `create_sandbox`."""
        with self.create_sandbox(template, **options) as sandbox:
            return work(sandbox)

    def get_or_create_volume(self, name: str) -> t.Volume:
        """A directory that outlives sandboxes; that of this name, if there is one."""
        for volume in self.list_volumes():
            if volume.name == name:
                return volume
        return t.build(t.Volume, self._http.json("POST", "/volumes", body={"name": name}))

    def list_volumes(self) -> List[t.Volume]:
        return [t.build(t.Volume, one) for one in self._http.json("GET", "/volumes")]

    def delete_volume(self, volume: Union[str, t.Volume]) -> None:
        self._http.json("DELETE", f"/volumes/{part(volume if isinstance(volume, str) else volume.volume_id)}")

    # ---- agents ---------------------------------------------------------------------------------

    def start_agent(self, command: List[str], *, env: Strings = None, cwd: Optional[str] = None, user: Optional[str] = None,
                          timeout: Optional[int] = None, sandbox_id: Optional[str] = None, conversation_id: Optional[str] = None,
                          path_id: Optional[str] = None, ttl_seconds: Optional[int] = None, template: Optional[str] = None,
                          metadata: Strings = None, network: Optional[Policy] = None, serve_fs: Optional[bool] = None,
                          source: Strings = None) -> Agent:
        """Starts a program that speaks the Agent Client Protocol."""
        body = given(command=command, env=env, cwd=cwd, user=user, timeout=timeout, sandboxId=sandbox_id, conversationId=conversation_id,
                     pathId=path_id, ttlSeconds=ttl_seconds, template=template, metadata=metadata, network=network, serveFs=serve_fs,
                     source=source)
        return Agent(self._http, self._http.json("POST", "/v1/agents", body=body, extra_seconds=60))

    def get_agent(self, id: str) -> Agent:
        return Agent(self._http, self._http.json("GET", f"/v1/agents/{part(id)}"))

    def list_agents(self) -> List[Agent]:
        found = self._http.json("GET", "/v1/agents")
        return [Agent(self._http, info) for info in found["agents"]]


def _mount(volume: Union[str, t.Volume, Dict[str, Any]]) -> Dict[str, Any]:
    if isinstance(volume, dict):
        return volume
    return {"name": volume if isinstance(volume, str) else volume.name}
