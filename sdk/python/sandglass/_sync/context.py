"""A context: the sandbox of a path of a conversation. docs/contexts.md, docs/fork.md."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple, Union
from urllib.parse import quote

from .. import types as t
from ..errors import ConflictError, SandglassError, error_of
from ..policies import Policy
from .http import Http, given, in_ms
from .sandbox import Sandbox

OnText = Optional[Callable[[str], None]]
OnResult = Optional[Callable[[t.CellResult], None]]


class Context:
    def __init__(self, http: Http, info: Dict[str, Any], made: Optional[Dict[str, Any]] = None):
        self._http = http
        #: As the server told it last.
        self.info = t.build(t.ContextInfo, info)
        #: Whether the call that gave this object made the sandbox; and whether that replaces one that was lost.
        self.was_created: bool = (made or {}).get("wasCreated", False)
        self.replaced: bool = (made or {}).get("replaced", False)

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def _place(self) -> Dict[str, str]:
        return {"conversationId": self.info.conversation_id, "pathId": self.info.path_id}

    def _ask(self, what: str, extra_seconds: float = 0, **body: Any) -> Any:
        return self._http.json("POST", f"/v1/contexts/{self.id}/{what}", body=given(**body), extra_seconds=extra_seconds)

    # ---- tools ----------------------------------------------------------------------------------

    def run(self, code: str, *, language: Optional[str] = None, timeout_seconds: Optional[float] = None, envs: Optional[Dict[str, str]] = None,
                  message_id: Optional[str] = None, sanitise: Optional[str] = None, on_stdout: OnText = None, on_stderr: OnText = None,
                  on_result: OnResult = None) -> t.RunResult:
        """Runs code, with the variables of the runs before. A checkpoint is left before the first call of a message."""
        body = given(code=code, language=language, timeoutSeconds=timeout_seconds, envs=envs, messageId=message_id, sanitise=sanitise)
        return t.build(t.RunResult, self._tool("run_code", {**self._place, **body}, {}, on_stdout, on_stderr, on_result))

    def run_analysis(self, analysis_type: str, *, parameters: Any = None, code: Optional[str] = None, language: Optional[str] = None,
                           output_format: Optional[str] = None, timeout_seconds: Optional[float] = None, sanitise: Optional[str] = None,
                           on_stdout: OnText = None, on_stderr: OnText = None, on_result: OnResult = None) -> t.AnalysisResult:
        """Runs a named analysis, or `custom` with code of your own; `parameters` reach it as data."""
        body = given(analysisType=analysis_type, parameters=parameters, code=code, language=language, outputFormat=output_format,
                     timeoutSeconds=timeout_seconds, sanitise=sanitise)
        return t.build(t.AnalysisResult, self._tool("run_analysis", {**self._place, **body}, {}, on_stdout, on_stderr, on_result))

    def tools(self, format: str = "mcp") -> List[Dict[str, Any]]:
        """The tools in the form that a model takes (mcp, openai, anthropic), bound to this path: they do not ask for one."""
        return self._http.json("GET", "/v1/tools", query={"format": format, **self._place})

    def call_tool(self, name: str, input: Dict[str, Any], *, message_id: Optional[str] = None, on_stdout: OnText = None,
                        on_stderr: OnText = None, on_result: OnResult = None) -> t.RunResult:
        """A call of a tool as a model asks for it."""
        query = {**self._place, **given(messageId=message_id)}
        kind = t.AnalysisResult if name == "run_analysis" else t.RunResult
        return t.build(kind, self._tool(name, input, query, on_stdout, on_stderr, on_result))

    def _tool(self, name: str, body: Dict[str, Any], query: Dict[str, str], on_stdout: OnText, on_stderr: OnText,
                    on_result: OnResult) -> Dict[str, Any]:
        done = None
        with self._http.send("POST", f"/v1/tools/{quote(name, '')}", body=body, query=query,
                                         headers={"Accept": "text/event-stream"}) as answer:
            while True:
                event = answer.event()
                if event is None:
                    break
                kind, data = event
                if kind == "stdout" and on_stdout:
                    on_stdout(data["text"])
                elif kind == "stderr" and on_stderr:
                    on_stderr(data["text"])
                elif kind == "result" and on_result:
                    on_result(t.build(t.CellResult, data))
                elif kind == "done":
                    done = data
        if done is None:
            raise SandglassError("the answer has no end")
        if "success" not in done:
            raise error_of(done["code"], done)
        return done

    # ---- life -----------------------------------------------------------------------------------

    def refresh(self) -> Context:
        self.info = t.build(t.ContextInfo, self._http.json("GET", f"/v1/contexts/{self.id}"))
        return self

    def touch(self, ttl_seconds: Optional[int] = None) -> Context:
        """Counts as a use."""
        self.info = t.build(t.ContextInfo, self._ask("touch", ttlSeconds=ttl_seconds))
        return self

    def end(self) -> None:
        """Ends it, with its sandbox."""
        self.info = t.build(t.ContextInfo, self._http.json("DELETE", f"/v1/contexts/{self.id}"))

    def sandbox(self) -> Sandbox:
        """Its sandbox, for files, commands and ports."""
        if not self.info.sandbox_id:
            raise ConflictError("the context has no sandbox now: get it again with get_or_create_context")
        return Sandbox.find(self._http, self.info.sandbox_id)

    def set_network(self, policy: Policy) -> None:
        """Another network, in force and stored when this is over."""
        sandbox = self.sandbox()
        sandbox.set_network(policy)

    # ---- branches, checkpoints, best of N -------------------------------------------------------

    def branch(self, to_path_id: str, *, inherit: Optional[str] = None, at_message_id: Optional[str] = None,
                     checkpoint_id: Optional[str] = None, accept: Optional[str] = None, wait_seconds: Optional[float] = None,
                     ttl_seconds: Optional[int] = None, metadata: Optional[Dict[str, str]] = None, envs: Optional[Dict[str, str]] = None,
                     network: Optional[Policy] = None) -> Branch:
        """A new path. Without `inherit` it has nothing, and no context before it is used."""
        body = given(conversationId=self.info.conversation_id, fromPathId=self.info.path_id, toPathId=to_path_id, inherit=inherit,
                     atMessageId=at_message_id, checkpointId=checkpoint_id, accept=accept, waitMs=in_ms(wait_seconds),
                     ttlSeconds=ttl_seconds, metadata=metadata, envs=envs, network=network)
        made = self._http.json("POST", "/v1/contexts/branch", body=body, extra_seconds=(wait_seconds or 0) + 60)
        context = Context(self._http, made["context"], made) if made["context"] else None
        return Branch(context, made["inherited"], _kernels(made))

    def merge_into(self, target_path_id: str) -> None:
        """Ends this path; it counts as merged into the other, which is left alone."""
        body = {"conversationId": self.info.conversation_id, "sourcePathId": self.info.path_id, "targetPathId": target_path_id}
        merged = self._http.json("POST", "/v1/contexts/merge", body=body)
        if merged["terminated"]:
            self.info = t.build(t.ContextInfo, merged["terminated"])

    def checkpoints(self) -> List[t.Checkpoint]:
        found = self._http.json("GET", f"/v1/contexts/{self.id}/checkpoints")
        return [t.build(t.Checkpoint, one) for one in found["checkpoints"]]

    def rewind(self, *, message_id: Optional[str] = None, checkpoint_id: Optional[str] = None,
                     accept: Optional[str] = None) -> Tuple[t.Checkpoint, List[t.Kernel]]:
        """Variables and files as they were before a message, or at a checkpoint."""
        gone_to = self._ask("rewind", messageId=message_id, checkpointId=checkpoint_id, accept=accept)
        self.info = t.build(t.ContextInfo, gone_to["context"])
        return t.build(t.Checkpoint, gone_to["checkpoint"]), _kernels(gone_to)

    def explore(self, codes: List[str], *, language: Optional[str] = None, timeout_seconds: Optional[float] = None,
                      wait_seconds: Optional[float] = None, keep_seconds: Optional[int] = None) -> t.Exploration:
        """Runs each code in a copy of the sandbox, all at once. The path itself is not changed."""
        patience = (timeout_seconds or 600) + (wait_seconds or 0)
        return t.build(t.Exploration, self._ask("explore", patience, codes=codes, language=language, timeoutMs=in_ms(timeout_seconds),
                                                      waitMs=in_ms(wait_seconds), keepSeconds=keep_seconds))

    def adopt(self, candidate: Union[str, t.Candidate]) -> Context:
        """Makes a copy the sandbox of this path; the one before it and the other copies end."""
        candidate_id = candidate if isinstance(candidate, str) else candidate.candidate_id
        adopted = self._ask("adopt", candidateId=candidate_id)
        self.info = t.build(t.ContextInfo, adopted["context"])
        return self


class Branch:
    """Of `branch`: the context of the new path, if it has one already, and what came of each kernel."""

    def __init__(self, context: Optional[Context], inherited: str, kernels: List[t.Kernel]):
        self.context, self.inherited, self.kernels = context, inherited, kernels


def _kernels(made: Dict[str, Any]) -> List[t.Kernel]:
    return [t.build(t.Kernel, one) for one in made.get("kernels", [])]
