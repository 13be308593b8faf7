"""What the registry refuses, beyond mistakes in SQL."""

from __future__ import annotations

from typing import Any

from tamis.errors import NotAcceptedError, RefusedError


class MissingError(RefusedError):
    """There is nothing of that name."""


class UnboundedError(NotAcceptedError):
    """No proof that the query's memory is bounded. `document` is its part of EXPLAIN's document."""

    def __init__(self, what: str, *, where: str, hint: str, document: dict[str, Any]) -> None:
        self.document = document
        super().__init__(what, where=where, hint=hint)
