"""What can go wrong. An error of the server has its message, its status, and the id that finds the request in its log."""
from __future__ import annotations

from typing import Any, Dict, List, Optional


class SandglassError(Exception):
    def __init__(self, message: str, status: Optional[int] = None, request_id: Optional[str] = None,
                 body: Optional[Dict[str, Any]] = None):
        super().__init__(message)
        self.message = message
        self.status = status
        self.request_id = request_id
        self.body = body or {}

    @property
    def unavailable(self) -> bool:
        """The tool cannot be had now: the conversation can go on without it."""
        return self.body.get("unavailable") is True


class InvalidError(SandglassError):
    """400, 413, 422 and the like: the request is not right, and the message names the field."""


class AuthError(SandglassError):
    """401, 403: no key or a wrong one, or something that it may not do."""


class NotFoundError(SandglassError):
    """404: there is none, or it is another tenant's."""


class ConflictError(SandglassError):
    """409: something is in the way. `reason` is `state_lost` if variables are gone that were asked for."""

    @property
    def reason(self) -> Optional[str]:
        return self.body.get("reason")

    @property
    def in_the_way(self) -> List[Dict[str, Any]]:
        return self.body.get("inTheWay", [])


class GoneError(SandglassError):
    """410: the checkpoint was thinned out."""

    @property
    def checkpoints(self) -> List[Dict[str, Any]]:
        return self.body.get("checkpoints", [])


class LimitError(SandglassError):
    """429, 507: a limit is reached; the message names it."""


class UnavailableError(SandglassError):
    """502, 503, 504: the server has no room or no database now; or the sandbox, or a port of it, is not there."""


class ServerError(SandglassError):
    """Any other status."""


class TimedOutError(SandglassError):
    """Nothing came for too long, or a program ran for longer than it may."""


class ConnectionFailedError(SandglassError):
    """The server cannot be reached, or the connection broke."""


class ProcessExitedError(SandglassError):
    """A process ended before what was waited for."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code


CLASSES = {401: AuthError, 403: AuthError, 404: NotFoundError, 409: ConflictError, 410: GoneError, 429: LimitError,
           502: UnavailableError, 503: UnavailableError, 504: UnavailableError, 507: LimitError}

# The names of Connect's errors, in the last frame of a stream.
CODES = {"invalid_argument": 400, "out_of_range": 400, "failed_precondition": 400, "unauthenticated": 401, "permission_denied": 403,
         "not_found": 404, "already_exists": 409, "aborted": 409, "resource_exhausted": 429, "unimplemented": 501, "unavailable": 503}


def error_of(status: int, body: Dict[str, Any], request_id: Optional[str] = None) -> SandglassError:
    kind = CLASSES.get(status, InvalidError if 400 <= status < 500 else ServerError)
    message = body.get("message")
    return kind(message if isinstance(message, str) and message else f"status {status}", status, request_id or body.get("requestId"), body)


def error_of_stream(error: Dict[str, Any], request_id: Optional[str]) -> SandglassError:
    code = error.get("code", "")
    message = error.get("message", code)
    if code in ("deadline_exceeded", "canceled"):
        return TimedOutError(message)
    return error_of(CODES.get(code, 500), {"message": message}, request_id)
