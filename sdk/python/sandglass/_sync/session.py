"""A shell whose state stays: a context of the code interpreter, of bash. Its directory, variables, functions and jobs are
there for the next command. A fork does not carry it: docs/fork.md."""
from __future__ import annotations

import json
import shlex
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from .. import types as t
from ..errors import ConflictError, TimedOutError
from .http import given, part

if TYPE_CHECKING:
    from .sandbox import Sandbox

INTERPRETER = 49999
# Errors of the interpreter's, not of the command's.
ENDED = ("ContextRemoved", "ContextRestarting", "ExecutionFailed", "KernelError", "KernelProtocolError")


class Session:
    def __init__(self, sandbox: Sandbox, id: str):
        self.sandbox, self.id = sandbox, id

    @classmethod
    def open(cls, sandbox: Sandbox, id: Optional[str], cwd: Optional[str], envs: Optional[Dict[str, str]]) -> Session:
        if id:
            return cls(sandbox, id)
        with sandbox.fetch(INTERPRETER, "/contexts", method="POST", body=given(language="bash", cwd=cwd)) as answer:
            session = cls(sandbox, json.loads(answer.read())["id"])
        if envs:
            session.exec("\n".join(f"export {name}={shlex.quote(value)}" for name, value in envs.items()))
        return session

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def exec(self, command: str, *, envs: Optional[Dict[str, str]] = None, timeout_seconds: float = 60,
                   on_stdout: Optional[Callable[[str], None]] = None, on_stderr: Optional[Callable[[str], None]] = None) -> t.ExecResult:
        """Runs a command in the shell. Commands wait for each other, in order. `exit` ends the shell; the next one gets a new one."""
        began, code, error = time.monotonic(), 0, None
        texts: Dict[str, str] = {"stdout": "", "stderr": ""}
        body = given(code=command, context_id=self.id, env_vars=envs, timeout=timeout_seconds or None)
        with self.sandbox.fetch(INTERPRETER, "/execute", method="POST", body=body) as answer:
            while True:
                text = answer.line()
                if text is None:
                    break
                line = json.loads(text)
                kind = line["type"]
                if kind in texts:
                    texts[kind] += line["text"]
                    listener = on_stdout if kind == "stdout" else on_stderr
                    if listener:
                        listener(line["text"])
                elif kind == "error":
                    error = line
                elif kind == "end_of_execution":
                    code = line.get("exit_code", 1 if error else 0)
        if error and error["name"] == "TimeoutError":
            raise TimedOutError(error["value"])
        if error and error["name"] in ENDED:
            raise ConflictError(error["value"])
        return t.ExecResult(code == 0, code, texts["stdout"], texts["stderr"], time.monotonic() - began)

    def close(self) -> None:
        """Ends the shell, and what it started and did not put into a session of its own."""
        with self.sandbox.fetch(INTERPRETER, f"/contexts/{part(self.id)}", method="DELETE") as answer:
            answer.read()
