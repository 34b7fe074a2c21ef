"""Sandglass from Python: see README.md. What is here as Async... is for programs that await; the same names without it wait."""
from . import policies
from ._async.agent import AsyncAgent, AsyncAgentLine
from ._async.client import AsyncSandglass
from ._async.context import AsyncBranch, AsyncContext
from ._async.process import AsyncProcess
from ._async.sandbox import AsyncFork, AsyncSandbox
from ._async.session import AsyncSession
from ._sync.agent import Agent, AgentLine
from ._sync.client import Sandglass
from ._sync.context import Branch, Context
from ._sync.process import Process
from ._sync.sandbox import Fork, Sandbox
from ._sync.session import Session
from .errors import (AuthError, ConflictError, ConnectionFailedError, GoneError, InvalidError, LimitError, NotFoundError,
                     ProcessExitedError, SandglassError, ServerError, TimedOutError, UnavailableError)
from .types import (AgentInfo, AgentLog, AnalysisResult, Candidate, CellError, CellResult, Checkpoint, ContextInfo, ExecResult,
                    ExecutionResult, Exploration, FileInfo, Kernel, LogLine, PathInfo, RunResult, SandboxInfo, Snapshot, Volume)

__all__ = [
    "Agent", "AgentInfo", "AgentLine", "AgentLog", "AnalysisResult", "AsyncAgent", "AsyncAgentLine", "AsyncBranch",
    "AsyncContext", "AsyncFork", "AsyncProcess", "AsyncSandbox", "AsyncSandglass", "AsyncSession", "AuthError",
    "Branch", "Candidate", "CellError", "CellResult", "Checkpoint", "ConflictError", "ConnectionFailedError",
    "Context", "ContextInfo", "ExecResult", "ExecutionResult", "Exploration", "FileInfo", "Fork", "GoneError",
    "InvalidError", "Kernel", "LimitError", "LogLine", "NotFoundError", "PathInfo", "Process", "ProcessExitedError",
    "RunResult", "Sandbox", "SandboxInfo", "Sandglass", "SandglassError", "ServerError", "Session", "Snapshot",
    "TimedOutError", "UnavailableError", "Volume", "policies",
]
