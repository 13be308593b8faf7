"""Errors with which the registry refuses requests, except mistakes in SQL."""

from __future__ import annotations

from tamis.errors import RefusedError


class MissingError(RefusedError):
    """There is nothing with that name."""


def lists(kind: str, what: str = "what there is") -> str:
    """The hint of an error about an unknown name: what lists the names, on the command line and over HTTP.

    >>> lists("edges")
    '`tamis get edges` (GET /v1/edges) lists what there is'
    """
    return f"`tamis get {kind}` (GET /v1/{kind}) lists {what}"
