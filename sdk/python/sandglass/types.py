"""What is answered. The server's names in Python's spelling: docs/openapi.yaml has them all."""
from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Type, TypeVar

T = TypeVar("T")


def build(kind: Type[T], data: Dict[str, Any]) -> T:
    """An object of a class from the server's; what the class does not know is left out."""
    values: Dict[str, Any] = {}
    for f in dataclasses.fields(kind):  # type: ignore[arg-type]
        name = f.metadata.get("name") or re.sub("_([a-z])", lambda found: found[1].upper(), f.name)
        if name not in data:
            continue
        value, of = data[name], f.metadata.get("of")
        if of and value is not None:
            value = [build(of, one) for one in value] if isinstance(value, list) else build(of, value)
        values[f.name] = value
    return kind(**values)


def _named(name: str, **more: Any) -> Any:
    return field(metadata={"name": name}, **more)


def _list_of(kind: type) -> Any:
    return field(metadata={"of": kind}, default_factory=list)


@dataclass(frozen=True)
class Truncated:
    stdout: bool
    stderr: bool


@dataclass(frozen=True)
class ContextInfo:
    id: str
    tenant_id: str
    conversation_id: str
    path_id: str
    parent_path_id: Optional[str]
    sandbox_id: Optional[str]
    sandbox_status: str
    template_id: str
    ttl_seconds: int
    created_at: str
    last_used_at: str
    expires_at: str
    terminated_at: Optional[str]
    error_message: Optional[str]
    resource_usage: Dict[str, float]


@dataclass(frozen=True)
class PathInfo:
    path_id: str
    parent_path_id: Optional[str]
    merged_into: Optional[str]
    created_at: str
    context_id: Optional[str]
    sandbox_status: Optional[str]


@dataclass(frozen=True)
class CellResult:
    """A value or a display, in each form that it has."""
    is_main_result: bool = _named("is_main_result")
    text: Optional[str] = None
    html: Optional[str] = None
    markdown: Optional[str] = None
    svg: Optional[str] = None
    png: Optional[str] = None
    jpeg: Optional[str] = None
    pdf: Optional[str] = None
    latex: Optional[str] = None
    javascript: Optional[str] = None
    data: Optional[Dict[str, Any]] = None
    json: Any = None
    chart: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class CellError:
    name: str
    value: str
    traceback: str


@dataclass(frozen=True)
class RunResult:
    """Of `run`. Code that failed is a result like any other."""
    success: bool
    stdout: str
    stderr: str
    exit_code: int
    execution_time_ms: int
    sandbox_id: str
    context_id: str
    was_created: bool
    replaced: bool
    truncated: Truncated = field(metadata={"of": Truncated})
    results: List[CellResult] = _list_of(CellResult)
    error: Optional[CellError] = field(metadata={"of": CellError}, default=None)
    kept_lost: bool = False
    sanitised: Optional[Dict[str, int]] = None
    checkpoint: Optional[Dict[str, str]] = None


@dataclass(frozen=True)
class AnalysisResult(RunResult):
    """Of `run_analysis`."""
    result: Any = None
    parsed_output: Any = None
    parse_error: Optional[str] = None


@dataclass(frozen=True)
class Checkpoint:
    checkpoint_id: str
    created_at: str
    memory_bytes: int
    kernels: bool
    current: bool
    message_id: Optional[str] = None
    parent_id: Optional[str] = None


@dataclass(frozen=True)
class Kernel:
    context_id: str
    language: str
    state: str
    reason: Optional[str] = None
    dropped: List[Dict[str, Any]] = field(default_factory=list)
    diverged: List[Dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Candidate:
    """Of one code: what it came to, or (`code`, `message`) why it did not run."""
    index: int
    candidate_id: Optional[str] = None
    success: bool = False
    stdout: str = ""
    stderr: str = ""
    exit_code: Optional[int] = None
    execution_time_ms: int = 0
    sandbox_id: Optional[str] = None
    results: List[CellResult] = _list_of(CellResult)
    error: Optional[CellError] = field(metadata={"of": CellError}, default=None)
    code: Optional[int] = None
    message: Optional[str] = None


@dataclass(frozen=True)
class Exploration:
    exploration_id: str
    kept_until: Optional[str]
    kernels: List[Kernel] = _list_of(Kernel)
    results: List[Candidate] = _list_of(Candidate)


@dataclass(frozen=True)
class ResourceUsage:
    cpu_seconds: float
    memory_mb: float
    disk_bytes: int


@dataclass(frozen=True)
class ExecutionResult:
    """Of `execute_code` and `execute_file`: a program in a sandbox of its own."""
    status: str
    stdout: str
    stderr: str
    exit_code: Optional[int]
    duration: float
    error_message: Optional[str]
    session_id: Optional[str]
    sandbox_id: str
    truncated: Truncated = field(metadata={"of": Truncated})
    resource_usage: ResourceUsage = field(metadata={"of": ResourceUsage})
    sanitised: Optional[Dict[str, int]] = None


@dataclass(frozen=True)
class SandboxInfo:
    sandbox_id: str = _named("sandboxID")
    template_id: str = _named("templateID")
    state: str = "running"
    started_at: str = ""
    end_at: str = ""
    cpu_count: int = 0
    memory_mb: int = _named("memoryMB", default=0)
    disk_size_mb: int = _named("diskSizeMB", default=0)
    alias: Optional[str] = None
    metadata: Dict[str, str] = field(default_factory=dict)
    network: Optional[Dict[str, Any]] = None
    domain: Optional[str] = None
    envd_access_token: Optional[str] = field(default=None, repr=False)
    traffic_access_token: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class Snapshot:
    snapshot_id: str = _named("snapshotID")
    state: str = "files"


@dataclass(frozen=True)
class ExecResult:
    """Of a command. One that failed is a result like any other."""
    success: bool
    exit_code: int
    stdout: str
    stderr: str
    duration: float


@dataclass(frozen=True)
class FileInfo:
    name: str
    path: str
    type: str
    size: int


@dataclass(frozen=True)
class LogLine:
    line: str
    match: Optional[re.Match[str]] = None


@dataclass(frozen=True)
class Volume:
    volume_id: str = _named("volumeID")
    name: str = ""
    token: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class AgentInfo:
    agent_id: str
    sandbox_id: str
    state: str
    command: str
    pid: int
    started_at: str
    messages_in: int
    messages_out: int
    messages_kept: int
    noise: int
    connected: int
    writer: bool
    acp: str
    conversation_id: Optional[str] = None
    path_id: Optional[str] = None
    end_at: Optional[str] = None
    ended_at: Optional[str] = None
    reason: Optional[str] = None
    fault: Optional[str] = None
    exit_code: Optional[int] = None
    signal: Optional[str] = None


@dataclass(frozen=True)
class AgentLog:
    time: str
    stream: str
    text: str
