"""Policies for what leaves a sandbox: docs/egress.md. They are plain values, so they can be written by hand, too."""
from __future__ import annotations

from typing import Any, Dict, Union

Policy = Union[str, Dict[str, Any]]
ALL = "0.0.0.0/0"


def block() -> Policy:
    """Nothing."""
    return "block"


def open() -> Policy:  # pylint: disable=redefined-builtin
    """Everything but internal addresses."""
    return "open"


def only(*entries: str) -> Policy:
    """Nothing but these names, addresses and networks."""
    return {"allowOut": list(entries), "denyOut": [ALL]}


def all_except(*entries: str) -> Policy:
    """Everything but these. Names only where a context is made: `set_network` takes addresses and networks."""
    return {"denyOut": list(entries)}


def with_headers(policy: Policy, host: str, headers: Dict[str, str]) -> Dict[str, Any]:
    """The guard sets headers in requests to a host, which is allowed from then on. A value may mention a secret,
    `${e2b.secrets.NAME}`: the code inside never sees it."""
    fields = dict(fields_of(policy))
    allowed = fields.get("allowOut", [])
    if ALL in fields.get("denyOut", []) and host not in allowed:
        fields["allowOut"] = [*allowed, host]
    fields["rules"] = {**fields.get("rules", {}), host: [{"transform": {"headers": headers}}]}
    return fields


def fields_of(policy: Policy) -> Dict[str, Any]:
    """A policy in the form that `PUT /sandboxes/{id}/network` and E2B's create have."""
    if isinstance(policy, dict):
        return policy
    return {"denyOut": [ALL]} if policy == "block" else {"allowOut": [ALL]}
