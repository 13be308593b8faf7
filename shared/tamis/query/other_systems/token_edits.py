"""Replacements of tokens in a text: the text that is shown to the user, on one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token


@dataclass
class TokenEdits:
    """Edits of a SELECT's tokens. Ranges are indexes of tokens, the end exclusive; they don't overlap."""

    tokens: Sequence[Token]
    replaced: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, start: int, end: int, text: str) -> None:
        """Put `text` in place of tokens; an empty text removes them, and an empty range inserts before
        `start`.
        """
        self.replaced.append((start, end, text))

    def text(self, source: str) -> str:
        """`source`, of which the tokens are, from the first token to the last, after all edits."""
        parts: list[str] = []
        at = self.tokens[0].start
        for start, end, new in sorted(self.replaced):
            begin = self.tokens[start].start if start < len(self.tokens) else self.tokens[-1].end + 1
            parts += [source[at:begin].rstrip() if start == end else source[at:begin], new]
            at = self.tokens[end - 1].end + 1 if end > start else begin
            if start == end:
                parts.append(" ")
        parts.append(source[at : self.tokens[-1].end + 1])
        return " ".join("".join(parts).split())
