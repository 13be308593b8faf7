"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "failed", "unchecked"]


@dataclass(frozen=True)
class Finding:
    """A state with what was found, and what to do about it. A check is `unchecked` if something that it needs
    isn't there.
    """

    state: State
    found: str
    todo: str = ""
