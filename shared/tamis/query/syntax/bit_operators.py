"""Bit operators of the parser, with the precedence of DuckDB: below the sums, and above `||`.

`& | << >>`, and the `#` of Postgres, have one precedence and begin from the left. `~` takes the sum behind
it: ~5 + 1 is ~(5 + 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.risingwave import RisingWaveParser
from sqlglot.tokenizer_core import TokenType

_SHIFTS: dict[TokenType, type[exp.Expr]] = {
    TokenType.LT: exp.BitwiseLeftShift,
    TokenType.GT: exp.BitwiseRightShift,
}


# Behind these, systems disagree on the operand of ~.
_BEFORE_OPERAND = frozenset(
    (TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.CARET)
)


def _complement(parser: Any) -> exp.Expr:
    before = parser._tokens[parser._index - 2] if parser._index > 1 else None
    if before is not None and before.token_type in _BEFORE_OPERAND:
        parser.raise_error("Expecting parentheses around ~ and its operand", parser._prev)
    operand = parser._parse_term()
    if operand is None:
        parser.raise_error("Expecting an expression")
    node: exp.Expr = parser.expression(exp.BitwiseNot(this=operand))
    return node


class BitOperators(RisingWaveParser):
    """A parser of sqlglot with these rules."""

    # Postgres' operator for regular expressions has the same character.
    UNARY_PARSERS: ClassVar[dict[TokenType, Callable[[Any], Any]]] = {
        **RisingWaveParser.UNARY_PARSERS,
        TokenType.TILDE: _complement,
        TokenType.RLIKE: _complement,
    }

    def _parse_bitwise(self) -> exp.Expr | None:
        this = self._parse_bits()
        while self._match(TokenType.DPIPE):
            this = self.expression(exp.DPipe(this=this, expression=self._parse_bits(), safe=True))
        return this

    def _parse_bits(self) -> exp.Expr | None:
        this = self._parse_term()
        kind: type[exp.Expr]
        while True:
            if self._match_set(self.BITWISE):
                kind = self.BITWISE[self._prev.token_type]
            elif self._curr.token_type in _SHIFTS and self._is_doubled():
                kind = _SHIFTS[self._curr.token_type]
                self._advance(2)
            elif self.JSON_OPERATORS and self._match_set(self.JSON_OPERATORS):
                this = self.JSON_OPERATORS[self._prev.token_type](self, this, self._parse_term())
                continue
            else:
                return this
            right = self._parse_term()
            if this is None or right is None:
                self.raise_error("Expecting an expression")
            this = self.expression(kind(this=this, expression=right))

    def _is_doubled(self) -> bool:
        """True if the same sign follows without a space."""
        sign, following = self._curr, self._next
        return bool(following.token_type is sign.token_type and following.start == sign.end + 1)
